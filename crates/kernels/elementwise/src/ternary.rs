//! Functions of three operands: bounds, interpolation, products and quotients that are added.

use plimsoll_core::{Result, Scalar};

use plimsoll_engine::CpuLaunch;
use plimsoll_engine::chunked::{Argument, Body, run, run_floats};
use plimsoll_engine::real::Real;
use plimsoll_engine::simd::Level;

/// The first between the second and the third; a NaN wins (no comparison with one holds), and the
/// upper bound over the lower.
#[derive(Clone, Copy)]
struct Clamp;

impl Body<3> for Clamp {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [x, low, high]: [R; 3]) -> R {
        let above = if (x < low) | low.is_nan() { low } else { x };
        if (above > high) | high.is_nan() { high } else { above }
    }

    #[inline(always)]
    fn whole(self, [x, low, high]: [i64; 3]) -> i64 {
        x.max(low).min(high)
    }
}

/// `[x]` with bounds, each an input or a host number -> x between them.
pub fn clamp(launch: &CpuLaunch<'_>, low: Argument, high: Argument) -> Result<()> {
    run(launch, [Argument::Input(0), low, high], Clamp)
}

/// From the first to the second by the third.
#[derive(Clone, Copy)]
struct Lerp;

impl Body<3> for Lerp {
    /// From the nearer end, so that a weight of 1 gives the second just as 0 gives the first.
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [a, b, weight]: [R; 3]) -> R {
        let way = b - a;
        let from_b = b - way * (R::ONE - weight);
        if weight.abs() < R::of(0.5) { a + weight * way } else { from_b }
    }
}

/// `[a, b]` and a weight, an input or a host number -> a + weight (b - a); floats only.
pub fn lerp(launch: &CpuLaunch<'_>, weight: Argument) -> Result<()> {
    run_floats(launch, [Argument::Input(0), Argument::Input(1), weight], Lerp)
}

/// The first plus a multiple of the product of the others.
#[derive(Clone, Copy)]
struct Addcmul {
    value: f64,
    whole: i64,
}

impl Body<3> for Addcmul {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [x, a, b]: [R; 3]) -> R {
        x + R::of(self.value) * a * b
    }

    #[inline(always)]
    fn whole(self, [x, a, b]: [i64; 3]) -> i64 {
        x.wrapping_add(self.whole.wrapping_mul(a).wrapping_mul(b))
    }
}

const ALL: [Argument; 3] = [Argument::Input(0), Argument::Input(1), Argument::Input(2)];

/// [x, a, b] -> x + value a b.
pub fn addcmul(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    run(launch, ALL, Addcmul { value: value.to_f64(), whole: value.to_i64() })
}

/// The first plus a multiple of the quotient of the others.
#[derive(Clone, Copy)]
struct Addcdiv(f64);

impl Body<3> for Addcdiv {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [x, a, b]: [R; 3]) -> R {
        x + R::of(self.0) * a / b
    }
}

/// [x, a, b] -> x + value a / b; floats only.
pub fn addcdiv(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    run_floats(launch, ALL, Addcdiv(value.to_f64()))
}
