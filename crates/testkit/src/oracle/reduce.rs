//! Reductions over some dimensions: each result element gathers the input elements that fall onto
//! it.

use plimsoll_core::{DType, DTypeClass};

use super::array::wrap_dim;
use super::{Array, Number, indices};

/// Reduces `dims` (all of them if empty) of `x`; `f` sees the elements of one result in row-major
/// order.
pub fn fold<N: Into<Number>>(
    x: &Array,
    dims: &[i64],
    keepdim: bool,
    result: DType,
    f: impl Fn(&[Number]) -> N,
) -> Array {
    let rank = x.shape().len();
    let gone: Vec<bool> = (0..rank)
        .map(|d| dims.is_empty() || dims.iter().any(|&r| wrap_dim(r, rank) == d))
        .collect();
    let inner: Vec<usize> = (0..rank).map(|d| if gone[d] { x.shape()[d] } else { 1 }).collect();
    let outer: Vec<usize> = (0..rank).map(|d| if gone[d] { 1 } else { x.shape()[d] }).collect();
    let kept: Vec<usize> = (0..rank).filter(|&d| keepdim || !gone[d]).map(|d| outer[d]).collect();
    let values = indices(&outer)
        .map(|o| {
            let elements: Vec<Number> = indices(&inner)
                .map(|i| x.at(&i.iter().zip(&o).map(|(a, b)| a + b).collect::<Vec<_>>()))
                .collect();
            f(&elements).into()
        })
        .collect();
    Array::new(result, &kept, values)
}

/// The dtype of a sum or product: integers and bools are added up as `int64`.
fn accumulating(dtype: DType) -> DType {
    if dtype.class() == DTypeClass::Float { dtype } else { DType::I64 }
}

/// The sum.
pub fn sum(x: &Array, dims: &[i64], keepdim: bool) -> Array {
    fold(x, dims, keepdim, accumulating(x.dtype()), |v| {
        total(v, 0, i64::wrapping_add, 0.0, |a, b| a + b)
    })
}

/// The product.
pub fn prod(x: &Array, dims: &[i64], keepdim: bool) -> Array {
    fold(x, dims, keepdim, accumulating(x.dtype()), |v| {
        total(v, 1, i64::wrapping_mul, 1.0, |a, b| a * b)
    })
}

fn total(
    values: &[Number],
    int_start: i64,
    int: impl Fn(i64, i64) -> i64,
    float_start: f64,
    float: impl Fn(f64, f64) -> f64,
) -> Number {
    match values.first() {
        None => Number::Int(int_start),
        Some(Number::Int(_)) => {
            Number::Int(values.iter().fold(int_start, |a, v| int(a, v.to_i64())))
        }
        Some(Number::Float(_)) => {
            Number::Float(values.iter().fold(float_start, |a, v| float(a, v.to_f64())))
        }
    }
}

/// The mean of floats.
pub fn mean(x: &Array, dims: &[i64], keepdim: bool) -> Array {
    fold(x, dims, keepdim, x.dtype(), |v| {
        v.iter().map(|n| n.to_f64()).sum::<f64>() / v.len() as f64
    })
}

/// Whether `a` comes before `b` when the largest comes first: NaN is larger than everything.
fn larger(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a > b,
        (a, b) => {
            let (a, b) = (a.to_f64(), b.to_f64());
            !b.is_nan() && (a.is_nan() || a > b)
        }
    }
}

/// As [`larger`], for the smallest: NaN is again extreme.
fn smaller(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a < b,
        (a, b) => {
            let (a, b) = (a.to_f64(), b.to_f64());
            !b.is_nan() && (a.is_nan() || a < b)
        }
    }
}

fn first_extreme(values: &[Number], beats: impl Fn(Number, Number) -> bool) -> usize {
    (0..values.len()).fold(0, |best, i| if beats(values[i], values[best]) { i } else { best })
}

/// The largest element.
pub fn amax(x: &Array, dims: &[i64], keepdim: bool) -> Array {
    fold(x, dims, keepdim, x.dtype(), |v| v[first_extreme(v, larger)])
}

/// The smallest element.
pub fn amin(x: &Array, dims: &[i64], keepdim: bool) -> Array {
    fold(x, dims, keepdim, x.dtype(), |v| v[first_extreme(v, smaller)])
}

/// The index of the first largest element, along `dim` or in the flattened array.
pub fn argmax(x: &Array, dim: Option<i64>, keepdim: bool) -> Array {
    let dims: Vec<i64> = dim.into_iter().collect();
    fold(x, &dims, keepdim, DType::I64, |v| first_extreme(v, larger) as i64)
}

/// The index of the first smallest element.
pub fn argmin(x: &Array, dim: Option<i64>, keepdim: bool) -> Array {
    let dims: Vec<i64> = dim.into_iter().collect();
    fold(x, &dims, keepdim, DType::I64, |v| first_extreme(v, smaller) as i64)
}

/// Whether some element is not zero. PyTorch keeps `uint8` for `uint8`; everything else gives bool.
pub fn any(x: &Array) -> Array {
    fold(x, &[], false, truth_dtype(x), |v| v.iter().any(|n| n.is_true()))
}

/// Whether no element is zero.
pub fn all(x: &Array) -> Array {
    fold(x, &[], false, truth_dtype(x), |v| v.iter().all(|n| n.is_true()))
}

fn truth_dtype(x: &Array) -> DType {
    if x.dtype() == DType::U8 { DType::U8 } else { DType::Bool }
}
