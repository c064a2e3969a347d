//! Questions about elements, answered by bools, and bits: entries as in `functions.rs`.

use plimsoll_core::DType;
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::{bitwise, call};

use super::{ANY, tail, unary};
use crate::operation::{DTypes, OnCuda, OpInfo, Out};

/// A question that is written into given tensors, too.
const TEST_INTO: OpInfo = OpInfo { differentiable: false, in_place: false, ..tail(ANY) };

/// A question that only makes new tensors.
const TEST: OpInfo = OpInfo { out: Out::None, ..TEST_INTO };

/// A question whose answer may be written over its tensor, as 0 and 1, and into any dtype.
const LOGICAL: OpInfo = OpInfo { in_place: true, out: Out::Cast, ..TEST_INTO };

/// A function of integers and bools.
const BITS: OpInfo =
    OpInfo { dtypes: DTypes::BITS, cuda: OnCuda::Kernels(&source_files::BITWISE), ..LOGICAL };

unary! {
    /// Each element with all of its bits flipped; bools are negated.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0i64, 5], &[2], Device::cpu())?;
    /// assert_eq!(x.bitwise_not()?.to_vec::<i64>()?, [-1, -6]);
    /// # Ok::<(), Error>(())
    /// ```
    bitwise_not, bitwise_not_, bitwise_not_out => BITWISE_NOT: BITS {
        cpu: bitwise::bitwise_not,
    }

    /// Where elements are neither infinite nor NaN.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN], &[2], Device::cpu())?;
    /// assert_eq!(x.isfinite()?.to_bools()?, [true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    isfinite, isfinite_, isfinite_out => ISFINITE: TEST {
        result: Some(DType::Bool),
        cpu: |launch| call::holds(launch, f64::is_finite),
    }

    /// Where elements are infinite.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, f32::INFINITY], &[2], Device::cpu())?;
    /// assert_eq!(x.isinf()?.to_bools()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    isinf, isinf_, isinf_out => ISINF: TEST {
        result: Some(DType::Bool),
        cpu: |launch| call::holds(launch, f64::is_infinite),
    }

    /// Where elements are not a number.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN], &[2], Device::cpu())?;
    /// assert_eq!(x.isnan()?.to_bools()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    isnan, isnan_, isnan_out => ISNAN: TEST {
        result: Some(DType::Bool),
        cpu: |launch| call::holds(launch, f64::is_nan),
    }

    /// Where elements are infinite and negative.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NEG_INFINITY], &[2], Device::cpu())?;
    /// assert_eq!(x.isneginf()?.to_bools()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    isneginf, isneginf_, isneginf_out => ISNEGINF: TEST_INTO {
        result: Some(DType::Bool),
        cpu: |launch| call::holds(launch, |x| x == f64::NEG_INFINITY),
    }

    /// Where elements are infinite and positive.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, f32::INFINITY], &[2], Device::cpu())?;
    /// assert_eq!(x.isposinf()?.to_bools()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    isposinf, isposinf_, isposinf_out => ISPOSINF: TEST_INTO {
        result: Some(DType::Bool),
        cpu: |launch| call::holds(launch, |x| x == f64::INFINITY),
    }

    /// Where elements are 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.logical_not()?.to_bools()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    logical_not, logical_not_, logical_not_out => LOGICAL_NOT: LOGICAL {
        result: Some(DType::Bool),
        cpu: |launch| call::holds(launch, |x| x == 0.0),
    }

    /// Where elements have a minus sign, negative zeros too.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, -0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.signbit()?.to_bools()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    signbit, signbit_, signbit_out => SIGNBIT: TEST_INTO {
        result: Some(DType::Bool),
        cpu: |launch| call::holds(launch, f64::is_sign_negative),
    }
}
