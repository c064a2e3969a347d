//! The long tail of functions, by definitions that the kernels do not use: integrals for Bessel
//! functions, sums for zeta, bisection for inverses. Good on the values that cases have.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use plimsoll_core::DType;

use super::unary::erf;
use super::{Number, round_to};

/// Euler's constant.
const GAMMA: f64 = 0.577_215_664_901_532_9;

/// 0, or pi for numbers below 0.
pub fn angle(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x < 0.0 {
        PI
    } else {
        0.0
    }
}

/// The inverse of the hyperbolic sine, by a quotient that does not overflow.
pub fn asinh(x: f64) -> f64 {
    if x.abs() < 1e100 { x.asinh() } else { ((x.abs() * 0.5).ln() + 4f64.ln()).copysign(x) }
}

/// The inverse of the hyperbolic cosine.
pub fn acosh(x: f64) -> f64 {
    if x < 1e100 || x.is_nan() { x.acosh() } else { (x * 0.5).ln() + 4f64.ln() }
}

/// sin(pi x) / (pi x).
pub fn sinc(x: f64) -> f64 {
    (PI * x).sin() / (PI * x)
}

/// NaN, infinity and minus infinity as 2, 3 and -3.
pub fn replaced(x: f64) -> f64 {
    match x {
        _ if x.is_nan() => 2.0,
        _ if x.is_finite() => x,
        _ => 3f64.copysign(x),
    }
}

/// 1 - erf(x): beyond 1 by the continued fraction, which does not cancel.
pub fn erfc(x: f64) -> f64 {
    if x <= 1.0 {
        return 1.0 - erf(x);
    }
    let square = x * x;
    let fraction = (1..200).rev().fold(1.0, |f, n| 1.0 + f64::from(n) / (2.0 * square) / f);
    (-square).exp() / (x * PI.sqrt() * fraction)
}

/// The mass of the normal distribution below x.
pub fn ndtr(x: f64) -> f64 {
    0.5 * erfc(-x * FRAC_1_SQRT_2)
}

/// Where an increasing function has a value, between -8 and 8.
fn bisect(f: impl Fn(f64) -> f64, value: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if f(middle) < value { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The inverse of the error function.
pub fn erfinv(y: f64) -> f64 {
    if y.abs() >= 1.0 { f64::INFINITY.copysign(y) } else { bisect(erf, y) }
}

/// The inverse of [`ndtr`].
pub fn ndtri(p: f64) -> f64 {
    match p {
        0.0 => f64::NEG_INFINITY,
        1.0 => f64::INFINITY,
        _ => bisect(ndtr, p),
    }
}

/// The logarithm of the gamma function for positive x: Stirling's series further out, brought back.
pub fn lgamma(x: f64) -> f64 {
    const SERIES: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let back: f64 = (0..9).map(|k| x + f64::from(k)).product();
    let z = x + 9.0;
    let series: f64 = (0..7).map(|k| SERIES[k] * z.powi(-1 - 2 * k as i32)).sum();
    (z - 0.5) * z.ln() - z + 0.5 * (2.0 * PI).ln() + series - back.ln()
}

/// The derivative of [`lgamma`] for positive x, by its sum and what is left of that.
pub fn digamma(x: f64) -> f64 {
    let sum: f64 = (0..30).rev().map(|k| 1.0 / (x + f64::from(k))).sum();
    let z = x + 30.0;
    let series = 1.0 / 12.0 / z.powi(2) - 1.0 / 120.0 / z.powi(4) + 1.0 / 252.0 / z.powi(6);
    z.ln() - 0.5 / z - series + 1.0 / 240.0 / z.powi(8) - sum
}

/// The sum of (q + k)^-x over k from 0 up, for x above 1: a thousand terms and what is left.
pub fn zeta(x: f64, q: f64) -> f64 {
    let sum: f64 = (0..1000).rev().map(|k| (q + f64::from(k)).powf(-x)).sum();
    let z = q + 1000.0;
    sum + z.powf(1.0 - x) / (x - 1.0) + 0.5 * z.powf(-x) + x / 12.0 * z.powf(-x - 1.0)
}

/// The mean of f over half a turn, which the midpoint rule gives exactly for smooth periodic ones.
fn over_half_turn(f: impl Fn(f64) -> f64) -> f64 {
    const POINTS: i32 = 400;
    (0..POINTS).map(|k| f(PI * (f64::from(k) + 0.5) / f64::from(POINTS))).sum::<f64>()
        / f64::from(POINTS)
}

/// The Bessel function of the first kind, by its integral.
pub fn first_kind(order: i32, x: f64) -> f64 {
    over_half_turn(|t| (f64::from(order) * t - x * t.sin()).cos())
}

/// The modified Bessel function of the first kind, by its integral.
pub fn modified_first(order: i32, x: f64) -> f64 {
    over_half_turn(|t| (x * t.cos()).exp() * (f64::from(order) * t).cos())
}

/// The modified Bessel function of the second kind, by its integral.
pub fn modified_second(order: i32, x: f64) -> f64 {
    const STEP: f64 = 1.0 / 32.0;
    let term = |k: i32| {
        let t = f64::from(k) * STEP;
        (-x * t.cosh()).exp() * (f64::from(order) * t).cosh()
    };
    STEP * (0.5 * term(0) + (1..320).map(term).sum::<f64>())
}

/// The sum of 1 / j up to k.
fn harmonic(k: i32) -> f64 {
    (1..=k).map(|j| 1.0 / f64::from(j)).sum()
}

fn factorial(k: i32) -> f64 {
    (1..=k).map(f64::from).product()
}

/// The Bessel function of the second kind, order 0, by its series.
pub fn y0(x: f64) -> f64 {
    let term = |k: i32| {
        let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
        sign * harmonic(k) * (0.25 * x * x).powi(k) / factorial(k).powi(2)
    };
    let logarithm = ((0.5 * x).ln() + GAMMA) * first_kind(0, x);
    2.0 / PI * (logarithm + (1..30).map(term).sum::<f64>())
}

/// The Bessel function of the second kind, order 1, by its series.
pub fn y1(x: f64) -> f64 {
    let term = |k: i32| {
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        let both = harmonic(k) + harmonic(k + 1) - 2.0 * GAMMA;
        sign * both * (0.5 * x).powi(2 * k + 1) / (factorial(k) * factorial(k + 1))
    };
    let logarithm = 2.0 * (0.5 * x).ln() * first_kind(1, x);
    (logarithm - 2.0 / x - (0..30).map(term).sum::<f64>()) / PI
}

/// Airy's function, which solves y'' = x y: Runge and Kutta's method from 0 to x.
pub fn airy(x: f64) -> f64 {
    const STEPS: i32 = 4000;
    let h = x / f64::from(STEPS);
    let (mut value, mut slope) = (0.355_028_053_887_817_2, -0.258_819_403_792_806_8);
    for k in 0..STEPS {
        let t = f64::from(k) * h;
        let (k1, l1) = (slope, t * value);
        let (k2, l2) = (slope + 0.5 * h * l1, (t + 0.5 * h) * (value + 0.5 * h * k1));
        let (k3, l3) = (slope + 0.5 * h * l2, (t + 0.5 * h) * (value + 0.5 * h * k2));
        let (k4, l4) = (slope + h * l3, (t + h) * (value + h * k3));
        value += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
        slope += h / 6.0 * (l1 + 2.0 * l2 + 2.0 * l3 + l4);
    }
    value
}

/// The incomplete gamma function below x over the whole: a sum of the mass at every whole step.
pub fn igamma(a: f64, x: f64) -> f64 {
    let term = |k: i32| {
        let at = a + f64::from(k);
        (at * x.ln() - x - lgamma(at + 1.0)).exp()
    };
    (0..80).rev().map(term).sum()
}

/// The number of ways to choose k of n.
fn choose(n: i32, k: i32) -> f64 {
    factorial(n) / (factorial(k) * factorial(n - k))
}

/// Hermite's polynomial of degree n by its explicit sum, as physicists write it.
pub fn hermite_h(x: f64, n: i32) -> f64 {
    (0..=n / 2)
        .map(|k| {
            let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
            sign * factorial(n) / (factorial(k) * factorial(n - 2 * k)) * (2.0 * x).powi(n - 2 * k)
        })
        .sum()
}

/// Hermite's polynomial of degree n, as statisticians write it.
pub fn hermite_he(x: f64, n: i32) -> f64 {
    2f64.powf(-0.5 * f64::from(n)) * hermite_h(x * FRAC_1_SQRT_2, n)
}

/// Laguerre's polynomial of degree n by its explicit sum.
pub fn laguerre(x: f64, n: i32) -> f64 {
    (0..=n).map(|k| choose(n, k) * (-x).powi(k) / factorial(k)).sum()
}

/// Legendre's polynomial of degree n by its explicit sum.
pub fn legendre(x: f64, n: i32) -> f64 {
    (0..=n).map(|k| choose(n, k).powi(2) * (x - 1.0).powi(n - k) * (x + 1.0).powi(k)).sum::<f64>()
        / 2f64.powi(n)
}

/// The next number of `dtype` after a, toward b: the smallest step that rounding lets through.
pub fn next_of(dtype: DType, a: f64, b: f64) -> f64 {
    if a == b {
        return b;
    }
    let rounded = |x: f64| round_to(dtype, Number::Float(x)).to_f64();
    let mut step = (b - a).signum() * a.abs() * 2f64.powi(-60);
    while rounded(a + step) == a {
        step *= 2.0;
    }
    // The first step that lets through may round past the neighbour only to it.
    rounded(a + step)
}
