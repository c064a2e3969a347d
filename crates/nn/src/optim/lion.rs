//! Lion: steps by the sign of a running mean of gradients. PyTorch has none; the options are those
//! of the paper's code.

use plimsoll_tensor::Result;
use plimsoll_tensor::optimizers::{Lion as LionRule, OptimizerRule};

use super::checks::{check_betas, check_number};
use super::fused::Fused;
use super::rule::{FusedRule, Shared};
use crate::StateSlot;

plimsoll_tensor::options! {
    /// The options of [`Lion`].
    LionOptions {
        /// How far a step goes.
        lr: f64 = 1e-4,
        /// How much of the running mean the step's direction has, and how much of it stays.
        betas: (f64, f64) = (0.9, 0.99),
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 0.0,
        /// Up instead of down.
        maximize: bool = false,
        /// Whether float16 and bfloat16 parameters have float32 copies, which the steps change.
        master_weights: bool = false,
    }
}

/// Steps by the sign of a running mean of gradients; it keeps half of what Adam keeps. Weight decay
/// goes by the parameter itself. Its learning rate is usually three to ten times smaller than
/// Adam's, and its weight decay as much larger.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F64)?)?;
/// let options = optim::LionOptions::new().lr(0.25);
/// let mut optimizer = optim::Lion::new([weight.clone()], options)?;
/// weight.tensor().mul(3.0)?.sum()?.backward()?;
/// optimizer.step()?;
/// assert_eq!(weight.tensor().item::<f64>()?, 0.75);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub type Lion = Fused<LionOptions>;

impl FusedRule for LionOptions {
    const NAME: &'static str = "Lion";
    const COUNTS_STEPS: bool = false;
    const UNUSED: &'static [(&'static str, Option<bool>)] =
        &[("foreach", None), ("differentiable", Some(false))];

    fn check(&self) -> Result<()> {
        check_number(Self::NAME, "learning rate", self.lr)?;
        check_betas(Self::NAME, self.betas)?;
        check_number(Self::NAME, "weight_decay value", self.weight_decay)
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("lr", StateSlot::Float(&mut self.lr)),
            ("betas", StateSlot::Pair(&mut self.betas)),
            ("weight_decay", StateSlot::Float(&mut self.weight_decay)),
            ("maximize", StateSlot::Bool(&mut self.maximize)),
            ("master_weights", StateSlot::Bool(&mut self.master_weights)),
        ]
    }

    fn shared(&self) -> Shared {
        Shared {
            lr: self.lr,
            weight_decay: self.weight_decay,
            decoupled: true,
            maximize: self.maximize,
            master_weights: self.master_weights,
        }
    }

    fn rule(&self, _first: bool) -> OptimizerRule {
        let (beta1, beta2) = self.betas;
        OptimizerRule::Lion(LionRule { beta1, beta2 })
    }
}
