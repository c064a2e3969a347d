//! Activations of networks with their host numbers, and their fused derivatives, which take [grad,
//! saved]. Those without numbers that are older (`relu`, `gelu`, `sigmoid`, `tanh`) are in
//! `unary.rs`.

use plimsoll_core::Result;

use crate::unary::log1p_of;
use plimsoll_engine::CpuLaunch;
use plimsoll_engine::chunked::{Argument, Body, run, run_floats};
use plimsoll_engine::real::Real;
use plimsoll_engine::simd::Level;

/// Declares `pub fn $name(launch, numbers..)` for a function of floats: of one input, or of a
/// gradient and what was saved.
macro_rules! activation {
    (
        $(#[$doc:meta])*
        $name:ident, $marker:ident($($number:ident),*), |$L:ident, $R:ident, $x:ident| $value:expr
    ) => {
        activation!(@body $marker($($number),*), 1, $L, $R, [$x], $value);
        $(#[$doc])*
        pub fn $name(launch: &CpuLaunch<'_> $(, $number: f64)*) -> Result<()> {
            run_floats(launch, [Argument::Input(0)], $marker { $($number),* })
        }
    };
    (
        $(#[$doc:meta])*
        $name:ident, $marker:ident($($number:ident),*),
        |$L:ident, $R:ident, $grad:ident, $x:ident| $value:expr
    ) => {
        activation!(@body $marker($($number),*), 2, $L, $R, [$grad, $x], $value);
        $(#[$doc])*
        pub fn $name(launch: &CpuLaunch<'_> $(, $number: f64)*) -> Result<()> {
            run_floats(launch, [Argument::Input(0), Argument::Input(1)], $marker { $($number),* })
        }
    };
    (@body $marker:ident($($number:ident),*), $n:literal, $L:ident, $R:ident, $x:tt, $value:expr) => {
        #[derive(Clone, Copy)]
        struct $marker {
            $($number: f64),*
        }
        impl Body<$n> for $marker {
            #[inline(always)]
            fn real<$L: Level, $R: Real>(self, $x: [$R; $n]) -> $R {
                $(let $number = $R::of(self.$number);)*
                $value
            }
        }
    };
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
fn sigmoid<L: Level, R: Real>(x: R) -> R {
    R::ONE / (R::ONE + (-x).exp::<L>())
}

/// `exp(x) - 1` for x up to 0, exact near 0.
#[inline(always)]
fn expm1<L: Level, R: Real>(x: R) -> R {
    let t = (x * R::of(0.5)).tanh::<L>();
    (t + t) / (R::ONE - t)
}

/// `log(1 + exp(x))`.
#[inline(always)]
fn softplus_of<L: Level, R: Real>(x: R) -> R {
    let above = if x > R::ZERO { x } else { R::ZERO };
    above + log1p_of::<L, R>((-x.abs()).exp::<L>())
}

/// x between both bounds; a NaN stays.
#[inline(always)]
fn between<R: Real>(x: R, low: f64, high: f64) -> R {
    let x = if x < R::of(low) { R::of(low) } else { x };
    if x > R::of(high) { R::of(high) } else { x }
}

activation!(
    /// x sigmoid(x).
    silu, Silu(), |L, R, x| x / (R::ONE + (-x).exp::<L>())
);
activation!(
    /// [grad, x] -> grad times silu's derivative.
    silu_backward, SiluBackward(), |L, R, grad, x| {
        let s = sigmoid::<L, R>(x);
        grad * s * (R::ONE + x * (R::ONE - s))
    }
);
activation!(
    /// x tanh(log(1 + exp(x))).
    mish, Mish(), |L, R, x| x * softplus_of::<L, R>(x).tanh::<L>()
);
activation!(
    /// [grad, x] -> grad times mish's derivative.
    mish_backward, MishBackward(), |L, R, grad, x| {
        let t = softplus_of::<L, R>(x).tanh::<L>();
        grad * (t + x * sigmoid::<L, R>(x) * (R::ONE - t * t))
    }
);
activation!(
    /// log(1 + exp(beta x)) / beta, or x itself where beta x is above the threshold.
    softplus, Softplus(beta, threshold), |L, R, x| {
        let scaled = x * beta;
        if scaled > threshold { x } else { softplus_of::<L, R>(scaled) / beta }
    }
);
activation!(
    /// [grad, x] -> grad times softplus's derivative.
    softplus_backward, SoftplusBackward(beta, threshold), |L, R, grad, x| {
        let scaled = x * beta;
        if scaled > threshold { grad } else { grad * sigmoid::<L, R>(scaled) }
    }
);
activation!(
    /// The logarithm of sigmoid(x).
    logsigmoid, Logsigmoid(), |L, R, x| -softplus_of::<L, R>(-x)
);
activation!(
    /// [grad, x] -> grad times logsigmoid's derivative.
    logsigmoid_backward, LogsigmoidBackward(), |L, R, grad, x| grad * sigmoid::<L, R>(-x)
);
activation!(
    /// `scale x` above 0, `scale alpha (exp(input_scale x) - 1)` elsewhere.
    elu, Elu(alpha, scale, input_scale), |L, R, x| if x > R::ZERO {
        x * scale
    } else {
        expm1::<L, R>(x * input_scale) * alpha * scale
    }
);
activation!(
    /// [grad, x] -> grad times elu's derivative.
    elu_backward, EluBackward(alpha, scale, input_scale), |L, R, grad, x| if x <= R::ZERO {
        grad * input_scale * alpha * scale * (x * input_scale).exp::<L>()
    } else {
        grad * scale
    }
);
activation!(
    /// x above 0, `slope x` elsewhere.
    leaky_relu, LeakyRelu(slope), |L, R, x| if x > R::ZERO { x } else { x * slope }
);
activation!(
    /// [grad, x] -> grad times leaky_relu's derivative.
    leaky_relu_backward, LeakyReluBackward(slope),
    |L, R, grad, x| if x > R::ZERO { grad } else { grad * slope }
);
activation!(
    /// [grad, x] -> grad strictly between both bounds, else 0.
    hardtanh_backward, HardtanhBackward(low, high),
    |L, R, grad, x| if x <= low || x >= high { R::ZERO } else { grad }
);
activation!(
    /// (x + 3) / 6 between 0 and 1.
    hardsigmoid, Hardsigmoid(), |L, R, x| between(x + R::of(3.0), 0.0, 6.0) / R::of(6.0)
);
activation!(
    /// [grad, x] -> grad times hardsigmoid's derivative.
    hardsigmoid_backward, HardsigmoidBackward(),
    |L, R, grad, x| if x > R::of(-3.0) && x < R::of(3.0) { grad / R::of(6.0) } else { R::ZERO }
);
activation!(
    /// x hardsigmoid(x).
    hardswish, Hardswish(), |L, R, x| x * between(x + R::of(3.0), 0.0, 6.0) / R::of(6.0)
);
activation!(
    /// [grad, x] -> grad times hardswish's derivative.
    hardswish_backward, HardswishBackward(), |L, R, grad, x| if x <= R::of(-3.0) {
        R::ZERO
    } else if x < R::of(3.0) {
        grad * (x / R::of(3.0) + R::of(0.5))
    } else {
        grad
    }
);
activation!(
    /// x, or 0 where it is within `lambd` of 0.
    hardshrink, Hardshrink(lambd), |L, R, x| if x >= -lambd && x <= lambd { R::ZERO } else { x }
);
activation!(
    /// [grad, x] -> grad, or 0 where x is within `lambd` of 0: of hardshrink and of softshrink.
    shrink_backward, ShrinkBackward(lambd),
    |L, R, grad, x| if x >= -lambd && x <= lambd { R::ZERO } else { grad }
);
activation!(
    /// x brought nearer to 0 by `lambd`, and no further.
    softshrink, Softshrink(lambd), |L, R, x| if x > lambd {
        x - lambd
    } else if x < -lambd {
        x + lambd
    } else {
        // 0, and a NaN for one.
        x * R::ZERO
    }
);

/// x, or another value where it is not above a threshold.
#[derive(Clone, Copy)]
struct Threshold {
    threshold: f64,
    value: f64,
}

impl Body<1> for Threshold {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [x]: [R; 1]) -> R {
        if x <= R::of(self.threshold) { R::of(self.value) } else { x }
    }

    #[inline(always)]
    fn whole(self, [x]: [i64; 1]) -> i64 {
        // As the dtype's own numbers, which is how PyTorch compares.
        if x <= self.threshold as i64 { self.value as i64 } else { x }
    }
}

/// `[x]` -> x, or `value` where x is not above `threshold`.
pub fn threshold(launch: &CpuLaunch<'_>, threshold: f64, value: f64) -> Result<()> {
    run(launch, [Argument::Input(0)], Threshold { threshold, value })
}

activation!(
    /// [grad, x] -> grad, or 0 where x is not above `threshold`.
    threshold_backward, ThresholdBackward(threshold),
    |L, R, grad, x| if x <= threshold { R::ZERO } else { grad }
);

/// x above 0, weight x elsewhere.
#[derive(Clone, Copy)]
struct Prelu;

impl Body<2> for Prelu {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [x, weight]: [R; 2]) -> R {
        if x > R::ZERO { x } else { weight * x }
    }
}

/// `[x, weight]` -> x above 0, weight x elsewhere.
pub fn prelu(launch: &CpuLaunch<'_>) -> Result<()> {
    run_floats(launch, [Argument::Input(0), Argument::Input(1)], Prelu)
}
