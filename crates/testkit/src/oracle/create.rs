//! Arrays from nothing.

use plimsoll_core::DType;

use super::{Array, Number};

/// One value everywhere.
pub fn full(dtype: DType, shape: &[usize], value: impl Into<Number>) -> Array {
    let value = value.into();
    Array::build(dtype, shape, |_| value)
}

/// `start`, `start + step`, .. before `end`.
pub fn arange(dtype: DType, start: f64, end: f64, step: f64) -> Array {
    let count = ((end - start) / step).ceil().max(0.0) as usize;
    Array::build(dtype, &[count], |i| start + i[0] as f64 * step)
}

/// Ones on the diagonal.
pub fn eye(dtype: DType, n: usize) -> Array {
    Array::build(dtype, &[n, n], |i| i[0] == i[1])
}
