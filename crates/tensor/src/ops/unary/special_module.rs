//! The functions of `torch.special` that have one input: entries as in `functions.rs`.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use plimsoll_core::{DType, Result};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::{call, special};
use plimsoll_memory::Site;

use super::unary;
use crate::Tensor;
use crate::operation::{DTypes, Home, OnCuda, OpInfo, Saves};

/// A function of floats; integers become float32.
const FLOAT: OpInfo = OpInfo {
    home: Home::Special,
    family: "special",
    in_place: false,
    cuda: OnCuda::Kernels(&source_files::SPECIAL),
    ..super::FLOAT
};

/// As [`FLOAT`]; PyTorch has these for no half types.
const WIDE: OpInfo = OpInfo { dtypes: DTypes::of(&[DType::F32, DType::F64]), ..FLOAT };

/// As [`WIDE`], without a derivative.
const FLAT: OpInfo = OpInfo { differentiable: false, ..WIDE };

/// sqrt(2 / pi).
const SQRT_2_OVER_PI: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;

/// Where x is not at 0, and x with another number there, so that quotients by it are finite.
fn away_from_zero(x: &Tensor) -> Result<(Tensor, Tensor)> {
    const NEAR: f64 = 1e-15;
    let far = x.abs()?.gt(NEAR)?;
    let safe = Tensor::where_(&far, x, NEAR)?;
    Ok((far, safe))
}

unary! {
    /// Airy's function.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[200.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_airy_ai()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_airy_ai, special_airy_ai_, special_airy_ai_out => SPECIAL_AIRY_AI: FLAT {
        cpu: |launch| call::one(launch, special::airy_ai),
    }

    /// The Bessel function of the first kind, order 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_bessel_j0()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_bessel_j0, special_bessel_j0_, special_bessel_j0_out => SPECIAL_BESSEL_J0: WIDE {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::bessel_j0),
        derivative: |grad, x| grad.mul(&x.special_bessel_j1()?.neg()?),
    }

    /// The Bessel function of the first kind, order 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_bessel_j1()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_bessel_j1, special_bessel_j1_, special_bessel_j1_out => SPECIAL_BESSEL_J1: WIDE {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::bessel_j1),
        derivative: |grad, x| grad.mul(&order_one(x, 0.5, x.special_bessel_j0()?, x.special_bessel_j1()?)?),
    }

    /// The Bessel function of the second kind, order 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_bessel_y0()?.to_vec::<f32>()?, [f32::NEG_INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    special_bessel_y0, special_bessel_y0_, special_bessel_y0_out => SPECIAL_BESSEL_Y0: WIDE {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::bessel_y0),
        derivative: |grad, x| grad.mul(&x.special_bessel_y1()?.neg()?),
    }

    /// The Bessel function of the second kind, order 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_bessel_y1()?.to_vec::<f32>()?, [f32::NEG_INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    special_bessel_y1, special_bessel_y1_, special_bessel_y1_out => SPECIAL_BESSEL_Y1: WIDE {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::bessel_y1),
        derivative: |grad, x| {
            let (zero, one) = (x.special_bessel_y0()?, x.special_bessel_y1()?);
            grad.mul(&order_one(x, f64::INFINITY, zero, one)?)
        },
    }

    /// The entropy of each element: minus itself times its logarithm.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.special_entr()?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_entr, special_entr_, special_entr_out => SPECIAL_ENTR: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::entr),
        derivative: |grad, x| {
            let slope = x.log()?.add(1.0)?.neg()?;
            let beyond = Tensor::where_(&x.eq(0.0)?, f64::INFINITY, f64::NAN)?;
            grad.mul(&Tensor::where_(&x.gt(0.0)?, &slope, &beyond.to_dtype(x.dtype(), Site::caller())?)?)
        },
    }

    /// The complement of the error function, times the exponential of the square.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_erfcx()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_erfcx, special_erfcx_, special_erfcx_out => SPECIAL_ERFCX: WIDE {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::erfcx),
        derivative: |grad, x| grad.mul(&x.mul(2.0)?.mul(&x.special_erfcx()?)?.sub(FRAC_2_SQRT_PI)?),
    }

    /// The modified Bessel function of order 0, over the exponential of the magnitude.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_i0e()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_i0e, special_i0e_, special_i0e_out => SPECIAL_I0E: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::i0e),
        derivative: |grad, x| grad.mul(&x.special_i1e()?.sub(&x.sign()?.mul(&x.special_i0e()?)?)?),
    }

    /// The modified Bessel function of the first kind, order 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_i1()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_i1, special_i1_, special_i1_out => SPECIAL_I1: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::i1),
        derivative: |grad, x| {
            let (far, safe) = away_from_zero(x)?;
            let slope = safe.i0()?.sub(&x.special_i1()?.div(&safe)?)?;
            grad.mul(&Tensor::where_(&far, &slope, 0.5)?)
        },
    }

    /// The modified Bessel function of order 1, over the exponential of the magnitude.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_i1e()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_i1e, special_i1e_, special_i1e_out => SPECIAL_I1E: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::i1e),
        derivative: |grad, x| {
            let (far, safe) = away_from_zero(x)?;
            let both = safe.sign()?.add(&safe.reciprocal()?)?;
            let slope = safe.special_i0e()?.sub(&x.special_i1e()?.mul(&both)?)?;
            grad.mul(&Tensor::where_(&far, &slope, 0.5)?)
        },
    }

    /// The logarithm of the normal distribution's mass below each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[f32::INFINITY], &[1], Device::cpu())?;
    /// assert_eq!(x.special_log_ndtr()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_log_ndtr, special_log_ndtr_, special_log_ndtr_out => SPECIAL_LOG_NDTR: WIDE {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::log_ndtr),
        derivative: |grad, x| grad.div(&x.mul(-FRAC_1_SQRT_2)?.special_erfcx()?)?.mul(SQRT_2_OVER_PI),
    }

    /// The modified Bessel function of the first kind, order 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_modified_bessel_i0()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_modified_bessel_i0, special_modified_bessel_i0_, special_modified_bessel_i0_out => SPECIAL_MODIFIED_BESSEL_I0: WIDE {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::i0),
        derivative: |grad, x| grad.mul(&x.special_modified_bessel_i1()?),
    }

    /// The modified Bessel function of the first kind, order 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_modified_bessel_i1()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_modified_bessel_i1, special_modified_bessel_i1_, special_modified_bessel_i1_out => SPECIAL_MODIFIED_BESSEL_I1: WIDE {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::i1),
        derivative: |grad, x| {
            let (zero, one) = (x.special_modified_bessel_i0()?, x.special_modified_bessel_i1()?);
            grad.mul(&order_one(x, 0.5, zero, one)?)
        },
    }

    /// The modified Bessel function of the second kind, order 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_modified_bessel_k0()?.to_vec::<f32>()?, [f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    special_modified_bessel_k0, special_modified_bessel_k0_, special_modified_bessel_k0_out => SPECIAL_MODIFIED_BESSEL_K0: WIDE {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::k0),
        derivative: |grad, x| grad.mul(&x.special_modified_bessel_k1()?.neg()?),
    }

    /// The modified Bessel function of the second kind, order 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_modified_bessel_k1()?.to_vec::<f32>()?, [f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    special_modified_bessel_k1, special_modified_bessel_k1_, special_modified_bessel_k1_out => SPECIAL_MODIFIED_BESSEL_K1: WIDE {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::k1),
        derivative: |grad, x| {
            let (zero, one) = (x.special_modified_bessel_k0()?, x.special_modified_bessel_k1()?);
            grad.mul(&zero.neg()?.sub(&one.div(x)?)?)
        },
    }

    /// The mass of the normal distribution below each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_ndtr()?.to_vec::<f32>()?, [0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    special_ndtr, special_ndtr_, special_ndtr_out => SPECIAL_NDTR: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| match launch.inputs.first().map(|input| input.dtype()) {
            Some(half @ (DType::F16 | DType::BF16)) => {
                call::one_with(launch, call::rounding(half), special::ndtr_in_steps)
            }
            _ => call::one(launch, special::ndtr),
        },
        derivative: |grad, x| grad.mul(&x.mul(x)?.mul(-0.5)?.exp()?.mul(SQRT_2_OVER_PI * 0.5)?),
    }

    /// The number that the normal distribution has each element's mass below.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.special_ndtri()?.to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    special_ndtri, special_ndtri_, special_ndtri_out => SPECIAL_NDTRI: WIDE {
        saves: Saves::output(0),
        cpu: |launch| call::one(launch, special::ndtri),
        derivative: |grad, out| grad.mul(&out.mul(out)?.mul(0.5)?.exp()?.mul(2.0 / SQRT_2_OVER_PI)?),
    }

    /// The modified Bessel function of the second kind, order 0, times the exponential.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_scaled_modified_bessel_k0()?.to_vec::<f32>()?, [f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    special_scaled_modified_bessel_k0, special_scaled_modified_bessel_k0_, special_scaled_modified_bessel_k0_out => SPECIAL_SCALED_MODIFIED_BESSEL_K0: FLAT {
        cpu: |launch| call::one(launch, special::k0e),
    }

    /// The modified Bessel function of the second kind, order 1, times the exponential.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_scaled_modified_bessel_k1()?.to_vec::<f32>()?, [f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    special_scaled_modified_bessel_k1, special_scaled_modified_bessel_k1_, special_scaled_modified_bessel_k1_out => SPECIAL_SCALED_MODIFIED_BESSEL_K1: FLAT {
        cpu: |launch| call::one(launch, special::k1e),
    }

    /// The spherical Bessel function of the first kind, order 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_spherical_bessel_j0()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_spherical_bessel_j0, special_spherical_bessel_j0_, special_spherical_bessel_j0_out => SPECIAL_SPHERICAL_BESSEL_J0: FLAT {
        cpu: |launch| call::one(launch, special::spherical_bessel_j0),
    }
}

/// The derivative of a Bessel function of order 1: the one of order 0, less itself over x; at 0 its
/// limit.
fn order_one(x: &Tensor, limit: f64, zero: Tensor, one: Tensor) -> Result<Tensor> {
    Tensor::where_(&x.eq(0.0)?, limit, &zero.sub(&one.div(x)?)?)
}
