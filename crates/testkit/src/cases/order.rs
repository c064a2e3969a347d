//! What order finds: extremes, the greatest few, medians, quantiles, searches, distinct elements.

use plimsoll_core::DType;
use plimsoll_tensor::{
    ArgsortOptions, ExtremeOptions, HistcOptions, HistogramOptions, KthvalueOptions, MedianOptions,
    QuantileOptions, ReduceOptions, Scalar, Tensor, TopkOptions, UniqueOptions,
};

use super::input::{any, below, distinct, special};
use super::{Case, FLOATS, NUMBERS, SINGLE_AND_DOUBLE};
use crate::layouts::Arrangement::{Contiguous, Offset, Stepped, Transposed};
use crate::oracle::{Array, reduce, statistics};

const INTEGERS: [DType; 5] = [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(extremes());
    cases.extend(orders());
    cases.extend(quantiles());
    cases.extend(searches());
    cases.extend(distinct_elements());
    cases
}

fn extremes() -> Vec<Case> {
    let along = |x: &Array, max: bool| {
        if max {
            (reduce::amax(x, &[1], false), reduce::argmax(x, Some(1), false))
        } else {
            (reduce::amin(x, &[1], false), reduce::argmin(x, Some(1), false))
        }
    };
    let mut rows = vec![
        Case::new("max", "a.max()", [any(&[2, 3])])
            .run(|t| t[0].max())
            .oracle(|x| reduce::amax(&x[0], &[], false))
            .brief(),
        Case::new("min", "a.min()", [any(&[2, 3])])
            .run(|t| t[0].min())
            .oracle(|x| reduce::amin(&x[0], &[], false))
            .brief(),
        Case::new("aminmax", "torch.aminmax(a, dim=1)", [any(&[3, 4])])
            .run(|t| t[0].aminmax_with(plimsoll_tensor::AminmaxOptions::new().dim(1)))
            .oracle(|x| (reduce::amin(&x[0], &[1], false), reduce::amax(&x[0], &[1], false)))
            .brief(),
        Case::new("aminmax", "torch.aminmax(a)[1]", [distinct(&[3, 4])])
            .run(|t| t[0].amax_with(ReduceOptions::new()))
            .oracle(|x| reduce::amax(&x[0], &[], false))
            .gradient(&[0])
            .plain(),
    ];
    for max in [true, false] {
        let op = if max { "max" } else { "min" };
        rows.push(
            Case::new(op, format!("a.{op}(1)"), [distinct(&[3, 4])])
                .run(move |t| {
                    let how = ExtremeOptions::new();
                    if max { t[0].max_along(1, how) } else { t[0].min_along(1, how) }
                })
                .oracle(move |x| along(&x[0], max)),
        );
        rows.push(
            Case::new(op, format!("a.{op}(1)[0]"), [distinct(&[3, 4])])
                .run(move |t| {
                    let how = ExtremeOptions::new();
                    Ok(if max { t[0].max_along(1, how)?.0 } else { t[0].min_along(1, how)?.0 })
                })
                .oracle(move |x| along(&x[0], max).0)
                .gradient(&[0])
                .plain(),
        );
    }
    rows
}

/// A call with two results, the first of which has a derivative.
fn orders() -> Vec<Case> {
    let mut rows = Vec::new();
    for (dim, largest) in [(0i64, true), (-1, false)] {
        let word = if largest { "True" } else { "False" };
        rows.push(
            Case::new("topk", format!("a.topk(2, {dim}, {word})"), [distinct(&[5, 4])])
                .run(move |t| t[0].topk_with(2, TopkOptions::new().dim(dim).largest(largest)))
                .oracle(move |x| statistics::topk(&x[0], 2, dim, largest))
                .dtypes(&NUMBERS)
                // Of equal elements PyTorch takes any.
                .only(&[Contiguous, Transposed, Stepped, Offset])
                .row_major(),
        );
    }
    rows.extend([
        Case::new("topk", "a.topk(3)[0]", [distinct(&[2, 7])])
            .run(|t| Ok(t[0].topk(3)?.0))
            .oracle(|x| statistics::topk(&x[0], 3, -1, true).0)
            .dtypes(&NUMBERS)
            .plain()
            .gradient(&[0]),
        Case::new("kthvalue", "a.kthvalue(2, 0)", [distinct(&[5, 4])])
            .run(|t| t[0].kthvalue_with(2, KthvalueOptions::new().dim(0)))
            .oracle(|x| statistics::ranked(&x[0], 1, 0))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .brief(),
        Case::new("kthvalue", "a.kthvalue(2)[0]", [distinct(&[5])])
            .run(|t| Ok(t[0].kthvalue(2)?.0))
            .oracle(|x| statistics::ranked(&x[0], 1, 0).0)
            .dtypes(&NUMBERS)
            .taking_only_these()
            .plain()
            .gradient(&[0]),
        Case::new("median", "a.median(1)", [distinct(&[3, 6])])
            .run(|t| t[0].median_along(1, MedianOptions::new()))
            .oracle(|x| statistics::median(&x[0], 1, false))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .brief(),
        Case::new("median", "a.median()", [distinct(&[3, 5])])
            .run(|t| t[0].median())
            .oracle(|x| statistics::median(&flat(&x[0]), 0, false).0)
            .dtypes(&NUMBERS)
            .taking_only_these()
            .plain()
            .gradient(&[0]),
        Case::new("nanmedian", "a.nanmedian(1)[0]", [distinct(&[3, 6])])
            .run(|t| Ok(t[0].nanmedian_along(1, MedianOptions::new())?.0))
            .oracle(|x| statistics::median(&x[0], 1, true).0)
            .dtypes(&NUMBERS)
            .taking_only_these()
            .plain()
            .gradient(&[0]),
        Case::new("nanmedian", "a.nanmedian()", [special(&[17])])
            .run(|t| t[0].nanmedian())
            .oracle(|x| statistics::median(&x[0], 0, true).0)
            .dtypes(&NUMBERS)
            .taking_only_these()
            .plain(),
        Case::new("mode", "a.mode(1)", [distinct(&[3, 4])])
            .run(|t| t[0].mode_with(plimsoll_tensor::ModeOptions::new().dim(1)))
            .oracle(|x| statistics::ranked(&x[0], 0, 1))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .brief(),
        Case::new("mode", "a.mode()[0]", [any(&[9])])
            .run(|t| Ok(t[0].mode()?.0))
            .oracle(|x| most_frequent(&x[0]))
            .plain(),
        Case::new("mode", "a.mode()[0]", [distinct(&[5])])
            .run(|t| Ok(t[0].mode()?.0))
            .oracle(|x| statistics::ranked(&x[0], 0, 0).0)
            .dtypes(&FLOATS)
            .taking_only_these()
            .plain()
            .gradient(&[0]),
        Case::new("msort", "a.msort()", [distinct(&[5, 2])])
            .run(|t| t[0].msort())
            .oracle(|x| crate::oracle::index::sort(&x[0], 0, false).0)
            .gradient(&[0]),
        Case::new("argsort", "torch.argsort(a, dim=0, stable=True)", [any(&[5, 2])])
            .run(|t| t[0].argsort_with(ArgsortOptions::new().dim(0)))
            .oracle(|x| statistics::argsort(&x[0], 0)),
    ]);
    rows
}

fn flat(x: &Array) -> Array {
    let values = crate::oracle::indices(x.shape()).map(|i| x.at(&i)).collect::<Vec<_>>();
    Array::new(x.dtype(), &[values.len()], values)
}

/// The least of the values that occur most often.
fn most_frequent(x: &Array) -> Array {
    let values: Vec<f64> = (0..x.shape()[0]).map(|i| x.at(&[i]).to_f64()).collect();
    let often = |value: f64| values.iter().filter(|&&x| x == value).count();
    let best = values.iter().copied().fold(values[0], |best, value| {
        let (new, old) = (often(value), often(best));
        if new > old || (new == old && value < best) { value } else { best }
    });
    Array::new(x.dtype(), &[], vec![best.into()])
}

fn quantiles() -> Vec<Case> {
    vec![
        Case::new("quantile", "a.quantile(0.3, dim=1)", [distinct(&[3, 6])])
            .run(|t| t[0].quantile_of(0.3, QuantileOptions::new().dim(1)))
            .oracle(|x| statistics::quantile(&x[0], 0.3, 1))
            .dtypes(&SINGLE_AND_DOUBLE)
            .tolerance(32.0, 4.0)
            .gradient(&[0])
            .brief(),
        Case::new("nanquantile", "a.nanquantile(0.3, dim=0)", [distinct(&[3, 6])])
            .run(|t| t[0].nanquantile_of(0.3, QuantileOptions::new().dim(0)))
            .oracle(|x| statistics::quantile(&x[0], 0.3, 0))
            .dtypes(&SINGLE_AND_DOUBLE)
            .tolerance(32.0, 4.0)
            .gradient(&[0])
            .brief(),
    ]
}

fn distinct_elements() -> Vec<Case> {
    vec![
        Case::new(
            "unique",
            "torch.unique(a, return_inverse=True, return_counts=True)",
            [any(&[3, 7])],
        )
        .run(|t| {
            let options = UniqueOptions::new().return_inverse(true).return_counts(true);
            match <[Tensor; 3]>::try_from(t[0].unique_with(options)?) {
                Ok([values, inverse, counts]) => Ok((values, inverse, counts)),
                Err(_) => panic!("three tensors"),
            }
        })
        .oracle(|x| statistics::unique(&x[0]))
        .row_major(),
        Case::new("unique_consecutive", "torch.unique_consecutive(a)", [any(&[3, 7])])
            .run(|t| t[0].unique_consecutive())
            .oracle(|x| statistics::unique_consecutive(&x[0])),
    ]
}

fn searches() -> Vec<Case> {
    let sorted = |x: &Tensor| -> plimsoll_core::Result<Tensor> { Ok(x.sort()?.0) };
    let sorted_array = |x: &Array| crate::oracle::index::sort(x, 0, false).0;
    vec![
        Case::new(
            "searchsorted",
            "torch.searchsorted(a.sort()[0], b)",
            [distinct(&[7]), any(&[3, 4])],
        )
        .run(move |t| sorted(&t[0])?.searchsorted(&t[1]))
        .oracle(move |x| statistics::searchsorted(&sorted_array(&x[0]), &x[1], false))
        .dtypes(&NUMBERS)
        .taking_only_these()
        .row_major(),
        Case::new(
            "bucketize",
            "torch.bucketize(b, a.sort()[0], right=True)",
            [distinct(&[7]), any(&[3, 4])],
        )
        .run(move |t| {
            let options = plimsoll_tensor::BucketizeOptions::new().right(true);
            Tensor::bucketize_with(&t[1], &sorted(&t[0])?, options)
        })
        .oracle(move |x| statistics::searchsorted(&sorted_array(&x[0]), &x[1], true))
        .dtypes(&NUMBERS)
        .taking_only_these()
        .row_major(),
        Case::new("bincount", "a.to(dtype).bincount()", [below(9, &[20])])
            .run(|t| t[0].to(t.dtype)?.bincount())
            .oracle(|x| statistics::bincount(&x[0]))
            .dtypes(&INTEGERS)
            .taking_only_these(),
        Case::new("histc", "a.histc(4, -2, 2)", [any(&[3, 7])])
            .run(|t| {
                let bins = HistcOptions::new().bins(4).min(Scalar::Int(-2)).max(Scalar::Int(2));
                t[0].histc_with(bins)
            })
            .oracle(|x| statistics::histogram(&x[0], 4, -2.0, 2.0))
            .dtypes(&FLOATS)
            .taking_only_these(),
        Case::new("histogram", "torch.histogram(a, 4, range=(-2., 2.))[0]", [any(&[3, 7])])
            .run(|t| {
                let bins = HistogramOptions::new().bins(4).range(Some(&[-2.0, 2.0][..]));
                Ok(t[0].histogram_with(bins)?.0)
            })
            .oracle(|x| statistics::histogram(&x[0], 4, -2.0, 2.0))
            .dtypes(&SINGLE_AND_DOUBLE)
            .taking_only_these(),
    ]
}
