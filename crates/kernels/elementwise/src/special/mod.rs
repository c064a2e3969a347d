//! Special functions of f64, which the kernels of `call.rs` run over tensors of every dtype. Each
//! keeps PyTorch's values at its edges. Tests hold them to 256 units in the last place for small
//! arguments; nobody measured them over their whole range.

mod bessel;
mod error;
mod gamma;
mod polynomial;

pub use bessel::{
    airy_ai, bessel_j0, bessel_j1, bessel_y0, bessel_y1, i0, i0e, i1, i1e, k0, k0e, k1, k1e,
    spherical_bessel_j0,
};
pub use error::{erfc, erfcx, erfinv, log_ndtr, ndtr, ndtr_in_steps, ndtri};
pub use gamma::{digamma, igamma, igammac, lgamma, polygamma, polygamma32, zeta};
pub use polynomial::{
    chebyshev_t, chebyshev_u, chebyshev_v, chebyshev_w, hermite_h, hermite_he, laguerre_l,
    legendre_p, shifted,
};

/// The entropy of a probability: -x ln x, 0 at 0, minus infinity below.
pub fn entr(x: f64) -> f64 {
    match x {
        _ if x.is_nan() => x,
        _ if x > 0.0 => -x * x.ln(),
        0.0 => 0.0,
        _ => f64::NEG_INFINITY,
    }
}

/// sin(pi x) / (pi x), 1 at 0.
pub fn sinc(x: f64) -> f64 {
    let turn = std::f64::consts::PI * x;
    if x == 0.0 { 1.0 } else { turn.sin() / turn }
}

/// x ln y, 0 where x is 0, unless y is a NaN.
pub fn xlogy(x: f64, y: f64) -> f64 {
    if y.is_nan() {
        y
    } else if x == 0.0 {
        0.0
    } else {
        x * y.ln()
    }
}

/// x ln(1 + y), 0 where x is 0, unless y is a NaN.
pub fn xlog1py(x: f64, y: f64) -> f64 {
    if y.is_nan() {
        y
    } else if x == 0.0 {
        0.0
    } else {
        x * y.ln_1p()
    }
}

/// The logarithm of the odds of x, which is first brought within `eps` of the ends of 0 to 1. Every
/// step is rounded by `round`.
pub fn logit(x: f64, (eps, round): (Option<f64>, fn(f64) -> f64)) -> f64 {
    let x = match eps.map(round) {
        Some(eps) if x < eps => eps,
        Some(eps) if x > round(1.0 - eps) => round(1.0 - eps),
        _ => x,
    };
    round(x / round(1.0 - x)).ln()
}

/// ln(exp(a) + exp(b)).
pub fn logaddexp(a: f64, b: f64) -> f64 {
    if a.is_infinite() && a == b {
        return a;
    }
    // `max` passes over a NaN; the difference keeps it.
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

/// log2(2^a + 2^b).
pub fn logaddexp2(a: f64, b: f64) -> f64 {
    if a.is_infinite() && a == b {
        return a;
    }
    a.max(b) + (-(a - b).abs()).exp2().ln_1p() * std::f64::consts::LOG2_E
}

/// The angle of a real number in the plane: pi for those below 0, and for a NaN itself.
pub fn angle(x: f64) -> f64 {
    match x {
        _ if x.is_nan() => x,
        _ if x < 0.0 => std::f64::consts::PI,
        _ => 0.0,
    }
}

/// The number whose hyperbolic sine x is. The standard library's overflows for the largest ones.
pub fn asinh(x: f64) -> f64 {
    if x.abs() > 1e10 { (x.abs().ln() + std::f64::consts::LN_2).copysign(x) } else { x.asinh() }
}

/// The number whose hyperbolic cosine x is, for the largest ones too.
pub fn acosh(x: f64) -> f64 {
    if x > 1e10 { x.ln() + std::f64::consts::LN_2 } else { x.acosh() }
}
