//! Whether a result is the expected one: same dtype, same shape, integers equal, floats within a
//! tolerance that is counted in units of the dtype's own precision.

use plimsoll_core::DType;

use crate::cases::Tolerance;
use crate::oracle::{Array, Number};

/// The spacing of numbers just above 1 in `dtype`.
pub fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
        _ => 0.0,
    }
}

/// The smallest number of `dtype` with full precision: below it the spacing no longer shrinks.
fn smallest_normal(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-14),
        DType::BF16 | DType::F32 => f64::from(f32::MIN_POSITIVE),
        _ => f64::MIN_POSITIVE,
    }
}

/// The largest finite number of `dtype`.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => 3.3895313892515355e38,
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// Says how `actual` differs from `expected`, if it does.
pub fn difference(actual: &Array, expected: &Array, tolerance: Tolerance) -> Option<String> {
    if actual.dtype() != expected.dtype() {
        return Some(format!("dtype {} instead of {}", actual.dtype(), expected.dtype()));
    }
    if actual.shape() != expected.shape() {
        return Some(format!("shape {:?} instead of {:?}", actual.shape(), expected.shape()));
    }
    let pairs = actual.values().iter().zip(expected.values());
    let wrong: Vec<String> = pairs
        .enumerate()
        .filter(|(_, (a, e))| !close(expected.dtype(), **a, **e, tolerance))
        .map(|(i, (a, e))| format!("element {i}: {} instead of {}", show(*a), show(*e)))
        .collect();
    let first = wrong.first()?;
    Some(format!("{} of {} elements differ; {first}", wrong.len(), actual.numel()))
}

fn show(number: Number) -> String {
    match number {
        Number::Int(i) => i.to_string(),
        Number::Float(x) => format!("{x:e}"),
    }
}

fn close(dtype: DType, actual: Number, expected: Number, tolerance: Tolerance) -> bool {
    if actual == expected {
        return true;
    }
    let (Number::Float(actual), Number::Float(expected)) = (actual, expected) else { return false };
    // Halves are computed in float32 and rounded once: next to the right number at worst.
    let ulps = if epsilon(dtype) > 1e-4 { 2.0 } else { tolerance.ulps };
    let size = expected.abs().max(tolerance.floor).max(smallest_normal(dtype));
    if actual.is_finite() && expected.is_finite() {
        return (actual - expected).abs() <= ulps * epsilon(dtype) * size;
    }
    // One rounds to infinity and the other just does not.
    let edge = largest(dtype) * (1.0 - ulps * epsilon(dtype));
    actual.signum() == expected.signum() && actual.abs() >= edge && expected.abs() >= edge
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Tolerance = Tolerance { ulps: 1.0, floor: 0.0 };

    fn one(dtype: DType, x: f64) -> Array {
        Array::build(dtype, &[1], |_| x)
    }

    #[test]
    fn what_differs_is_said() {
        let a = one(DType::F32, 1.0);
        assert_eq!(difference(&a, &a, EXACT), None);
        let near = one(DType::F32, 1.0 + f64::from(f32::EPSILON));
        assert_eq!(difference(&near, &a, EXACT), None);
        let far = one(DType::F32, 1.0 + 3.0 * f64::from(f32::EPSILON));
        assert!(difference(&far, &a, EXACT).is_some());
        assert!(difference(&one(DType::F64, 1.0), &a, EXACT).is_some_and(|d| d.contains("dtype")));
        assert!(difference(&one(DType::F32, f64::NAN), &a, EXACT).is_some());
        assert!(difference(&one(DType::F32, f64::INFINITY), &a, EXACT).is_some());
        let (max, inf) = (one(DType::F32, f64::from(f32::MAX)), one(DType::F32, f64::INFINITY));
        assert_eq!(difference(&max, &inf, EXACT), None);
    }
}
