//! Floating-point elements as kernels compute with them: half types widen to f32, are computed on,
//! and round once; f32 and f64 compute as themselves. The mathematics is in `math32.rs` and
//! `math64.rs`.
//!
//! Conversions are written out in integer operations, without branches, because the `half` crate
//! asks the machine for its instructions on every call, which keeps loops from being vectorised.

use std::ops::{Add, Div, Mul, Neg, Sub};

use half::{bf16, f16};

use crate::Element;
use crate::simd::Level;
use crate::{math32, math64};

/// A float that tensors hold.
pub trait Float: Element {
    /// What it is computed in.
    type Wide: Real;
    /// Exact.
    fn widen(self) -> Self::Wide;
    /// To nearest, ties to even.
    fn narrow(wide: Self::Wide) -> Self;
}

/// A float that is computed in: f32 or f64.
pub trait Real:
    Float<Wide = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Positive infinity.
    const INFINITY: Self;
    /// The nearest value to a constant.
    fn of(value: f64) -> Self;
    /// Correctly rounded.
    fn sqrt(self) -> Self;
    /// `self * b + c`, fused where the level has it.
    fn mul_add<L: Level>(self, b: Self, c: Self) -> Self;
    /// e to the power of `self`.
    fn exp<L: Level>(self) -> Self;
    /// The natural logarithm.
    fn ln<L: Level>(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh<L: Level>(self) -> Self;
    /// The error function.
    fn erf<L: Level>(self) -> Self;
    /// `self` to the power of `exponent`.
    fn pow(self, exponent: Self) -> Self;
    /// The nearest whole number that is not above.
    fn floor(self) -> Self;
    /// The nearest whole number that is not below.
    fn ceil(self) -> Self;
    /// The nearest whole number, the even one of two.
    fn round_even(self) -> Self;
    /// Without its fraction.
    fn trunc(self) -> Self;
    /// Without its sign.
    fn abs(self) -> Self;
    /// Whether it is not a number.
    fn is_nan(self) -> bool;
    /// What is left of `self` after whole `divisor`s toward zero: C's `fmod`.
    fn remainder(self, divisor: Self) -> Self;
    /// With the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
}

macro_rules! real {
    ($type:ident, $math:ident, $mul_add:ident) => {
        impl Float for $type {
            type Wide = $type;
            #[inline(always)]
            fn widen(self) -> $type {
                self
            }
            #[inline(always)]
            fn narrow(wide: $type) -> $type {
                wide
            }
        }

        impl Real for $type {
            const INFINITY: Self = $type::INFINITY;
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $type::sqrt(self)
            }
            #[inline(always)]
            fn mul_add<L: Level>(self, b: Self, c: Self) -> Self {
                L::$mul_add(self, b, c)
            }
            #[inline(always)]
            fn exp<L: Level>(self) -> Self {
                $math::exp::<L>(self)
            }
            #[inline(always)]
            fn ln<L: Level>(self) -> Self {
                $math::ln::<L>(self)
            }
            #[inline(always)]
            fn tanh<L: Level>(self) -> Self {
                $math::tanh::<L>(self)
            }
            #[inline(always)]
            fn erf<L: Level>(self) -> Self {
                $math::erf::<L>(self)
            }
            #[inline(always)]
            fn pow(self, exponent: Self) -> Self {
                $type::powf(self, exponent)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $type::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $type::ceil(self)
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                $type::round_ties_even(self)
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                $type::trunc(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $type::abs(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $type::is_nan(self)
            }
            #[inline(always)]
            fn remainder(self, divisor: Self) -> Self {
                self % divisor
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $type::copysign(self, sign)
            }
        }
    };
}

real!(f32, math32, mul_add_f32);
real!(f64, math64, mul_add_f64);

impl Float for bf16 {
    type Wide = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn narrow(wide: f32) -> bf16 {
        let bits = wide.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        // A NaN whose payload sits in the lower half would round to infinity; this one stays quiet.
        let nan = bits >> 16 | 0x40;
        bf16::from_bits(if wide.is_nan() { nan } else { rounded } as u16)
    }
}

impl Float for f16 {
    type Wide = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let sign = (bits & 0x8000) << 16;
        let magnitude = (bits & 0x7fff) << 13;
        // Read with f32's wider exponent the value is 2^112 too small, subnormals included; the
        // product is exact. Infinity and NaN need the full exponent instead.
        let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
        let special = if magnitude >= 0x7c00 << 13 { 0x7f80_0000 } else { 0 };
        f32::from_bits(scaled.to_bits() | special | sign)
    }

    #[inline(always)]
    fn narrow(wide: f32) -> f16 {
        /// Adding this to a value below f16's normal range leaves its f16 bits at the bottom,
        /// rounded.
        const SUBNORMAL: u32 = (127 - 15 + 23 - 10 + 1) << 23;
        let bits = wide.to_bits();
        let sign = bits >> 16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        let normal =
            magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
        let subnormal = (f32::from_bits(magnitude) + f32::from_bits(SUBNORMAL))
            .to_bits()
            .wrapping_sub(SUBNORMAL);
        let special =
            if magnitude > 0x7f80_0000 { 0x7e00 | (magnitude >> 13 & 0x3ff) } else { 0x7c00 };
        let finite = if magnitude < 113 << 23 { subnormal } else { normal };
        // 143 << 23 is 65536, past which everything is infinite; rounding up to it carries there by
        // itself.
        let rounded = if magnitude >= 143 << 23 { special } else { finite };
        f16::from_bits((rounded | sign) as u16)
    }
}

/// Runs `$body` with `$T` as the float type of `$dtype`; any other dtype is an error of the launch.
#[macro_export]
macro_rules! match_float {
    ($launch:expr, $dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::of_macros::DType::F16 => {
                type $T = $crate::of_macros::f16;
                $body
            }
            $crate::of_macros::DType::BF16 => {
                type $T = $crate::of_macros::bf16;
                $body
            }
            $crate::of_macros::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::of_macros::DType::F64 => {
                type $T = f64;
                $body
            }
            other => Err($crate::wrong_dtype($launch.operation, other)),
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_widens_to_its_value_and_back() {
        for bits in 0..=u16::MAX {
            let (h, b) = (f16::from_bits(bits), bf16::from_bits(bits));
            if h.is_nan() {
                assert!(h.widen().is_nan() && f16::narrow(h.widen()).is_nan());
            } else {
                assert_eq!(f64::from(h.widen()), h.to_f64());
                assert_eq!(f16::narrow(h.widen()).to_bits(), bits);
            }
            if b.is_nan() {
                assert!(b.widen().is_nan() && bf16::narrow(b.widen()).is_nan());
            } else {
                assert_eq!(f64::from(b.widen()), b.to_f64());
                assert_eq!(bf16::narrow(b.widen()).to_bits(), bits);
            }
        }
    }

    #[test]
    fn narrowing_rounds_as_the_half_crate_does() {
        // Every exponent and sign with mantissas around the rounding points.
        for high in 0..=u16::MAX {
            for low in [0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xefff, 0xf000, 0xffff]
            {
                let wide = f32::from_bits(u32::from(high) << 16 | low);
                let (h, b) = (f16::narrow(wide), bf16::narrow(wide));
                if wide.is_nan() {
                    assert!(h.is_nan() && b.is_nan(), "{wide:?}");
                } else {
                    assert_eq!(h.to_bits(), f16::from_f32_const(wide).to_bits(), "{wide:e}");
                    assert_eq!(b.to_bits(), bf16::from_f32_const(wide).to_bits(), "{wide:e}");
                }
            }
        }
    }
}
