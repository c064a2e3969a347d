//! Reading and writing at indices, sorting, positions of what is not zero.

use plimsoll_core::DType;
use plimsoll_tensor::{SortOptions, Tensor};

use super::Case;
use super::input::{Input, any, below, distinct, mask, places, special};
use crate::layouts::Arrangement;
use crate::layouts::Arrangement::{Contiguous, Offset, Stepped, Transposed};
use crate::oracle::{Array, index};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = gather();
    cases.extend(scatter_add());
    cases.extend(read());
    cases.extend(write());
    cases.extend(sort());
    cases.extend(positions());
    cases
}

fn gather() -> Vec<Case> {
    let row = |input: Input, dim: i64, at: Input| {
        Case::new("gather", format!("torch.gather(a, {dim}, b)"), [input, at])
            .run(move |t| t[0].gather(dim, &t[1]))
            .oracle(move |x| index::gather(&x[0], dim, &x[1]))
    };
    vec![
        row(any(&[3, 4]), 0, below(3, &[2, 4])).gradient(&[0]),
        row(any(&[3, 4]), 1, below(4, &[3, 2]).of(DType::I32)).brief(),
        row(any(&[3, 4]), 1, below(4, &[3, 6])).gradient(&[0]),
        row(any(&[2, 3, 4]), -2, below(3, &[2, 5, 3])).gradient(&[0]),
        row(any(&[3, 4]), 0, below(3, &[0, 4])).plain(),
        row(any(&[]), 0, below(1, &[])).only(&[Contiguous, Offset]).gradient(&[0]),
        row(any(&[5]), -1, below(5, &[9])).brief(),
        Case::new(
            "gather",
            "torch.gather(a, 1, b, out=c)",
            [any(&[3, 4]), below(4, &[3, 2]), any(&[3, 2])],
        )
        .writes(2, |t| t[0].gather_out(1, &t[1], &t[2]))
        .oracle(|x| index::gather(&x[0], 1, &x[1]))
        .only(&[Contiguous, Transposed, Stepped]),
    ]
}

fn scatter_add() -> Vec<Case> {
    let row = |input: Input, dim: i64, at: Input, source: Input| {
        Case::new("scatter_add", format!("torch.scatter_add(a, {dim}, b, c)"), [input, at, source])
            .run(move |t| t[0].scatter_add(dim, &t[1], &t[2]))
            .oracle(move |x| index::scatter_add(&x[0], dim, &x[1], &x[2]))
            .tolerance(8.0, 8.0)
    };
    vec![
        row(any(&[3, 4]), 0, below(3, &[2, 4]), any(&[2, 4])).gradient(&[0, 2]),
        row(any(&[3, 4]), 1, below(4, &[3, 6]), any(&[3, 6])).gradient(&[0, 2]),
        row(any(&[2, 3, 4]), -1, below(4, &[2, 2, 5]), any(&[2, 3, 5])).gradient(&[0, 2]),
        row(any(&[3, 4]), 0, below(3, &[0, 4]), any(&[0, 4])).plain(),
        Case::new(
            "scatter_add",
            "a.scatter_add_(1, b, c)",
            [any(&[3, 4]), below(4, &[3, 6]), any(&[3, 6])],
        )
        .writes(0, |t| t[0].scatter_add_(1, &t[1], &t[2]).map(|_| ()))
        .oracle(|x| index::scatter_add(&x[0], 1, &x[1], &x[2]))
        .tolerance(8.0, 8.0)
        .gradient(&[0, 2]),
    ]
}

/// Where index tensors stand among a tensor's dimensions: input numbers, or `None` for a whole
/// dimension.
type Pattern = &'static [Option<usize>];

fn tensors(pattern: Pattern, t: &super::Inputs) -> Vec<Option<&Tensor>> {
    pattern.iter().map(|p| p.map(|i| &t[i])).collect()
}

fn arrays(pattern: Pattern, x: &super::Arrays) -> Vec<Option<&Array>> {
    pattern.iter().map(|p| p.map(|i| &x[i])).collect()
}

/// The pattern as a Python list of `a`, `b`, ..
fn python(pattern: Pattern) -> String {
    let parts: Vec<String> = pattern
        .iter()
        .map(|p| p.map_or("None".to_string(), |i| ["a", "b", "c", "d"][i].to_string()))
        .collect();
    format!("[{}]", parts.join(", "))
}

fn read() -> Vec<Case> {
    fn row<const N: usize>(pattern: Pattern, inputs: [Input; N]) -> Case {
        Case::new("index", format!("torch.ops.aten.index(a, {})", python(pattern)), inputs)
            .run(move |t| t[0].index(&tensors(pattern, t)))
            .oracle(move |x| index::index(&x[0], &arrays(pattern, x)))
            .gradient(&[0])
    }
    vec![
        row(&[Some(1)], [any(&[3, 4]), places(3, &[2])]),
        row(&[None, Some(1)], [any(&[3, 4]), places(4, &[2, 3])]),
        row(&[Some(1), Some(2)], [any(&[3, 4]), places(3, &[2, 1]), places(4, &[3])]),
        row(&[Some(1), None, Some(2)], [any(&[3, 2, 4]), places(3, &[5]), places(4, &[5])]),
        row(&[None, Some(1), Some(2)], [any(&[2, 3, 4]), places(3, &[5]), places(4, &[5])]),
        row(&[Some(1)], [any(&[3, 4]), mask(&[3])]),
        row(&[Some(1)], [any(&[3, 4]), mask(&[3, 4])]),
        row(&[Some(1)], [any(&[3, 4]), below(3, &[0])]).plain(),
        row(&[Some(1)], [any(&[5, 2]), below(5, &[])]).brief(),
        row(&[Some(1)], [any(&[50]), below(50, &[200])]).brief(),
        row(&[Some(1)], [any(&[5]), below(5, &[4]).of(DType::I32)]).plain(),
    ]
}

fn write() -> Vec<Case> {
    fn row<const N: usize>(pattern: Pattern, accumulate: bool, inputs: [Input; N]) -> Case {
        let values = N - 1;
        let name = ["a", "b", "c", "d"][values];
        let flag = if accumulate { "True" } else { "False" };
        let call = format!("torch.ops.aten.index_put(a, {}, {name}, {flag})", python(pattern));
        Case::new("index_put", call, inputs)
            .run(move |t| t[0].index_put(&tensors(pattern, t), &t[values], accumulate))
            .oracle(move |x| index::index_put(&x[0], &arrays(pattern, x), &x[values], accumulate))
            .gradient(&[0, values])
            .tolerance(8.0, 8.0)
    }
    // Without accumulation a place written twice holds either value, so `places` names each once,
    // and an expanded index would name one again.
    const ONCE: [Arrangement; 4] = [Contiguous, Transposed, Stepped, Offset];
    vec![
        row(&[Some(1)], false, [any(&[5, 4]), places(5, &[3]), any(&[3, 4])]).only(&ONCE),
        row(&[Some(1)], false, [any(&[5, 4]), places(5, &[3]), any(&[4])]).only(&ONCE),
        row(&[Some(1)], true, [any(&[3, 4]), below(3, &[6]), any(&[6, 4])]),
        row(&[None, Some(1)], true, [any(&[3, 4]), below(4, &[6]), any(&[3, 6])]),
        row(&[None, Some(1)], false, [any(&[3, 7]), places(7, &[2, 3]), any(&[])]).only(&ONCE),
        row(
            &[Some(1), Some(2)],
            true,
            [any(&[3, 4]), below(3, &[2, 1]), below(4, &[3]), any(&[2, 3])],
        ),
        row(
            &[Some(1), None, Some(2)],
            true,
            [any(&[3, 2, 4]), below(3, &[5]), below(4, &[5]), any(&[5, 2])],
        ),
        row(&[Some(1)], false, [any(&[3, 4]), mask(&[3, 4]), any(&[])]),
        row(&[Some(1)], true, [any(&[3, 4]), mask(&[3]), any(&[4])]),
        row(&[Some(1)], false, [any(&[3, 4]), below(3, &[0]), any(&[4])]).plain(),
        Case::new(
            "index_put",
            "torch.ops.aten.index_put_(a, [b], c, True)",
            [any(&[3, 4]), below(3, &[6]), any(&[6, 4])],
        )
        .writes(0, |t| t[0].index_put_(&[Some(&t[1])], &t[2], true).map(|_| ()))
        .oracle(|x| index::index_put(&x[0], &[Some(&x[1])], &x[2], true))
        // PyTorch still writes to expanded tensors here, with a warning that it will stop.
        .only(&[Contiguous, Transposed, Stepped, Offset])
        .tolerance(8.0, 8.0)
        .gradient(&[0, 2]),
    ]
}

fn sort() -> Vec<Case> {
    let row = |input: Input, dim: i64, descending: bool| {
        let down = if descending { "True" } else { "False" };
        Case::new(
            "sort",
            format!("torch.sort(a, dim={dim}, descending={down}, stable=True)"),
            [input],
        )
        .run(move |t| t[0].sort_with(SortOptions::new().dim(dim).descending(descending)))
        .oracle(move |x| index::sort(&x[0], dim, descending))
    };
    vec![
        row(distinct(&[2, 3, 4]), -1, false).gradient(&[0]),
        row(distinct(&[2, 3, 4]), 0, true).gradient(&[0]),
        row(distinct(&[2, 3, 4]), 1, false).gradient(&[0]),
        row(any(&[3, 9]), 1, true),
        row(special(&[2, 19]), 1, false).brief(),
        row(special(&[19, 2]), 0, true).brief(),
        row(any(&[]), 0, false).only(&[Contiguous, Offset]),
        row(any(&[0, 3]), 0, false).plain(),
        row(any(&[3, 0]), 1, false).plain(),
        row(any(&[300]), 0, false).brief(),
        row(any(&[300]), 0, true).brief(),
        Case::new(
            "sort",
            "torch.sort(a, dim=1, stable=True, out=(b, c))",
            [distinct(&[3, 4]), any(&[3, 4]), any(&[3, 4]).of(DType::I64)],
        )
        .writes_all(&[1, 2], |t| {
            t[0].sort_with_out(SortOptions::new().dim(1).descending(false), &t[1], &t[2])
        })
        .oracle(|x| index::sort(&x[0], 1, false))
        .only(&[Contiguous, Transposed, Stepped]),
    ]
}

fn positions() -> Vec<Case> {
    let nonzero = |input: Input| {
        Case::new("nonzero", "torch.nonzero(a)", [input])
            .run(|t| t[0].nonzero())
            .oracle(|x| index::nonzero(&x[0]))
    };
    let masked = |input: Input, by: Input| {
        Case::new("masked_select", "torch.masked_select(a, b)", [input, by])
            .run(|t| t[0].masked_select(&t[1]))
            .oracle(|x| index::masked_select(&x[0], &x[1]))
            .gradient(&[0])
    };
    vec![
        nonzero(any(&[2, 3, 4])),
        nonzero(special(&[17])).plain(),
        nonzero(any(&[])).only(&[Contiguous, Offset]),
        nonzero(any(&[0, 3])).plain(),
        nonzero(mask(&[200])).brief(),
        masked(any(&[3, 4]), mask(&[3, 4])),
        masked(any(&[3, 4]), mask(&[4])),
        masked(any(&[4]), mask(&[3, 1])).brief(),
        masked(any(&[0, 3]), mask(&[0, 3])).plain(),
    ]
}
