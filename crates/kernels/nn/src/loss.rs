//! Losses that compare each element with its target, and their slopes: the derivative by the input
//! times the incoming gradient, in one pass.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::{Error, Result};

use plimsoll_engine::CpuLaunch;
use plimsoll_engine::chunked::{Argument, Body, run};
use plimsoll_engine::real::Real;
use plimsoll_engine::simd::Level;

/// The losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// The square of the difference.
    Mse,
    /// The difference's size; below this number a parabola.
    SmoothL1(f64),
    /// Half the square of the difference; above this number a line.
    Huber(f64),
    /// Minus the log-likelihood of a probability.
    BinaryCrossEntropy,
    /// The same of a logit.
    BinaryCrossEntropyWithLogits,
}

/// The least that a logarithm counts for, so that a certain mistake is not infinite.
const LEAST_LOG: f64 = -100.0;

/// The natural logarithm of 1 + x: what rounding 1 + x loses is put back as a factor.
#[inline(always)]
fn log1p<L: Level, R: Real>(x: R) -> R {
    let sum = R::ONE + x;
    if sum == R::ONE || sum == R::INFINITY { x } else { sum.ln::<L>() * (x / (sum - R::ONE)) }
}

#[inline(always)]
fn size<R: Real>(x: R) -> R {
    if x < R::ZERO { -x } else { x }
}

/// `x`, or `least` if that is more. NaN stays.
#[inline(always)]
fn at_least<R: Real>(x: R, least: R) -> R {
    if x < least { least } else { x }
}

#[derive(Clone, Copy)]
struct Value<'a> {
    loss: Loss,
    outside: &'a AtomicBool,
}

impl Body<2> for Value<'_> {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [x, target]: [R; 2]) -> R {
        let half = R::of(0.5);
        let distance = size(x - target);
        match self.loss {
            Loss::Mse => (x - target) * (x - target),
            Loss::SmoothL1(beta) => {
                let beta = R::of(beta);
                if distance < beta {
                    half * distance * distance / beta
                } else {
                    distance - half * beta
                }
            }
            Loss::Huber(delta) => {
                let delta = R::of(delta);
                if distance <= delta {
                    half * distance * distance
                } else {
                    delta * (distance - half * delta)
                }
            }
            Loss::BinaryCrossEntropy => {
                if !(x >= R::ZERO && x <= R::ONE) {
                    self.outside.store(true, Ordering::Relaxed);
                }
                let least = R::of(LEAST_LOG);
                let no = at_least(log1p::<L, R>(-x), least);
                (target - R::ONE) * no - target * at_least(x.ln::<L>(), least)
            }
            Loss::BinaryCrossEntropyWithLogits => {
                let rest = log1p::<L, R>((-size(x)).exp::<L>());
                (R::ONE - target) * x + (rest + at_least(-x, R::ZERO))
            }
        }
    }

    fn whole(self, _x: [i64; 2]) -> i64 {
        0
    }
}

#[derive(Clone, Copy)]
struct Slope(Loss);

impl Body<3> for Slope {
    #[inline(always)]
    fn real<L: Level, R: Real>(self, [grad, x, target]: [R; 3]) -> R {
        let difference = x - target;
        match self.0 {
            Loss::Mse => R::of(2.0) * difference * grad,
            Loss::SmoothL1(beta) => {
                let beta = R::of(beta);
                if difference <= -beta {
                    -grad
                } else if difference >= beta {
                    grad
                } else {
                    difference * grad / beta
                }
            }
            Loss::Huber(delta) => {
                let delta = R::of(delta);
                if difference <= -delta {
                    -delta * grad
                } else if difference >= delta {
                    delta * grad
                } else {
                    difference * grad
                }
            }
            Loss::BinaryCrossEntropy => {
                grad * difference / at_least((R::ONE - x) * x, R::of(1e-12))
            }
            Loss::BinaryCrossEntropyWithLogits => {
                (R::ONE / (R::ONE + (-x).exp::<L>()) - target) * grad
            }
        }
    }

    fn whole(self, _x: [i64; 3]) -> i64 {
        0
    }
}

/// [x, target] -> the loss of each element.
pub fn loss(launch: &CpuLaunch<'_>, loss: Loss) -> Result<()> {
    let outside = AtomicBool::new(false);
    let body = Value { loss, outside: &outside };
    run(launch, [Argument::Input(0), Argument::Input(1)], body)?;
    if outside.load(Ordering::Relaxed) {
        return Err(Error::invalid_argument(
            "the input must be probabilities, from 0 to 1; of logits take \
             binary_cross_entropy_with_logits",
        )
        .in_operation(launch.operation));
    }
    Ok(())
}

/// [grad, x, target] -> the gradient of x.
pub fn loss_backward(launch: &CpuLaunch<'_>, loss: Loss) -> Result<()> {
    run(launch, [Argument::Input(0), Argument::Input(1), Argument::Input(2)], Slope(loss))
}
