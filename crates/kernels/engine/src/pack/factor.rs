//! What a matrix product needs from an element type: the type it is summed in, and the way there
//! and back. Half types are summed in `f32` and rounded once at the end; integers wrap, as
//! PyTorch's do.

use half::{bf16, f16};
use plimsoll_core::DType;

use crate::simd::Level;

/// A type that products are summed in.
pub trait Accumulator: Copy + PartialEq + Send + Sync + 'static {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The nearest value.
    fn from_f64(value: f64) -> Self;
    /// The value as a double.
    fn to_f64(self) -> f64;
    /// The sum; integers wrap.
    fn add(self, other: Self) -> Self;
    /// The product; integers wrap.
    fn mul(self, other: Self) -> Self;
    /// `self * factor + sum`, fused where the level fuses.
    fn multiply_add<L: Level>(self, factor: Self, sum: Self) -> Self;
}

macro_rules! float_accumulator {
    ($($float:ty, $fused:ident);*) => {$(
        impl Accumulator for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $float
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn multiply_add<L: Level>(self, factor: Self, sum: Self) -> Self {
                L::$fused(self, factor, sum)
            }
        }
    )*};
}
float_accumulator!(f32, mul_add_f32; f64, mul_add_f64);

macro_rules! integer_accumulator {
    ($($integer:ty)*) => {$(
        impl Accumulator for $integer {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $integer
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn multiply_add<L: Level>(self, factor: Self, sum: Self) -> Self {
                self.wrapping_mul(factor).wrapping_add(sum)
            }
        }
    )*};
}
integer_accumulator!(i32 i64);

/// A type that matrices are stored in.
pub trait Factor: Copy + Send + Sync + 'static {
    /// What its products are summed in.
    type Sum: Accumulator;
    /// Its dtype.
    const DTYPE: DType;
    /// The same value as a summand.
    fn widen(self) -> Self::Sum;
    /// The nearest element to a sum.
    fn narrow(sum: Self::Sum) -> Self;

    /// Sixteen consecutive elements widened to `f32`, for the types that are summed in `f32`.
    ///
    /// # Safety
    /// Elements `from..from + 16` are readable where bit `i` of `mask` is set, and the machine has
    /// AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_16_as_f32(_from: *const Self, _mask: u16) -> std::arch::x86_64::__m512 {
        unreachable!("only types that are summed in f32 are loaded so")
    }
}

macro_rules! plain_factor {
    ($($element:ty, $dtype:ident);*) => {$(
        impl Factor for $element {
            type Sum = $element;
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn widen(self) -> Self {
                self
            }
            #[inline(always)]
            fn narrow(sum: Self) -> Self {
                sum
            }
        }
    )*};
}
plain_factor!(f64, F64; i32, I32; i64, I64);

impl Factor for f32 {
    type Sum = f32;
    const DTYPE: DType = DType::F32;
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
    #[inline(always)]
    fn narrow(sum: f32) -> f32 {
        sum
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_16_as_f32(from: *const f32, mask: u16) -> std::arch::x86_64::__m512 {
        // SAFETY: the caller vouches for the masked elements and for AVX-512.
        unsafe { std::arch::x86_64::_mm512_maskz_loadu_ps(mask, from) }
    }
}

macro_rules! narrow_factor {
    ($($element:ty, $dtype:ident);*) => {$(
        impl Factor for $element {
            type Sum = i32;
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn widen(self) -> i32 {
                i32::from(self)
            }
            /// The low bits, which are also what wrapping sums of the element's width would give.
            #[inline(always)]
            fn narrow(sum: i32) -> $element {
                sum as $element
            }
        }
    )*};
}
narrow_factor!(u8, U8; i8, I8; i16, I16);

impl Factor for bf16 {
    type Sum = f32;
    const DTYPE: DType = DType::BF16;
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
    /// To nearest, ties to even, without branches.
    #[inline(always)]
    fn narrow(sum: f32) -> bf16 {
        let bits = sum.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        let quiet_nan = bits >> 16 | 0x40;
        bf16::from_bits(if sum.is_nan() { quiet_nan } else { rounded } as u16)
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_16_as_f32(from: *const bf16, mask: u16) -> std::arch::x86_64::__m512 {
        use std::arch::x86_64::*;
        // SAFETY: the caller vouches for the masked elements and for AVX-512.
        unsafe {
            let bits = _mm256_maskz_loadu_epi16(mask, from.cast());
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits)))
        }
    }
}

impl Factor for f16 {
    type Sum = f32;
    const DTYPE: DType = DType::F16;
    /// By integer arithmetic without branches, so that loops of it vectorise at every level: the
    /// library's conversion asks for the CPU's features at each call.
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let (sign, magnitude) = (bits >> 15 << 31, (bits & 0x7fff) << 13);
        // The exponent is moved by 112 with a multiplication, which also brings subnormals right;
        // infinity and NaN need the exponent that no multiplication gives.
        let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
        let special = f32::from_bits(magnitude | 0x7f80_0000);
        let value = if bits & 0x7c00 == 0x7c00 { special } else { scaled };
        f32::from_bits(value.to_bits() | sign)
    }
    /// To nearest, ties to even, without branches, for the same reason.
    #[inline(always)]
    fn narrow(sum: f32) -> f16 {
        let bits = sum.to_bits();
        let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
        let normal =
            magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
        // Below 2^-14 the steps are 2^-24: those of f32 at 0.5, so adding 0.5 rounds.
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
        let small = if magnitude < 0x3880_0000 { subnormal } else { normal };
        let value = if magnitude >= 0x4780_0000 { special } else { small };
        f16::from_bits((value | sign) as u16)
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_16_as_f32(from: *const f16, mask: u16) -> std::arch::x86_64::__m512 {
        use std::arch::x86_64::*;
        // SAFETY: the caller vouches for the masked elements and for AVX-512.
        unsafe { _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from.cast())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_as_the_library_says() {
        // Every pattern of the upper 20 bits, with the lower bits just below, at and above a tie.
        for upper in 0..1u32 << 20 {
            for lower in [0, 1, 0x7ff, 0x800, 0x801, 0xfff] {
                let value = f32::from_bits(upper << 12 | lower);
                let (half, brain) =
                    (<f16 as Factor>::narrow(value), <bf16 as Factor>::narrow(value));
                if value.is_nan() {
                    assert!(half.is_nan() && brain.is_nan());
                } else {
                    assert_eq!(half.to_bits(), f16::from_f32(value).to_bits(), "{value:e}");
                    assert_eq!(brain.to_bits(), bf16::from_f32(value).to_bits(), "{value:e}");
                }
            }
        }
    }

    #[test]
    fn every_f16_widens_as_the_library_says() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16::from_bits(bits).widen(), f16::from_bits(bits).to_f32());
            let equal = ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
            assert!(equal, "{bits:#x}: {ours} {theirs}");
        }
    }
}
