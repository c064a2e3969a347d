//! Orthogonal polynomials by their recurrences, in the precision that they are asked in: rounding
//! adds up over the steps, and shows. The degree is the whole part of its argument; below 0 they
//! are 0.

use plimsoll_engine::real::Real;

/// Member n of a family that starts with 1 and `first`, where each follows from the two before it.
fn recur<R: Real>(x: R, n: R, first: R, next: impl Fn(R, R, R) -> R) -> R {
    let n = n.trunc();
    if n < R::ZERO || n.is_nan() {
        return R::ZERO;
    }
    if n == R::ZERO {
        return R::ONE;
    }
    let (mut before, mut now, mut k) = (R::ONE, first, R::ONE);
    // What is not finite stays so: the loop ends early where the degree is absurd.
    while k < n && now.abs() < R::INFINITY {
        (before, now) = (now, next(k, before, now));
        k = k + R::ONE;
    }
    if x.is_nan() { x } else { now }
}

/// Degrees above this go by angles inside -1 to 1: the recurrence would take long.
const LONG: f64 = 40.0;

/// The angle whose cosine x is, if the degree is large and x has one.
fn angle<R: Real>(x: R, n: R) -> Option<(f64, f64)> {
    let (x, n) = (x.to_f64(), n.to_f64());
    (n > LONG && x.abs() < 1.0).then(|| (x.acos(), n.trunc()))
}

/// `a b - c`, rounded once where f64 holds the product: PyTorch's compiler fuses it.
fn fused<R: Real>(a: R, b: R, c: R) -> R {
    R::of(a.to_f64() * b.to_f64() - c.to_f64())
}

/// Chebyshev's polynomial of the first kind.
pub fn chebyshev_t<R: Real>(x: R, n: R) -> R {
    match angle(x, n) {
        Some((angle, n)) => R::of((n * angle).cos()),
        None => recur(x, n, x, |_, before, now| fused(x + x, now, before)),
    }
}

/// Chebyshev's polynomial of the second kind.
pub fn chebyshev_u<R: Real>(x: R, n: R) -> R {
    match angle(x, n) {
        Some((angle, n)) => R::of(((n + 1.0) * angle).sin() / angle.sin()),
        None => recur(x, n, x + x, |_, before, now| fused(x + x, now, before)),
    }
}

/// Chebyshev's polynomial of the third kind.
pub fn chebyshev_v<R: Real>(x: R, n: R) -> R {
    match angle(x, n) {
        Some((angle, n)) => R::of(((n + 0.5) * angle).cos() / (0.5 * angle).cos()),
        None => recur(x, n, x + x - R::ONE, |_, before, now| fused(x + x, now, before)),
    }
}

/// Chebyshev's polynomial of the fourth kind.
pub fn chebyshev_w<R: Real>(x: R, n: R) -> R {
    match angle(x, n) {
        Some((angle, n)) => R::of(((n + 0.5) * angle).sin() / (0.5 * angle).sin()),
        None => recur(x, n, x + x + R::ONE, |_, before, now| fused(x + x, now, before)),
    }
}

/// From 0 to 1 to -1 to 1, for the shifted polynomials.
pub fn shifted<R: Real>(x: R) -> R {
    x + x - R::ONE
}

/// Hermite's polynomial, as physicists write it.
pub fn hermite_h<R: Real>(x: R, n: R) -> R {
    recur(x, n, x + x, |k, before, now| R::of(2.0) * fused(x, now, k * before))
}

/// Hermite's polynomial, as statisticians write it.
pub fn hermite_he<R: Real>(x: R, n: R) -> R {
    recur(x, n, x, |k, before, now| fused(x, now, k * before))
}

/// Laguerre's polynomial.
pub fn laguerre_l<R: Real>(x: R, n: R) -> R {
    let next = |k: R, before, now| fused(k + k + R::ONE - x, now, k * before) / (k + R::ONE);
    recur(x, n, R::ONE - x, next)
}

/// Legendre's polynomial.
pub fn legendre_p<R: Real>(x: R, n: R) -> R {
    let next = |k: R, before, now| fused((k + k + R::ONE) * x, now, k * before) / (k + R::ONE);
    recur(x, n, x, next)
}
