//! The rules of optimizers: which tensors each keeps beside a parameter, its numbers, and what it
//! does to one element. `mod.rs` has what is the same for all, `blocks.rs` the loop. The CUDA twin
//! is `cuda/kernels/optim.cu`.

use plimsoll_engine::real::Real;

/// Tensors that a rule may keep beside a parameter.
pub const MOST_STATES: usize = 3;

/// Numbers that a rule may have.
pub const MOST_NUMBERS: usize = 6;

/// Factors that the elements of a parameter may use.
pub(super) const MOST_FACTORS: usize = 8;

/// Where a parameter's training is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct At {
    /// Steps that were taken, this one among them.
    pub(super) step: f64,
    /// How far a step goes.
    pub(super) rate: f64,
    /// The product of all momenta so far, for NAdam.
    pub(super) product: f64,
}

/// What a rule does.
pub(super) trait Update<const STATES: usize, const FACTORS: usize>: Copy {
    /// What all elements of a parameter use.
    fn factors(&self, at: &At) -> [f64; FACTORS];
    /// The parameter's element after the step, from it and its gradient. Weight decay and direction
    /// are in them already. Implementations are `#[inline(always)]`.
    fn element<R: Real>(factors: [R; FACTORS], param: R, grad: R, state: &mut [R; STATES]) -> R;
}

/// Stochastic gradient descent. It keeps a momentum buffer, if it has momentum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// How much of the momentum buffer stays; 0 for no buffer.
    pub momentum: f64,
    /// How much of the gradient does not reach the buffer.
    pub dampening: f64,
    /// Whether the step looks ahead of the buffer.
    pub nesterov: bool,
    /// Whether the buffer has no values yet and becomes the gradient.
    pub first: bool,
}

impl Update<1, 5> for Sgd {
    fn factors(&self, at: &At) -> [f64; 5] {
        let [nesterov, first] = [self.nesterov, self.first].map(f64::from);
        [at.rate, self.momentum, 1.0 - self.dampening, nesterov, first]
    }

    #[inline(always)]
    fn element<R: Real>(factors: [R; 5], param: R, grad: R, state: &mut [R; 1]) -> R {
        let [rate, momentum, new, nesterov, first] = factors;
        let mut by = grad;
        if momentum != R::ZERO {
            let buffer = if first != R::ZERO { grad } else { state[0] * momentum + grad * new };
            state[0] = buffer;
            by = if nesterov != R::ZERO { grad + buffer * momentum } else { buffer };
        }
        param - rate * by
    }
}

/// Adam, and AdamW if the decay is decoupled. It keeps running means of the gradients and of their
/// squares, and with AMSGrad the largest of the latter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// How much of the running mean of gradients stays.
    pub beta1: f64,
    /// How much of the running mean of their squares stays.
    pub beta2: f64,
    /// Keeps the divisor away from 0.
    pub eps: f64,
    /// Whether the divisor is the largest running mean of squares so far.
    pub amsgrad: bool,
}

/// The running mean of a value after one more.
#[inline(always)]
fn mean<R: Real>(before: R, value: R, new: R) -> R {
    before + (value - before) * new
}

/// The larger one; a NaN if there is one.
#[inline(always)]
fn larger<R: Real>(a: R, b: R) -> R {
    if a > b || a.is_nan() { a } else { b }
}

/// -1, 0 or 1.
#[inline(always)]
fn sign<R: Real>(x: R) -> R {
    let above = if x > R::ZERO { R::ONE } else { R::ZERO };
    if x < R::ZERO { -R::ONE } else { above }
}

impl Update<3, 7> for Adam {
    fn factors(&self, at: &At) -> [f64; 7] {
        let correction = |beta: f64| 1.0 - beta.powf(at.step);
        let (root, size) = (correction(self.beta2).sqrt(), at.rate / correction(self.beta1));
        let amsgrad = f64::from(self.amsgrad);
        [1.0 - self.beta1, self.beta2, 1.0 - self.beta2, root, self.eps, size, amsgrad]
    }

    #[inline(always)]
    fn element<R: Real>(factors: [R; 7], param: R, grad: R, state: &mut [R; 3]) -> R {
        let [new1, beta2, new2, root, eps, size, amsgrad] = factors;
        state[0] = mean(state[0], grad, new1);
        state[1] = state[1] * beta2 + grad * grad * new2;
        let mut under = state[1];
        if amsgrad != R::ZERO {
            under = larger(state[2], under);
            state[2] = under;
        }
        param - size * (state[0] / (under.sqrt() / root + eps))
    }
}

/// Adam with Nesterov's momentum. It keeps running means of the gradients and of their squares, and
/// one number beside them: the product of all momenta.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NAdam {
    /// How much of the running mean of gradients stays.
    pub beta1: f64,
    /// How much of the running mean of their squares stays.
    pub beta2: f64,
    /// Keeps the divisor away from 0.
    pub eps: f64,
    /// How fast the momentum grows to `beta1`.
    pub momentum_decay: f64,
}

impl NAdam {
    /// The momentum at a step.
    pub(super) fn momentum(&self, step: f64) -> f64 {
        self.beta1 * (1.0 - 0.5 * 0.96f64.powf(step * self.momentum_decay))
    }
}

impl Update<2, 7> for NAdam {
    fn factors(&self, at: &At) -> [f64; 7] {
        let (now, next) = (self.momentum(at.step), self.momentum(at.step + 1.0));
        let of_grad = at.rate * (1.0 - now) / (1.0 - at.product);
        let of_mean = at.rate * next / (1.0 - at.product * next);
        let correction = 1.0 - self.beta2.powf(at.step);
        [1.0 - self.beta1, self.beta2, 1.0 - self.beta2, correction, self.eps, of_grad, of_mean]
    }

    #[inline(always)]
    fn element<R: Real>(factors: [R; 7], param: R, grad: R, state: &mut [R; 2]) -> R {
        let [new1, beta2, new2, correction, eps, of_grad, of_mean] = factors;
        state[0] = mean(state[0], grad, new1);
        state[1] = state[1] * beta2 + grad * grad * new2;
        let divisor = (state[1] / correction).sqrt() + eps;
        param - of_grad * (grad / divisor) - of_mean * (state[0] / divisor)
    }
}

/// Adam that takes plain steps until its running means can be trusted. It keeps running means of
/// the gradients and of their squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RAdam {
    /// How much of the running mean of gradients stays.
    pub beta1: f64,
    /// How much of the running mean of their squares stays.
    pub beta2: f64,
    /// Keeps the divisor away from 0.
    pub eps: f64,
}

impl Update<2, 6> for RAdam {
    fn factors(&self, at: &At) -> [f64; 6] {
        let left = self.beta2.powf(at.step);
        let size = at.rate / (1.0 - self.beta1.powf(at.step));
        // Lengths of the averages: the longest, and today's.
        let most = 2.0 / (1.0 - self.beta2) - 1.0;
        let length = most - 2.0 * at.step * left / (1.0 - left);
        let rectified = length > 5.0;
        let part = (length - 4.0) * (length - 2.0) * most;
        let whole = (most - 4.0) * (most - 2.0) * length;
        let by = if rectified { (1.0 - left).sqrt() * (part / whole).sqrt() } else { 1.0 };
        let new1 = 1.0 - self.beta1;
        [new1, self.beta2, 1.0 - self.beta2, self.eps, size * by, f64::from(rectified)]
    }

    #[inline(always)]
    fn element<R: Real>(factors: [R; 6], param: R, grad: R, state: &mut [R; 2]) -> R {
        let [new1, beta2, new2, eps, size, rectified] = factors;
        state[0] = mean(state[0], grad, new1);
        state[1] = state[1] * beta2 + grad * grad * new2;
        let divisor = if rectified != R::ZERO { state[1].sqrt() + eps } else { R::ONE };
        param - size * (state[0] / divisor)
    }
}

/// Steps that shrink with the sum of the squares of all gradients, which it keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adagrad {
    /// How much the learning rate falls with each step.
    pub lr_decay: f64,
    /// Keeps the divisor away from 0.
    pub eps: f64,
}

impl Update<1, 2> for Adagrad {
    fn factors(&self, at: &At) -> [f64; 2] {
        [at.rate / (1.0 + (at.step - 1.0) * self.lr_decay), self.eps]
    }

    #[inline(always)]
    fn element<R: Real>(factors: [R; 2], param: R, grad: R, state: &mut [R; 1]) -> R {
        let [rate, eps] = factors;
        state[0] = state[0] + grad * grad;
        param - rate * (grad / (state[0].sqrt() + eps))
    }
}

/// Steps in the measure of the steps before. It keeps running means of the gradients' squares and
/// of the steps' squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adadelta {
    /// How much of the running means stays.
    pub rho: f64,
    /// Keeps divisor and first steps away from 0.
    pub eps: f64,
}

impl Update<2, 4> for Adadelta {
    fn factors(&self, at: &At) -> [f64; 4] {
        [at.rate, self.rho, 1.0 - self.rho, self.eps]
    }

    #[inline(always)]
    fn element<R: Real>(factors: [R; 4], param: R, grad: R, state: &mut [R; 2]) -> R {
        let [rate, rho, new, eps] = factors;
        state[0] = state[0] * rho + grad * grad * new;
        let delta = (state[1] + eps).sqrt() / (state[0] + eps).sqrt() * grad;
        state[1] = state[1] * rho + delta * delta * new;
        param - rate * delta
    }
}

/// Steps divided by the root of the gradients' mean square. It keeps that mean, a momentum buffer
/// if it has momentum, and the mean of the gradients if it is centered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsProp {
    /// How much of the running means stays.
    pub alpha: f64,
    /// Keeps the divisor away from 0.
    pub eps: f64,
    /// How much of the momentum buffer stays; 0 for no buffer.
    pub momentum: f64,
    /// Whether the divisor is of the variance rather than of the mean square.
    pub centered: bool,
}

impl Update<3, 6> for RmsProp {
    fn factors(&self, at: &At) -> [f64; 6] {
        let centered = f64::from(self.centered);
        [at.rate, self.alpha, 1.0 - self.alpha, self.eps, self.momentum, centered]
    }

    #[inline(always)]
    fn element<R: Real>(factors: [R; 6], param: R, grad: R, state: &mut [R; 3]) -> R {
        let [rate, alpha, new, eps, momentum, centered] = factors;
        state[0] = state[0] * alpha + grad * grad * new;
        let mut under = state[0];
        if centered != R::ZERO {
            state[2] = mean(state[2], grad, new);
            under = under - state[2] * state[2];
        }
        let mut by = grad / (under.sqrt() + eps);
        if momentum != R::ZERO {
            by = state[1] * momentum + by;
            state[1] = by;
        }
        param - rate * by
    }
}

/// Steps by the sign of the gradient alone. It keeps the last gradient and the size of each
/// element's step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rprop {
    /// What a step's size is multiplied by where the gradient changed its sign.
    pub eta_minus: f64,
    /// What a step's size is multiplied by where it did not.
    pub eta_plus: f64,
    /// The smallest step.
    pub step_size_min: f64,
    /// The largest step.
    pub step_size_max: f64,
}

impl Update<2, 4> for Rprop {
    fn factors(&self, _at: &At) -> [f64; 4] {
        [self.eta_minus, self.eta_plus, self.step_size_min, self.step_size_max]
    }

    #[inline(always)]
    fn element<R: Real>(factors: [R; 4], param: R, grad: R, state: &mut [R; 2]) -> R {
        let [minus, plus, least, most] = factors;
        let turn = grad * state[0];
        let turned = turn < R::ZERO;
        let grown = if turn > R::ZERO { state[1] * plus } else { state[1] };
        let size = if turned { state[1] * minus } else { grown };
        let size = if size < least { least } else { size };
        state[1] = if size > most { most } else { size };
        state[0] = if turned { R::ZERO } else { grad };
        param - sign(state[0]) * state[1]
    }
}

/// Adam with the largest gradient in place of the mean square. It keeps the running mean of
/// gradients and their largest magnitude, which fades.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adamax {
    /// How much of the running mean of gradients stays.
    pub beta1: f64,
    /// How much of the largest magnitude stays.
    pub beta2: f64,
    /// Keeps the divisor away from 0.
    pub eps: f64,
}

impl Update<2, 4> for Adamax {
    fn factors(&self, at: &At) -> [f64; 4] {
        let size = at.rate / (1.0 - self.beta1.powf(at.step));
        [size, 1.0 - self.beta1, self.beta2, self.eps]
    }

    #[inline(always)]
    fn element<R: Real>(factors: [R; 4], param: R, grad: R, state: &mut [R; 2]) -> R {
        let [size, new1, beta2, eps] = factors;
        state[0] = mean(state[0], grad, new1);
        state[1] = larger(state[1] * beta2, grad.abs() + eps);
        param - size * (state[0] / state[1])
    }
}

/// Steps by the sign of a running mean of gradients, which it keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lion {
    /// How much of the running mean the step's direction has.
    pub beta1: f64,
    /// How much of the running mean stays.
    pub beta2: f64,
}

impl Update<1, 5> for Lion {
    fn factors(&self, at: &At) -> [f64; 5] {
        [at.rate, self.beta1, 1.0 - self.beta1, self.beta2, 1.0 - self.beta2]
    }

    #[inline(always)]
    fn element<R: Real>(factors: [R; 5], param: R, grad: R, state: &mut [R; 1]) -> R {
        let [rate, beta1, new1, beta2, new2] = factors;
        let by = sign(state[0] * beta1 + grad * new1);
        state[0] = state[0] * beta2 + grad * new2;
        param - rate * by
    }
}
