//! Circular and hyperbolic functions and their inverses: entries as in `functions.rs`.

use plimsoll_kernels::cpu::{call, special};

use super::{tail, unary};
use crate::operation::{OpInfo, Saves};

const FLOAT: OpInfo = tail(super::FLOAT);

/// As [`FLOAT`]; PyTorch has no form in place.
const NOT_IN_PLACE: OpInfo = OpInfo { in_place: false, ..FLOAT };

unary! {
    /// The angle whose cosine each element is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.acos()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    acos, acos_, acos_out => ACOS: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, f64::acos),
        derivative: |grad, x| grad.mul(&x.mul(x)?.rsub(1.0)?.rsqrt()?.neg()?),
    }

    /// The number whose hyperbolic cosine each element is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.acosh()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    acosh, acosh_, acosh_out => ACOSH: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::acosh),
        derivative: |grad, x| grad.mul(&x.mul(x)?.sub(1.0)?.rsqrt()?),
    }

    /// The angle of each element in the complex plane: 0, or pi for those below 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, -1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.angle()?.to_vec::<f32>()?, [0.0, std::f32::consts::PI]);
    /// # Ok::<(), Error>(())
    /// ```
    angle, angle_, angle_out => ANGLE: NOT_IN_PLACE {
        cpu: |launch| call::one(launch, special::angle),
    }

    /// The angle whose sine each element is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.asin()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    asin, asin_, asin_out => ASIN: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, f64::asin),
        derivative: |grad, x| grad.mul(&x.mul(x)?.rsub(1.0)?.rsqrt()?),
    }

    /// The number whose hyperbolic sine each element is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.asinh()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    asinh, asinh_, asinh_out => ASINH: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::asinh),
        derivative: |grad, x| grad.mul(&x.mul(x)?.add(1.0)?.rsqrt()?),
    }

    /// The angle whose tangent each element is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.atan()?.to_vec::<f32>()?, [0.0, std::f32::consts::FRAC_PI_4]);
    /// # Ok::<(), Error>(())
    /// ```
    atan, atan_, atan_out => ATAN: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, f64::atan),
        derivative: |grad, x| grad.div(&x.mul(x)?.add(1.0)?),
    }

    /// The number whose hyperbolic tangent each element is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.atanh()?.to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    atanh, atanh_, atanh_out => ATANH: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, f64::atanh),
        derivative: |grad, x| grad.div(&x.mul(x)?.rsub(1.0)?),
    }

    /// The cosine of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.cos()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    cos, cos_, cos_out => COS: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, f64::cos),
        derivative: |grad, x| grad.mul(&x.sin()?.neg()?),
    }

    /// The hyperbolic cosine of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.cosh()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    cosh, cosh_, cosh_out => COSH: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, f64::cosh),
        derivative: |grad, x| grad.mul(&x.sinh()?),
    }

    /// The sine of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.sin()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sin, sin_, sin_out => SIN: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, f64::sin),
        derivative: |grad, x| grad.mul(&x.cos()?),
    }

    /// The hyperbolic sine of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.sinh()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sinh, sinh_, sinh_out => SINH: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, f64::sinh),
        derivative: |grad, x| grad.mul(&x.cosh()?),
    }

    /// The tangent of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.tan()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    tan, tan_, tan_out => TAN: FLOAT {
        saves: Saves::output(0),
        cpu: |launch| call::one(launch, f64::tan),
        derivative: |grad, out| grad.mul(&out.mul(out)?.add(1.0)?),
    }
}
