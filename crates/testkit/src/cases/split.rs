//! Tensors cut along a dimension.

use plimsoll_core::Result;
use plimsoll_tensor::Tensor;

use super::Case;
use super::input::{Input, any};
use crate::oracle::{Array, views};

/// A row whose parts along `dim` start and end at `cuts`.
fn row(
    op: &'static str,
    torch: &str,
    input: Input,
    (dim, cuts): (i64, &'static [i64]),
    run: fn(&Tensor) -> Result<Vec<Tensor>>,
) -> Case {
    Case::new(op, torch, [input])
        .run(move |t| run(&t[0]))
        .oracle(move |x| -> Vec<Array> {
            cuts.windows(2).map(|cut| views::slice(&x[0], dim, cut[0], cut[1], 1)).collect()
        })
        .gradient(&[0])
}

pub(super) fn cases() -> Vec<Case> {
    let x = || any(&[5, 4]);
    vec![
        row("split", "torch.split(a, 2, 0)", x(), (0, &[0, 2, 4, 5]), |t| t.split(2, 0)),
        row("split", "torch.split(a, 9, 1)", x(), (1, &[0, 4]), |t| t.split(9, 1)),
        row(
            "split_with_sizes",
            "torch.split_with_sizes(a, [1, 4], 0)",
            x(),
            (0, &[0, 1, 5]),
            |t| t.split_with_sizes(&[1, 4], 0),
        ),
        row("chunk", "torch.chunk(a, 2, 0)", x(), (0, &[0, 3, 5]), |t| t.chunk(2, 0)),
        row("unsafe_chunk", "torch.unsafe_chunk(a, 2, -1)", x(), (1, &[0, 2, 4]), |t| {
            t.unsafe_chunk(2, -1)
        }),
        row("unsafe_split", "torch.unsafe_split(a, 3, 0)", x(), (0, &[0, 3, 5]), |t| {
            t.unsafe_split(3, 0)
        }),
        row(
            "unsafe_split_with_sizes",
            "torch.unsafe_split_with_sizes(a, [2, 3], 0)",
            x(),
            (0, &[0, 2, 5]),
            |t| t.unsafe_split_with_sizes(&[2, 3], 0),
        ),
        row("tensor_split", "torch.tensor_split(a, 3, 0)", x(), (0, &[0, 2, 4, 5]), |t| {
            t.tensor_split(3, 0)
        }),
        row("tensor_split", "torch.tensor_split(a, [1, 3], 1)", x(), (1, &[0, 1, 3, 4]), |t| {
            t.tensor_split(&[1, 3], 1)
        }),
        row("hsplit", "torch.hsplit(a, 2)", x(), (1, &[0, 2, 4]), |t| t.hsplit(2)),
        row("vsplit", "torch.vsplit(a, [2])", x(), (0, &[0, 2, 5]), |t| t.vsplit(&[2])),
        row("dsplit", "torch.dsplit(a, 2)", any(&[2, 1, 4]), (2, &[0, 2, 4]), |t| t.dsplit(2)),
        Case::new("unbind", "torch.unbind(a, 1)", [any(&[2, 3])])
            .run(|t| t[0].unbind(1))
            .oracle(|x| -> Vec<Array> { (0..3).map(|i| views::select(&x[0], 1, i)).collect() })
            .gradient(&[0]),
    ]
}
