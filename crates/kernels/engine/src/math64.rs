//! Elementary functions in f64. Scalar library code: f64 tensors are for checking, and the
//! platform's library is within one unit in the last place. `math32.rs` has the vectorised f32
//! twins.

// The level is in the signatures so that they match `math32.rs`.
#![allow(clippy::extra_unused_type_parameters)]

use crate::simd::Level;

unsafe extern "C" {
    /// The platform's error function (a pure function of its argument), which std does not yet
    /// offer.
    #[link_name = "erf"]
    safe fn c_erf(x: f64) -> f64;
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
