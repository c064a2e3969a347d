//! Sort keys: an element as an unsigned number whose order is PyTorch's order. NaN is the greatest
//! value and all NaNs are equal; -0 equals +0; `true` is greater than `false`.

use half::{bf16, f16};

use plimsoll_engine::Truth;

/// An element that can be sorted.
pub(super) trait SortKey: Copy + Send + Sync + 'static {
    /// Bits of the key.
    const BITS: u32;
    /// A number just as wide.
    type Bits: Copy + Ord + Default + std::ops::BitXor<Output = Self::Bits>;
    /// All of its bits.
    const MASK: Self::Bits;
    /// The key.
    fn bits(self) -> Self::Bits;
    /// The key, in the low [`SortKey::BITS`].
    fn key(self) -> u64 {
        Self::widen(self.bits())
    }
    /// A key in the low [`SortKey::BITS`].
    fn widen(bits: Self::Bits) -> u64;
    /// The element of a key, if [`SortKey::is_plain`].
    fn from_key(key: u64) -> Self;
    /// Whether `from_key(key())` gives the very same bits: not so for -0 and NaN.
    fn is_plain(self) -> bool;
}

macro_rules! float_key {
    ($($float:ty, $bits:ty);*) => {$(
        impl SortKey for $float {
            const BITS: u32 = <$bits>::BITS;
            type Bits = $bits;
            const MASK: $bits = <$bits>::MAX;
            #[inline(always)]
            fn widen(bits: $bits) -> u64 {
                u64::from(bits)
            }
            #[inline(always)]
            fn bits(self) -> $bits {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = self.to_bits();
                // Negative numbers count down from the sign bit, so they are negated; -0 joins +0.
                // Signs are as good as random to a branch, so there is none.
                let negative = (bits >> (<$bits>::BITS - 1)).wrapping_neg();
                let ordered = (bits ^ negative).wrapping_sub(negative) | (SIGN & !negative);
                if self.is_nan() { <$bits>::MAX } else { ordered }
            }
            #[inline(always)]
            fn from_key(key: u64) -> Self {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let key = key as $bits;
                Self::from_bits(if key & SIGN != 0 { key & !SIGN } else { key.wrapping_neg() })
            }
            #[inline(always)]
            fn is_plain(self) -> bool {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                !self.is_nan() && self.to_bits() != SIGN
            }
        }
    )*};
}
float_key!(f32, u32; f64, u64; f16, u16; bf16, u16);

macro_rules! integer_key {
    ($($integer:ty, $bits:ty, $flip:expr);*) => {$(
        impl SortKey for $integer {
            const BITS: u32 = <$bits>::BITS;
            type Bits = $bits;
            const MASK: $bits = <$bits>::MAX;
            #[inline(always)]
            fn widen(bits: $bits) -> u64 {
                u64::from(bits)
            }
            #[inline(always)]
            fn bits(self) -> $bits {
                self as $bits ^ $flip
            }
            #[inline(always)]
            fn from_key(key: u64) -> Self {
                (key as $bits ^ $flip) as $integer
            }
            #[inline(always)]
            fn is_plain(self) -> bool {
                true
            }
        }
    )*};
}
integer_key!(i32, u32, 1u32 << 31; i64, u64, 1u64 << 63; u8, u8, 0u8; i8, u8, 1u8 << 7; i16, u16, 1u16 << 15);

impl SortKey for Truth {
    const BITS: u32 = 8;
    type Bits = u8;
    const MASK: u8 = u8::MAX;
    #[inline(always)]
    fn widen(bits: u8) -> u64 {
        u64::from(bits)
    }
    #[inline(always)]
    fn bits(self) -> u8 {
        u8::from(self.get())
    }
    #[inline(always)]
    fn from_key(key: u64) -> Self {
        Truth::new(key != 0)
    }
    #[inline(always)]
    fn is_plain(self) -> bool {
        true
    }
}

/// A key with the position it came from. Pairs of one row differ, and their order is the stable
/// order of their elements.
pub(super) trait Pair: Copy + Ord + Send + Sync + 'static {
    fn new(key: u64, position: usize) -> Self;
    fn key(self) -> u64;
    fn position(self) -> usize;
}

/// For keys of up to 32 bits in rows of up to 2^32: key above, position below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(super) struct Narrow(u64);

impl Pair for Narrow {
    #[inline(always)]
    fn new(key: u64, position: usize) -> Self {
        Narrow(key << 32 | position as u64)
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self.0 >> 32
    }
    #[inline(always)]
    fn position(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}

/// For any key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wide(u64, u64);

impl Pair for Wide {
    #[inline(always)]
    fn new(key: u64, position: usize) -> Self {
        Wide(key, position as u64)
    }
    #[inline(always)]
    fn key(self) -> u64 {
        self.0
    }
    #[inline(always)]
    fn position(self) -> usize {
        self.1 as usize
    }
}
