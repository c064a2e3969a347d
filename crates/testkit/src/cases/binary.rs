//! Functions of two elements: broadcasting, promotion, host numbers, in-place and `out=` forms.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{AddOptions, DivOptions, RoundingMode, Tensor};

use super::input::{any, distinct, mask, nonzero, positive, special};
use super::{Case, FLOATS, NUMBERS};
use crate::layouts::Arrangement::{Contiguous, Offset, Stepped, Transposed};
use crate::oracle::{Array, binary, float_dtype, lattice};

type Two = fn(&Tensor, &Tensor) -> Result<Tensor>;
type Write = fn(&Tensor, &Tensor) -> Result<()>;
type WriteOut = fn(&Tensor, &Tensor, &Tensor) -> Result<()>;

/// An arithmetic operation and its forms.
struct Binary {
    op: &'static str,
    new: Two,
    in_place: Option<Write>,
    out: WriteOut,
    oracle: fn(&Array, &Array) -> Array,
    /// The dtype of the result, from the promoted one.
    result: fn(DType) -> DType,
    takes: fn(DType, DType) -> bool,
    /// Whether backward needs no values: only then can `a.op_(a)` be differentiated, in PyTorch
    /// too.
    linear: bool,
    /// The values on which it has a derivative.
    domain: fn(&[usize]) -> super::Input,
}

fn arithmetic() -> Vec<Binary> {
    vec![
        Binary {
            op: "add",
            linear: true,
            new: |a, b| a.add(b),
            in_place: Some(|a, b| a.add_(b).map(|_| ())),
            out: |a, b, out| a.add_out(b, out),
            oracle: |a, b| binary::add(a, b, 1.0),
            result: |d| d,
            takes: |_, _| true,
            domain: any,
        },
        Binary {
            op: "sub",
            linear: true,
            new: |a, b| a.sub(b),
            in_place: Some(|a, b| a.sub_(b).map(|_| ())),
            out: |a, b, out| a.sub_out(b, out),
            oracle: |a, b| binary::sub(a, b, 1.0),
            result: |d| d,
            // PyTorch refuses `-` as soon as one operand is bool.
            takes: |a, b| a != DType::Bool && b != DType::Bool,
            domain: any,
        },
        Binary {
            op: "mul",
            linear: false,
            new: |a, b| a.mul(b),
            in_place: Some(|a, b| a.mul_(b).map(|_| ())),
            out: |a, b, out| a.mul_out(b, out),
            oracle: binary::mul,
            result: |d| d,
            takes: |_, _| true,
            domain: any,
        },
        Binary {
            op: "div",
            linear: false,
            new: |a, b| a.div(b),
            in_place: Some(|a, b| a.div_(b).map(|_| ())),
            out: |a, b, out| a.div_out(b, out),
            oracle: binary::div,
            result: float_dtype,
            takes: |_, _| true,
            domain: nonzero,
        },
        Binary {
            op: "maximum",
            linear: false,
            new: |a, b| a.maximum(b),
            in_place: None,
            out: |a, b, out| a.maximum_out(b, out),
            oracle: binary::maximum,
            result: |d| d,
            takes: |_, _| true,
            domain: any,
        },
        Binary {
            op: "minimum",
            linear: false,
            new: |a, b| a.minimum(b),
            in_place: None,
            out: |a, b, out| a.minimum_out(b, out),
            oracle: binary::minimum,
            result: |d| d,
            takes: |_, _| true,
            domain: any,
        },
    ]
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = arithmetic().iter().flat_map(rows).collect();
    cases.extend(arithmetic().iter().flat_map(written_rows));
    cases.extend(host_numbers());
    cases.extend(alpha());
    cases.extend(rounded());
    cases.extend(pow());
    cases.extend(where_());
    cases
}

fn rows(operation: &Binary) -> Vec<Case> {
    let &Binary { op, new, oracle, takes, domain, .. } = operation;
    let single: Vec<DType> = DType::ALL.into_iter().filter(|&d| takes(d, d)).collect();
    let row = |a, b| {
        Case::new(op, format!("torch.{op}(a, b)"), [a, b])
            .run(move |t| new(&t[0], &t[1]))
            .oracle(move |x| oracle(&x[0], &x[1]))
            .dtypes(&single)
    };
    vec![
        row(domain(&[2, 3, 4]), domain(&[2, 3, 4])).gradient(&[0, 1]),
        row(domain(&[2, 3, 1]), domain(&[3, 4])).gradient(&[0, 1]),
        row(domain(&[4]), domain(&[2, 1, 4])).brief(),
        row(special(&[4, 5]), special(&[5])).only(&[Contiguous, Stepped]),
        row(special(&[5]), any(&[4, 5])).plain(),
        row(domain(&[0, 3]), domain(&[1, 3])).only(&[Contiguous, Offset]),
        row(domain(&[]), domain(&[])).only(&[Contiguous, Offset]).gradient(&[0, 1]),
        row(domain(&[69]), domain(&[69])).plain(),
        row(domain(&[3]), domain(&[3]).other()).pairs(takes),
        row(domain(&[3]), domain(&[]).other()).pairs(takes),
        row(domain(&[]), domain(&[]).other()).pairs(takes),
    ]
}

fn written_rows(operation: &Binary) -> Vec<Case> {
    let &Binary { op, linear, in_place, out, oracle, result, takes, domain, .. } = operation;
    let mut rows = Vec::new();
    let single: Vec<DType> =
        DType::ALL.into_iter().filter(|&d| takes(d, d) && result(d) == d).collect();
    if let Some(in_place) = in_place {
        let row = |a, b| {
            Case::new(op, format!("a.{op}_(b)"), [a, b])
                .writes(0, move |t| in_place(&t[0], &t[1]))
                .oracle(move |x| oracle(&x[0], &x[1]).cast(x.dtype))
                .dtypes(&single)
        };
        rows.push(row(domain(&[2, 3, 4]), domain(&[2, 3, 4])).gradient(&[0, 1]));
        rows.push(row(domain(&[2, 3, 4]), domain(&[3, 1])).gradient(&[0, 1]));
        rows.push(row(domain(&[0, 3]), domain(&[3])).plain());
        rows.push(row(domain(&[]), domain(&[])).only(&[Contiguous, Offset]));
        rows.push(
            Case::new(op, format!("a.{op}_(a)"), [domain(&[3, 4])])
                .writes(0, move |t| in_place(&t[0], &t[0]))
                .oracle(move |x| oracle(&x[0], &x[0]))
                .dtypes(&single)
                .gradient(if linear { &[0] } else { &[] }),
        );
    }
    rows.push(
        Case::new(
            op,
            format!("torch.{op}(a, b, out=c)"),
            [domain(&[3, 4]), domain(&[4]), any(&[3, 4])],
        )
        .writes(2, move |t| out(&t[0], &t[1], &t[2]))
        .oracle(move |x| oracle(&x[0], &x[1]))
        .dtypes(&single)
        .taking_only_these()
        .only(&[Contiguous, Transposed, Stepped]),
    );
    rows
}

/// In-place forms keep their dtype, so the promoted dtype must not be of a higher class.
fn fits(a: DType, b: DType) -> bool {
    lattice(a, b).class() <= a.class()
}

fn host_numbers() -> Vec<Case> {
    let x = || nonzero(&[2, 3]);
    let host = |v: f64| Array::host(v);
    let mut rows = vec![
        Case::new("add", "a + 2", [x()])
            .run(|t| t[0].add(2))
            .oracle(|x| binary::add(&x[0], &Array::host(2i64), 1.0)),
        Case::new("add", "a + 1.5", [x()])
            .run(|t| t[0].add(1.5))
            .oracle(move |x| binary::add(&x[0], &host(1.5), 1.0))
            .gradient(&[0]),
        Case::new("add", "a + True", [x()])
            .run(|t| t[0].add(true))
            .oracle(|x| binary::add(&x[0], &Array::host(true), 1.0)),
        Case::new("add", "a + 1.5", [any(&[])])
            .run(|t| t[0].add(1.5))
            .oracle(move |x| binary::add(&x[0], &host(1.5), 1.0))
            .plain(),
        Case::new("sub", "a - 2", [x()])
            .run(|t| t[0].sub(2))
            .oracle(|x| binary::sub(&x[0], &Array::host(2i64), 1.0))
            .dtypes(&NUMBERS),
        Case::new("sub", "a - 0.75", [x()])
            .run(|t| t[0].sub(0.75))
            .oracle(move |x| binary::sub(&x[0], &host(0.75), 1.0))
            .dtypes(&NUMBERS)
            .gradient(&[0]),
        Case::new("mul", "a * 3", [x()])
            .run(|t| t[0].mul(3))
            .oracle(|x| binary::mul(&x[0], &Array::host(3i64))),
        Case::new("mul", "a * -0.5", [x()])
            .run(|t| t[0].mul(-0.5))
            .oracle(move |x| binary::mul(&x[0], &host(-0.5)))
            .gradient(&[0]),
        Case::new("div", "a / 4", [x()])
            .run(|t| t[0].div(4))
            .oracle(|x| binary::div(&x[0], &Array::host(4i64)))
            .gradient(&[0]),
        Case::new("div", "a / 0", [x()])
            .run(|t| t[0].div(0))
            .oracle(|x| binary::div(&x[0], &Array::host(0i64)))
            .plain(),
        Case::new("maximum", "torch.clamp_min(a, 1)", [distinct(&[2, 3])])
            .run(|t| t[0].maximum(1))
            .oracle(|x| binary::maximum(&x[0], &Array::host(1i64)))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .gradient(&[0]),
        Case::new("add", "a.add_(2)", [x()])
            .writes(0, |t| t[0].add_(2).map(|_| ()))
            .oracle(|x| binary::add(&x[0], &Array::host(2i64), 1.0))
            .dtypes(&NUMBERS)
            .gradient(&[0]),
        Case::new("mul", "a.mul_(0.5)", [x()])
            .writes(0, |t| t[0].mul_(0.5).map(|_| ()))
            .oracle(move |x| binary::mul(&x[0], &host(0.5)))
            .dtypes(&FLOATS)
            .gradient(&[0]),
        Case::new("div", "a.div_(2)", [x()])
            .writes(0, |t| t[0].div_(2).map(|_| ()))
            .oracle(|x| binary::div(&x[0], &Array::host(2i64)))
            .dtypes(&FLOATS)
            .gradient(&[0]),
    ];
    rows.extend([
        Case::new("add", "a.add_(b)", [any(&[3]), any(&[3]).other()])
            .writes(0, |t| t[0].add_(&t[1]).map(|_| ()))
            .oracle(|x| binary::add(&x[0], &x[1], 1.0).cast(x.dtype))
            .pairs(fits),
        Case::new("mul", "a.mul_(b)", [any(&[3]), any(&[]).other()])
            .writes(0, |t| t[0].mul_(&t[1]).map(|_| ()))
            .oracle(|x| binary::mul(&x[0], &x[1]).cast(x.dtype))
            .pairs(fits),
    ]);
    rows
}

fn alpha() -> Vec<Case> {
    let two = || [any(&[2, 3]), any(&[3])];
    vec![
        Case::new("add", "torch.add(a, b, alpha=3)", two())
            .run(|t| t[0].add_with(&t[1], AddOptions::new().alpha(3)))
            .oracle(|x| binary::add(&x[0], &x[1], 3.0))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .gradient(&[0, 1])
            .tolerance(4.0, 9.0),
        Case::new("add", "torch.add(a, b, alpha=0.5)", two())
            .run(|t| t[0].add_with(&t[1], AddOptions::new().alpha(0.5)))
            .oracle(|x| binary::add(&x[0], &x[1], 0.5))
            .dtypes(&FLOATS)
            .tolerance(4.0, 3.0),
        Case::new("sub", "torch.sub(a, b, alpha=2)", two())
            .run(|t| t[0].sub_with(&t[1], AddOptions::new().alpha(2)))
            .oracle(|x| binary::sub(&x[0], &x[1], 2.0))
            .dtypes(&NUMBERS)
            .gradient(&[0, 1])
            .tolerance(4.0, 6.0),
        Case::new(
            "add",
            "torch.add(a, b, alpha=3, out=c)",
            [any(&[2, 3]), any(&[3]), any(&[2, 3])],
        )
        .writes(2, |t| t[0].add_with_out(&t[1], AddOptions::new().alpha(3), &t[2]))
        .oracle(|x| binary::add(&x[0], &x[1], 3.0))
        .dtypes(&NUMBERS)
        .taking_only_these()
        .tolerance(4.0, 9.0)
        .brief(),
        Case::new(
            "sub",
            "torch.sub(a, b, alpha=2, out=c)",
            [any(&[2, 3]), any(&[3]), any(&[2, 3])],
        )
        .writes(2, |t| t[0].sub_with_out(&t[1], AddOptions::new().alpha(2), &t[2]))
        .oracle(|x| binary::sub(&x[0], &x[1], 2.0))
        .dtypes(&NUMBERS)
        .tolerance(4.0, 6.0)
        .brief(),
    ]
}

/// Quotients rounded to whole numbers.
fn rounded() -> Vec<Case> {
    let mode = |mode| DivOptions::new().rounding_mode(mode);
    let row = |word: &str, a, b| {
        Case::new("div", format!("torch.div(a, b, rounding_mode='{word}')"), [a, b])
            .dtypes(&NUMBERS)
            .tolerance(4.0, 0.0)
    };
    vec![
        row("trunc", any(&[2, 3]), nonzero(&[3]))
            .run(move |t| t[0].div_with(&t[1], mode(RoundingMode::Trunc)))
            .oracle(|x| binary::rounded(&x[0], &x[1], f64::trunc)),
        row("floor", any(&[2, 3]), nonzero(&[3]))
            .run(move |t| t[0].div_with(&t[1], mode(RoundingMode::Floor)))
            .oracle(|x| binary::rounded(&x[0], &x[1], f64::floor)),
        Case::new("div", "a.div_(2, rounding_mode='floor')", [any(&[2, 3])])
            .writes(0, move |t| t[0].div_with_(2, mode(RoundingMode::Floor)).map(drop))
            .oracle(|x| binary::rounded(&x[0], &Array::host(2i64), f64::floor))
            .dtypes(&NUMBERS),
    ]
}

fn pow() -> Vec<Case> {
    vec![
        Case::new("pow", "torch.pow(a, b)", [positive(&[2, 3]), positive(&[3])])
            .run(|t| t[0].pow(&t[1]))
            .oracle(|x| binary::pow(&x[0], &x[1]))
            .dtypes(&NUMBERS)
            .tolerance(16.0, 0.0)
            .gradient(&[0, 1]),
        Case::new("pow", "torch.pow(2, a)", [positive(&[2, 3])])
            .run(|t| t[0].rpow(2))
            .oracle(|x| binary::pow(&Array::host(2i64), &x[0]))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .tolerance(16.0, 0.0)
            // Of a transposed exponent PyTorch's power is row-major; every other result lies like
            // its operands.
            .plain()
            .gradient(&[0]),
        Case::new("pow", "torch.pow(a, 2)", [any(&[2, 3, 4])])
            .run(|t| t[0].pow(2))
            .oracle(|x| binary::pow(&x[0], &Array::host(2i64)))
            .gradient(&[0]),
        Case::new("pow", "torch.pow(a, 3)", [special(&[17])])
            .run(|t| t[0].pow(3))
            .oracle(|x| binary::pow(&x[0], &Array::host(3i64)))
            .plain(),
        Case::new("pow", "torch.pow(a, 0.5)", [positive(&[3, 4])])
            .run(|t| t[0].pow(0.5))
            .oracle(|x| binary::pow(&x[0], &Array::host(0.5)))
            .gradient(&[0]),
        Case::new("pow", "torch.pow(a, -1.5)", [positive(&[3, 4])])
            .run(|t| t[0].pow(-1.5))
            .oracle(|x| binary::pow(&x[0], &Array::host(-1.5)))
            .gradient(&[0]),
        Case::new("pow", "a.pow_(2)", [any(&[2, 3])])
            .writes(0, |t| t[0].pow_(2).map(|_| ()))
            .oracle(|x| binary::pow(&x[0], &Array::host(2i64)))
            .dtypes(&NUMBERS)
            .gradient(&[0]),
        Case::new("pow", "torch.pow(a, 3, out=b)", [any(&[3, 4]), any(&[3, 4])])
            .writes(1, |t| t[0].pow_out(3, &t[1]))
            .oracle(|x| binary::pow(&x[0], &Array::host(3i64)))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .only(&[Contiguous, Transposed, Stepped]),
        Case::new("pow", "torch.pow(a, 0)", [special(&[17])])
            .run(|t| t[0].pow(0))
            .oracle(|x| binary::pow(&x[0], &Array::host(0i64)))
            .plain(),
    ]
}

fn where_() -> Vec<Case> {
    let row = |c, a, b| {
        Case::new("where", "torch.where(a, b, c)", [c, a, b])
            .run(|t| Tensor::where_(&t[0], &t[1], &t[2]))
            .oracle(|x| binary::where_(&x[0], &x[1], &x[2]))
    };
    vec![
        row(mask(&[2, 3, 4]), any(&[2, 3, 4]), any(&[2, 3, 4])).gradient(&[1, 2]),
        row(mask(&[3, 1]), any(&[2, 1, 4]), any(&[4])).gradient(&[1, 2]),
        row(mask(&[3]), special(&[17, 1]), special(&[3])).plain(),
        row(mask(&[0, 3]), any(&[0, 3]), any(&[3])).plain(),
        row(mask(&[]), any(&[]), any(&[])).only(&[Contiguous, Offset]).gradient(&[1, 2]),
        row(mask(&[3]), any(&[3]), any(&[3]).other()).pairs(|_, _| true),
        row(mask(&[3]), any(&[3]), any(&[]).other()).pairs(|_, _| true),
        Case::new("where", "torch.where(a, b, 1.5)", [mask(&[2, 3]), any(&[2, 3])])
            .run(|t| Tensor::where_(&t[0], &t[1], 1.5))
            .oracle(|x| binary::where_(&x[0], &x[1], &Array::host(1.5)))
            .gradient(&[1]),
        Case::new("where", "torch.where(a, 0, b)", [mask(&[2, 3]), any(&[2, 3])])
            .run(|t| Tensor::where_(&t[0], 0, &t[1]))
            .oracle(|x| binary::where_(&x[0], &Array::host(0i64), &x[1])),
        Case::new(
            "where",
            "torch.where(a, b, c, out=d)",
            [mask(&[2, 3]), any(&[2, 3]), any(&[3]), any(&[2, 3])],
        )
        .writes(3, |t| Tensor::where_out(&t[0], &t[1], &t[2], &t[3]))
        .oracle(|x| binary::where_(&x[0], &x[1], &x[2]))
        .brief(),
        // uint8 is PyTorch's bool of old.
        Case::new("where", "torch.where(a, b, c)", [any(&[3]).of(DType::U8), any(&[3]), any(&[3])])
            .run(|t| Tensor::where_(&t[0], &t[1], &t[2]))
            .oracle(|x| binary::where_(&x[0], &x[1], &x[2]))
            .plain(),
    ]
}
