//! Rounding to whole numbers and to decimals, and what rounding leaves. Integers are whole already.

use plimsoll_core::Result;

use plimsoll_engine::CpuLaunch;
use plimsoll_engine::chunked::{Argument, Body, run, run_floats};
use plimsoll_engine::real::Real;
use plimsoll_engine::simd::Level;

/// Declares `pub fn $name(launch)` for a function that leaves integers as they are.
macro_rules! rounding {
    ($(#[$doc:meta])* $name:ident, $marker:ident, |$x:ident| $value:expr) => {
        #[derive(Clone, Copy)]
        struct $marker;
        impl Body<1> for $marker {
            #[inline(always)]
            fn real<L: Level, R: Real>(self, [$x]: [R; 1]) -> R {
                $value
            }
            #[inline(always)]
            fn whole(self, [x]: [i64; 1]) -> i64 {
                x
            }
        }
        $(#[$doc])*
        pub fn $name(launch: &CpuLaunch<'_>) -> Result<()> {
            run(launch, [Argument::Input(0)], $marker)
        }
    };
}

rounding!(
    /// The nearest whole number that is not above.
    floor, Floor, |x| x.floor()
);
rounding!(
    /// The nearest whole number that is not below.
    ceil, Ceil, |x| x.ceil()
);
rounding!(
    /// The nearest whole number, the even one of two.
    round, Round, |x| x.round_even()
);
rounding!(
    /// Without the fraction.
    trunc, Trunc, |x| x.trunc()
);
rounding!(
    /// The fraction, with the sign of x.
    frac, Frac, |x| x - x.trunc()
);

/// To so many decimals, by a power of ten: PyTorch's way, which is not correctly rounded.
#[derive(Clone, Copy)]
struct Decimals {
    ten: f64,
    negative: bool,
}

impl Body<1> for Decimals {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [x]: [R; 1]) -> R {
        let ten = R::of(self.ten);
        if self.negative { (x / ten).round_even() * ten } else { (x * ten).round_even() / ten }
    }
}

/// `[x]` -> x rounded to `decimals` places behind the point; floats only.
pub fn round_decimals(launch: &CpuLaunch<'_>, decimals: i64) -> Result<()> {
    let ten = 10f64.powi(decimals.unsigned_abs().min(400) as i32);
    run_floats(launch, [Argument::Input(0)], Decimals { ten, negative: decimals < 0 })
}

/// Numbers in place of NaN and the infinities.
#[derive(Clone, Copy)]
struct NanToNum([f64; 3]);

impl Body<1> for NanToNum {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [x]: [R; 1]) -> R {
        let [nan, above, below] = self.0;
        if x.is_nan() {
            R::of(nan)
        } else if x == R::INFINITY {
            R::of(above)
        } else if x == -R::INFINITY {
            R::of(below)
        } else {
            x
        }
    }

    #[inline(always)]
    fn whole(self, [x]: [i64; 1]) -> i64 {
        x
    }
}

/// `[x]` -> x, or a number in place of NaN, infinity and minus infinity.
pub fn nan_to_num(launch: &CpuLaunch<'_>, numbers: [f64; 3]) -> Result<()> {
    run(launch, [Argument::Input(0)], NanToNum(numbers))
}
