//! The gamma function's family: its logarithm and that one's derivatives, Hurwitz's zeta function,
//! and the incomplete gamma functions.

use std::f64::consts::PI;

use plimsoll_engine::math64;

/// The logarithm of the gamma function's magnitude.
pub fn lgamma(x: f64) -> f64 {
    math64::ln_gamma(x)
}

/// The derivative of [`lgamma`]; minus infinity at 0 from above, NaN at the negative whole numbers.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        // The fraction alone, because the tangent of a large multiple of pi is noise.
        let fraction = x - x.trunc();
        return digamma(1.0 - x) - PI / (PI * fraction).tan();
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    // Bernoulli's numbers over 2k: the asymptotic series.
    const SERIES: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32760.0,
        1.0 / 12.0,
    ];
    let square = 1.0 / (x * x);
    let tail = SERIES.iter().rev().fold(0.0, |tail, c| (tail + c) * square);
    sum + x.ln() - 0.5 / x - tail
}

/// The derivative of order n of [`digamma`].
pub fn polygamma(x: f64, n: i64) -> f64 {
    match n {
        0 => digamma(x),
        1 => trigamma(x),
        _ => {
            let order = n as f64 + 1.0;
            let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
            sign * lgamma(order).exp() * zeta(order, x)
        }
    }
}

/// [`polygamma`] of float32 and halves. Its reflection is computed in f32, as PyTorch does: the
/// sine of a rounded multiple of pi is another number.
pub fn polygamma32(x: f64, n: i64) -> f64 {
    if n != 1 || x >= 0.5 {
        return polygamma(x, n);
    }
    let pi = std::f32::consts::PI;
    let sine = (pi * x as f32).sin();
    f64::from(pi * pi / (sine * sine)) - trigamma(1.0 - x)
}

fn trigamma(x: f64) -> f64 {
    if x < 0.5 {
        let sine = (PI * x).sin();
        return PI * PI / (sine * sine) - trigamma(1.0 - x);
    }
    // The series of zeta would multiply nothing by infinity.
    if x == f64::INFINITY { 0.0 } else { zeta(2.0, x) }
}

/// Hurwitz's zeta function: the sum of (q + k)^-x over k from 0 up.
pub fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x.is_nan() || q.is_nan() || x < 1.0 {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    // The first terms one by one, until the rest is smooth; then Euler and Maclaurin's formula.
    let (mut a, mut sum, mut k) = (q, 0.0, 0);
    while k < 12 || a <= 12.0 {
        let term = a.powf(-x);
        sum += term;
        a += 1.0;
        k += 1;
        if f64::abs(term) < 1e-17 * f64::abs(sum) {
            return sum;
        }
    }
    // (2k)! over Bernoulli's numbers.
    const DIVISORS: [f64; 12] = [
        12.0,
        -720.0,
        30_240.0,
        -1_209_600.0,
        47_900_160.0,
        -1.892_437_580_318_379_2e9,
        7.472_424_96e10,
        -2.950_130_727_918_164e12,
        1.164_678_281_435_006_7e14,
        -4.597_978_722_407_473e15,
        1.815_210_540_194_354_6e17,
        -7.166_165_256_175_667e18,
    ];
    let last = a.powf(-x);
    sum += last * a / (x - 1.0) + 0.5 * last;
    let (mut factor, mut power, mut order) = (1.0, last, 0.0);
    for divisor in DIVISORS {
        factor *= x + order;
        power /= a;
        let term = factor * power / divisor;
        sum += term;
        if f64::abs(term) < 1e-17 * f64::abs(sum) {
            break;
        }
        factor *= x + order + 1.0;
        power /= a;
        order += 2.0;
    }
    sum
}

/// The part of the gamma function of a that lies below x, from 0 to 1.
pub fn igamma(a: f64, x: f64) -> f64 {
    match edges(a, x) {
        Some(lower) => lower,
        None if x <= 1.0 || x <= a => lower_series(a, x),
        None => 1.0 - upper_fraction(a, x),
    }
}

/// The part of the gamma function of a that lies above x: 1 - [`igamma`].
pub fn igammac(a: f64, x: f64) -> f64 {
    match edges(a, x) {
        Some(lower) => 1.0 - lower,
        None if x <= 1.0 || x <= a => 1.0 - lower_series(a, x),
        None => upper_fraction(a, x),
    }
}

/// [`igamma`] where it is no matter of computing.
fn edges(a: f64, x: f64) -> Option<f64> {
    match () {
        () if a < 0.0 || x < 0.0 || a.is_nan() || x.is_nan() => Some(f64::NAN),
        () if a == 0.0 => Some(if x > 0.0 { 1.0 } else { f64::NAN }),
        () if x == 0.0 => Some(0.0),
        () if a.is_infinite() => Some(if x.is_infinite() { f64::NAN } else { 0.0 }),
        () if x.is_infinite() => Some(1.0),
        () => None,
    }
}

/// x^a exp(-x) / gamma(a).
fn front(a: f64, x: f64) -> f64 {
    (a * x.ln() - x - lgamma(a)).exp()
}

/// The most terms: a thousand deviations of a distribution whose mean is the largest float32.
const TERMS: usize = 100_000;

fn lower_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut at) = (1.0 / a, 1.0 / a, a);
    for _ in 0..TERMS {
        at += 1.0;
        term *= x / at;
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum * front(a, x)
}

/// Lentz's way through the continued fraction.
fn upper_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / if b == 0.0 { TINY } else { b };
    let mut fraction = d;
    for i in 1..TERMS {
        let step = -(i as f64) * (i as f64 - a);
        b += 2.0;
        d = step * d + b;
        c = b + step / c;
        d = 1.0 / if d == 0.0 { TINY } else { d };
        c = if c == 0.0 { TINY } else { c };
        let change = d * c;
        fraction *= change;
        if f64::abs(change - 1.0) < 1e-16 {
            break;
        }
    }
    fraction * front(a, x)
}
