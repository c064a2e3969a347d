//! Whole dimensions turned around, rolled, repeated and padded; triangles and diagonals.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{Mode, Tensor};

use super::input::{Input, any};
use super::{Case, FLOATS};
use crate::layouts::Arrangement::{Contiguous, Stepped, Transposed};
use crate::oracle::{Array, Number, views};

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

/// A row whose result lies like its input.
fn kept(
    op: &'static str,
    torch: &str,
    input: Input,
    run: fn(&Tensor) -> Result<Tensor>,
    oracle: fn(&Array) -> Array,
) -> Case {
    let mut case = row(op, torch, input, run, oracle);
    case.row_major = false;
    case
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = moved();
    cases.extend(padded());
    cases.extend(triangles());
    cases
}

fn moved() -> Vec<Case> {
    let x = || any(&[2, 3]);
    vec![
        kept(
            "flip",
            "torch.flip(a, (0, -1))",
            x(),
            |t| t.flip(&[0, -1]),
            |x| views::read(x, &[2, 3], |i| vec![1 - i[0], 2 - i[1]]),
        ),
        kept(
            "flip",
            "torch.flip(a, (1,))",
            any(&[2, 40]),
            |t| t.flip(&[1]),
            |x| views::read(x, &[2, 40], |i| vec![i[0], 39 - i[1]]),
        ),
        kept("fliplr", "torch.fliplr(a)", x(), Tensor::fliplr, |x| {
            views::read(x, &[2, 3], |i| vec![i[0], 2 - i[1]])
        }),
        kept("flipud", "torch.flipud(a)", x(), Tensor::flipud, |x| {
            views::read(x, &[2, 3], |i| vec![1 - i[0], i[1]])
        }),
        kept(
            "rot90",
            "torch.rot90(a, 1, (0, 1))",
            x(),
            |t| t.rot90(1, &[0, 1]),
            |x| views::read(x, &[3, 2], |i| vec![i[1], 2 - i[0]]),
        ),
        kept(
            "rot90",
            "torch.rot90(a, -1, (0, 1))",
            x(),
            |t| t.rot90(-1, &[0, 1]),
            |x| views::read(x, &[3, 2], |i| vec![1 - i[1], i[0]]),
        ),
        row(
            "roll",
            "torch.roll(a, (1, -2), (0, 1))",
            x(),
            |t| t.roll(&[1, -2], &[0, 1]),
            |x| views::read(x, &[2, 3], |i| vec![(i[0] + 1) % 2, (i[1] + 2) % 3]),
        ),
        row(
            "roll",
            "torch.roll(a, 2)",
            x(),
            |t| t.roll(&[2], &[]),
            |x| {
                views::read(x, &[2, 3], |i| {
                    let at = (i[0] * 3 + i[1] + 4) % 6;
                    vec![at / 3, at % 3]
                })
            },
        ),
        row(
            "repeat",
            "a.repeat(2, 1, 3)",
            x(),
            |t| t.repeat(&[2, 1, 3]),
            |x| views::read(x, &[2, 2, 9], |i| vec![i[1], i[2] % 3]),
        ),
        row(
            "repeat",
            "a.repeat(0, 1)",
            x(),
            |t| t.repeat(&[0, 1]),
            |x| Array::zeros(x.dtype(), &[0, 3]),
        )
        .plain(),
        row(
            "tile",
            "torch.tile(a, (2,))",
            x(),
            |t| t.tile(&[2]),
            |x| views::read(x, &[2, 6], |i| vec![i[0], i[1] % 3]),
        ),
        row(
            "repeat_interleave",
            "torch.repeat_interleave(a, 2, 1)",
            x(),
            |t| t.repeat_interleave(2, Some(1)),
            |x| views::read(x, &[2, 6], |i| vec![i[0], i[1] / 2]),
        ),
        row(
            "repeat_interleave",
            "torch.repeat_interleave(a, 3)",
            x(),
            |t| t.repeat_interleave(3, None),
            |x| views::read(x, &[18], |i| vec![i[0] / 9, i[0] / 3 % 3]),
        ),
    ]
}

fn padded() -> Vec<Case> {
    fn around(x: &Array) -> Array {
        Array::build(x.dtype(), &[2, 6], |i| match i[1] {
            1..4 => x.at(&[i[0], i[1] - 1]),
            _ => Number::Int(1),
        })
    }
    let floats = |case: Case| case.dtypes(&FLOATS).taking_only_these();
    vec![
        row(
            "constant_pad_nd",
            "torch.constant_pad_nd(a, (1, 2), 1)",
            any(&[2, 3]),
            |t| t.constant_pad_nd(&[1, 2], 1),
            around,
        ),
        row(
            "constant_pad_nd",
            "torch.constant_pad_nd(a, (-1, 0, 0, -1))",
            any(&[2, 3]),
            |t| t.constant_pad_nd(&[-1, 0, 0, -1], 0),
            |x| views::read(x, &[1, 2], |i| vec![i[0], i[1] + 1]),
        ),
        row(
            "pad",
            "torch.nn.functional.pad(a, (1, 2), value=1)",
            any(&[2, 3]),
            |t| t.pad(&[1, 2], Mode::Constant, Some(1)),
            around,
        ),
        floats(row(
            "pad",
            "torch.nn.functional.pad(a, (2, 1), 'reflect')",
            any(&[2, 3]),
            |t| t.pad(&[2, 1], Mode::Reflect, None::<f64>),
            |x| views::read(x, &[2, 6], |i| vec![i[0], [2, 1, 0, 1, 2, 1][i[1]]]),
        )),
        floats(row(
            "pad",
            "torch.nn.functional.pad(a, (2, 1), 'replicate')",
            any(&[2, 3]),
            |t| t.pad(&[2, 1], Mode::Replicate, None::<f64>),
            |x| views::read(x, &[2, 6], |i| vec![i[0], [0, 0, 0, 1, 2, 2][i[1]]]),
        )),
        floats(row(
            "pad",
            "torch.nn.functional.pad(a, (1, 2, 1, 0), 'circular')",
            any(&[1, 2, 3]),
            |t| t.pad(&[1, 2, 1, 0], Mode::Circular, None::<f64>),
            |x| views::read(x, &[1, 3, 6], |i| vec![0, (i[1] + 1) % 2, (i[2] + 2) % 3]),
        )),
    ]
}

fn triangles() -> Vec<Case> {
    fn tril(x: &Array) -> Array {
        Array::build(
            x.dtype(),
            x.shape(),
            |i| if i[1] <= i[0] + 1 { x.at(i) } else { Number::Int(0) },
        )
    }
    fn triu(x: &Array) -> Array {
        Array::build(x.dtype(), x.shape(), |i| if i[1] > i[0] { x.at(i) } else { Number::Int(0) })
    }
    let x = || any(&[3, 4]);
    let plain =
        |op: &'static str,
         torch: &str,
         input: Input,
         run: fn(&Tensor) -> Result<Tensor>,
         oracle: fn(&Array) -> Array| { row(op, torch, input, run, oracle) };
    vec![
        kept("tril", "torch.tril(a, 1)", x(), |t| t.tril(1), tril),
        kept("triu", "torch.triu(a, 1)", x(), |t| t.triu(1), triu),
        Case::new("tril", "a.tril_(1)", [x()])
            .writes(0, |t| t[0].tril_(1).map(|_| ()))
            .oracle(|x| tril(&x[0]))
            .only(&[Contiguous, Transposed, Stepped])
            .gradient(&[0]),
        Case::new("triu", "a.triu_(1)", [x()])
            .writes(0, |t| t[0].triu_(1).map(|_| ()))
            .oracle(|x| triu(&x[0]))
            .only(&[Contiguous, Transposed, Stepped])
            .gradient(&[0]),
        Case::new("tril", "torch.tril(a, 1, out=b)", [x(), x()])
            .writes(1, |t| t[0].tril_out(1, &t[1]))
            .oracle(|x| tril(&x[0]))
            .only(&[Contiguous, Transposed, Stepped]),
        Case::new("triu", "torch.triu(a, 1, out=b)", [x(), x()])
            .writes(1, |t| t[0].triu_out(1, &t[1]))
            .oracle(|x| triu(&x[0]))
            .only(&[Contiguous, Transposed, Stepped]),
        plain(
            "diag",
            "torch.diag(a, 1)",
            any(&[2]),
            |t| t.diag(1),
            |x| {
                Array::build(x.dtype(), &[3, 3], |i| {
                    if i[1] == i[0] + 1 { x.at(&[i[0]]) } else { Number::Int(0) }
                })
            },
        ),
        plain("diag", "torch.diag(a)", x(), |t| t.diag(0), |x| views::diagonal(x, 0, 0, 1)),
        plain(
            "diag_embed",
            "torch.diag_embed(a, -1, 0, 2)",
            any(&[2, 2]),
            |t| t.diag_embed(-1, 0, 2),
            |x| {
                Array::build(x.dtype(), &[3, 2, 3], |i| {
                    if i[0] == i[2] + 1 { x.at(&[i[1], i[2]]) } else { Number::Int(0) }
                })
            },
        ),
        plain(
            "diagflat",
            "torch.diagflat(a)",
            any(&[2, 2]),
            |t| t.diagflat(0),
            |x| {
                Array::build(x.dtype(), &[4, 4], |i| {
                    if i[0] == i[1] { x.at(&[i[0] / 2, i[0] % 2]) } else { Number::Int(0) }
                })
            },
        ),
        Case::new("fill", "torch.fill(a, 3)", [x()])
            .run(|t| t[0].fill(3))
            .oracle(|x| Array::build(x[0].dtype(), x[0].shape(), |_| Number::Int(3)))
            .gradient(&[0]),
        Case::new("combinations", "torch.combinations(a, 2)", [any(&[3])])
            .run(|t| t[0].combinations(2, false))
            .oracle(|x| {
                const PAIRS: [[usize; 2]; 3] = [[0, 1], [0, 2], [1, 2]];
                views::read(&x[0], &[3, 2], |i| vec![PAIRS[i[0]][i[1]]])
            })
            .row_major()
            .gradient(&[0]),
        Case::new(
            "multinomial",
            "torch.multinomial(torch.eye(3, dtype=dtype), 2, replacement=True)",
            [],
        )
        .run(|t| Tensor::eye(3, (t.dtype, t.device))?.multinomial(2, true))
        .oracle(|_| Array::build(DType::I64, &[3, 2], |i| i[0] as i64))
        .dtypes(&FLOATS)
        .random(),
    ]
}
