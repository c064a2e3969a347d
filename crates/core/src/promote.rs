//! Type promotion: which dtype an operation on mixed operands computes in. PyTorch's table: the
//! higher class wins; within a class the wider type. `uint8` with `int8` gives `int16`, and
//! `float16` with `bfloat16` gives `float32`: neither of the two holds the other.

use crate::{DType, DTypeClass, Scalar};

/// The dtype of an operation on two tensors of one or more dimensions.
///
/// ```
/// use plimsoll_core::{DType, promote_dtypes};
/// assert_eq!(promote_dtypes(DType::I64, DType::F16), DType::F16);
/// assert_eq!(promote_dtypes(DType::F16, DType::BF16), DType::F32);
/// ```
pub const fn promote_dtypes(a: DType, b: DType) -> DType {
    match (a, b) {
        (DType::F16, DType::BF16) | (DType::BF16, DType::F16) => DType::F32,
        (DType::U8, DType::I8) | (DType::I8, DType::U8) => DType::I16,
        // `DType` is declared in promotion order, so past the two exceptions the later one wins.
        _ if (a as u8) >= (b as u8) => a,
        _ => b,
    }
}

/// The dtype of an operation on a tensor and a host number: the number only matters if its class is
/// higher than the tensor's (`int64 + 1.5` is `float32`, `float16 + 1.5` stays `float16`).
pub const fn promote_with_scalar(tensor: DType, scalar: Scalar) -> DType {
    match (tensor.class(), scalar.class()) {
        (DTypeClass::Bool, DTypeClass::Integer) => DType::I64,
        (DTypeClass::Bool | DTypeClass::Integer, DTypeClass::Float) => DType::F32,
        _ => tensor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_commutative_and_idempotent() {
        for a in DType::ALL {
            assert_eq!(promote_dtypes(a, a), a);
            for b in DType::ALL {
                assert_eq!(promote_dtypes(a, b), promote_dtypes(b, a));
            }
        }
    }

    #[test]
    fn a_scalar_only_lifts_the_class() {
        assert_eq!(promote_with_scalar(DType::U8, Scalar::Int(300)), DType::U8);
        assert_eq!(promote_with_scalar(DType::Bool, Scalar::Int(1)), DType::I64);
        assert_eq!(promote_with_scalar(DType::I64, Scalar::Float(1.0)), DType::F32);
        assert_eq!(promote_with_scalar(DType::F16, Scalar::Float(1e9)), DType::F16);
    }
}
