//! Reading, writing and combining along one dimension; masks and flat positions.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{Reduce, Tensor};

use super::input::{Input, any, below, distinct, mask, nonzero, places};
use super::{Case, Inputs};
use crate::layouts::Arrangement::{Contiguous, Offset, Stepped, Transposed};
use crate::oracle::{Array, Number, index, indices, views};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = scatters();
    cases.extend(slices());
    cases.extend(masked());
    cases.extend(flat());
    cases
}

/// `x` with `source` brought in by `join` where `at` says along `dim`; `None` if what was there
/// takes no part.
fn combined(
    x: &Array,
    at: impl Fn(&[usize]) -> Vec<usize>,
    source: &Array,
    shape: &[usize],
    include_self: bool,
    join: impl Fn(Number, Number) -> Number,
) -> Array {
    let mut result = x.clone();
    let mut fresh = vec![!include_self; x.numel()];
    for i in indices(shape) {
        let to = at(&i);
        let place = to.iter().zip(x.shape()).fold(0, |p, (&i, &size)| p * size + i);
        let value = if fresh[place] { source.at(&i) } else { join(result.at(&to), source.at(&i)) };
        fresh[place] = false;
        result.set(&to, value);
    }
    result
}

fn later(_: Number, new: Number) -> Number {
    new
}

fn plus(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Number::Int(a.wrapping_add(b)),
        (a, b) => Number::Float(a.to_f64() + b.to_f64()),
    }
}

fn larger(a: Number, b: Number) -> Number {
    if b.to_f64() > a.to_f64() { b } else { a }
}

fn along(dim: usize, index: &Array) -> impl Fn(&[usize]) -> Vec<usize> + '_ {
    move |i| {
        let mut to = i.to_vec();
        to[dim] = index.at(i).to_i64() as usize;
        to
    }
}

/// As [`along`], with an index for each slice.
fn sliced(dim: usize, index: &Array) -> impl Fn(&[usize]) -> Vec<usize> + '_ {
    move |i| {
        let mut to = i.to_vec();
        to[dim] = index.at(&[i[dim]]).to_i64() as usize;
        to
    }
}

type Written = fn(&Inputs) -> Result<()>;

/// The forms of a scatter: a new tensor, in place, and into another.
fn forms(
    op: &'static str,
    torch: &str,
    inputs: [Input; 3],
    run: fn(&Inputs) -> Result<Tensor>,
    (in_place, out): (Written, Option<Written>),
    oracle: fn(&Array, &Array, &Array) -> Array,
) -> Vec<Case> {
    let [x, at, source] = inputs;
    let all = || [x.clone(), at.clone(), source.clone()];
    let mut cases = vec![
        Case::new(op, format!("torch.{op}(a, {torch})"), all())
            .run(run)
            .oracle(move |x| oracle(&x[0], &x[1], &x[2]))
            .row_major()
            .tolerance(8.0, 8.0)
            .gradient(&[0, 2]),
        Case::new(op, format!("a.{op}_({torch})"), all())
            .writes(0, in_place)
            .oracle(move |x| oracle(&x[0], &x[1], &x[2]))
            .only(&[Contiguous, Transposed, Stepped, Offset])
            .tolerance(8.0, 8.0)
            .gradient(&[0, 2]),
    ];
    if let Some(out) = out {
        cases.push(
            Case::new(
                op,
                format!("torch.{op}(a, {torch}, out=d)"),
                [x.clone(), at.clone(), source.clone(), x.clone()],
            )
            .writes(3, out)
            .oracle(move |x| oracle(&x[0], &x[1], &x[2]))
            .only(&[Contiguous, Transposed, Stepped])
            .tolerance(8.0, 8.0),
        );
    }
    cases
}

fn scatters() -> Vec<Case> {
    // Each place once: which of two values stays PyTorch does not say.
    let once = || [any(&[5]), below(5, &[1]), any(&[1])];
    let mut cases = forms(
        "scatter",
        "0, b, c",
        once(),
        |t| t[0].scatter(0, &t[1], &t[2], None),
        (
            |t| t[0].scatter_(0, &t[1], &t[2], None).map(|_| ()),
            Some(|t| t[0].scatter_out(0, &t[1], &t[2], None, &t[3])),
        ),
        |x, at, source| combined(x, along(0, at), source, at.shape(), true, later),
    );
    cases.extend(forms(
        "scatter_reduce",
        "1, b, c, 'amax', include_self=False",
        [distinct(&[3, 4]), below(4, &[3, 5]), distinct(&[3, 5])],
        |t| t[0].scatter_reduce(1, &t[1], &t[2], Reduce::Amax, false),
        (
            |t| t[0].scatter_reduce_(1, &t[1], &t[2], Reduce::Amax, false).map(|_| ()),
            Some(|t| t[0].scatter_reduce_out(1, &t[1], &t[2], Reduce::Amax, false, &t[3])),
        ),
        |x, at, source| combined(x, along(1, at), source, at.shape(), false, larger),
    ));
    cases.push(
        Case::new(
            "scatter_reduce",
            "torch.scatter_reduce(a, 0, b, c, 'prod')",
            [nonzero(&[3, 2]), below(3, &[4, 2]), nonzero(&[4, 2])],
        )
        .run(|t| t[0].scatter_reduce(0, &t[1], &t[2], Reduce::Prod, true))
        .oracle(|x| {
            combined(&x[0], along(0, &x[1]), &x[2], x[1].shape(), true, |a, b| match (a, b) {
                (Number::Int(a), Number::Int(b)) => Number::Int(a.wrapping_mul(b)),
                (a, b) => Number::Float(a.to_f64() * b.to_f64()),
            })
        })
        .dtypes(&[DType::I64, DType::F32, DType::F64])
        .taking_only_these()
        .row_major()
        .tolerance(16.0, 16.0)
        .gradient(&[0, 2]),
    );
    cases.push(
        Case::new(
            "scatter_add",
            "torch.scatter_add(a, 0, b, c, out=d)",
            [any(&[3, 2]), below(3, &[4, 2]), any(&[4, 2]), any(&[3, 2])],
        )
        .writes(3, |t| t[0].scatter_add_out(0, &t[1], &t[2], &t[3]))
        .oracle(|x| combined(&x[0], along(0, &x[1]), &x[2], x[1].shape(), true, plus))
        .only(&[Contiguous, Transposed, Stepped])
        .tolerance(8.0, 8.0),
    );
    cases
}

fn slices() -> Vec<Case> {
    let select = |dim: i64, at: Input| {
        Case::new("index_select", format!("torch.index_select(a, {dim}, b)"), [any(&[3, 4]), at])
            .run(move |t| t[0].index_select(dim, &t[1]))
            .oracle(move |x| {
                let d = x[0].dim(dim);
                let mut shape = x[0].shape().to_vec();
                shape[d] = x[1].numel();
                views::read(&x[0], &shape, sliced(d, &x[1]))
            })
            .row_major()
            .gradient(&[0])
    };
    let mut cases = vec![
        select(0, below(3, &[5])),
        select(-1, below(4, &[2]).of(DType::I32)),
        select(0, below(3, &[0])).plain(),
        Case::new(
            "index_select",
            "torch.index_select(a, 0, b, out=c)",
            [any(&[3, 4]), below(3, &[2]), any(&[2, 4])],
        )
        .writes(2, |t| t[0].index_select_out(0, &t[1], &t[2]))
        .oracle(|x| views::read(&x[0], &[2, 4], sliced(0, &x[1])))
        .only(&[Contiguous, Transposed, Stepped]),
        Case::new("index_fill", "torch.index_fill(a, 1, b, 3)", [any(&[3, 4]), below(4, &[2])])
            .run(|t| t[0].index_fill(1, &t[1], 3))
            .oracle(|x| filled(&x[0], &x[1]))
            .gradient(&[0]),
        Case::new("index_fill", "a.index_fill_(1, b, 3)", [any(&[3, 4]), below(4, &[2])])
            .writes(0, |t| t[0].index_fill_(1, &t[1], 3).map(|_| ()))
            .oracle(|x| filled(&x[0], &x[1]))
            .only(&[Contiguous, Transposed, Stepped, Offset])
            .gradient(&[0]),
    ];
    cases.extend(forms(
        "index_add",
        "0, b, c",
        [any(&[3, 4]), below(3, &[5]), any(&[5, 4])],
        |t| t[0].index_add(0, &t[1], &t[2], 1),
        (
            |t| t[0].index_add_(0, &t[1], &t[2], 1).map(|_| ()),
            Some(|t| t[0].index_add_out(0, &t[1], &t[2], 1, &t[3])),
        ),
        |x, at, source| combined(x, sliced(0, at), source, source.shape(), true, plus),
    ));
    cases.extend(forms(
        "index_copy",
        "0, b, c",
        [any(&[3, 4]), below(3, &[1]), any(&[1, 4])],
        |t| t[0].index_copy(0, &t[1], &t[2]),
        (
            |t| t[0].index_copy_(0, &t[1], &t[2]).map(|_| ()),
            Some(|t| t[0].index_copy_out(0, &t[1], &t[2], &t[3])),
        ),
        |x, at, source| combined(x, sliced(0, at), source, source.shape(), true, later),
    ));
    let reduced = forms(
        "index_reduce",
        "0, b, c, 'amax'",
        [distinct(&[3, 4]), below(3, &[5]), any(&[5, 4])],
        |t| t[0].index_reduce(0, &t[1], &t[2], Reduce::Amax, true),
        (
            |t| t[0].index_reduce_(0, &t[1], &t[2], Reduce::Amax, true).map(|_| ()),
            Some(|t| t[0].index_reduce_out(0, &t[1], &t[2], Reduce::Amax, true, &t[3])),
        ),
        |x, at, source| combined(x, sliced(0, at), source, source.shape(), true, larger),
    );
    cases.extend(reduced);
    cases
}

fn filled(x: &Array, at: &Array) -> Array {
    let named: Vec<i64> = at.values().iter().map(|at| at.to_i64()).collect();
    Array::build(x.dtype(), x.shape(), |i| match named.contains(&(i[1] as i64)) {
        true => Number::Int(3),
        false => x.at(i),
    })
}

fn masked() -> Vec<Case> {
    fn fill(x: &Array, mask: &Array) -> Array {
        Array::build(x.dtype(), x.shape(), |i| match mask.at_broadcast(i).is_true() {
            true => Number::Int(1),
            false => x.at(i),
        })
    }
    vec![
        Case::new("masked_fill", "torch.masked_fill(a, b, True)", [any(&[3, 4]), mask(&[4])])
            .run(|t| t[0].masked_fill(&t[1], true))
            .oracle(|x| fill(&x[0], &x[1]))
            .gradient(&[0]),
        Case::new("masked_fill", "a.masked_fill_(b, True)", [any(&[3, 4]), mask(&[3, 4])])
            .writes(0, |t| t[0].masked_fill_(&t[1], true).map(|_| ()))
            .oracle(|x| fill(&x[0], &x[1]))
            .only(&[Contiguous, Transposed, Stepped, Offset])
            .gradient(&[0]),
        Case::new(
            "masked_scatter",
            "torch.masked_scatter(a, b, c)",
            [any(&[3, 4]), mask(&[3, 4]), any(&[12])],
        )
        .run(|t| t[0].masked_scatter(&t[1], &t[2]))
        .oracle(|x| {
            let mut used = 0;
            Array::build(x[0].dtype(), x[0].shape(), |i| {
                if !x[1].at(i).is_true() {
                    return x[0].at(i);
                }
                used += 1;
                x[2].at(&[used - 1])
            })
        })
        .row_major()
        .gradient(&[0, 2]),
        Case::new("argwhere", "torch.argwhere(a)", [any(&[3, 4])])
            .run(|t| t[0].argwhere())
            .oracle(|x| index::nonzero(&x[0])),
        Case::new("nonzero_static", "torch.nonzero_static(a, size=20)", [any(&[3, 4])])
            .run(|t| t[0].nonzero_static(20, -1))
            .oracle(|x| {
                let found = index::nonzero(&x[0]);
                Array::build(DType::I64, &[20, 2], |i| match i[0] < found.shape()[0] {
                    true => found.at(i),
                    false => Number::Int(-1),
                })
            })
            .row_major(),
    ]
}

fn flat() -> Vec<Case> {
    let at = |i: &Number| i.to_i64().rem_euclid(12) as usize;
    vec![
        Case::new("take", "torch.take(a, b)", [any(&[3, 4]), places(12, &[2, 3])])
            .run(|t| t[0].take(&t[1]))
            .oracle(move |x| {
                let values = x[1].values().iter().map(|i| x[0].values()[at(i)]).collect();
                Array::new(x[0].dtype(), &[2, 3], values)
            })
            .row_major()
            .gradient(&[0]),
        Case::new("put", "torch.put(a, b, c)", [any(&[3, 4]), places(12, &[5]), any(&[5])])
            .run(|t| t[0].put(&t[1], &t[2], false))
            .oracle(move |x| {
                let mut values = x[0].values().to_vec();
                for (i, value) in x[1].values().iter().zip(x[2].values()) {
                    values[at(i)] = *value;
                }
                Array::new(x[0].dtype(), x[0].shape(), values)
            })
            .only(&[Contiguous, Transposed, Stepped, Offset])
            .row_major()
            .gradient(&[0, 2]),
        Case::new(
            "take_along_dim",
            "torch.take_along_dim(a, b, 1)",
            [any(&[3, 4]), below(4, &[1, 2])],
        )
        .run(|t| t[0].take_along_dim(&t[1], Some(1)))
        .oracle(|x| {
            views::read(&x[0], &[3, 2], |i| vec![i[0], x[1].at(&[0, i[1]]).to_i64() as usize])
        })
        .row_major()
        .gradient(&[0]),
    ]
}
