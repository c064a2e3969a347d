//! Which dtype mixed operands compute in. PyTorch's order of importance: tensors with dimensions, then zero-dimensional tensors,
//! then host numbers; a lower one matters only if its class (bool, integer, float) is higher.

use plimsoll_core::{DType, DTypeClass, promote_dtypes, promote_with_scalar};

use super::options::Other;
use crate::Tensor;

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
        (Some(dtype), Some(scalar)) => promote_with_scalar(dtype, scalar),
        (Some(dtype), None) => dtype,
        (None, Some(scalar)) => match scalar.class() {
            DTypeClass::Bool => DType::Bool,
            DTypeClass::Integer => DType::I64,
            DTypeClass::Float => DType::F32,
        },
        (None, None) => DType::F32,
    }
}
