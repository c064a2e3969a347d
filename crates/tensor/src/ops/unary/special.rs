//! Special functions that PyTorch has among the plain ones: entries as in `functions.rs`. The
//! others are in `ops/special/`.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::{call, special};

use super::unary;
use crate::Tensor;
use crate::operation::{OnCuda, OpInfo, Saves};

/// Kernels of special functions are in a file of their own.
const ON_CUDA: OnCuda = OnCuda::Kernels(&source_files::SPECIAL);
const FLOAT: OpInfo = OpInfo { cuda: ON_CUDA, ..super::FLOAT };

unary! {
    /// The derivative of the logarithm of the gamma function.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[f32::INFINITY], &[1], Device::cpu())?;
    /// assert_eq!(x.digamma()?.to_vec::<f32>()?, [f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    digamma, digamma_, digamma_out => DIGAMMA: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::digamma),
        derivative: |grad, x| grad.mul(&x.polygamma(1)?),
    }

    /// 1 minus the error function of each element, exact where that is close to 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.erfc()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    erfc, erfc_, erfc_out => ERFC: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::erfc),
        derivative: |grad, x| grad.mul(&x.mul(x)?.neg()?.exp()?.mul(-FRAC_2_SQRT_PI)?),
    }

    /// The number whose error function each element is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.erfinv()?.to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    erfinv, erfinv_, erfinv_out => ERFINV: FLOAT {
        saves: Saves::output(0),
        cpu: |launch| call::one(launch, special::erfinv),
        derivative: |grad, out| grad.mul(&out.mul(out)?.exp()?.div(FRAC_2_SQRT_PI)?),
    }

    /// The modified Bessel function of the first kind, order 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.i0()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    i0, i0_, i0_out => I0: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::i0),
        derivative: |grad, x| grad.mul(&x.special_i1()?),
    }

    /// The logarithm of the gamma function's magnitude.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.lgamma()?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    lgamma, lgamma_, lgamma_out => LGAMMA: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::lgamma),
        derivative: |grad, x| grad.mul(&x.digamma()?),
    }

    /// The sine of pi times each element, over pi times the element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.sinc()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sinc, sinc_, sinc_out => SINC: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, special::sinc),
        derivative: |grad, x| {
            let turn = x.mul(PI)?;
            // Also of numbers so small that their squares are 0.
            let square = turn.mul(x)?;
            let slope = turn.mul(&turn.cos()?)?.sub(&turn.sin()?)?.div(&square)?;
            grad.mul(&Tensor::where_(&square.eq(0.0)?, 0.0, &slope)?)
        },
    }
}
