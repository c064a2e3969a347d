//! Powers of 2, logarithms to other bases, and the like: entries as in `functions.rs`.

use std::f64::consts::{LN_2, LN_10};

use plimsoll_kernels::cpu::call;

use super::{tail, unary};
use crate::operation::{OpInfo, Saves};

const FLOAT: OpInfo = tail(super::FLOAT);

unary! {
    /// 2 to the power of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 3.0], &[2], Device::cpu())?;
    /// assert_eq!(x.exp2()?.to_vec::<f32>()?, [1.0, 8.0]);
    /// # Ok::<(), Error>(())
    /// ```
    exp2, exp2_, exp2_out => EXP2: FLOAT {
        saves: Saves::output(0),
        cpu: |launch| call::one(launch, f64::exp2),
        derivative: |grad, out| grad.mul(&out.mul(LN_2)?),
    }

    /// `e` to the power of each element, minus 1, exact near 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1e-10], &[2], Device::cpu())?;
    /// assert_eq!(x.expm1()?.to_vec::<f32>()?, [0.0, 1e-10]);
    /// # Ok::<(), Error>(())
    /// ```
    expm1, expm1_, expm1_out => EXPM1: FLOAT {
        saves: Saves::output(0),
        cpu: |launch| call::one(launch, f64::exp_m1),
        derivative: |grad, out| grad.mul(&out.add(1.0)?),
    }

    /// The logarithm of each element to the base 10.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 100.0], &[2], Device::cpu())?;
    /// assert_eq!(x.log10()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    log10, log10_, log10_out => LOG10: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, f64::log10),
        derivative: |grad, x| grad.div(&x.mul(LN_10)?),
    }

    /// The logarithm of each element to the base 2.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 8.0], &[2], Device::cpu())?;
    /// assert_eq!(x.log2()?.to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    log2, log2_, log2_out => LOG2: FLOAT {
        saves: Saves::input(0),
        cpu: |launch| call::one(launch, f64::log2),
        derivative: |grad, x| grad.div(&x.mul(LN_2)?),
    }
}
