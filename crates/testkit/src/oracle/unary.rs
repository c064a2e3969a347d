//! Functions of one element.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::{Array, Number, float_dtype};

/// A float function of every element; integers and bools become `float32` first.
pub fn float(x: &Array, f: impl Fn(f64) -> f64) -> Array {
    let dtype = float_dtype(x.dtype());
    let x = x.cast(dtype);
    Array::build(dtype, x.shape(), |i| f(x.at(i).to_f64()))
}

/// A function that keeps the dtype, in its integer and its float form.
pub fn keep(x: &Array, int: impl Fn(i64) -> i64, float: impl Fn(f64) -> f64) -> Array {
    Array::build(x.dtype(), x.shape(), |i| match x.at(i) {
        Number::Int(v) => Number::Int(int(v)),
        Number::Float(v) => Number::Float(float(v)),
    })
}

/// `-x`.
pub fn neg(x: &Array) -> Array {
    keep(x, i64::wrapping_neg, |v| -v)
}

/// `|x|`.
pub fn abs(x: &Array) -> Array {
    keep(x, i64::wrapping_abs, f64::abs)
}

/// -1, 0 or 1. PyTorch gives 0 for NaN: it is `(0 < x) - (x < 0)`.
pub fn sign(x: &Array) -> Array {
    keep(x, i64::signum, |v| f64::from(u8::from(v > 0.0)) - f64::from(u8::from(v < 0.0)))
}

/// `max(x, 0)`; NaN stays NaN.
pub fn relu(x: &Array) -> Array {
    keep(x, |v| v.max(0), relu_value)
}

fn relu_value(x: f64) -> f64 {
    if x.is_nan() || x > 0.0 { x } else { 0.0 }
}

/// `1 / (1 + exp(-x))`.
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `x * P(X <= x)` for a standard normal `X`.
pub fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + erf(x * FRAC_1_SQRT_2))
}

/// The approximation of gelu by `tanh` that PyTorch offers.
pub fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
}

/// The error function. Small arguments by the series whose terms are all of one sign, `2/sqrt(pi) *
/// exp(-x^2) * sum of 2^n x^(2n+1) / (1*3*5*...*(2n+1))`; larger ones by the continued fraction of
/// `1 - erf`, which is then small enough that its own error hardly shows.
pub fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.abs() > 1.0 {
        let square = x * x;
        let fraction = (1..200).rev().fold(1.0, |f, n| 1.0 + f64::from(n) / (2.0 * square) / f);
        let rest = (-square).exp() / (x.abs() * PI.sqrt() * fraction);
        return (1.0 - rest).copysign(x);
    }
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > sum.abs() * 1e-18 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_agrees_with_published_values() {
        for (x, expected) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (-1.789_213_075_323_795_1, -0.988_604_451_210_744_4),
            (-2.0, -0.995_322_265_018_952_7),
            (3.5, 0.999_999_256_901_627_7),
            (9.0, 1.0),
        ] {
            assert!((erf(x) - expected).abs() < 3e-16, "erf({x}) = {}", erf(x));
        }
    }
}
