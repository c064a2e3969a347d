//! Methods of two operands that are made of other operations: quotients and powers under other
//! names, closeness, and floats taken apart.

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_memory::{Site, enter_operation, with_site};

use super::binary::{AddOptions, DivOptions, RoundingMode};
use super::options::options;
use crate::Tensor;
use crate::api::composed;
use crate::dispatch::Dest;
use crate::ops::frexp::Frexp;
use crate::prepare::apply;
use crate::promotion::Other;

options! {
    /// How close operands of [`Tensor::isclose_with`] and [`Tensor::allclose_with`] must be.
    IscloseOptions {
        /// Beside the magnitude of the second operand.
        rtol: f64 = 1e-5,
        /// Beside 0.
        atol: f64 = 1e-8,
        /// Whether NaNs are close to each other.
        equal_nan: bool = false,
    }
}

impl Tensor {
    /// The true quotient of both operands: another name of [`Tensor::div`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[1], 3, DType::I64)?;
    /// assert_eq!(x.true_divide(2)?.to_vec::<f32>()?, [1.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn true_divide<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        let _named = enter_operation("true_divide");
        self.div(other)
    }

    /// The quotient of both operands, rounded down.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[1], -3, DType::I64)?;
    /// assert_eq!(x.floor_divide(2)?.to_vec::<i64>()?, [-2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn floor_divide<'a>(&self, other: impl Into<Other<'a>>) -> Result<Tensor> {
        let _named = enter_operation("floor_divide");
        self.div_with(other, DivOptions::new().rounding_mode(RoundingMode::Floor))
    }

    /// The other operand minus a multiple of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F32)?;
    /// assert_eq!(x.rsub_with(5.0, AddOptions::new().alpha(2))?.to_vec::<f32>()?, [3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rsub_with<'a>(
        &self,
        other: impl Into<Other<'a>>,
        options: AddOptions,
    ) -> Result<Tensor> {
        let _named = enter_operation("rsub");
        match other.into() {
            Other::Tensor(other) => other.sub_with(self, options),
            Other::Scalar(number) if options.alpha.to_f64() == 1.0 => self.rsub(number),
            Other::Scalar(number) => with_site(Site::caller(), || {
                let other = Tensor::full(&[], number, (number_dtype(number, self), self.device()))?;
                other.sub_with(self, options)
            }),
        }
    }

    /// The power of both operands in float64.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[1], 2, DType::I64)?;
    /// assert_eq!(x.float_power(-1)?.to_vec::<f64>()?, [0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn float_power<'a>(&self, exponent: impl Into<Other<'a>>) -> Result<Tensor> {
        let exponent = exponent.into();
        composed("float_power", Site::caller(), || {
            let base = self.double()?;
            match exponent {
                Other::Tensor(exponent) => base.pow(&exponent.double()?),
                Other::Scalar(number) => base.pow(number.to_f64()),
            }
        })
    }

    /// [`Tensor::float_power`] of a number and this tensor, in that order.
    #[track_caller]
    pub fn rfloat_power(&self, base: impl Into<Scalar>) -> Result<Tensor> {
        let base = base.into().to_f64();
        composed("float_power", Site::caller(), || self.double()?.rpow(base))
    }

    /// Each element times 2 to the power of the other operand.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[1], 3.0, DType::F32)?;
    /// let exponent = Tensor::full(&[1], 2, DType::I64)?;
    /// assert_eq!(x.ldexp(&exponent)?.to_vec::<f32>()?, [12.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ldexp(&self, other: &Tensor) -> Result<Tensor> {
        composed("ldexp", Site::caller(), || {
            // Of whole exponents the result has the dtype of floats, and the scale is exact.
            if !self.dtype().is_float() || other.dtype().is_float() {
                return self.mul(&other.rpow(2.0)?);
            }
            let (site, wide) = (Site::caller(), self.dtype() == DType::F64);
            let wide = if wide { DType::F64 } else { DType::F32 };
            let [half, rest] = halves(other, wide, site)?;
            self.mul(&half)?.mul(&rest)?.to_dtype(self.dtype(), site)
        })
    }

    /// [`Tensor::ldexp`] in place.
    #[track_caller]
    pub fn ldexp_(&self, other: &Tensor) -> Result<&Tensor> {
        composed("ldexp", Site::caller(), || {
            if !self.dtype().is_float() || other.dtype().is_float() {
                // The gradient of the exponents needs what was here, which `mul_` keeps.
                return self.mul_(&other.rpow(2.0)?).map(drop);
            }
            self.copy_(&self.ldexp(other)?).map(drop)
        })?;
        Ok(self)
    }

    /// [`Tensor::true_divide`] in place.
    #[track_caller]
    pub fn true_divide_<'a>(&self, other: impl Into<Other<'a>>) -> Result<&Tensor> {
        let _named = enter_operation("true_divide");
        self.div_(other)
    }

    /// [`Tensor::float_power`] in place, of a float64 tensor.
    #[track_caller]
    pub fn float_power_<'a>(&self, exponent: impl Into<Other<'a>>) -> Result<&Tensor> {
        let _named = enter_operation("float_power");
        if self.dtype() != DType::F64 {
            return Err(Error::dtype(
                "float_power_",
                format!("the result is float64 and the tensor {}; convert it first", self.dtype()),
            ));
        }
        let exponent = exponent.into();
        with_site(Site::caller(), || match exponent {
            Other::Tensor(exponent) => self.pow_(&exponent.double()?).map(drop),
            Other::Scalar(number) => self.pow_(number.to_f64()).map(drop),
        })?;
        Ok(self)
    }

    /// A fraction from a half to 1 and an exponent of 2, whose product each element is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (fraction, exponent) = Tensor::full(&[1], 12.0, DType::F32)?.frexp()?;
    /// assert_eq!((fraction.item::<f32>()?, exponent.item::<i32>()?), (0.75, 4));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn frexp(&self) -> Result<(Tensor, Tensor)> {
        let mut outputs = apply(&Frexp, &[self], Dest::New, Site::caller())?;
        let exponent = outputs.swap_remove(1);
        Ok((outputs.swap_remove(0), exponent))
    }

    /// [`Tensor::frexp`] into two tensors.
    #[track_caller]
    pub fn frexp_out(&self, mantissa: &Tensor, exponent: &Tensor) -> Result<()> {
        apply(&Frexp, &[self], Dest::Out(&[mantissa, exponent]), Site::caller()).map(drop)
    }

    /// Where both operands are close to each other.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F64)?;
    /// assert_eq!(x.isclose(&x.add(1e-6)?)?.to_bools()?, [true]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn isclose(&self, other: &Tensor) -> Result<Tensor> {
        self.isclose_with(other, IscloseOptions::new())
    }

    /// [`Tensor::isclose`] with other tolerances.
    #[track_caller]
    pub fn isclose_with(&self, other: &Tensor, options: IscloseOptions) -> Result<Tensor> {
        let IscloseOptions { rtol, atol, equal_nan } = options;
        let wrong = |what: &str, value: f64| {
            Err(Error::shape("isclose", format!("{what} is {value}, and must be 0 or more")))
        };
        if self.dtype() != other.dtype() {
            return Err(Error::dtype(
                "isclose",
                format!(
                    "operands are {} and {}; convert one with `to`",
                    self.dtype(),
                    other.dtype()
                ),
            ));
        }
        if rtol < 0.0 || rtol.is_nan() {
            return wrong("rtol", rtol);
        }
        if atol < 0.0 || atol.is_nan() {
            return wrong("atol", atol);
        }
        composed("isclose", Site::caller(), || {
            let mut close = self.eq(other)?;
            let is_float = self.dtype().is_float();
            if equal_nan && is_float {
                close = close.logical_or(&self.isnan()?.logical_and(&other.isnan()?)?)?;
            }
            if rtol == 0.0 && atol == 0.0 {
                return Ok(close);
            }
            // Differences of integers would wrap around.
            let (a, b) = match is_float {
                true => (self.clone(), other.clone()),
                false => (self.float()?, other.float()?),
            };
            let allowed = b.mul(rtol)?.abs()?.add(atol)?;
            let apart = a.sub(&b)?.abs()?;
            close.logical_or(&apart.isfinite()?.logical_and(&apart.le(&allowed)?)?)
        })
    }

    /// Whether all elements of both operands are close to each other.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F64)?;
    /// assert!(x.allclose(&x.add(1e-6)?)?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn allclose(&self, other: &Tensor) -> Result<bool> {
        self.allclose_with(other, IscloseOptions::new())
    }

    /// [`Tensor::allclose`] with other tolerances.
    #[track_caller]
    pub fn allclose_with(&self, other: &Tensor, options: IscloseOptions) -> Result<bool> {
        composed("allclose", Site::caller(), || all_of(&self.isclose_with(other, options)?))
    }

    /// Whether both tensors have one shape and the same elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?;
    /// assert!(x.equal(&x.clone())? && !x.equal(&Tensor::ones(&[3], DType::F32)?)?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        let _named = enter_operation("equal");
        if self.device() != other.device() {
            return Err(Error::device(
                "equal",
                "tensors are on different devices; move one with `to`",
            ));
        }
        if self.shape() != other.shape() {
            return Ok(false);
        }
        with_site(Site::caller(), || all_of(&self.eq(other)?))
    }
}

/// Whether all of these bools are true.
fn all_of(truths: &Tensor) -> Result<bool> {
    Ok(truths.all()?.to_bools()?.first().copied().unwrap_or(true))
}

/// Two powers of 2 whose product is that of a whole `exponent`: one alone is beyond the floats
/// where its product with a tiny or a large number is not.
fn halves(exponent: &Tensor, wide: DType, site: Site) -> Result<[Tensor; 2]> {
    // Beyond these every product is 0 or infinite.
    let most = if wide == DType::F64 { 2200 } else { 300 };
    let exponent = exponent.to_dtype(DType::I64, site)?.clamp(-most, most)?;
    let half = exponent.bitwise_right_shift(1)?;
    let rest = exponent.sub(&half)?;
    Ok([half.to_dtype(wide, site)?.rpow(2.0)?, rest.to_dtype(wide, site)?.rpow(2.0)?])
}

/// The dtype of a number beside a tensor, so that it promotes no further than by its class.
fn number_dtype(number: Scalar, beside: &Tensor) -> DType {
    crate::promotion::result_type(&[Other::Tensor(beside), Other::Scalar(number)])
}
