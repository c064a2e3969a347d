//! Orthogonal polynomials by their recurrences. The degree is the whole part of its argument; below
//! 0 they are 0.

/// The members 0 and n of a family that starts with 1 and `first`, where each follows from the two
/// before it.
fn recur(x: f64, n: f64, first: f64, next: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let n = n.trunc();
    if n < 0.0 || n.is_nan() {
        return 0.0;
    }
    if n == 0.0 {
        return 1.0;
    }
    let (mut before, mut now, mut k) = (1.0, first, 1.0);
    // What is not finite stays so: the loop ends early where the degree is absurd.
    while k < n && now.is_finite() {
        (before, now) = (now, next(k, before, now));
        k += 1.0;
    }
    if x.is_nan() { x } else { now }
}

/// The degree from which a cosine is faster and truer than a recurrence inside -1 to 1.
const LONG: f64 = 40.0;

/// Chebyshev's polynomial of the first kind.
pub fn chebyshev_t(x: f64, n: f64) -> f64 {
    if n > LONG && x.abs() < 1.0 {
        return (n.trunc() * x.acos()).cos();
    }
    recur(x, n, x, |_, before, now| 2.0 * x * now - before)
}

/// Chebyshev's polynomial of the second kind.
pub fn chebyshev_u(x: f64, n: f64) -> f64 {
    if n > LONG && x.abs() < 1.0 {
        let angle = x.acos();
        return ((n.trunc() + 1.0) * angle).sin() / angle.sin();
    }
    recur(x, n, 2.0 * x, |_, before, now| 2.0 * x * now - before)
}

/// Chebyshev's polynomial of the third kind.
pub fn chebyshev_v(x: f64, n: f64) -> f64 {
    if n > LONG && x.abs() < 1.0 {
        let half = 0.5 * x.acos();
        return ((2.0 * n.trunc() + 1.0) * half).cos() / half.cos();
    }
    recur(x, n, 2.0 * x - 1.0, |_, before, now| 2.0 * x * now - before)
}

/// Chebyshev's polynomial of the fourth kind.
pub fn chebyshev_w(x: f64, n: f64) -> f64 {
    if n > LONG && x.abs() < 1.0 {
        let half = 0.5 * x.acos();
        return ((2.0 * n.trunc() + 1.0) * half).sin() / half.sin();
    }
    recur(x, n, 2.0 * x + 1.0, |_, before, now| 2.0 * x * now - before)
}

/// Hermite's polynomial, as physicists write it.
pub fn hermite_h(x: f64, n: f64) -> f64 {
    recur(x, n, 2.0 * x, |k, before, now| 2.0 * (x * now - k * before))
}

/// Hermite's polynomial, as statisticians write it.
pub fn hermite_he(x: f64, n: f64) -> f64 {
    recur(x, n, x, |k, before, now| x * now - k * before)
}

/// Laguerre's polynomial.
pub fn laguerre_l(x: f64, n: f64) -> f64 {
    recur(x, n, 1.0 - x, |k, before, now| ((2.0 * k + 1.0 - x) * now - k * before) / (k + 1.0))
}

/// Legendre's polynomial.
pub fn legendre_p(x: f64, n: f64) -> f64 {
    recur(x, n, x, |k, before, now| ((2.0 * k + 1.0) * x * now - k * before) / (k + 1.0))
}
