//! The rarer arithmetic of two operands: what division leaves, signs, extremes that pass over NaN,
//! steps. Sums, products and their like are in `binary.rs`.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::{DType, Error, Result};

use plimsoll_engine::chunked::{Argument, Body, run, run_calling, run_floats};
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::Level;
use plimsoll_engine::{CpuLaunch, Second, input_dtype};

use crate::call::two;

/// What is left of whole divisors: with the sign of the first operand, or of the second.
#[derive(Clone, Copy)]
struct Left<'a> {
    /// Where integers note a division by zero, and go on.
    by_zero: &'a AtomicBool,
    of_divisor: bool,
}

impl Body<2> for Left<'_> {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [a, b]: [R; 2]) -> R {
        let left = a.remainder(b);
        let other_side = left != R::ZERO && (b < R::ZERO) != (left < R::ZERO);
        if self.of_divisor && other_side { left + b } else { left }
    }

    #[inline(always)]
    fn whole(self, [a, b]: [i64; 2]) -> i64 {
        if b == 0 {
            self.by_zero.store(true, Ordering::Relaxed);
            return 0;
        }
        let left = a.wrapping_rem(b);
        if self.of_divisor && left != 0 && (b < 0) != (left < 0) { left + b } else { left }
    }
}

fn left(launch: &CpuLaunch<'_>, second: Second, of_divisor: bool) -> Result<()> {
    let by_zero = AtomicBool::new(false);
    run(launch, Argument::pair(second), Left { by_zero: &by_zero, of_divisor })?;
    if by_zero.into_inner() {
        return Err(
            Error::invalid_argument("an integer is divided by zero").in_operation(launch.operation)
        );
    }
    Ok(())
}

/// `[a, b]`, or one of them a host number -> what is left of a after whole b, with a's sign: C's
/// `fmod`.
pub fn fmod(launch: &CpuLaunch<'_>, second: Second) -> Result<()> {
    left(launch, second, false)
}

/// As [`fmod`], with the sign of b: Python's `%`.
pub fn remainder(launch: &CpuLaunch<'_>, second: Second) -> Result<()> {
    left(launch, second, true)
}

/// Declares `pub fn $name(launch, second)` for a function of two numbers, floats and integers.
macro_rules! number_pair {
    ($(#[$doc:meta])* $name:ident, $marker:ident, |$a:ident, $b:ident| $real:expr, $whole:expr) => {
        #[derive(Clone, Copy)]
        struct $marker;
        impl Body<2> for $marker {
            #[inline(always)]
            fn real<L: Level, R: Real>(self, [$a, $b]: [R; 2]) -> R {
                $real
            }
            #[inline(always)]
            fn whole(self, [$a, $b]: [i64; 2]) -> i64 {
                $whole
            }
        }
        $(#[$doc])*
        pub fn $name(launch: &CpuLaunch<'_>, second: Second) -> Result<()> {
            run(launch, Argument::pair(second), $marker)
        }
    };
}

number_pair!(
    /// `[a, b]` -> the larger; a NaN loses.
    fmax, Fmax, |a, b| if a > b || b.is_nan() { a } else { b }, a.max(b)
);
number_pair!(
    /// `[a, b]` -> the smaller; a NaN loses.
    fmin, Fmin, |a, b| if a < b || b.is_nan() { a } else { b }, a.min(b)
);
number_pair!(
    /// `[x, middle]` -> `middle` at 0, 1 above, 0 elsewhere, for a NaN too.
    heaviside, Heaviside,
    |x, middle| if x == R::ZERO {
        middle
    } else if x > R::ZERO {
        R::ONE
    } else {
        R::ZERO
    },
    if x == 0 { middle } else { i64::from(x > 0) }
);

#[derive(Clone, Copy)]
struct Copysign;

impl Body<2> for Copysign {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [a, b]: [R; 2]) -> R {
        a.copysign(b)
    }
}

/// `[a, b]` -> a with b's sign; floats only.
pub fn copysign(launch: &CpuLaunch<'_>, second: Second) -> Result<()> {
    run_floats(launch, Argument::pair(second), Copysign)
}

/// `[a, b]` -> the next number of the dtype after a, toward b; floats only.
pub fn nextafter(launch: &CpuLaunch<'_>, second: Second) -> Result<()> {
    match input_dtype(launch)? {
        DType::F64 => two(launch, second, |a, b| step(a, b, f64::to_bits, f64::from_bits)),
        DType::F32 => two(launch, second, |a, b| {
            let next = |a: f32, b: f32| match a {
                _ if a.is_nan() || b.is_nan() => f32::NAN,
                _ if a == b => b,
                0.0 => f32::from_bits(1).copysign(b),
                _ if (a < b) == (a > 0.0) => f32::from_bits(a.to_bits() + 1),
                _ => f32::from_bits(a.to_bits() - 1),
            };
            f64::from(next(a as f32, b as f32))
        }),
        DType::BF16 => two(launch, second, |a, b| {
            half_step::<half::bf16>(a, b, half::bf16::to_bits, half::bf16::from_bits)
        }),
        DType::F16 => two(launch, second, |a, b| {
            half_step::<half::f16>(a, b, half::f16::to_bits, half::f16::from_bits)
        }),
        other => Err(plimsoll_engine::wrong_dtype(launch.operation, other)),
    }
}

/// One step from `a` toward `b` in f64's own numbers.
fn step(a: f64, b: f64, bits: fn(f64) -> u64, value: fn(u64) -> f64) -> f64 {
    match a {
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        _ if a == b => b,
        0.0 => value(1).copysign(b),
        _ if (a < b) == (a > 0.0) => value(bits(a) + 1),
        _ => value(bits(a) - 1),
    }
}

/// One step from `a` toward `b` in a half type's numbers. Bits of one sign are in the order of
/// their values.
fn half_step<H: Float<Wide = f32>>(a: f64, b: f64, bits: fn(H) -> u16, value: fn(u16) -> H) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    if a == b {
        return b;
    }
    let own = bits(H::narrow(a as f32));
    let next = if a == 0.0 {
        1 | (u16::from(b < 0.0) << 15)
    } else if (a < b) == (a > 0.0) {
        own + 1
    } else {
        own - 1
    };
    f64::from(value(next).widen())
}

/// `[x]` -> a fraction from a half to 1 and an exponent of 2 whose product with it is x: floats to
/// the first output, int32 to the second.
pub fn frexp(launch: &CpuLaunch<'_>) -> Result<()> {
    run_calling(launch, [Argument::Input(0)], &|[x]| parts(x).0)?;
    let Some(rest) = launch.outputs.get(1..) else { return Ok(()) };
    let exponents = CpuLaunch {
        operation: launch.operation,
        inputs: launch.inputs,
        outputs: rest,
        workspace: launch.workspace,
    };
    run_calling(&exponents, [Argument::Input(0)], &|[x]| parts(x).1)
}

fn parts(x: f64) -> (f64, f64) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0.0);
    }
    // Numbers too small for a full exponent are made larger first.
    let (x, down) = if x.abs() < f64::MIN_POSITIVE { (x * 2f64.powi(64), 64) } else { (x, 0) };
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1022;
    let fraction = f64::from_bits(x.to_bits() & !(0x7ff << 52) | 1022 << 52);
    (fraction, f64::from(exponent - down))
}
