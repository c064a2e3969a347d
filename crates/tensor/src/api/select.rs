//! Choosing between two operands by a condition.

use plimsoll_core::Result;
use plimsoll_memory::{Site, enter_operation, with_site};

use super::options::{Other, TensorOptions};
use super::promotion::result_type;
use crate::Tensor;
use crate::dispatch::apply_one;
use crate::ops::select::Where;

impl Tensor {
    /// Elements of `chosen` where `condition` holds, of `other` elsewhere.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// let y = Tensor::where_(&x.gt(0)?, &x, -1.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn where_<'a, 'b>(
        condition: &Tensor,
        chosen: impl Into<Other<'a>>,
        other: impl Into<Other<'b>>,
    ) -> Result<Tensor> {
        let _named = enter_operation("where");
        let site = Site::caller();
        let (chosen, other) = (chosen.into(), other.into());
        let dtype = result_type(&[chosen, other]);
        let operand = |operand: Other<'_>| match operand {
            Other::Tensor(tensor) => tensor.beside(condition, site)?.to_dtype(dtype, site),
            Other::Scalar(value) => {
                let options = TensorOptions {
                    dtype: Some(dtype),
                    device: Some(condition.device()),
                    requires_grad: false,
                };
                with_site(site, || Tensor::full(&[], value, options))
            }
        };
        apply_one(&Where, &[condition, &operand(chosen)?, &operand(other)?], site)
    }
}
