//! Reductions against naive loops in f64, over every subset of dimensions.

use plimsoll_core::{DType, Layout};

use super::*;
use plimsoll_engine::testing::{
    FLOATS, Held, Lot, assert_close, launch, launch_all, rounded, shapes, tolerance,
};

/// The values under each output element, in logical order.
fn groups(x: &Held, reduced: &[usize]) -> Vec<Vec<f64>> {
    let shape = x.shape().to_vec();
    let kept: Vec<usize> = (0..shape.len()).filter(|d| !reduced.contains(d)).collect();
    let mut groups = vec![Vec::new(); kept.iter().map(|&d| shape[d]).product()];
    for (i, value) in x.values().into_iter().enumerate() {
        let mut index = vec![0; shape.len()];
        let mut rest = i;
        for d in (0..shape.len()).rev() {
            index[d] = rest % shape[d];
            rest /= shape[d];
        }
        let at = kept.iter().fold(0, |at, &d| at * shape[d] + index[d]);
        groups[at].push(value);
    }
    groups
}

/// Every subset of the dimensions of a shape.
fn subsets(rank: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1usize << rank).map(move |bits| (0..rank).filter(|d| bits >> d & 1 == 1).collect())
}

fn check(
    name: &str,
    dtypes: &[DType],
    out_dtype: impl Fn(DType) -> DType,
    empty: bool,
    specials: bool,
    kernel: impl Fn(&CpuLaunch<'_>, &[usize]) -> Result<()>,
    truth: impl Fn(&[f64]) -> f64,
) {
    let mut lot = Lot(21);
    for &dtype in dtypes {
        for shape in shapes() {
            for reduced in subsets(shape.len()) {
                if !empty && reduced.iter().any(|&d| shape[d] == 0) {
                    continue;
                }
                let x = Held::random(&mut lot, dtype, &shape, specials);
                let keepdim = lot.below(2) == 0;
                let out_shape: Vec<usize> = (0..shape.len())
                    .filter(|d| keepdim || !reduced.contains(d))
                    .map(|d| if reduced.contains(&d) { 1 } else { shape[d] })
                    .collect();
                let result = out_dtype(dtype);
                let groups = groups(&x, &reduced);
                let want: Vec<f64> =
                    groups.iter().map(|values| rounded(result, truth(values))).collect();
                let largest = groups.iter().flatten().fold(0.0f64, |a, &b| a.max(b.abs()));
                let count = groups.first().map_or(0, Vec::len) as f64;
                // Sums cancel, so their error is relative to the terms.
                let absolute = match name {
                    "sum" if result.is_float() => largest * count * 1e-7,
                    "mean" => largest * 1e-7,
                    _ => 0.0,
                };
                let mut out = [Held::output(&mut lot, result, &out_shape)];
                let what = format!("{name} of {dtype} {:?} over {reduced:?}", x.meta.layout);
                launch_all(
                    &[&x],
                    &mut out,
                    0,
                    |l| kernel(l, &reduced),
                    |out| {
                        assert_close(&out[0].values(), &want, tolerance(result), absolute, &what);
                    },
                );
            }
        }
    }
}

#[test]
fn sums_and_means_agree_with_f64() {
    let wide = |dtype: DType| if dtype.is_float() { dtype } else { DType::I64 };
    check("sum", &DType::ALL, wide, true, false, sum, |v| v.iter().sum());
    check("mean", &FLOATS, |d| d, true, false, mean, |v| v.iter().sum::<f64>() / v.len() as f64);
}

#[test]
fn products_agree_with_f64() {
    let wide = |dtype: DType| if dtype.is_float() { dtype } else { DType::I64 };
    let mut lot = Lot(4);
    for dtype in DType::ALL {
        // Factors near 1, so that long products stay in range; whole ones are 0 or 1 or -1.
        let layout = Layout::strided(&[7, 30], &[1, 8], 2).unwrap();
        let x = Held::new(dtype, layout, || {
            if dtype.is_float() { 1.0 + 0.05 * lot.signed() } else { 1.0 }
        });
        for reduced in subsets(2) {
            let want: Vec<f64> = groups(&x, &reduced).iter().map(|v| v.iter().product()).collect();
            let shape: Vec<usize> =
                (0..2).filter(|d| !reduced.contains(d)).map(|d| x.shape()[d]).collect();
            let mut out = [Held::output(&mut lot, wide(dtype), &shape)];
            launch_all(
                &[&x],
                &mut out,
                0,
                |l| prod(l, &reduced),
                |out| {
                    let tolerance = 40.0 * tolerance(wide(dtype)) / 4.0;
                    assert_close(&out[0].values(), &want, tolerance, 0.0, "prod");
                },
            );
        }
    }
    let mut out = [Held::of(DType::F32, &[], &[0.0])];
    launch(&[&Held::of(DType::F32, &[0], &[])], &mut out, 0, |l| prod(l, &[0])).unwrap();
    assert_eq!(out[0].values(), [1.0]);
}

#[test]
fn extremes_and_truths_agree_with_f64() {
    let max = |v: &[f64]| {
        v.iter().fold(
            f64::NEG_INFINITY,
            |a, &b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) },
        )
    };
    let min = |v: &[f64]| {
        v.iter()
            .fold(f64::INFINITY, |a, &b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) })
    };
    check("amax", &DType::ALL, |d| d, false, true, amax, max);
    check("amin", &DType::ALL, |d| d, false, true, amin, min);
    check(
        "any",
        &DType::ALL,
        |_| DType::Bool,
        true,
        true,
        any,
        |v| f64::from(v.iter().any(|&v| v != 0.0)),
    );
    check(
        "all",
        &DType::ALL,
        |_| DType::Bool,
        true,
        true,
        all,
        |v| f64::from(v.iter().all(|&v| v != 0.0)),
    );
}

#[test]
fn positions_are_the_first_in_row_major_order() {
    let first = |v: &[f64], beats: fn(f64, f64) -> bool| {
        let mut best = 0;
        for i in 1..v.len() {
            if !v[best].is_nan() && (v[i].is_nan() || beats(v[i], v[best])) {
                best = i;
            }
        }
        best as f64
    };
    check("argmax", &DType::ALL, |_| DType::I64, false, true, argmax, |v| first(v, |a, b| a > b));
    check("argmin", &DType::ALL, |_| DType::I64, false, true, argmin, |v| first(v, |a, b| a < b));
}

#[test]
fn extremes_of_nothing_are_errors() {
    let x = Held::of(DType::F32, &[0, 2], &[]);
    let mut out = [Held::of(DType::F32, &[2], &[0.0; 2])];
    assert!(launch(&[&x], &mut out, 0, |l| amax(l, &[0])).unwrap_err().is_shape());
    let mut index = [Held::of(DType::I64, &[2], &[0.0; 2])];
    assert!(launch(&[&x], &mut index, 0, |l| argmax(l, &[0])).unwrap_err().is_shape());
}

#[test]
fn large_folds_do_not_depend_on_threads_and_keep_their_digits() {
    let mut lot = Lot(9);
    for dtype in FLOATS {
        for (shape, reduced) in [
            (vec![400_001], vec![0]),
            (vec![3, 200_001], vec![1]),
            (vec![100_003, 5], vec![0]),
            (vec![900, 700], vec![0]),
        ] {
            let x = Held::new(dtype, Layout::contiguous(&shape).unwrap(), || lot.signed() + 0.5);
            let want: Vec<f64> =
                groups(&x, &reduced).iter().map(|v| rounded(dtype, v.iter().sum())).collect();
            let out_shape: Vec<usize> =
                (0..shape.len()).filter(|d| !reduced.contains(d)).map(|d| shape[d]).collect();
            let mut out = [Held::output(&mut lot, dtype, &out_shape)];
            let mut by_level = Vec::new();
            launch_all(
                &[&x],
                &mut out,
                0,
                |l| sum(l, &reduced),
                |out| {
                    let relative = tolerance(dtype) * if dtype == DType::F64 { 100.0 } else { 1.0 };
                    assert_close(&out[0].values(), &want, relative, 0.0, "large sum");
                    by_level.push(out[0].values());
                },
            );
            for pair in by_level.chunks(2) {
                assert_eq!(pair[0], pair[1], "one and two threads agree bit for bit");
            }
            let mut index = [Held::output(&mut lot, DType::I64, &out_shape)];
            let best: Vec<f64> = groups(&x, &reduced)
                .iter()
                .map(|v| {
                    let max = v.iter().copied().fold(f64::MIN, f64::max);
                    v.iter().position(|&v| v == max).unwrap() as f64
                })
                .collect();
            launch_all(
                &[&x],
                &mut index,
                0,
                |l| argmax(l, &reduced),
                |out| {
                    assert_eq!(out[0].values(), best);
                },
            );
        }
    }
}

/// Rows long enough to be read at several places, and cut into chunks.
#[test]
fn long_rows_lose_no_element() {
    let mut lot = Lot(5);
    for length in [65_535, 65_536, 65_537 + 63, 100_003, 300_001] {
        for dtype in [DType::U8, DType::I32, DType::F32, DType::F64, DType::BF16] {
            // Small whole numbers: every sum of them is exact.
            let x =
                Held::new(dtype, Layout::contiguous(&[length]).unwrap(), || lot.below(3) as f64);
            let whole = !dtype.is_float();
            let result = if whole { DType::I64 } else { DType::F64 };
            let want: f64 = x.values().iter().sum();
            let mut out = [Held::of(if whole { result } else { dtype }, &[], &[0.0])];
            launch_all(
                &[&x],
                &mut out,
                0,
                |l| sum(l, &[0]),
                |out| {
                    let want = rounded(out[0].meta.dtype, want);
                    assert_eq!(out[0].values(), [want], "sum of {length} {dtype}");
                },
            );
            let mut largest = x.values();
            largest[length / 2] = 5.0;
            let x = Held::of(dtype, &[length], &largest);
            let mut out = [Held::of(dtype, &[], &[0.0])];
            launch_all(
                &[&x],
                &mut out,
                0,
                |l| amax(l, &[0]),
                |out| {
                    assert_eq!(out[0].values(), [5.0], "amax of {length} {dtype}");
                },
            );
        }
    }
}
