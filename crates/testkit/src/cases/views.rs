//! Views: values here, strides and offsets in the golden files. Some views of some arrangements do
//! not exist, and PyTorch decides which.

use plimsoll_core::Result;
use plimsoll_tensor::Tensor;

use super::Case;
use super::input::{Input, any};
use crate::oracle::{Array, views};

type View = fn(&Tensor) -> Result<Tensor>;
type Oracle = fn(&Array) -> Array;

fn row(op: &'static str, torch: &str, input: Input, run: View, oracle: Oracle) -> Case {
    Case::new(op, torch, [input])
        .run(move |t| run(&t[0]))
        .oracle(move |x| oracle(&x[0]))
        .gradient(&[0])
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = shapes();
    cases.extend(orders());
    cases.extend(parts());
    cases.extend(sizes_of_one());
    cases
}

fn shapes() -> Vec<Case> {
    let x = || any(&[2, 3, 4]);
    vec![
        row("view", "a.view(6, 4)", x(), |t| t.view(&[6, 4]), |x| views::reshape(x, &[6, 4]))
            .may_refuse(),
        row("view", "a.view(2, -1)", x(), |t| t.view(&[2, -1]), |x| views::reshape(x, &[2, 12]))
            .may_refuse(),
        row(
            "view",
            "a.view(2, 3, 2, 2, 1)",
            x(),
            |t| t.view(&[2, 3, 2, 2, 1]),
            |x| views::reshape(x, &[2, 3, 2, 2, 1]),
        )
        .may_refuse(),
        row(
            "view",
            "a.view(0, 5)",
            any(&[0, 3]),
            |t| t.view(&[0, 5]),
            |x| views::reshape(x, &[0, 5]),
        )
        .plain(),
        row("view", "a.view(1, 1)", any(&[]), |t| t.view(&[1, 1]), |x| views::reshape(x, &[1, 1])),
        row(
            "reshape",
            "a.reshape(4, 6)",
            x(),
            |t| t.reshape(&[4, 6]),
            |x| views::reshape(x, &[4, 6]),
        ),
        row("reshape", "a.reshape(-1)", x(), |t| t.reshape(&[-1]), |x| views::reshape(x, &[24])),
        row("reshape", "a.reshape(())", any(&[1]), |t| t.reshape(&[]), |x| views::reshape(x, &[])),
        row(
            "reshape",
            "a.reshape(3, 0)",
            any(&[0, 3]),
            |t| t.reshape(&[3, 0]),
            |x| views::reshape(x, &[3, 0]),
        ),
        row("flatten", "a.flatten(0, -1)", x(), |t| t.flatten(0, -1), |x| views::reshape(x, &[24])),
        row(
            "flatten",
            "a.flatten(1, 2)",
            x(),
            |t| t.flatten(1, 2),
            |x| views::reshape(x, &[2, 12]),
        ),
        row(
            "flatten",
            "a.flatten(0, -1)",
            any(&[]),
            |t| t.flatten(0, -1),
            |x| views::reshape(x, &[1]),
        ),
    ]
}

fn orders() -> Vec<Case> {
    let x = || any(&[2, 3, 4]);
    vec![
        row(
            "transpose",
            "a.transpose(0, 2)",
            x(),
            |t| t.transpose(0, 2),
            |x| views::transpose(x, 0, 2),
        ),
        row(
            "transpose",
            "a.transpose(-1, -2)",
            x(),
            |t| t.transpose(-1, -2),
            |x| views::transpose(x, -1, -2),
        ),
        row(
            "transpose",
            "a.transpose(0, -1)",
            any(&[]),
            |t| t.transpose(0, -1),
            |x| views::transpose(x, 0, -1),
        ),
        row("t", "a.t()", any(&[3, 4]), Tensor::t, |x| views::transpose(x, 0, 1)),
        row("t", "a.t()", any(&[3]), Tensor::t, Array::clone),
        row(
            "permute",
            "a.permute(2, 0, 1)",
            x(),
            |t| t.permute(&[2, 0, 1]),
            |x| views::permute(x, &[2, 0, 1]),
        ),
        row(
            "permute",
            "a.permute(-1, -2, 0)",
            x(),
            |t| t.permute(&[-1, -2, 0]),
            |x| views::permute(x, &[-1, -2, 0]),
        ),
        row("permute", "a.permute(())", any(&[]), |t| t.permute(&[]), Array::clone),
        row(
            "expand",
            "a.expand(5, 2, 3)",
            any(&[2, 1]),
            |t| t.expand(&[5, 2, 3]),
            |x| views::expand(x, &[5, 2, 3]),
        ),
        row(
            "expand",
            "a.expand(-1, 4)",
            any(&[3, 1]),
            |t| t.expand(&[-1, 4]),
            |x| views::expand(x, &[-1, 4]),
        ),
        row(
            "expand",
            "a.expand(2, 0)",
            any(&[1]),
            |t| t.expand(&[2, 0]),
            |x| views::expand(x, &[2, 0]),
        ),
        row(
            "expand",
            "a.expand(2, 2)",
            any(&[]),
            |t| t.expand(&[2, 2]),
            |x| views::expand(x, &[2, 2]),
        ),
        row(
            "broadcast_to",
            "a.broadcast_to((2, 3, 4))",
            any(&[3, 1]),
            |t| t.broadcast_to(&[2, 3, 4]),
            |x| views::expand(x, &[2, 3, 4]),
        ),
        row(
            "as_strided",
            "a.as_strided((2, 3), (1, 2), 1)",
            any(&[4, 3]),
            |t| t.as_strided(&[2, 3], &[1, 2], 1),
            |x| views::as_strided(x, &[2, 3], &[1, 2], 1),
        )
        .plain(),
        row(
            "as_strided",
            "a.as_strided((3, 3), (2, 1), 0)",
            any(&[8]),
            |t| t.as_strided(&[3, 3], &[2, 1], 0),
            |x| views::as_strided(x, &[3, 3], &[2, 1], 0),
        )
        .plain(),
    ]
}

fn parts() -> Vec<Case> {
    let x = || any(&[2, 3, 4]);
    vec![
        row(
            "narrow",
            "a.narrow(1, 1, 2)",
            x(),
            |t| t.narrow(1, 1, 2),
            |x| views::narrow(x, 1, 1, 2),
        ),
        row(
            "narrow",
            "a.narrow(-1, -3, 2)",
            x(),
            |t| t.narrow(-1, -3, 2),
            |x| views::narrow(x, -1, -3, 2),
        ),
        row(
            "narrow",
            "a.narrow(0, 2, 0)",
            x(),
            |t| t.narrow(0, 2, 0),
            |x| views::narrow(x, 0, 2, 0),
        ),
        row(
            "slice",
            "a[:, :, 0:4:2]",
            x(),
            |t| t.slice(2, 0, 4, 2),
            |x| views::slice(x, 2, 0, 4, 2),
        ),
        row(
            "slice",
            "a[:, -2:]",
            x(),
            |t| t.slice(1, -2, i64::MAX, 1),
            |x| views::slice(x, 1, -2, i64::MAX, 1),
        ),
        row(
            "slice",
            "a[1:100:3]",
            x(),
            |t| t.slice(0, 1, 100, 3),
            |x| views::slice(x, 0, 1, 100, 3),
        ),
        row("slice", "a[:, :, 3:1]", x(), |t| t.slice(2, 3, 1, 1), |x| views::slice(x, 2, 3, 1, 1)),
        row("select", "a.select(1, 2)", x(), |t| t.select(1, 2), |x| views::select(x, 1, 2)),
        row("select", "a.select(-1, -4)", x(), |t| t.select(-1, -4), |x| views::select(x, -1, -4)),
        row("select", "a.select(0, 1)", any(&[3]), |t| t.select(0, 1), |x| views::select(x, 0, 1)),
    ]
}

fn sizes_of_one() -> Vec<Case> {
    vec![
        row(
            "squeeze",
            "a.squeeze(1)",
            any(&[2, 1, 3]),
            |t| t.squeeze_with(1),
            |x| views::squeeze(x, 1),
        ),
        row(
            "squeeze",
            "a.squeeze(-1)",
            any(&[2, 3]),
            |t| t.squeeze_with(-1),
            |x| views::squeeze(x, -1),
        ),
        row(
            "unsqueeze",
            "a.unsqueeze(0)",
            any(&[2, 3]),
            |t| t.unsqueeze(0),
            |x| views::unsqueeze(x, 0),
        ),
        row(
            "unsqueeze",
            "a.unsqueeze(-1)",
            any(&[2, 3]),
            |t| t.unsqueeze(-1),
            |x| views::unsqueeze(x, -1),
        ),
        row(
            "unsqueeze",
            "a.unsqueeze(0)",
            any(&[]),
            |t| t.unsqueeze(0),
            |x| views::unsqueeze(x, 0),
        ),
    ]
}
