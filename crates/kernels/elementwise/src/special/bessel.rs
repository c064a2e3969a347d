//! Bessel functions and Airy's, which is one of them in disguise.

use std::f64::consts::{FRAC_PI_4, PI};

use plimsoll_engine::math64;

/// The Bessel function of the first kind, order 0.
pub fn bessel_j0(x: f64) -> f64 {
    math64::j0(x)
}

/// The Bessel function of the first kind, order 1.
pub fn bessel_j1(x: f64) -> f64 {
    math64::j1(x)
}

/// The Bessel function of the second kind, order 0: minus infinity at 0, NaN below.
pub fn bessel_y0(x: f64) -> f64 {
    match x {
        0.0 => f64::NEG_INFINITY,
        _ if x < 0.0 => f64::NAN,
        _ => math64::y0(x),
    }
}

/// The Bessel function of the second kind, order 1.
pub fn bessel_y1(x: f64) -> f64 {
    match x {
        0.0 => f64::NEG_INFINITY,
        _ if x < 0.0 => f64::NAN,
        _ => math64::y1(x),
    }
}

/// sin(x) / x, 1 at 0 and 0 at infinity.
pub fn spherical_bessel_j0(x: f64) -> f64 {
    if x.is_infinite() {
        0.0
    } else if x == 0.0 {
        1.0
    } else {
        x.sin() / x
    }
}

/// Where the modified functions go over from their series to the asymptotic one, whose smallest
/// term is then below exp(-60).
const FAR: f64 = 30.0;

/// The power series of the modified Bessel function of order v: all terms are positive.
fn modified_series(v: f64, x: f64) -> f64 {
    let quarter = 0.25 * x * x;
    let mut term = if v == 0.0 { 1.0 } else { 0.5 * x };
    let (mut sum, mut k) = (term, 0.0);
    while f64::abs(term) > f64::abs(sum) * 1e-17 {
        k += 1.0;
        term *= quarter / (k * (k + v));
        sum += term;
    }
    sum
}

/// sqrt(2 pi x) exp(-x) times the modified function, for large x.
fn modified_far(v: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut k) = (1.0, 1.0, 0.0);
    while f64::abs(term) > 1e-17 && k < 60.0 {
        k += 1.0;
        let odd = 2.0 * k - 1.0;
        term *= -(4.0 * v * v - odd * odd) / (8.0 * k * x);
        sum += term;
    }
    sum
}

/// exp(-|x|) times the modified function of order v, for x from 0 up.
fn modified_scaled(v: f64, x: f64) -> f64 {
    if x.is_infinite() {
        0.0
    } else if x < FAR {
        modified_series(v, x) * (-x).exp()
    } else {
        modified_far(v, x) / (2.0 * PI * x).sqrt()
    }
}

fn modified(v: f64, x: f64) -> f64 {
    if x < FAR {
        return modified_series(v, x);
    }
    // Half of the exponent at a time, so that only the result overflows.
    let half = (0.5 * x).exp();
    if x.is_infinite() { x } else { half * (modified_far(v, x) / (2.0 * PI * x).sqrt()) * half }
}

/// The modified Bessel function of the first kind, order 0.
pub fn i0(x: f64) -> f64 {
    if x.is_nan() { x } else { modified(0.0, x.abs()) }
}

/// exp(-|x|) [`i0`]`(x)`.
pub fn i0e(x: f64) -> f64 {
    if x.is_nan() { x } else { modified_scaled(0.0, x.abs()) }
}

/// The modified Bessel function of the first kind, order 1.
pub fn i1(x: f64) -> f64 {
    if x.is_nan() { x } else { modified(1.0, x.abs()).copysign(x) }
}

/// exp(-|x|) [`i1`]`(x)`.
pub fn i1e(x: f64) -> f64 {
    if x.is_nan() { x } else { modified_scaled(1.0, x.abs()).copysign(x) }
}

/// exp(x) times the modified Bessel function of the second kind, order v, for x from 2 up: the
/// integral of exp(-x (cosh t - 1)) cosh(v t), which the trapezoidal rule gives to the last digit.
fn second_kind_scaled(v: f64, x: f64) -> f64 {
    const STEP: f64 = 0.0625;
    let end = (1.0 + 42.0 / x).acosh();
    let (mut sum, mut t) = (0.5, STEP);
    while t <= end {
        sum += (-x * (t.cosh() - 1.0)).exp() * (v * t).cosh();
        t += STEP;
    }
    sum * STEP
}

/// Euler's constant.
const GAMMA: f64 = 0.577_215_664_901_532_9;

/// The series of the function of order 0 for x up to 2.
fn k0_near(x: f64) -> f64 {
    let quarter = 0.25 * x * x;
    let (mut term, mut harmonic, mut sum, mut k) = (1.0, 0.0, 0.0, 0.0);
    while k < 40.0 && term > 1e-18 {
        k += 1.0;
        term *= quarter / (k * k);
        harmonic += 1.0 / k;
        sum += term * harmonic;
    }
    sum - ((0.5 * x).ln() + GAMMA) * modified_series(0.0, x)
}

/// The series of the function of order 1 for x up to 2.
fn k1_near(x: f64) -> f64 {
    let quarter = 0.25 * x * x;
    // Of term k: the sum of 1 / j up to k, and that up to k + 1.
    let (mut term, mut lower, mut upper, mut k) = (1.0, 0.0, 1.0, 0.0);
    let mut sum = 1.0 - 2.0 * GAMMA;
    while k < 40.0 && term > 1e-18 {
        k += 1.0;
        term *= quarter / (k * (k + 1.0));
        lower += 1.0 / k;
        upper += 1.0 / (k + 1.0);
        sum += term * (lower + upper - 2.0 * GAMMA);
    }
    1.0 / x + (0.5 * x).ln() * modified_series(1.0, x) - 0.25 * x * sum
}

fn second_kind(v: f64, x: f64, near: fn(f64) -> f64, scaled: bool) -> f64 {
    let scale = if scaled { x.exp() } else { 1.0 };
    match x {
        0.0 => f64::INFINITY,
        _ if x < 0.0 || x.is_nan() => f64::NAN,
        _ if x <= 2.0 => near(x) * scale,
        _ if scaled => second_kind_scaled(v, x),
        _ => second_kind_scaled(v, x) * (-x).exp(),
    }
}

/// The modified Bessel function of the second kind, order 0: infinite at 0, NaN below.
pub fn k0(x: f64) -> f64 {
    second_kind(0.0, x, k0_near, false)
}

/// exp(x) [`k0`]`(x)`.
pub fn k0e(x: f64) -> f64 {
    second_kind(0.0, x, k0_near, true)
}

/// The modified Bessel function of the second kind, order 1: infinite at 0, NaN below.
pub fn k1(x: f64) -> f64 {
    second_kind(1.0, x, k1_near, false)
}

/// exp(x) [`k1`]`(x)`.
pub fn k1e(x: f64) -> f64 {
    second_kind(1.0, x, k1_near, true)
}

/// Airy's function; NaN at the infinities, as in PyTorch.
pub fn airy_ai(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let zeta = 2.0 / 3.0 * x.abs() * x.abs().sqrt();
    if x > 103.892 {
        0.0
    } else if x > 2.5 {
        // A modified function of the second kind, order 1/3.
        (x / 3.0).sqrt() / PI * second_kind_scaled(1.0 / 3.0, zeta) * (-zeta).exp()
    } else if x > -7.5 {
        airy_near(x)
    } else {
        airy_far_left(x, zeta)
    }
}

/// The power series, of which every third coefficient of two is not 0.
fn airy_near(x: f64) -> f64 {
    /// Ai(0) and -Ai'(0).
    const START: [f64; 2] = [0.355_028_053_887_817_2, 0.258_819_403_792_806_8];
    let cube = x * x * x;
    let (mut f, mut g, mut k) = (1.0, x, 0.0);
    let (mut even, mut odd) = (1.0, x);
    while k < 300.0 && (f64::abs(f) > 1e-18 * f64::abs(even) || f64::abs(g) > 1e-18 * f64::abs(odd))
    {
        k += 3.0;
        f *= cube / ((k - 1.0) * k);
        g *= cube / (k * (k + 1.0));
        even += f;
        odd += g;
    }
    START[0] * even - START[1] * odd
}

/// The asymptotic series for large negative x: a wave whose phase is zeta.
fn airy_far_left(x: f64, zeta: f64) -> f64 {
    let (mut term, mut k) = (1.0, 0.0);
    let (mut cosine, mut sine) = (1.0, 0.0);
    while k < 30.0 && f64::abs(term) > 1e-17 {
        k += 1.0;
        let next = term * (6.0 * k - 5.0) * (6.0 * k - 1.0) / (72.0 * k * zeta);
        if next > term {
            break;
        }
        term = next;
        // Signs go + + - - over the terms: even ones to the cosine, odd ones to the sine.
        match k as i64 % 4 {
            1 => sine += term,
            2 => cosine -= term,
            3 => sine -= term,
            _ => cosine += term,
        }
    }
    let phase = zeta - FRAC_PI_4;
    (phase.cos() * cosine + phase.sin() * sine) / (PI.sqrt() * (-x).sqrt().sqrt())
}
