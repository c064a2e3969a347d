//! The error function's family: its complement, its inverse, and the normal distribution.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI, SQRT_2};

use plimsoll_engine::math64;
use plimsoll_engine::simd::ScalarLevel;

/// 1 - erf(x), exact where erf is close to 1.
pub fn erfc(x: f64) -> f64 {
    math64::erfc(x)
}

/// exp(x^2) erfc(x), which does not vanish where erfc does.
pub fn erfcx(x: f64) -> f64 {
    if x < 10.0 {
        return (x * x).exp() * erfc(x);
    }
    // The asymptotic series; its smallest term is below exp(-100).
    let step = -0.5 / (x * x);
    let (mut term, mut sum, mut k) = (1.0, 1.0, 1.0);
    while k < 40.0 && f64::abs(term) > 1e-17 {
        term *= step * (2.0 * k - 1.0);
        sum += term;
        k += 1.0;
    }
    sum / (x * PI.sqrt())
}

/// The number whose error function is y; infinite at both ends, NaN beyond.
pub fn erfinv(y: f64) -> f64 {
    if y.abs() >= 1.0 || y.is_nan() {
        return if y.abs() == 1.0 { f64::INFINITY.copysign(y) } else { f64::NAN };
    }
    let mut x = first_erfinv(y);
    for _ in 0..3 {
        // Beside 1 the complement tells them apart.
        let over = if y.abs() > 0.5 {
            ((1.0 - y.abs()) - erfc(x.abs())) * y.signum()
        } else {
            math64::erf::<ScalarLevel>(x) - y
        };
        x -= over / (FRAC_2_SQRT_PI * (-x * x).exp());
    }
    x
}

/// A start for Newton's method within 4e-7, by M. Giles, "Approximating the erfinv function".
fn first_erfinv(y: f64) -> f64 {
    const NEAR: [f64; 9] = [
        2.810_226_36e-8,
        3.432_739_39e-7,
        -3.523_387_7e-6,
        -4.391_506_54e-6,
        2.185_808_7e-4,
        -1.253_725_03e-3,
        -4.177_681_64e-3,
        0.246_640_727,
        1.501_409_41,
    ];
    const FAR: [f64; 9] = [
        -2.002_142_57e-4,
        1.009_505_58e-4,
        1.349_343_22e-3,
        -3.673_428_44e-3,
        5.739_507_73e-3,
        -7.622_461_3e-3,
        9.438_870_47e-3,
        1.001_674_06,
        2.832_976_82,
    ];
    let w = -((1.0 - y) * (1.0 + y)).ln();
    let (at, coefficients) = if w < 5.0 { (w - 2.5, NEAR) } else { (w.sqrt() - 3.0, FAR) };
    coefficients.into_iter().fold(0.0, |sum, c| sum * at + c) * y
}

/// The mass of the normal distribution below x.
pub fn ndtr(x: f64) -> f64 {
    0.5 * erfc(-x * FRAC_1_SQRT_2)
}

/// [`ndtr`] as PyTorch makes it of operations, each of which rounds.
pub fn ndtr_in_steps(x: f64, round: fn(f64) -> f64) -> f64 {
    let erf = round(math64::erf::<ScalarLevel>(round(x * FRAC_1_SQRT_2)));
    0.5 * round(1.0 + erf)
}

/// The logarithm of [`ndtr`], exact far on both sides.
pub fn log_ndtr(x: f64) -> f64 {
    if x < -1.0 {
        (0.5 * erfcx(-x * FRAC_1_SQRT_2)).ln() - 0.5 * x * x
    } else {
        (-0.5 * erfc(x * FRAC_1_SQRT_2)).ln_1p()
    }
}

/// The number that the normal distribution has the mass p below; infinite at 0 and 1, NaN beyond.
pub fn ndtri(p: f64) -> f64 {
    match p {
        0.0 => f64::NEG_INFINITY,
        1.0 => f64::INFINITY,
        _ if !(0.0..=1.0).contains(&p) => f64::NAN,
        _ if p > 0.5 => -lower_ndtri(1.0 - p),
        _ => lower_ndtri(p),
    }
}

/// [`ndtri`] for p up to a half: Newton's method on the logarithm, where tiny masses are no
/// trouble.
fn lower_ndtri(p: f64) -> f64 {
    let w = -(4.0 * p * (1.0 - p)).ln();
    let mut x = if w < 16.0 {
        SQRT_2 * first_erfinv(2.0 * p - 1.0)
    } else {
        // The first term of the asymptotic series.
        -(2.0 * (w - 0.5 * (PI * w).ln())).sqrt()
    };
    for _ in 0..5 {
        // The density over the mass.
        let slope = (2.0 / PI).sqrt() / erfcx(-x * FRAC_1_SQRT_2);
        let step = (log_ndtr(x) - p.ln()) / slope;
        x -= step;
        if step.abs() < 1e-15 {
            break;
        }
    }
    x
}
