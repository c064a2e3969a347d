//! Element types as Rust types: the bridge from a [`DType`] value to code compiled for it. Kernels
//! are generic over [`Element`] and chosen by [`match_dtype!`]; users meet it in `from_slice` and
//! `to_vec`.

use half::{bf16, f16};
use plimsoll_core::{DType, Scalar};

/// A byte that is 0 or 1: how `bool` lies in tensor memory.
///
/// Rust's own `bool` is not used there, because reading any other byte as one would be undefined
/// behaviour, and `as_strided` or foreign memory can bring such a byte. Any nonzero byte reads as
/// true.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Truth(u8);

impl Truth {
    /// The byte for `value`.
    pub const fn new(value: bool) -> Truth {
        Truth(value as u8)
    }

    /// Whether the byte is not zero.
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl PartialEq for Truth {
    fn eq(&self, other: &Truth) -> bool {
        self.get() == other.get()
    }
}

impl PartialOrd for Truth {
    fn partial_cmp(&self, other: &Truth) -> Option<std::cmp::Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type that tensors hold. Every bit pattern is a value, so any initialised bytes may be read as
/// it.
pub trait Element:
    sealed::Sealed + Copy + PartialOrd + Send + Sync + std::fmt::Debug + 'static
{
    /// The dtype whose elements have this type.
    const DTYPE: DType;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// The value as a double; integers past 2^53 round.
    fn to_f64(self) -> f64;
    /// The nearest value; integers truncate toward zero and saturate.
    fn from_f64(value: f64) -> Self;
    /// The value as an integer, truncated toward zero.
    fn to_i64(self) -> i64;
    /// The value of an integer, wrapped to the width as C does.
    fn from_i64(value: i64) -> Self;

    /// The value of a host number, through the class that keeps it exact.
    fn from_scalar(value: Scalar) -> Self {
        match value {
            Scalar::Bool(b) => Self::from_i64(i64::from(b)),
            Scalar::Int(i) => Self::from_i64(i),
            Scalar::Float(f) => Self::from_f64(f),
        }
    }

    /// The host number of this value.
    fn to_scalar(self) -> Scalar {
        match Self::DTYPE {
            DType::Bool => Scalar::Bool(self.to_i64() != 0),
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                Scalar::Int(self.to_i64())
            }
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Scalar::Float(self.to_f64()),
        }
    }
}

macro_rules! integer_element {
    ($type:ty, $dtype:expr) => {
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = $dtype;
            const ZERO: Self = 0;
            const ONE: Self = 1;

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                // Through i64, so that -1.0 becomes 255 in a u8 as PyTorch's cast does on x86.
                value as i64 as $type
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                value as $type
            }
        }
    };
}

integer_element!(u8, DType::U8);
integer_element!(i8, DType::I8);
integer_element!(i16, DType::I16);
integer_element!(i32, DType::I32);
integer_element!(i64, DType::I64);

macro_rules! float_element {
    ($type:ty, $dtype:expr, $to:expr, $from:expr, $zero:expr, $one:expr) => {
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = $dtype;
            const ZERO: Self = $zero;
            const ONE: Self = $one;

            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to(self)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                $from(value)
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                $to(self) as i64
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                $from(value as f64)
            }
        }
    };
}

float_element!(f32, DType::F32, f64::from, |v: f64| v as f32, 0.0, 1.0);
float_element!(f64, DType::F64, |v: f64| v, |v: f64| v, 0.0, 1.0);
float_element!(f16, DType::F16, f16::to_f64, f16::from_f64, f16::ZERO, f16::ONE);
float_element!(bf16, DType::BF16, bf16::to_f64, bf16::from_f64, bf16::ZERO, bf16::ONE);

impl sealed::Sealed for Truth {}
impl Element for Truth {
    const DTYPE: DType = DType::Bool;
    const ZERO: Self = Truth(0);
    const ONE: Self = Truth(1);

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self.get()))
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Truth::new(value != 0.0)
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        i64::from(self.get())
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        Truth::new(value != 0)
    }
}

/// Runs `$body` with `$T` as the Rust type of `$dtype`'s elements.
#[macro_export]
macro_rules! match_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::of_macros::DType::Bool => {
                type $T = $crate::Truth;
                $body
            }
            $crate::of_macros::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::of_macros::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::of_macros::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::of_macros::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::of_macros::DType::I64 => {
                type $T = i64;
                $body
            }
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
        }
    };
}
