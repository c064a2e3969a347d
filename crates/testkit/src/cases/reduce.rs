//! Reductions: all elements, some dimensions, kept or not, counted from either end.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{ArgOptions, ReduceOptions, SumOptions, Tensor, TruthOptions};

use super::input::{Input, any, distinct, mask, nonzero, special};
use super::{Case, FLOATS, NUMBERS};
use crate::layouts::Arrangement::{Contiguous, Offset, Stepped, Transposed};
use crate::oracle::{Array, binary, reduce};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(sum());
    cases.extend(mean());
    cases.extend(extremes());
    cases.extend(positions());
    cases.extend(truth());
    cases.extend(into_given());
    cases
}

/// Dims and keepdim of a [2, 3, 4] input, as most reductions are asked.
const ASKED: [(&[i64], bool); 6] =
    [(&[0], false), (&[1], true), (&[-1], false), (&[0, 2], false), (&[-1, -3], true), (&[], true)];

type OverDims = fn(&Tensor, &[i64], bool) -> Result<Tensor>;
type OracleOverDims = fn(&Array, &[i64], bool) -> Array;

fn over_dims(
    op: &'static str,
    input: Input,
    (dims, keepdim): (&'static [i64], bool),
    run: OverDims,
    oracle: OracleOverDims,
) -> Case {
    let keep = if keepdim { "True" } else { "False" };
    Case::new(op, format!("a.{op}({dims:?}, keepdim={keep})"), [input])
        .run(move |t| run(&t[0], dims, keepdim))
        .oracle(move |x| oracle(&x[0], dims, keepdim))
}

/// Dimensions as sums and means take them; none named means all.
fn summed(dims: &[i64], keepdim: bool) -> SumOptions {
    SumOptions::from(dims).keepdim(keepdim)
}

/// Dimensions as other reductions take them.
fn over(dims: &[i64], keepdim: bool) -> ReduceOptions {
    ReduceOptions::from(dims).keepdim(keepdim)
}

/// Dimensions as questions about truth take them.
fn held(dims: &[i64], keepdim: bool) -> TruthOptions {
    TruthOptions::from(dims).keepdim(keepdim)
}

/// A dimension as searches take it.
fn along(dim: Option<i64>, keepdim: bool) -> ArgOptions {
    ArgOptions::new().dim(dim).keepdim(keepdim)
}

fn sum() -> Vec<Case> {
    let whole = |input| {
        Case::new("sum", "a.sum()", [input])
            .run(|t| t[0].sum())
            .oracle(|x| reduce::sum(&x[0], &[], false))
            .tolerance(8.0, 8.0)
    };
    let over = |input, asked| {
        over_dims("sum", input, asked, |x, d, k| x.sum_with(summed(d, k)), reduce::sum)
            .tolerance(8.0, 8.0)
    };
    let mut rows = vec![
        Case::new("sum", "a.sum(0, dtype=torch.float64)", [any(&[2, 3])])
            .run(|t| t[0].sum_with(SumOptions::from(0).dtype(DType::F64)))
            .oracle(|x| reduce::sum(&x[0].cast(DType::F64), &[0], false))
            .brief(),
        Case::new("sum", "a.sum(dtype=torch.int32)", [any(&[2, 3])])
            .run(|t| t[0].sum_with(SumOptions::new().dtype(DType::I32)))
            .oracle(|x| reduce::sum(&x[0].cast(DType::I32), &[], false).cast(DType::I32))
            .plain(),
        whole(any(&[2, 3, 4])).gradient(&[0]),
        whole(special(&[17])).plain(),
        whole(any(&[0, 3])).plain(),
        whole(any(&[])).only(&[Contiguous, Offset]).gradient(&[0]),
        whole(any(&[5000])).plain().tolerance(16.0, 200.0),
        over(any(&[0, 3]), (&[0], false)).plain(),
        over(any(&[0, 3]), (&[1], false)).plain(),
        over(any(&[]), (&[0], false)).plain(),
        over(any(&[37, 67]), (&[0], false)).brief().tolerance(8.0, 40.0),
        over(any(&[37, 67]), (&[1], false)).brief().tolerance(8.0, 40.0),
        over(any(&[5, 11, 9]), (&[1], false)).brief().tolerance(8.0, 40.0),
    ];
    rows.extend(ASKED.map(|asked| over(any(&[2, 3, 4]), asked).gradient(&[0])));
    rows
}

fn mean() -> Vec<Case> {
    let whole = |input| {
        Case::new("mean", "a.mean()", [input])
            .run(|t| t[0].mean())
            .oracle(|x| reduce::mean(&x[0], &[], false))
            .dtypes(&FLOATS)
            .tolerance(8.0, 3.0)
    };
    let over = |input, asked| {
        over_dims("mean", input, asked, |x, d, k| x.mean_with(summed(d, k)), reduce::mean)
            .dtypes(&FLOATS)
            .tolerance(8.0, 3.0)
    };
    let mut rows = vec![
        whole(any(&[2, 3, 4])).gradient(&[0]),
        whole(special(&[17])).plain(),
        whole(any(&[0, 3])).plain(),
        whole(any(&[])).only(&[Contiguous, Offset]).gradient(&[0]),
        over(any(&[37, 67]), (&[0], false)).brief(),
    ];
    rows.extend(ASKED.map(|asked| over(any(&[2, 3, 4]), asked).gradient(&[0])));
    rows
}

fn extremes() -> Vec<Case> {
    let each: [(&'static str, OverDims, OracleOverDims); 2] = [
        ("amax", |x, d, k| x.amax_with(over(d, k)), reduce::amax),
        ("amin", |x, d, k| x.amin_with(over(d, k)), reduce::amin),
    ];
    let mut rows = Vec::new();
    for (op, run, oracle) in each {
        let row = |input, asked| over_dims(op, input, asked, run, oracle);
        rows.extend(ASKED.map(|asked| row(distinct(&[2, 3, 4]), asked).gradient(&[0])));
        rows.extend([
            row(special(&[17, 2]), (&[0], false)).brief(),
            row(special(&[2, 19]), (&[1], false)).brief(),
            row(any(&[0, 3]), (&[1], false)).plain(),
            row(any(&[]), (&[], false)).only(&[Contiguous, Offset]),
            row(any(&[37, 67]), (&[0], false)).brief(),
            row(any(&[37, 67]), (&[1], false)).brief(),
        ]);
    }
    rows
}

fn positions() -> Vec<Case> {
    type Position = fn(&Tensor, Option<i64>, bool) -> Result<Tensor>;
    type OraclePosition = fn(&Array, Option<i64>, bool) -> Array;
    let each: [(&'static str, Position, OraclePosition); 2] = [
        ("argmax", |x, d, k| x.argmax_with(along(d, k)), reduce::argmax),
        ("argmin", |x, d, k| x.argmin_with(along(d, k)), reduce::argmin),
    ];
    let mut rows = Vec::new();
    for (op, run, oracle) in each {
        let row = |input, dim: Option<i64>, keepdim: bool| {
            let asked = dim.map_or("None".to_string(), |d| d.to_string());
            let keep = if keepdim { "True" } else { "False" };
            Case::new(op, format!("a.{op}({asked}, keepdim={keep})"), [input])
                .run(move |t| run(&t[0], dim, keepdim))
                .oracle(move |x| oracle(&x[0], dim, keepdim))
                .dtypes(&NUMBERS)
        };
        rows.extend([
            row(distinct(&[2, 3, 4]), None, false),
            row(distinct(&[2, 3, 4]), Some(0), false),
            row(distinct(&[2, 3, 4]), Some(-1), true),
            row(any(&[3, 7]), Some(1), false),
            row(special(&[17, 2]), Some(0), false).brief(),
            row(special(&[2, 19]), Some(1), false).brief(),
            row(any(&[]), None, false).only(&[Contiguous, Offset]),
            row(any(&[0, 3]), Some(1), false).plain(),
            row(any(&[37, 67]), Some(1), false).brief(),
        ]);
    }
    rows
}

fn truth() -> Vec<Case> {
    type Truth = fn(&Tensor) -> Result<Tensor>;
    type OracleTruth = fn(&Array) -> Array;
    let each: [(&'static str, Truth, OracleTruth); 2] =
        [("any", Tensor::any, reduce::any), ("all", Tensor::all, reduce::all)];
    let mut rows = Vec::new();
    for (op, run, oracle) in each {
        let row = |input| {
            Case::new(op, format!("a.{op}()"), [input])
                .run(move |t| run(&t[0]))
                .oracle(move |x| oracle(&x[0]))
        };
        rows.extend([
            row(any(&[2, 3, 4])),
            row(nonzero(&[2, 3])),
            row(special(&[17])).plain(),
            row(any(&[0, 3])).plain(),
            row(any(&[])).only(&[Contiguous, Offset]),
        ]);
    }
    rows.extend(truth_over_dims());
    rows
}

/// Over some dimensions: the extreme of whether elements are not zero.
fn truth_over_dims() -> Vec<Case> {
    type Into = fn(&Tensor, &[i64], bool, &Tensor) -> Result<()>;
    let each: [(&'static str, OverDims, Into, OracleOverDims); 2] = [
        (
            "any",
            |x, d, k| x.any_with(held(d, k)),
            |x, d, k, out| x.any_with_out(held(d, k), out),
            reduce::amax,
        ),
        (
            "all",
            |x, d, k| x.all_with(held(d, k)),
            |x, d, k, out| x.all_with_out(held(d, k), out),
            reduce::amin,
        ),
    ];
    let truth = |x: &Array| binary::ne(x, &Array::host(0i64));
    let mut rows = Vec::new();
    for (op, run, into, oracle) in each {
        for (dims, keepdim) in [(&[1i64][..], false), (&[0, 2], true)] {
            let keep = if keepdim { "True" } else { "False" };
            rows.push(
                Case::new(op, format!("a.{op}({dims:?}, keepdim={keep})"), [any(&[2, 3, 4])])
                    .run(move |t| run(&t[0], dims, keepdim))
                    .oracle(move |x| {
                        let found = oracle(&truth(&x[0]), dims, keepdim);
                        if x.dtype == DType::U8 { found.cast(DType::U8) } else { found }
                    }),
            );
        }
        rows.push(
            Case::new(op, format!("torch.{op}(a, 1, out=b)"), [any(&[2, 3]), mask(&[2])])
                .writes(1, move |t| into(&t[0], &[1], false, &t[1]))
                .oracle(move |x| oracle(&truth(&x[0]), &[1], false))
                .brief(),
        );
    }
    rows
}

/// The `out=` forms.
fn into_given() -> Vec<Case> {
    type Into = fn(&Tensor, &[i64], bool, &Tensor) -> Result<()>;
    // A sum of smaller integers is int64 here; PyTorch lets `out` choose.
    const SAME: [DType; 5] = [DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];
    let each: [(&'static str, &'static [DType], Into, OracleOverDims); 4] = [
        ("sum", &SAME, |x, d, k, out| x.sum_with_out(summed(d, k), out), reduce::sum),
        ("mean", &FLOATS, |x, d, k, out| x.mean_with_out(summed(d, k), out), reduce::mean),
        ("amax", &DType::ALL, |x, d, k, out| x.amax_with_out(over(d, k), out), reduce::amax),
        ("amin", &DType::ALL, |x, d, k, out| x.amin_with_out(over(d, k), out), reduce::amin),
    ];
    let mut rows = Vec::new();
    for (op, dtypes, run, oracle) in each {
        let call = format!("torch.{op}(a, [1], keepdim=False, out=b)");
        let row = Case::new(op, call, [distinct(&[2, 3, 4]), any(&[2, 4])])
            .writes(1, move |t| run(&t[0], &[1], false, &t[1]))
            .oracle(move |x| oracle(&x[0], &[1], false));
        let row = if op == "sum" { row.taking_only_these() } else { row };
        rows.push(row.dtypes(dtypes).tolerance(8.0, 3.0).only(&[Contiguous, Transposed, Stepped]));
    }
    type IntoPosition = fn(&Tensor, Option<i64>, bool, &Tensor) -> Result<()>;
    type OraclePosition = fn(&Array, Option<i64>, bool) -> Array;
    let each: [(&'static str, IntoPosition, OraclePosition); 2] = [
        ("argmax", |x, d, k, out| x.argmax_with_out(along(d, k), out), reduce::argmax),
        ("argmin", |x, d, k, out| x.argmin_with_out(along(d, k), out), reduce::argmin),
    ];
    for (op, run, oracle) in each {
        let call = format!("torch.{op}(a, 1, keepdim=True, out=b)");
        let inputs = [distinct(&[2, 3, 4]), any(&[2, 1, 4]).of(DType::I64)];
        let row = Case::new(op, call, inputs)
            .writes(1, move |t| run(&t[0], Some(1), true, &t[1]))
            .oracle(move |x| oracle(&x[0], Some(1), true));
        rows.push(row.dtypes(&NUMBERS).only(&[Contiguous, Transposed, Stepped]));
    }
    rows
}
