//! Choosing between two operands by a condition.

use plimsoll_core::Result;
use plimsoll_memory::{Site, enter_operation, with_site};

use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::select::Where;
use crate::prepare::{apply, apply_one};
use crate::promotion::{Other, result_type};

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
        let (chosen, other) = with_site(site, || operands(condition, chosen.into(), other.into()))?;
        apply_one(&Where, &[condition, &chosen, &other], site)
    }

    /// [`Tensor::where_`] into `out`.
    #[track_caller]
    pub fn where_out<'a, 'b>(
        condition: &Tensor,
        chosen: impl Into<Other<'a>>,
        other: impl Into<Other<'b>>,
        out: &Tensor,
    ) -> Result<()> {
        let _named = enter_operation("where");
        let site = Site::caller();
        let (chosen, other) = with_site(site, || operands(condition, chosen.into(), other.into()))?;
        apply(&Where, &[condition, &chosen, &other], Dest::Out(&[out]), site).map(drop)
    }
}

/// Both operands as tensors. A number becomes a zero-dimensional one of the dtype that it counts
/// as.
fn operands(condition: &Tensor, chosen: Other<'_>, other: Other<'_>) -> Result<(Tensor, Tensor)> {
    let dtype = result_type(&[chosen, other]);
    let tensor = |operand: Other<'_>| match operand {
        Other::Tensor(tensor) => Ok(tensor.clone()),
        Other::Scalar(value) => Tensor::full(&[], value, (dtype, condition.device())),
    };
    Ok((tensor(chosen)?, tensor(other)?))
}
