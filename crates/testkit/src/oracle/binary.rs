//! Functions of two elements, with broadcasting and promotion; comparisons; `where`.

use plimsoll_core::DType;

use super::array::broadcast;
use super::{Array, Number, common_dtype, float_dtype};

/// Both operands in `dtype`, element by element over the broadcast shape.
fn zip<N: Into<Number>>(
    a: &Array,
    b: &Array,
    compute: DType,
    result: DType,
    f: impl Fn(Number, Number) -> N,
) -> Array {
    let (a, b) = (a.cast(compute), b.cast(compute));
    let shape = broadcast(a.shape(), b.shape());
    Array::build(result, &shape, |i| f(a.at_broadcast(i), b.at_broadcast(i)))
}

/// A function that keeps the common dtype, in its integer and its float form.
pub fn arithmetic(
    a: &Array,
    b: &Array,
    int: impl Fn(i64, i64) -> i64,
    float: impl Fn(f64, f64) -> f64,
) -> Array {
    let dtype = common_dtype(&[a, b]);
    zip(a, b, dtype, dtype, |x, y| match (x, y) {
        (Number::Int(x), Number::Int(y)) => Number::Int(int(x, y)),
        (x, y) => Number::Float(float(x.to_f64(), y.to_f64())),
    })
}

/// `a + alpha * b`; on bools it is "or" (the sum is not zero).
pub fn add(a: &Array, b: &Array, alpha: f64) -> Array {
    arithmetic(a, b, |x, y| x.wrapping_add(y.wrapping_mul(alpha as i64)), |x, y| x + alpha * y)
}

/// `a - alpha * b`.
pub fn sub(a: &Array, b: &Array, alpha: f64) -> Array {
    add(a, b, -alpha)
}

/// `a * b`; on bools it is "and".
pub fn mul(a: &Array, b: &Array) -> Array {
    arithmetic(a, b, i64::wrapping_mul, |x, y| x * y)
}

/// True division: integers become floats.
pub fn div(a: &Array, b: &Array) -> Array {
    let dtype = float_dtype(common_dtype(&[a, b]));
    zip(a, b, dtype, dtype, |x, y| x.to_f64() / y.to_f64())
}

/// A quotient made whole by `round`; integers stay integers.
pub fn rounded(a: &Array, b: &Array, round: fn(f64) -> f64) -> Array {
    let whole = |x: i64, y: i64| round(x as f64 / y as f64) as i64;
    arithmetic(a, b, whole, |x, y| round(x / y))
}

/// The larger; NaN wins.
pub fn maximum(a: &Array, b: &Array) -> Array {
    arithmetic(a, b, i64::max, |x, y| if x.is_nan() || x > y { x } else { y })
}

/// The smaller; NaN wins.
pub fn minimum(a: &Array, b: &Array) -> Array {
    arithmetic(a, b, i64::min, |x, y| if x.is_nan() || x < y { x } else { y })
}

/// `a ** b`.
pub fn pow(a: &Array, b: &Array) -> Array {
    arithmetic(
        a,
        b,
        |x, y| (0..y).fold(1i64, |product, _| product.wrapping_mul(x)),
        |x, y| if y == 0.0 || x == 1.0 { 1.0 } else { x.powf(y) },
    )
}

/// A comparison in the common dtype.
pub fn compare(a: &Array, b: &Array, holds: impl Fn(std::cmp::Ordering) -> bool) -> Array {
    zip(a, b, common_dtype(&[a, b]), DType::Bool, |x, y| ordering(x, y).is_some_and(&holds))
}

/// `a != b`, the one comparison that is true of NaN.
pub fn ne(a: &Array, b: &Array) -> Array {
    zip(a, b, common_dtype(&[a, b]), DType::Bool, |x, y| {
        ordering(x, y) != Some(std::cmp::Ordering::Equal)
    })
}

fn ordering(x: Number, y: Number) -> Option<std::cmp::Ordering> {
    match (x, y) {
        (Number::Int(x), Number::Int(y)) => Some(x.cmp(&y)),
        (x, y) => x.to_f64().partial_cmp(&y.to_f64()),
    }
}

/// `a` where `condition` holds, else `b`.
pub fn where_(condition: &Array, a: &Array, b: &Array) -> Array {
    let dtype = common_dtype(&[a, b]);
    let shape = broadcast(condition.shape(), &broadcast(a.shape(), b.shape()));
    let (a, b) = (a.cast(dtype), b.cast(dtype));
    Array::build(dtype, &shape, |i| {
        if condition.at_broadcast(i).is_true() { a.at_broadcast(i) } else { b.at_broadcast(i) }
    })
}

/// A float function of both; integers and bools become `float32` first.
pub fn float(a: &Array, b: &Array, f: impl Fn(f64, f64) -> f64) -> Array {
    let dtype = float_dtype(common_dtype(&[a, b]));
    zip(a, b, dtype, dtype, |x, y| f(x.to_f64(), y.to_f64()))
}

/// A truth about both.
pub fn question(a: &Array, b: &Array, f: impl Fn(f64, f64) -> bool) -> Array {
    zip(a, b, common_dtype(&[a, b]), DType::Bool, |x, y| f(x.to_f64(), y.to_f64()))
}

/// A truth about whether both are nonzero.
pub fn truths(a: &Array, b: &Array, f: impl Fn(bool, bool) -> bool) -> Array {
    zip(a, b, common_dtype(&[a, b]), DType::Bool, |x, y| f(x.is_true(), y.is_true()))
}

/// What is left of whole divisors, with the divisor's sign.
pub fn modulo(a: f64, b: f64) -> f64 {
    a - b * (a / b).floor()
}

/// [`modulo`] of integers.
pub fn whole_modulo(a: i64, b: i64) -> i64 {
    modulo(a as f64, b as f64) as i64
}

/// The largest number that divides both, by trying all.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (a, b) = (a.abs(), b.abs());
    let divides = |d: &i64| a % d == 0 && b % d == 0;
    (1..=a.max(b)).rev().find(divides).unwrap_or(0)
}
