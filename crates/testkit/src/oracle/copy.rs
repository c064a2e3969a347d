//! Copies and conversions.

use plimsoll_core::{DType, Scalar};

use super::{Array, Number};

/// The values in another dtype.
pub fn to(x: &Array, dtype: DType) -> Array {
    x.cast(dtype)
}

/// `destination` after `copy_(source)`: broadcast to its shape, converted to its dtype.
pub fn copy_into(destination: &Array, source: &Array) -> Array {
    let source = source.cast(destination.dtype());
    Array::build(destination.dtype(), destination.shape(), |i| source.at_broadcast(i))
}

/// `x` after `fill_(value)`.
pub fn fill(x: &Array, value: Scalar) -> Array {
    let number = match value {
        Scalar::Bool(b) => Number::from(b),
        Scalar::Int(i) => Number::Int(i),
        Scalar::Float(v) => Number::Float(v),
    };
    Array::build(x.dtype(), x.shape(), |_| number)
}
