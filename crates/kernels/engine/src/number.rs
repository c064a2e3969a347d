//! Elements as numbers of every class: what casts, integer arithmetic and comparisons need beyond
//! [`Element`]. Floats as they are computed in are in `real.rs`.

use half::{bf16, f16};

use crate::real::Float;
use crate::{Element, Truth};

/// An element with C's conversions and with arithmetic that never traps: integers wrap, bool
/// addition is `or` and multiplication `and`, as in PyTorch.
pub trait Number: Element {
    /// Nothing is below this.
    const LOWEST: Self;
    /// This is below nothing.
    const HIGHEST: Self;
    /// What it is computed in: f32 for half types, itself otherwise.
    type Compute: Number<Compute = Self::Compute>;
    /// To what it is computed in; exact.
    fn up(self) -> Self::Compute;
    /// Back, rounded once.
    fn down(value: Self::Compute) -> Self;
    /// The nearest f32.
    fn as_f32(self) -> f32;
    /// The nearest f64.
    fn as_f64(self) -> f64;
    /// Truncated toward zero.
    fn as_i64(self) -> i64;
    /// Whether it is anything but zero, a NaN included.
    fn is_nonzero(self) -> bool;
    /// The value of `other`, as a C cast.
    fn from_number<A: Number>(other: A) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn minus(self, other: Self) -> Self;
    /// `self * other`.
    fn times(self, other: Self) -> Self;
    /// `self / other`; integers truncate, and give 0 for a divisor of 0.
    fn over(self, other: Self) -> Self;
    /// Whether it is not a number; integers always are.
    fn is_nan(self) -> bool;
    /// `self < other`; never with a NaN. (The `half` crate's own comparison branches.)
    fn below(self, other: Self) -> bool;
    /// `self == other`; never with a NaN.
    fn equals(self, other: Self) -> bool;
}

macro_rules! integer_number {
    ($type:ty) => {
        impl Number for $type {
            const LOWEST: Self = <$type>::MIN;
            const HIGHEST: Self = <$type>::MAX;
            type Compute = Self;
            #[inline(always)]
            fn up(self) -> Self {
                self
            }
            #[inline(always)]
            fn down(value: Self) -> Self {
                value
            }
            #[inline(always)]
            fn as_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn as_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn as_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                self != 0
            }
            #[inline(always)]
            fn from_number<A: Number>(other: A) -> Self {
                other.as_i64() as $type
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn over(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn below(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn equals(self, other: Self) -> bool {
                self == other
            }
        }
    };
}

integer_number!(u8);
integer_number!(i8);
integer_number!(i16);
integer_number!(i32);
integer_number!(i64);

macro_rules! float_number {
    ($type:ty, $as_wide:ident) => {
        impl Number for $type {
            const LOWEST: Self = <$type>::NEG_INFINITY;
            const HIGHEST: Self = <$type>::INFINITY;
            type Compute = <$type as Float>::Wide;
            #[inline(always)]
            fn up(self) -> Self::Compute {
                self.widen()
            }
            #[inline(always)]
            fn down(value: Self::Compute) -> Self {
                <$type>::narrow(value)
            }
            #[inline(always)]
            fn as_f32(self) -> f32 {
                self.widen() as f32
            }
            #[inline(always)]
            fn as_f64(self) -> f64 {
                self.widen() as f64
            }
            #[inline(always)]
            fn as_i64(self) -> i64 {
                self.widen() as i64
            }
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                self.widen() != 0.0
            }
            #[inline(always)]
            fn from_number<A: Number>(other: A) -> Self {
                <$type>::narrow(other.$as_wide())
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                <$type>::narrow(self.widen() + other.widen())
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                <$type>::narrow(self.widen() - other.widen())
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                <$type>::narrow(self.widen() * other.widen())
            }
            #[inline(always)]
            fn over(self, other: Self) -> Self {
                <$type>::narrow(self.widen() / other.widen())
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.widen().is_nan()
            }
            #[inline(always)]
            fn below(self, other: Self) -> bool {
                self.widen() < other.widen()
            }
            #[inline(always)]
            fn equals(self, other: Self) -> bool {
                self.widen() == other.widen()
            }
        }
    };
}

float_number!(f16, as_f32);
float_number!(bf16, as_f32);
float_number!(f32, as_f32);
float_number!(f64, as_f64);

impl Number for Truth {
    const LOWEST: Self = Truth::new(false);
    const HIGHEST: Self = Truth::new(true);
    type Compute = Self;
    #[inline(always)]
    fn up(self) -> Self {
        self
    }
    #[inline(always)]
    fn down(value: Self) -> Self {
        value
    }
    #[inline(always)]
    fn as_f32(self) -> f32 {
        f32::from(u8::from(self.get()))
    }
    #[inline(always)]
    fn as_f64(self) -> f64 {
        f64::from(u8::from(self.get()))
    }
    #[inline(always)]
    fn as_i64(self) -> i64 {
        i64::from(self.get())
    }
    #[inline(always)]
    fn is_nonzero(self) -> bool {
        self.get()
    }
    #[inline(always)]
    fn from_number<A: Number>(other: A) -> Self {
        Truth::new(other.is_nonzero())
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Truth::new(self.get() | other.get())
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Truth::new(self.get() ^ other.get())
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Truth::new(self.get() & other.get())
    }
    #[inline(always)]
    fn over(self, other: Self) -> Self {
        Truth::new(self.get() & other.get())
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn below(self, other: Self) -> bool {
        !self.get() & other.get()
    }
    #[inline(always)]
    fn equals(self, other: Self) -> bool {
        self.get() == other.get()
    }
}

/// Runs `$body` with `$T` as the Rust type of `$dtype`'s elements; bool is an error of the launch.
#[macro_export]
macro_rules! match_number {
    ($launch:expr, $dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::of_macros::DType::Bool => Err($crate::wrong_dtype(
                $launch.operation,
                $crate::of_macros::DType::Bool,
            )),
            other => $crate::match_dtype!(other, $T => $body),
        }
    };
}
