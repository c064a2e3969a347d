//! Comparisons: with tensors and host numbers, in place and into given tensors.

use std::cmp::Ordering;

use plimsoll_core::Result;
use plimsoll_tensor::Tensor;

use super::Case;
use super::input::{any, mask, special};
use crate::layouts::Arrangement::{Contiguous, Offset};
use crate::oracle::{Array, binary};

type Two = fn(&Tensor, &Tensor) -> Result<Tensor>;
type Write = fn(&Tensor, &Tensor) -> Result<()>;
type WriteOut = fn(&Tensor, &Tensor, &Tensor) -> Result<()>;

pub(super) fn cases() -> Vec<Case> {
    type Compare = (&'static str, Two, fn(&Array, &Array) -> Array);
    let all: [Compare; 6] = [
        ("eq", |a, b| a.eq(b), |a, b| binary::compare(a, b, |o| o == Ordering::Equal)),
        ("ne", |a, b| a.ne(b), binary::ne),
        ("lt", |a, b| a.lt(b), |a, b| binary::compare(a, b, |o| o == Ordering::Less)),
        ("le", |a, b| a.le(b), |a, b| binary::compare(a, b, |o| o != Ordering::Greater)),
        ("gt", |a, b| a.gt(b), |a, b| binary::compare(a, b, |o| o == Ordering::Greater)),
        ("ge", |a, b| a.ge(b), |a, b| binary::compare(a, b, |o| o != Ordering::Less)),
    ];
    let mut rows: Vec<Case> = all
        .into_iter()
        .flat_map(|(op, new, oracle)| {
            let row = |a, b| {
                Case::new(op, format!("torch.{op}(a, b)"), [a, b])
                    .run(move |t| new(&t[0], &t[1]))
                    .oracle(move |x| oracle(&x[0], &x[1]))
            };
            [
                row(any(&[2, 3, 4]), any(&[2, 3, 4])),
                row(special(&[17, 1]), special(&[17])).plain(),
                row(any(&[0, 3]), any(&[3])).plain(),
                row(any(&[]), any(&[])).only(&[Contiguous, Offset]),
                row(any(&[5]), any(&[5]).other()).pairs(|_, _| true),
            ]
        })
        .collect();
    rows.extend(written_comparisons());
    rows.push(
        Case::new("gt", "a > 1", [any(&[3, 4])])
            .run(|t| t[0].gt(1))
            .oracle(|x| binary::compare(&x[0], &Array::host(1i64), |o| o == Ordering::Greater)),
    );
    rows.push(
        Case::new("eq", "a == 2.5", [any(&[3, 4])])
            .run(|t| t[0].eq(2.5))
            .oracle(|x| binary::compare(&x[0], &Array::host(2.5), |o| o == Ordering::Equal)),
    );
    rows
}

/// The in-place and `out=` forms: 0 and 1 in the dtype that is there.
fn written_comparisons() -> Vec<Case> {
    type Compare = (&'static str, Write, WriteOut, fn(&Array, &Array) -> Array);
    let all: [Compare; 6] = [
        (
            "eq",
            |a, b| a.eq_(b).map(drop),
            |a, b, out| a.eq_out(b, out),
            |a, b| binary::compare(a, b, |o| o == Ordering::Equal),
        ),
        ("ne", |a, b| a.ne_(b).map(drop), |a, b, out| a.ne_out(b, out), binary::ne),
        (
            "lt",
            |a, b| a.lt_(b).map(drop),
            |a, b, out| a.lt_out(b, out),
            |a, b| binary::compare(a, b, |o| o == Ordering::Less),
        ),
        (
            "le",
            |a, b| a.le_(b).map(drop),
            |a, b, out| a.le_out(b, out),
            |a, b| binary::compare(a, b, |o| o != Ordering::Greater),
        ),
        (
            "gt",
            |a, b| a.gt_(b).map(drop),
            |a, b, out| a.gt_out(b, out),
            |a, b| binary::compare(a, b, |o| o == Ordering::Greater),
        ),
        (
            "ge",
            |a, b| a.ge_(b).map(drop),
            |a, b, out| a.ge_out(b, out),
            |a, b| binary::compare(a, b, |o| o != Ordering::Less),
        ),
    ];
    let rows = all.into_iter().flat_map(|(op, in_place, out, oracle)| {
        [
            Case::new(op, format!("a.{op}_(b)"), [any(&[2, 3]), any(&[3])])
                .writes(0, move |t| in_place(&t[0], &t[1]))
                .oracle(move |x| oracle(&x[0], &x[1]).cast(x.dtype)),
            Case::new(
                op,
                format!("torch.{op}(a, b, out=c)"),
                [any(&[2, 3]), any(&[3]), mask(&[2, 3])],
            )
            .writes(2, move |t| out(&t[0], &t[1], &t[2]))
            .oracle(move |x| oracle(&x[0], &x[1]))
            .brief(),
        ]
    });
    rows.collect()
}
