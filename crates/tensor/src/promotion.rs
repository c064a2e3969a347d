//! Operands that may be host numbers, and which dtype mixed ones compute in. PyTorch's order of
//! importance: tensors with dimensions, then zero-dimensional tensors, then host numbers; a lower
//! one matters only if its class (bool, integer, float) is higher.

use plimsoll_core::{DType, DTypeClass, Scalar, promote_dtypes};

use crate::Tensor;
use crate::default_dtype::{default_dtype, dtype_beside_number};

/// The second operand of an operation: a tensor or a host number.
#[derive(Clone, Copy, Debug)]
pub enum Other<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A host number; it promotes by its class only.
    Scalar(Scalar),
}

impl<'a> From<&'a Tensor> for Other<'a> {
    fn from(tensor: &'a Tensor) -> Other<'a> {
        Other::Tensor(tensor)
    }
}

macro_rules! other_from {
    ($($type:ty),*) => {$(
        impl From<$type> for Other<'_> {
            fn from(value: $type) -> Self {
                Other::Scalar(value.into())
            }
        }
    )*};
}

other_from!(Scalar, f64, f32, i64, i32, bool);

/// The dtype that an operation on these operands computes in.
///
/// ```
/// use plimsoll_tensor::{DType, Other, Tensor, result_type};
/// let ints = Tensor::zeros(&[2], DType::I32)?;
/// let scalar = Tensor::full(&[], 1.5, DType::F64)?;
/// assert_eq!(result_type(&[Other::from(&ints), Other::from(&scalar)]), DType::F64);
/// assert_eq!(result_type(&[Other::from(&ints), Other::from(1.5)]), DType::F32);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn result_type(operands: &[Other<'_>]) -> DType {
    let fold = |found: Option<DType>, tensor: &Tensor| {
        Some(found.map_or(tensor.dtype(), |dtype| promote_dtypes(dtype, tensor.dtype())))
    };
    let (mut dimensioned, mut zero_dim, mut number) = (None, None, None);
    for operand in operands {
        match operand {
            Other::Tensor(tensor) if tensor.rank() > 0 => dimensioned = fold(dimensioned, tensor),
            Other::Tensor(tensor) => zero_dim = fold(zero_dim, tensor),
            Other::Scalar(scalar) => {
                let class = |s: plimsoll_core::Scalar| s.class();
                number = match number {
                    Some(old) if class(old) >= class(*scalar) => Some(old),
                    _ => Some(*scalar),
                };
            }
        }
    }
    let tensors = match (dimensioned, zero_dim) {
        (Some(high), Some(low)) if low.class() > high.class() => Some(low),
        (Some(high), _) => Some(high),
        (None, low) => low,
    };
    match (tensors, number) {
        (Some(dtype), Some(scalar)) => dtype_beside_number(dtype, scalar),
        (Some(dtype), None) => dtype,
        (None, Some(scalar)) => match scalar.class() {
            DTypeClass::Bool => DType::Bool,
            DTypeClass::Integer => DType::I64,
            DTypeClass::Float => default_dtype(),
        },
        (None, None) => default_dtype(),
    }
}
