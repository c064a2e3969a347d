//! Steps of optimizers, element by element, as their papers write them.

use plimsoll_tensor::optimizers::{OptimizerRule, StepOptions};

/// One element of a parameter with what an optimizer keeps beside it.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// The parameter.
    pub param: f64,
    /// What is kept, in the order of `OptimizerRule::states` with gaps.
    pub kept: [f64; 3],
    /// The product of all momenta, for NAdam.
    pub product: f64,
}

impl Element {
    /// Step `t`, counted from 1, with gradient `g`.
    pub fn step(&mut self, rule: &OptimizerRule, options: &StepOptions<'_>, t: i32, g: f64) {
        let lr = options.lr;
        let mut g = if options.maximize { -g } else { g };
        if options.decoupled_weight_decay {
            self.param -= lr * options.weight_decay * self.param;
        } else {
            g += options.weight_decay * self.param;
        }
        self.param -= match rule {
            OptimizerRule::Sgd(rule) if rule.momentum == 0.0 => lr * g,
            OptimizerRule::Sgd(rule) => {
                let buffer = &mut self.kept[0];
                *buffer = match rule.first {
                    true => g,
                    false => rule.momentum * *buffer + (1.0 - rule.dampening) * g,
                };
                lr * if rule.nesterov { g + rule.momentum * *buffer } else { *buffer }
            }
            OptimizerRule::Adagrad(rule) => {
                self.kept[0] += g * g;
                let slower = 1.0 + f64::from(t - 1) * rule.lr_decay;
                lr / slower * g / (self.kept[0].sqrt() + rule.eps)
            }
            OptimizerRule::Adadelta(rule) => {
                let [squares, deltas, _] = &mut self.kept;
                *squares = rule.rho * *squares + (1.0 - rule.rho) * g * g;
                let delta = ((*deltas + rule.eps) / (*squares + rule.eps)).sqrt() * g;
                *deltas = rule.rho * *deltas + (1.0 - rule.rho) * delta * delta;
                lr * delta
            }
            OptimizerRule::RmsProp(rule) => {
                let [squares, buffer, mean] = &mut self.kept;
                *squares = rule.alpha * *squares + (1.0 - rule.alpha) * g * g;
                let mut variance = *squares;
                if rule.centered {
                    *mean = rule.alpha * *mean + (1.0 - rule.alpha) * g;
                    variance -= mean.powi(2);
                }
                let mut by = g / (variance.sqrt() + rule.eps);
                if rule.momentum > 0.0 {
                    *buffer = rule.momentum * *buffer + by;
                    by = *buffer;
                }
                lr * by
            }
            OptimizerRule::Rprop(rule) => {
                let [before, size, _] = &mut self.kept;
                let turn = g * *before;
                let factor = match turn {
                    turn if turn > 0.0 => rule.eta_plus,
                    turn if turn < 0.0 => rule.eta_minus,
                    _ => 1.0,
                };
                *size = (*size * factor).clamp(rule.step_size_min, rule.step_size_max);
                *before = if turn < 0.0 { 0.0 } else { g };
                if *before == 0.0 { 0.0 } else { before.signum() * *size }
            }
            OptimizerRule::Lion(rule) => {
                let mean = &mut self.kept[0];
                let by = rule.beta1 * *mean + (1.0 - rule.beta1) * g;
                *mean = rule.beta2 * *mean + (1.0 - rule.beta2) * g;
                if by == 0.0 { 0.0 } else { lr * by.signum() }
            }
            rule => lr * self.adaptive(rule, t, g),
        };
    }

    /// What the family of Adam goes by, in units of the learning rate.
    fn adaptive(&mut self, rule: &OptimizerRule, t: i32, g: f64) -> f64 {
        let (beta1, beta2, eps) = match rule {
            OptimizerRule::Adam(rule) => (rule.beta1, rule.beta2, rule.eps),
            OptimizerRule::NAdam(rule) => (rule.beta1, rule.beta2, rule.eps),
            OptimizerRule::RAdam(rule) => (rule.beta1, rule.beta2, rule.eps),
            OptimizerRule::Adamax(rule) => (rule.beta1, rule.beta2, rule.eps),
            other => panic!("{other:?} is not of this family"),
        };
        let [mean, square, largest] = &mut self.kept;
        *mean = beta1 * *mean + (1.0 - beta1) * g;
        let unbiased = *mean / (1.0 - beta1.powi(t));
        if let OptimizerRule::Adamax(_) = rule {
            *square = (beta2 * *square).max(g.abs() + eps);
            return unbiased / *square;
        }
        *square = beta2 * *square + (1.0 - beta2) * g * g;
        let spread = (*square / (1.0 - beta2.powi(t))).sqrt();
        match rule {
            OptimizerRule::Adam(rule) if rule.amsgrad => {
                *largest = largest.max(*square);
                unbiased / ((*largest / (1.0 - beta2.powi(t))).sqrt() + eps)
            }
            OptimizerRule::NAdam(rule) => {
                let decay = |t: i32| 0.96f64.powf(f64::from(t) * rule.momentum_decay);
                let momentum = |t: i32| beta1 * (1.0 - decay(t) / 2.0);
                self.product *= momentum(t);
                let of_mean = momentum(t + 1) * *mean / (1.0 - self.product * momentum(t + 1));
                let of_grad = (1.0 - momentum(t)) * g / (1.0 - self.product);
                (of_mean + of_grad) / (spread + eps)
            }
            OptimizerRule::RAdam(_) => {
                let longest = 2.0 / (1.0 - beta2) - 1.0;
                let left = beta2.powi(t);
                let length = longest - 2.0 * f64::from(t) * left / (1.0 - left);
                if length <= 5.0 {
                    return unbiased;
                }
                let now = (length - 4.0) * (length - 2.0) / length;
                let at_last = (longest - 4.0) * (longest - 2.0) / longest;
                // PyTorch adds `eps` before the bias is taken out.
                unbiased * (now / at_last).sqrt() * (1.0 - left).sqrt() / (square.sqrt() + eps)
            }
            _ => unbiased / (spread + eps),
        }
    }
}
