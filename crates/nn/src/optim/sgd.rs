//! Stochastic gradient descent, with momentum or without.

use plimsoll_tensor::Result;
use plimsoll_tensor::optimizers::{OptimizerRule, Sgd};

use super::checks::{check, check_number};
use super::fused::Fused;
use super::rule::{FusedRule, Shared};
use crate::StateSlot;

plimsoll_tensor::options! {
    /// The options of [`SGD`].
    SGDOptions {
        /// How far a step goes.
        lr: f64 = 1e-3,
        /// How much of the momentum buffer stays; 0 for no buffer.
        momentum: f64 = 0.0,
        /// How much of the gradient does not reach the buffer.
        dampening: f64 = 0.0,
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 0.0,
        /// Whether the step looks ahead of the buffer.
        nesterov: bool = false,
        /// Up instead of down.
        maximize: bool = false,
        /// Whether float16 and bfloat16 parameters have float32 copies, which the steps change.
        master_weights: bool = false,
    }
}

/// Stochastic gradient descent, with momentum (also Nesterov's) or without.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F64)?)?;
/// let options = optim::SGDOptions::new().lr(0.25);
/// let mut optimizer = optim::SGD::new([weight.clone()], options)?;
/// weight.tensor().sum()?.backward()?;
/// optimizer.step()?;
/// assert_eq!(weight.tensor().item::<f64>()?, 0.75);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub type SGD = Fused<SGDOptions>;

impl FusedRule for SGDOptions {
    const NAME: &'static str = "SGD";
    const COUNTS_STEPS: bool = false;
    const UNUSED: &'static [(&'static str, Option<bool>)] =
        &[("foreach", None), ("differentiable", Some(false)), ("fused", None)];

    fn check(&self) -> Result<()> {
        check_number(Self::NAME, "learning rate", self.lr)?;
        check_number(Self::NAME, "momentum value", self.momentum)?;
        check_number(Self::NAME, "weight_decay value", self.weight_decay)?;
        let is_fine = !self.nesterov || (self.momentum > 0.0 && self.dampening == 0.0);
        check(Self::NAME, is_fine, || {
            "Nesterov momentum requires a momentum and zero dampening".into()
        })
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("lr", StateSlot::Float(&mut self.lr)),
            ("momentum", StateSlot::Float(&mut self.momentum)),
            ("dampening", StateSlot::Float(&mut self.dampening)),
            ("weight_decay", StateSlot::Float(&mut self.weight_decay)),
            ("nesterov", StateSlot::Bool(&mut self.nesterov)),
            ("maximize", StateSlot::Bool(&mut self.maximize)),
            ("master_weights", StateSlot::Bool(&mut self.master_weights)),
        ]
    }

    fn shared(&self) -> Shared {
        Shared {
            lr: self.lr,
            weight_decay: self.weight_decay,
            decoupled: false,
            maximize: self.maximize,
            master_weights: self.master_weights,
        }
    }

    fn rule(&self, first: bool) -> OptimizerRule {
        let &SGDOptions { momentum, dampening, nesterov, .. } = self;
        OptimizerRule::Sgd(Sgd { momentum, dampening, nesterov, first })
    }
}
