//! Powers.

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_memory::{Site, enter_operation};

use super::options::Other;
use super::promotion::result_type;
use crate::Tensor;
use crate::dispatch::{Dest, apply, apply_one};
use crate::ops::pow::Pow;

const OP: &str = "pow";

impl Tensor {
    /// Each element to the power of `exponent`; integers to a fraction give float32.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(1, 4, 1, DType::I64)?;
    /// assert_eq!(x.pow(2)?.to_vec::<i64>()?, [1, 4, 9]);
    /// assert_eq!(x.pow(-1.0)?.to_vec::<f32>()?, [1.0, 0.5, 1.0 / 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn pow(&self, exponent: impl Into<Scalar>) -> Result<Tensor> {
        let _named = enter_operation("pow");
        let (site, exponent) = (Site::caller(), exponent.into());
        let dtype = dtype_for(self, exponent)?;
        apply_one(&Pow { exponent }, &[&self.to_dtype(dtype, site)?], site)
    }

    /// [`Tensor::pow`] in place.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[1], 3, DType::F32)?;
    /// assert_eq!(x.pow_(2)?.item::<f32>()?, 9.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn pow_(&self, exponent: impl Into<Scalar>) -> Result<&Tensor> {
        let exponent = exponent.into();
        let dtype = dtype_for(self, exponent)?;
        if dtype != self.dtype() {
            return Err(Error::dtype(
                OP,
                format!(
                    "the result is {dtype} and cannot be stored in place in a tensor of {}; use the form without the \
                     underscore, or convert first",
                    self.dtype()
                ),
            ));
        }
        apply(&Pow { exponent }, &[self], Dest::InPlace, Site::caller())?;
        Ok(self)
    }

    /// [`Tensor::pow`] into `out`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[1], 3, DType::F32)?;
    /// let out = x.empty_like()?;
    /// x.pow_out(2, &out)?;
    /// assert_eq!(out.item::<f32>()?, 9.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn pow_out(&self, exponent: impl Into<Scalar>, out: &Tensor) -> Result<()> {
        let _named = enter_operation("pow");
        let (site, exponent) = (Site::caller(), exponent.into());
        let x = self.to_dtype(dtype_for(self, exponent)?, site)?;
        apply(&Pow { exponent }, &[&x], Dest::Out(&[out]), site).map(drop)
    }
}

fn dtype_for(x: &Tensor, exponent: Scalar) -> Result<DType> {
    let dtype = result_type(&[Other::Tensor(x), Other::Scalar(exponent)]);
    if !dtype.is_float() && exponent.to_i64() < 0 {
        return Err(Error::invalid_argument(format!(
            "integers to the negative power {exponent} are not whole; convert to a float dtype first, or write the \
             exponent as a fraction"
        ))
        .in_operation(OP));
    }
    Ok(if dtype == DType::Bool { DType::I64 } else { dtype })
}
