//! Other shapes and orders of dimensions that are made of views.

use plimsoll_core::Result;
use plimsoll_tensor::Tensor;

use super::Case;
use super::input::{Input, any};
use crate::oracle::{Array, views};

fn row(
    op: &'static str,
    torch: &str,
    input: Input,
    run: fn(&Tensor) -> Result<Tensor>,
    oracle: fn(&Array) -> Array,
) -> Case {
    Case::new(op, torch, [input])
        .run(move |t| run(&t[0]))
        .oracle(move |x| oracle(&x[0]))
        .gradient(&[0])
}

pub(super) fn cases() -> Vec<Case> {
    let x = || any(&[2, 6]);
    let like = |op: &'static str, run: fn(&Tensor, &Tensor) -> Result<Tensor>| {
        Case::new(op, format!("a.{op}(b)"), [x(), any(&[3, 4])])
            .run(move |t| run(&t[0], &t[1]))
            .oracle(|x| views::reshape(&x[0], &[3, 4]))
            .gradient(&[0])
    };
    let mut cases = vec![
        like("reshape_as", Tensor::reshape_as),
        like("view_as", Tensor::view_as).plain(),
        Case::new("expand_as", "a.expand_as(b)", [any(&[3, 1]), any(&[2, 3, 4])])
            .run(|t| t[0].expand_as(&t[1]))
            .oracle(|x| views::expand(&x[0], &[2, 3, 4]))
            .gradient(&[0]),
        Case::new("broadcast_tensors", "torch.broadcast_tensors(a, b)", [any(&[3, 1]), any(&[4])])
            .run(|t| Tensor::broadcast_tensors(&[&t[0], &t[1]]))
            .oracle(|x| (views::expand(&x[0], &[3, 4]), views::expand(&x[1], &[3, 4])))
            .gradient(&[0, 1]),
        row(
            "unflatten",
            "a.unflatten(1, (2, -1))",
            x(),
            |t| t.unflatten(1, &[2, -1]),
            |x| views::reshape(x, &[2, 2, 3]),
        )
        .plain(),
        row("ravel", "torch.ravel(a)", x(), Tensor::ravel, |x| views::reshape(x, &[12])),
        row("atleast_1d", "torch.atleast_1d(a)", any(&[]), Tensor::atleast_1d, |x| {
            views::reshape(x, &[1])
        }),
        row("atleast_2d", "torch.atleast_2d(a)", any(&[3]), Tensor::atleast_2d, |x| {
            views::reshape(x, &[1, 3])
        }),
        row("atleast_3d", "torch.atleast_3d(a)", any(&[3]), Tensor::atleast_3d, |x| {
            views::reshape(x, &[1, 3, 1])
        }),
    ];
    cases.extend(orders());
    cases
}

fn orders() -> Vec<Case> {
    let x = || any(&[2, 3, 4]);
    vec![
        row("adjoint", "torch.adjoint(a)", x(), Tensor::adjoint, |x| views::transpose(x, 1, 2)),
        row(
            "movedim",
            "torch.movedim(a, (0, 1), (2, 0))",
            x(),
            |t| t.movedim(&[0, 1], &[2, 0]),
            |x| views::permute(x, &[1, 2, 0]),
        ),
        row(
            "moveaxis",
            "torch.moveaxis(a, -1, 0)",
            x(),
            |t| t.moveaxis(&[-1], &[0]),
            |x| views::permute(x, &[2, 0, 1]),
        ),
        row(
            "swapaxes",
            "torch.swapaxes(a, 0, 2)",
            x(),
            |t| t.swapaxes(0, 2),
            |x| views::transpose(x, 0, 2),
        ),
        row(
            "swapdims",
            "torch.swapdims(a, 0, 1)",
            x(),
            |t| t.swapdims(0, 1),
            |x| views::transpose(x, 0, 1),
        ),
        row(
            "diagonal",
            "torch.diagonal(a, 1, 0, 2)",
            x(),
            |t| t.diagonal(1, 0, 2),
            |x| views::diagonal(x, 1, 0, 2),
        ),
        row(
            "diagonal",
            "torch.diagonal(a, -1, 1, 0)",
            x(),
            |t| t.diagonal(-1, 1, 0),
            |x| views::diagonal(x, -1, 1, 0),
        ),
        row(
            "unfold",
            "a.unfold(1, 2, 1)",
            x(),
            |t| t.unfold(1, 2, 1),
            |x| views::unfold(x, 1, 2, 1),
        ),
        row(
            "unfold",
            "a.unfold(-1, 2, 2)",
            x(),
            |t| t.unfold(-1, 2, 2),
            |x| views::unfold(x, 2, 2, 2),
        ),
    ]
}
