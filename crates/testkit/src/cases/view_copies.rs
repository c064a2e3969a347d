//! Views with memory of their own, and tensors with a part replaced.

use plimsoll_core::Result;
use plimsoll_tensor::Tensor;

use super::Case;
use super::input::{Input, any};
use crate::oracle::{Array, indices, views};

fn row(
    op: &'static str,
    torch: &str,
    input: Input,
    run: fn(&Tensor) -> Result<Tensor>,
    oracle: fn(&Array) -> Array,
) -> Case {
    Case::new(op, format!("torch.{torch}"), [input])
        .run(move |t| run(&t[0]))
        .oracle(move |x| oracle(&x[0]))
        .row_major()
        .gradient(&[0])
}

/// `x` with `part` at the places that `to` says.
fn replaced(x: &Array, part: &Array, to: impl Fn(&[usize]) -> Vec<usize>) -> Array {
    let mut result = x.clone();
    for index in indices(part.shape()) {
        result.set(&to(&index), part.at(&index));
    }
    result
}

pub(super) fn cases() -> Vec<Case> {
    let x = || any(&[2, 3, 4]);
    let mut cases = vec![
        row("alias_copy", "alias_copy(a)", x(), Tensor::alias_copy, Array::clone),
        row(
            "as_strided_copy",
            "as_strided_copy(a, (2, 3), (1, 2), 1)",
            any(&[4, 3]),
            |t| t.as_strided_copy(&[2, 3], &[1, 2], 1),
            |x| views::as_strided(x, &[2, 3], &[1, 2], 1),
        )
        .plain(),
        row(
            "diagonal_copy",
            "diagonal_copy(a, 1)",
            x(),
            |t| t.diagonal_copy(1, 0, 1),
            |x| views::diagonal(x, 1, 0, 1),
        ),
        row(
            "expand_copy",
            "expand_copy(a, (2, 3))",
            any(&[3]),
            |t| t.expand_copy(&[2, 3]),
            |x| views::expand(x, &[2, 3]),
        ),
        row(
            "narrow_copy",
            "narrow_copy(a, 1, 1, 2)",
            x(),
            |t| t.narrow_copy(1, 1, 2),
            |x| views::narrow(x, 1, 1, 2),
        ),
        row(
            "permute_copy",
            "permute_copy(a, (2, 0, 1))",
            x(),
            |t| t.permute_copy(&[2, 0, 1]),
            |x| views::permute(x, &[2, 0, 1]),
        ),
        row(
            "squeeze_copy",
            "squeeze_copy(a, 1)",
            any(&[2, 1, 3]),
            |t| t.squeeze_copy_with(1),
            |x| views::squeeze(x, 1),
        ),
        row("t_copy", "t_copy(a)", any(&[2, 3]), Tensor::t_copy, |x| views::transpose(x, 0, 1)),
        row(
            "transpose_copy",
            "transpose_copy(a, 0, 2)",
            x(),
            |t| t.transpose_copy(0, 2),
            |x| views::transpose(x, 0, 2),
        ),
        row(
            "unfold_copy",
            "unfold_copy(a, 2, 2, 2)",
            x(),
            |t| t.unfold_copy(2, 2, 2),
            |x| views::unfold(x, 2, 2, 2),
        ),
        row(
            "unsqueeze_copy",
            "unsqueeze_copy(a, 0)",
            x(),
            |t| t.unsqueeze_copy(0),
            |x| views::unsqueeze(x, 0),
        ),
        row(
            "view_copy",
            "view_copy(a, (6, 4))",
            x(),
            |t| t.view_copy(&[6, 4]),
            |x| views::reshape(x, &[6, 4]),
        )
        .plain(),
        Case::new("unbind_copy", "torch.unbind_copy(a, 1)", [any(&[2, 2])])
            .run(|t| t[0].unbind_copy(1))
            .oracle(|x| (views::select(&x[0], 1, 0), views::select(&x[0], 1, 1)))
            .row_major()
            .gradient(&[0]),
        Case::new(
            "split_with_sizes_copy",
            "torch.split_with_sizes_copy(a, [1, 2])",
            [any(&[3, 2])],
        )
        .run(|t| t[0].split_with_sizes_copy(&[1, 2], 0))
        .oracle(|x| (views::slice(&x[0], 0, 0, 1, 1), views::slice(&x[0], 0, 1, 3, 1)))
        .row_major()
        .gradient(&[0]),
    ];
    cases.extend(parts_replaced());
    cases
}

fn parts_replaced() -> Vec<Case> {
    let case = |op: &'static str, torch: &str, part: &[usize]| {
        Case::new(op, format!("torch.{torch}"), [any(&[3, 4]), any(part)]).gradient(&[0, 1]).brief()
    };
    vec![
        case("select_scatter", "select_scatter(a, b, 0, 1)", &[4])
            .run(|t| t[0].select_scatter(&t[1], 0, 1))
            .oracle(|x| replaced(&x[0], &x[1], |i| vec![1, i[0]])),
        case("slice_scatter", "slice_scatter(a, b, 1, 1, 4, 2)", &[3, 2])
            .run(|t| t[0].slice_scatter(&t[1], 1, 1, 4, 2))
            .oracle(|x| replaced(&x[0], &x[1], |i| vec![i[0], 1 + 2 * i[1]])),
        case("diagonal_scatter", "diagonal_scatter(a, b, 1)", &[3])
            .run(|t| t[0].diagonal_scatter(&t[1], 1, 0, 1))
            .oracle(|x| replaced(&x[0], &x[1], |i| vec![i[0], i[0] + 1])),
        case("as_strided_scatter", "as_strided_scatter(a, b, (2, 2), (4, 2), 1)", &[2, 2])
            .run(|t| t[0].as_strided_scatter(&t[1], &[2, 2], &[4, 2], 1))
            .oracle(|x| replaced(&x[0], &x[1], |i| vec![i[0], 1 + 2 * i[1]]))
            .plain(),
    ]
}
