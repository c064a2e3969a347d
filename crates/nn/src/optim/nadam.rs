//! NAdam: Adam with Nesterov's momentum.

use plimsoll_tensor::Result;
use plimsoll_tensor::optimizers::{NAdam as NAdamRule, OptimizerRule};

use super::checks::{check_betas, check_number};
use super::fused::Fused;
use super::rule::{FusedRule, Shared};
use crate::StateSlot;

plimsoll_tensor::options! {
    /// The options of [`NAdam`].
    NAdamOptions {
        /// How far a step goes.
        lr: f64 = 2e-3,
        /// How much of the running means of gradients and of their squares stays.
        betas: (f64, f64) = (0.9, 0.999),
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 0.0,
        /// How fast the momentum grows to its full share.
        momentum_decay: f64 = 4e-3,
        /// Whether weight decay is taken from the parameter itself, and not added to its gradient.
        decoupled_weight_decay: bool = false,
        /// Up instead of down.
        maximize: bool = false,
        /// Whether float16 and bfloat16 parameters have float32 copies, which the steps change.
        master_weights: bool = false,
    }
}

/// Adam with Nesterov's momentum, which grows to its full share over the first steps.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F64)?)?;
/// let options = optim::NAdamOptions::new().lr(0.1);
/// let mut optimizer = optim::NAdam::new([weight.clone()], options)?;
/// weight.tensor().sum()?.backward()?;
/// optimizer.step()?;
/// assert!(weight.tensor().item::<f64>()? < 1.0);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub type NAdam = Fused<NAdamOptions>;

impl FusedRule for NAdamOptions {
    const NAME: &'static str = "NAdam";
    const UNUSED: &'static [(&'static str, Option<bool>)] =
        &[("foreach", None), ("capturable", Some(false)), ("differentiable", Some(false))];

    fn check(&self) -> Result<()> {
        check_number(Self::NAME, "learning rate", self.lr)?;
        check_number(Self::NAME, "epsilon value", self.eps)?;
        check_betas(Self::NAME, self.betas)?;
        check_number(Self::NAME, "weight_decay value", self.weight_decay)?;
        check_number(Self::NAME, "momentum_decay value", self.momentum_decay)
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("lr", StateSlot::Float(&mut self.lr)),
            ("betas", StateSlot::Pair(&mut self.betas)),
            ("eps", StateSlot::Float(&mut self.eps)),
            ("weight_decay", StateSlot::Float(&mut self.weight_decay)),
            ("momentum_decay", StateSlot::Float(&mut self.momentum_decay)),
            ("decoupled_weight_decay", StateSlot::Bool(&mut self.decoupled_weight_decay)),
            ("maximize", StateSlot::Bool(&mut self.maximize)),
            ("master_weights", StateSlot::Bool(&mut self.master_weights)),
        ]
    }

    fn shared(&self) -> Shared {
        Shared {
            lr: self.lr,
            weight_decay: self.weight_decay,
            decoupled: self.decoupled_weight_decay,
            maximize: self.maximize,
            master_weights: self.master_weights,
        }
    }

    fn rule(&self, _first: bool) -> OptimizerRule {
        let &NAdamOptions { betas: (beta1, beta2), eps, momentum_decay, .. } = self;
        OptimizerRule::NAdam(NAdamRule { beta1, beta2, eps, momentum_decay })
    }
}
