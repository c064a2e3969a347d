//! Functions of one element and their fused derivatives. Float-only functions compute in f32 or f64
//! (`real.rs`); `neg`, `abs`, `sign` and `relu` also take integers.
//!
//! In-place use (output and input the same view) is fine for all of them.

use plimsoll_core::Result;

use crate::on::On;
use plimsoll_engine::CpuLaunch;
use plimsoll_engine::input_dtype;
use plimsoll_engine::map::{Map1, Map2, map1, map2};
use plimsoll_engine::match_dtype;
use plimsoll_engine::match_float;
use plimsoll_engine::match_number;
use plimsoll_engine::number::Number;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::Level;

/// A function of a real number.
trait RealMap: Copy + Sync {
    fn call<L: Level, R: Real>(self, x: R) -> R;
}

#[derive(Clone, Copy)]
struct OfReal<F>(F);

impl<F: RealMap, T: Float> Map1 for On<OfReal<F>, T> {
    type A = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, a: T) -> T {
        T::narrow(self.0.0.call::<L, T::Wide>(a.widen()))
    }
}

/// Declares `pub(crate) fn $name(launch)` for a real function.
macro_rules! float_unary {
    ($(#[$doc:meta])* $name:ident, $marker:ident, |$L:ident, $R:ident, $x:ident| $value:expr) => {
        #[derive(Clone, Copy)]
        struct $marker;
        impl RealMap for $marker {
            #[inline(always)]
            fn call<$L: Level, $R: Real>(self, $x: $R) -> $R {
                $value
            }
        }
        $(#[$doc])*
        pub fn $name(launch: &CpuLaunch<'_>) -> Result<()> {
            match_float!(launch, input_dtype(launch)?, T => {
                map1(launch, On::<_, T>::new(OfReal($marker)))
            })
        }
    };
}

float_unary!(
    /// e to the power of x.
    exp, Exp, |L, R, x| x.exp::<L>()
);
float_unary!(
    /// The natural logarithm.
    log, Log, |L, R, x| x.ln::<L>()
);
float_unary!(
    /// The natural logarithm of 1 + x, exact for small x: what rounding 1 + x loses is put back as
    /// a factor.
    log1p, Log1p, |L, R, x| log1p_of::<L, R>(x)
);
float_unary!(
    /// The hyperbolic tangent.
    tanh, Tanh, |L, R, x| x.tanh::<L>()
);
float_unary!(
    /// The error function.
    erf, Erf, |L, R, x| x.erf::<L>()
);
float_unary!(
    /// The square root.
    sqrt, Sqrt, |L, R, x| x.sqrt()
);
float_unary!(
    /// 1 / sqrt(x).
    rsqrt, Rsqrt, |L, R, x| R::ONE / x.sqrt()
);
float_unary!(
    /// 1 / x.
    reciprocal, Reciprocal, |L, R, x| R::ONE / x
);
float_unary!(
    /// 1 / (1 + exp(-x)).
    sigmoid, Sigmoid, |L, R, x| R::ONE / (R::ONE + (-x).exp::<L>())
);
float_unary!(
    /// x times the normal distribution function of x.
    gelu, Gelu, |L, R, x| x * normal_cdf::<L, R>(x)
);
float_unary!(
    /// [`gelu`]'s approximation by tanh.
    gelu_tanh, GeluTanh, |L, R, x| {
        let half = x * R::of(0.5);
        half.mul_add::<L>(gelu_inner::<L, R>(x).tanh::<L>(), half)
    }
);

/// The natural logarithm of 1 + x.
#[inline(always)]
pub(crate) fn log1p_of<L: Level, R: Real>(x: R) -> R {
    let sum = R::ONE + x;
    if sum == R::ONE || sum == R::INFINITY { x } else { sum.ln::<L>() * (x / (sum - R::ONE)) }
}

/// (1 + erf(x / sqrt 2)) / 2.
#[inline(always)]
fn normal_cdf<L: Level, R: Real>(x: R) -> R {
    let half = R::of(0.5);
    (x * R::of(std::f64::consts::FRAC_1_SQRT_2)).erf::<L>().mul_add::<L>(half, half)
}

/// sqrt(2 / pi).
const SQRT_2_OVER_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
/// The cubic coefficient of gelu's approximation.
const GELU_CUBIC: f64 = 0.044_715;

/// sqrt(2 / pi) (x + 0.044715 x^3).
#[inline(always)]
fn gelu_inner<L: Level, R: Real>(x: R) -> R {
    let slope = (x * x).mul_add::<L>(R::of(SQRT_2_OVER_PI * GELU_CUBIC), R::of(SQRT_2_OVER_PI));
    x * slope
}

#[derive(Clone, Copy)]
struct Neg;
#[derive(Clone, Copy)]
struct Abs;
#[derive(Clone, Copy)]
struct Sign;
#[derive(Clone, Copy)]
struct Relu;

impl<T: Number> Map1 for On<Relu, T> {
    type A = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, a: T) -> T {
        // A NaN is not below anything and stays; so does -0, which PyTorch's vector path also
        // keeps.
        if a.below(T::ZERO) { T::ZERO } else { a }
    }
}

impl<T: Number> Map1 for On<Neg, T> {
    type A = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, a: T) -> T {
        // -0.0 - a would be right for floats, but not for integers; a product is for both.
        a.times(T::from_number(-1i64))
    }
}

impl<T: Number> Map1 for On<Abs, T> {
    type A = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, a: T) -> T {
        // For floats by way of their sign bit, so that -0 and NaN lose theirs.
        if T::DTYPE.is_float() {
            T::from_number(a.as_f64().abs())
        } else if a.below(T::ZERO) {
            T::ZERO.minus(a)
        } else {
            a
        }
    }
}

impl<T: Number> Map1 for On<Sign, T> {
    type A = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, a: T) -> T {
        let positive = if T::ZERO.below(a) { T::ONE } else { T::ZERO };
        let negative = if a.below(T::ZERO) { T::ONE } else { T::ZERO };
        positive.minus(negative)
    }
}

/// max(x, 0); a NaN stays.
pub fn relu(launch: &CpuLaunch<'_>) -> Result<()> {
    match_number!(launch, input_dtype(launch)?, T => map1(launch, On::<_, T>::new(Relu)))
}

/// -x; integers wrap.
pub fn neg(launch: &CpuLaunch<'_>) -> Result<()> {
    match_number!(launch, input_dtype(launch)?, T => map1(launch, On::<_, T>::new(Neg)))
}

/// |x|; the smallest integer stays itself.
pub fn abs(launch: &CpuLaunch<'_>) -> Result<()> {
    match_number!(launch, input_dtype(launch)?, T => map1(launch, On::<_, T>::new(Abs)))
}

/// -1, 0 or 1; 0 for a NaN. A bool is its own sign.
pub fn sign(launch: &CpuLaunch<'_>) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => map1(launch, On::<_, T>::new(Sign)))
}

/// A function of a gradient and one saved value.
trait RealMap2: Copy + Sync {
    fn call<L: Level, R: Real>(self, grad: R, saved: R) -> R;
}

#[derive(Clone, Copy)]
struct Fused<F>(F);

impl<F: RealMap2, T: Float> Map2 for On<Fused<F>, T> {
    type A = T;
    type B = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, a: T, b: T) -> T {
        T::narrow(self.0.0.call::<L, T::Wide>(a.widen(), b.widen()))
    }
}

/// Declares `pub(crate) fn $name(launch)` for a derivative, with inputs [grad, saved].
macro_rules! float_backward {
    ($(#[$doc:meta])* $name:ident, $marker:ident, |$L:ident, $R:ident, $grad:ident, $saved:ident| $value:expr) => {
        #[derive(Clone, Copy)]
        struct $marker;
        impl RealMap2 for $marker {
            #[inline(always)]
            fn call<$L: Level, $R: Real>(self, $grad: $R, $saved: $R) -> $R {
                $value
            }
        }
        $(#[$doc])*
        pub fn $name(launch: &CpuLaunch<'_>) -> Result<()> {
            match_float!(launch, input_dtype(launch)?, T => {
                map2(launch, On::<_, T>::new(Fused($marker)))
            })
        }
    };
}

float_backward!(
    /// [grad, relu(x)] -> 0 where the result is 0, else grad (for a NaN too, as in PyTorch).
    relu_backward, ReluBackward, |L, R, grad, out| if out <= R::ZERO { R::ZERO } else { grad }
);
float_backward!(
    /// [grad, tanh(x)] -> grad (1 - tanh(x)^2).
    tanh_backward, TanhBackward, |L, R, grad, out| grad * (R::ONE - out * out)
);
float_backward!(
    /// [grad, sigmoid(x)] -> grad sigmoid(x) (1 - sigmoid(x)).
    sigmoid_backward, SigmoidBackward, |L, R, grad, out| grad * out * (R::ONE - out)
);
float_backward!(
    /// [grad, x] -> grad times gelu's derivative: cdf(x) + x pdf(x).
    gelu_backward_erf, GeluBackward, |L, R, grad, x| {
        let density = (x * x * R::of(-0.5)).exp::<L>()
            * R::of(std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2 * 0.5);
        grad * x.mul_add::<L>(density, normal_cdf::<L, R>(x))
    }
);
float_backward!(
    /// [grad, x] -> grad times the derivative of gelu's approximation.
    gelu_backward_tanh, GeluTanhBackward, |L, R, grad, x| {
        let t = gelu_inner::<L, R>(x).tanh::<L>();
        let half = R::of(0.5);
        let slope = (x * x)
            .mul_add::<L>(R::of(3.0 * SQRT_2_OVER_PI * GELU_CUBIC), R::of(SQRT_2_OVER_PI));
        let inside = (R::ONE - t * t) * slope * x * half;
        grad * (t.mul_add::<L>(half, half) + inside)
    }
);

/// [grad, x] -> grad times gelu's derivative, for the exact form or (`tanh`) its approximation.
pub fn gelu_backward(launch: &CpuLaunch<'_>, tanh: bool) -> Result<()> {
    if tanh { gelu_backward_tanh(launch) } else { gelu_backward_erf(launch) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_engine::math64;
    use plimsoll_engine::simd::ScalarLevel;
    use plimsoll_engine::testing::{FLOATS, NUMBERS, check_binary, check_binary_of, check_unary};

    fn erf64(x: f64) -> f64 {
        math64::erf::<ScalarLevel>(x)
    }

    fn cdf(x: f64) -> f64 {
        0.5 * (1.0 + erf64(x / 2f64.sqrt()))
    }

    #[test]
    fn float_functions_agree_with_f64() {
        check_unary("exp", &FLOATS, 0.0, exp, f64::exp);
        check_unary("log", &FLOATS, 0.0, log, f64::ln);
        check_unary("tanh", &FLOATS, 0.0, tanh, f64::tanh);
        check_unary("erf", &FLOATS, 0.0, erf, erf64);
        check_unary("sqrt", &FLOATS, 0.0, sqrt, f64::sqrt);
        check_unary("rsqrt", &FLOATS, 0.0, rsqrt, |x| 1.0 / x.sqrt());
        check_unary("reciprocal", &FLOATS, 0.0, reciprocal, |x| 1.0 / x);
        check_unary("sigmoid", &FLOATS, 1e-12, sigmoid, |x| 1.0 / (1.0 + (-x).exp()));
    }

    #[test]
    fn gelus_agree_with_f64() {
        // Far on the left the exact form loses digits to 1 + erf, as PyTorch's does.
        check_unary("gelu", &FLOATS, 1e-6, gelu, |x| x * cdf(x));
        check_unary("gelu_tanh", &FLOATS, 1e-6, gelu_tanh, |x| {
            0.5 * x * (1.0 + (SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x)).tanh())
        });
    }

    #[test]
    fn number_functions_agree_with_f64() {
        check_unary("relu", &NUMBERS, 0.0, relu, |x| if x < 0.0 { 0.0 } else { x });
        check_unary("neg", &NUMBERS, 0.0, neg, |x| -x);
        check_unary("abs", &NUMBERS, 0.0, abs, f64::abs);
        check_unary("sign", &NUMBERS, 0.0, sign, |x| f64::from(x > 0.0) - f64::from(x < 0.0));
    }

    #[test]
    fn derivatives_agree_with_f64() {
        let same = |dtype| dtype;
        check_binary("relu_backward", &FLOATS, 0.0, same, relu_backward, |g, y| {
            if y <= 0.0 { 0.0 } else { g }
        });
        check_binary("tanh_backward", &FLOATS, 1e-5, same, tanh_backward, |g, y| g * (1.0 - y * y));
        check_binary("sigmoid_backward", &FLOATS, 1e-5, same, sigmoid_backward, |g, y| {
            g * y * (1.0 - y)
        });
        let exact = |launch: &CpuLaunch<'_>| gelu_backward(launch, false);
        // Without specials: an infinite gradient times a derivative that underflows is NaN, not
        // infinite.
        check_binary_of(false, "gelu_backward", &FLOATS, 3e-5, same, exact, |g, x| {
            g * (cdf(x) + x * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt())
        });
        let approximate = |launch: &CpuLaunch<'_>| gelu_backward(launch, true);
        check_binary_of(false, "gelu_backward_tanh", &FLOATS, 3e-5, same, approximate, |g, x| {
            let t = (SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x)).tanh();
            let slope = SQRT_2_OVER_PI * (1.0 + 3.0 * GELU_CUBIC * x * x);
            g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)
        });
    }

    #[test]
    fn a_dtype_without_a_kernel_is_an_error() {
        use plimsoll_core::DType;
        use plimsoll_engine::testing::{Held, launch};
        let x = Held::of(DType::I64, &[2], &[1.0, 2.0]);
        let mut out = [x.clone()];
        assert!(launch(&[&x], &mut out, 0, exp).unwrap_err().is_dtype());
        assert!(launch(&[], &mut out, 0, exp).unwrap_err().is_invalid_argument());
    }
}
