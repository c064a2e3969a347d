//! Functions of two operands as bits and as truths: entries as in `functions.rs`. None has a
//! derivative.

use plimsoll_core::DType;
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::{bitwise as cpu, call};

use super::entry::binary;
use super::info;
use crate::operation::{DTypes, OnCuda, OpInfo};

/// A function of every dtype that gives bools.
const LOGICAL: OpInfo = OpInfo {
    differentiable: false,
    cuda: OnCuda::Kernels(&source_files::BITWISE),
    ..info("", &[])
};

/// A function of integers.
const INTEGERS: OpInfo = OpInfo { dtypes: DTypes::INTEGERS, ..LOGICAL };

/// A function of integers and bools.
const BITS: OpInfo = OpInfo { dtypes: DTypes::BITS, ..LOGICAL };

binary! {
    /// Where both operands are nonzero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.logical_and(1.0)?.to_bools()?, [true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    logical_and, logical_and_, logical_and_out => LOGICAL_AND: LOGICAL, [
        "logical_and(Tensor self, Tensor other) -> Tensor",
    ] {
        result: Some(DType::Bool),
        cpu: |launch, second, _| call::truths(launch, second, |a, b| a && b),
    }

    /// Where one of the operands is nonzero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.logical_or(1.0)?.to_bools()?, [true, true]);
    /// # Ok::<(), Error>(())
    /// ```
    logical_or, logical_or_, logical_or_out => LOGICAL_OR: LOGICAL, [
        "logical_or(Tensor self, Tensor other) -> Tensor",
    ] {
        result: Some(DType::Bool),
        cpu: |launch, second, _| call::truths(launch, second, |a, b| a || b),
    }

    /// Where just one of the operands is nonzero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.logical_xor(1.0)?.to_bools()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    logical_xor, logical_xor_, logical_xor_out => LOGICAL_XOR: LOGICAL, [
        "logical_xor(Tensor self, Tensor other) -> Tensor",
    ] {
        result: Some(DType::Bool),
        cpu: |launch, second, _| call::truths(launch, second, |a, b| a != b),
    }

    /// The bits that both operands have.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[6i64, 3], &[2], Device::cpu())?;
    /// assert_eq!(x.bitwise_and(2)?.to_vec::<i64>()?, [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    bitwise_and, bitwise_and_, bitwise_and_out, rbitwise_and => BITWISE_AND: BITS, [
        "bitwise_and(Tensor self, Tensor|Scalar other) -> Tensor",
        "bitwise_and(Scalar self, Tensor other) -> Tensor",
    ] {
        cpu: |launch, second, _| cpu::bitwise_and(launch, second),
    }

    /// The bits that one of the operands has.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[6i64, 3], &[2], Device::cpu())?;
    /// assert_eq!(x.bitwise_or(1)?.to_vec::<i64>()?, [7, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    bitwise_or, bitwise_or_, bitwise_or_out, rbitwise_or => BITWISE_OR: BITS, [
        "bitwise_or(Tensor self, Tensor|Scalar other) -> Tensor",
        "bitwise_or(Scalar self, Tensor other) -> Tensor",
    ] {
        cpu: |launch, second, _| cpu::bitwise_or(launch, second),
    }

    /// The bits that just one of the operands has.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[6i64, 3], &[2], Device::cpu())?;
    /// assert_eq!(x.bitwise_xor(1)?.to_vec::<i64>()?, [7, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    bitwise_xor, bitwise_xor_, bitwise_xor_out, rbitwise_xor => BITWISE_XOR: BITS, [
        "bitwise_xor(Tensor self, Tensor|Scalar other) -> Tensor",
        "bitwise_xor(Scalar self, Tensor other) -> Tensor",
    ] {
        cpu: |launch, second, _| cpu::bitwise_xor(launch, second),
    }

    /// The bits of each element moved up by the other operand.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1i64, 3], &[2], Device::cpu())?;
    /// assert_eq!(x.bitwise_left_shift(2)?.to_vec::<i64>()?, [4, 12]);
    /// # Ok::<(), Error>(())
    /// ```
    bitwise_left_shift, bitwise_left_shift_, bitwise_left_shift_out, rbitwise_left_shift => BITWISE_LEFT_SHIFT: INTEGERS, [
        "bitwise_left_shift(Tensor self, Tensor|Scalar other) -> Tensor",
        "bitwise_left_shift(Scalar self, Tensor other) -> Tensor",
    ] {
        cpu: |launch, second, _| cpu::left_shift(launch, second),
    }

    /// The bits of each element moved down by the other operand.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[4i64, -8], &[2], Device::cpu())?;
    /// assert_eq!(x.bitwise_right_shift(1)?.to_vec::<i64>()?, [2, -4]);
    /// # Ok::<(), Error>(())
    /// ```
    bitwise_right_shift, bitwise_right_shift_, bitwise_right_shift_out, rbitwise_right_shift => BITWISE_RIGHT_SHIFT: INTEGERS, [
        "bitwise_right_shift(Tensor self, Tensor|Scalar other) -> Tensor",
        "bitwise_right_shift(Scalar self, Tensor other) -> Tensor",
    ] {
        cpu: |launch, second, _| cpu::right_shift(launch, second),
    }

    /// The largest whole number that divides both operands.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[4i64, 9], &[2], Device::cpu())?;
    /// assert_eq!(x.gcd(6)?.to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    gcd, gcd_, gcd_out => GCD: INTEGERS, [
        "gcd(Tensor self, Tensor other) -> Tensor",
    ] {
        cpu: |launch, second, _| cpu::gcd(launch, second),
    }

    /// The smallest whole number that both operands divide.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[4i64, 9], &[2], Device::cpu())?;
    /// assert_eq!(x.lcm(6)?.to_vec::<i64>()?, [12, 18]);
    /// # Ok::<(), Error>(())
    /// ```
    lcm, lcm_, lcm_out => LCM: INTEGERS, [
        "lcm(Tensor self, Tensor other) -> Tensor",
    ] {
        cpu: |launch, second, _| cpu::lcm(launch, second),
    }
}
