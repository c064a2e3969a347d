//! Elementary functions in f64. Scalar library code: f64 tensors are for checking, and the
//! platform's library is within one unit in the last place. `math32.rs` has the vectorised f32
//! twins.

// The level is in the signatures so that they match `math32.rs`.
#![allow(clippy::extra_unused_type_parameters)]

use crate::simd::Level;

// Functions of the platform's library that std does not offer.
//
// SAFETY: the signatures are those of C's <math.h>, and all are pure functions of their arguments
// (`lgamma_r` writes the one integer that it is lent), so that they may be called with any.
unsafe extern "C" {
    #[link_name = "erf"]
    safe fn c_erf(x: f64) -> f64;
    #[link_name = "erfc"]
    safe fn c_erfc(x: f64) -> f64;
    /// Unlike `lgamma` it leaves the sign with the caller, and not in a variable that all threads
    /// share.
    #[link_name = "lgamma_r"]
    safe fn c_lgamma_r(x: f64, sign: &mut i32) -> f64;
    #[link_name = "j0"]
    safe fn c_j0(x: f64) -> f64;
    #[link_name = "j1"]
    safe fn c_j1(x: f64) -> f64;
    #[link_name = "y0"]
    safe fn c_y0(x: f64) -> f64;
    #[link_name = "y1"]
    safe fn c_y1(x: f64) -> f64;
}

/// e to the power of `x`.
#[inline(always)]
pub fn exp<L: Level>(x: f64) -> f64 {
    x.exp()
}

/// The natural logarithm.
#[inline(always)]
pub fn ln<L: Level>(x: f64) -> f64 {
    x.ln()
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh<L: Level>(x: f64) -> f64 {
    x.tanh()
}

/// The error function.
#[inline(always)]
pub fn erf<L: Level>(x: f64) -> f64 {
    c_erf(x)
}

/// 1 minus the error function.
pub fn erfc(x: f64) -> f64 {
    c_erfc(x)
}

/// The logarithm of the gamma function's magnitude.
pub fn ln_gamma(x: f64) -> f64 {
    c_lgamma_r(x, &mut 0)
}

/// The Bessel function of the first kind, order 0.
pub fn j0(x: f64) -> f64 {
    c_j0(x)
}

/// The Bessel function of the first kind, order 1.
pub fn j1(x: f64) -> f64 {
    c_j1(x)
}

/// The Bessel function of the second kind, order 0, for positive x.
pub fn y0(x: f64) -> f64 {
    c_y0(x)
}

/// The Bessel function of the second kind, order 1, for positive x.
pub fn y1(x: f64) -> f64 {
    c_y1(x)
}
