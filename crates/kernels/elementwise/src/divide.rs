//! Quotients that are rounded to whole numbers: toward zero, or down. Integers divided by zero are
//! an error, as in PyTorch; floats give infinities and NaN.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::{DType, Error, Result};

use plimsoll_engine::chunked::{self, Argument, Body};
use plimsoll_engine::real::Real;
use plimsoll_engine::simd::Level;
use plimsoll_engine::{CpuLaunch, Second, input_dtype};

use crate::call::rounding;

/// How a quotient becomes whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Toward zero, as C divides integers.
    Trunc,
    /// Down, as Python's `//`.
    Floor,
}

/// `[a, b]`, or one of them a host number -> a / b, rounded.
pub fn divide(launch: &CpuLaunch<'_>, second: Second, mode: Rounding) -> Result<()> {
    let arguments = Argument::pair(second);
    let by_zero = AtomicBool::new(false);
    match mode {
        // A half type's quotient is rounded before it is made whole, as in PyTorch.
        Rounding::Trunc if matches!(input_dtype(launch)?, DType::F16 | DType::BF16) => {
            let round = rounding(input_dtype(launch)?);
            chunked::run_calling(launch, arguments, &|[a, b]| round(a / b).trunc())
        }
        Rounding::Trunc => chunked::run(launch, arguments, Truncated(&by_zero)),
        Rounding::Floor => chunked::run(launch, arguments, Floored(&by_zero)),
    }?;
    if by_zero.into_inner() {
        return Err(
            Error::invalid_argument("an integer is divided by zero").in_operation(launch.operation)
        );
    }
    Ok(())
}

/// Integers note a division by zero, and go on.
fn checked(by_zero: &AtomicBool, divisor: i64) -> bool {
    if divisor == 0 {
        by_zero.store(true, Ordering::Relaxed);
    }
    divisor != 0
}

#[derive(Clone, Copy)]
struct Truncated<'a>(&'a AtomicBool);

impl Body<2> for Truncated<'_> {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [a, b]: [R; 2]) -> R {
        (a / b).trunc()
    }

    #[inline(always)]
    fn whole(self, [a, b]: [i64; 2]) -> i64 {
        if checked(self.0, b) { a.wrapping_div(b) } else { 0 }
    }
}

#[derive(Clone, Copy)]
struct Floored<'a>(&'a AtomicBool);

impl Body<2> for Floored<'_> {
    /// By what is left over, so that a quotient that rounds up to a whole number is not one too
    /// large.
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [a, b]: [R; 2]) -> R {
        let zero = R::of(0.0);
        if b == zero {
            return a / b;
        }
        let left = a.remainder(b);
        let mut quotient = (a - left) / b;
        if left != zero && (b < zero) != (left < zero) {
            quotient = quotient - R::of(1.0);
        }
        if quotient == zero {
            return zero.copysign(a / b);
        }
        let whole = quotient.floor();
        if quotient - whole > R::of(0.5) { whole + R::of(1.0) } else { whole }
    }

    #[inline(always)]
    fn whole(self, [a, b]: [i64; 2]) -> i64 {
        if !checked(self.0, b) {
            return 0;
        }
        let quotient = a.wrapping_div(b);
        let inexact = a.wrapping_rem(b) != 0;
        if inexact && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Scalar;

    use super::*;
    use plimsoll_engine::testing::{FLOATS, Held, check_binary, launch};

    #[test]
    fn quotients_of_floats_agree_with_f64() {
        let same = |dtype| dtype;
        let trunc = |l: &CpuLaunch<'_>| divide(l, Second::Tensor, Rounding::Trunc);
        // Narrower floats round some quotients up to the next whole number.
        check_binary("trunc", &FLOATS[3..], 0.0, same, trunc, |a, b| (a / b).trunc());
    }

    #[test]
    fn integers_round_as_asked_and_refuse_zero() {
        let a = Held::of(DType::I64, &[4], &[-7.0, 7.0, -8.0, 7.0]);
        let b = Held::of(DType::I64, &[4], &[2.0, 2.0, 2.0, -2.0]);
        for (rounding, expected) in
            [(Rounding::Trunc, [-3.0, 3.0, -4.0, -3.0]), (Rounding::Floor, [-4.0, 3.0, -4.0, -4.0])]
        {
            let mut out = [a.clone()];
            launch(&[&a, &b], &mut out, 0, |l| divide(l, Second::Tensor, rounding)).unwrap();
            assert_eq!(out[0].values(), expected);
        }
        let zero = Second::Right(Scalar::Int(0));
        let refused = launch(&[&a], &mut [a.clone()], 0, |l| divide(l, zero, Rounding::Floor));
        assert!(refused.unwrap_err().is_invalid_argument());
    }

    #[test]
    fn floats_floor_as_python_does() {
        let a = Held::of(DType::F64, &[5], &[-7.0, 7.0, 1.0, -0.0, 6.0]);
        let b = Held::of(DType::F64, &[5], &[2.0, -2.0, 0.1, 3.0, 0.0]);
        let mut out = [a.clone()];
        launch(&[&a, &b], &mut out, 0, |l| divide(l, Second::Tensor, Rounding::Floor)).unwrap();
        assert_eq!(out[0].values(), [-4.0, -4.0, 9.0, -0.0, f64::INFINITY]);
    }
}
