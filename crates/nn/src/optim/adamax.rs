//! Adamax: Adam with the largest gradient in place of the mean square.

use plimsoll_tensor::Result;
use plimsoll_tensor::optimizers::{Adamax as AdamaxRule, OptimizerRule};

use super::checks::{check_betas, check_number};
use super::fused::Fused;
use super::rule::{FusedRule, Shared};
use crate::StateSlot;

plimsoll_tensor::options! {
    /// The options of [`Adamax`].
    AdamaxOptions {
        /// How far a step goes.
        lr: f64 = 2e-3,
        /// How much of the running means of gradients and of the largest magnitude stays.
        betas: (f64, f64) = (0.9, 0.999),
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 0.0,
        /// Up instead of down.
        maximize: bool = false,
        /// Whether float16 and bfloat16 parameters have float32 copies, which the steps change.
        master_weights: bool = false,
    }
}

/// Adam whose divisor is the largest gradient so far, which fades.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F64)?)?;
/// let options = optim::AdamaxOptions::new().lr(0.1);
/// let mut optimizer = optim::Adamax::new([weight.clone()], options)?;
/// weight.tensor().mul(3.0)?.sum()?.backward()?;
/// optimizer.step()?;
/// assert!((weight.tensor().item::<f64>()? - 0.9).abs() < 1e-8);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub type Adamax = Fused<AdamaxOptions>;

impl FusedRule for AdamaxOptions {
    const NAME: &'static str = "Adamax";
    const UNUSED: &'static [(&'static str, Option<bool>)] =
        &[("foreach", None), ("differentiable", Some(false)), ("capturable", Some(false))];

    fn check(&self) -> Result<()> {
        check_number(Self::NAME, "learning rate", self.lr)?;
        check_number(Self::NAME, "epsilon value", self.eps)?;
        check_betas(Self::NAME, self.betas)?;
        check_number(Self::NAME, "weight_decay value", self.weight_decay)
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("lr", StateSlot::Float(&mut self.lr)),
            ("betas", StateSlot::Pair(&mut self.betas)),
            ("eps", StateSlot::Float(&mut self.eps)),
            ("weight_decay", StateSlot::Float(&mut self.weight_decay)),
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

    fn rule(&self, _first: bool) -> OptimizerRule {
        let &AdamaxOptions { betas: (beta1, beta2), eps, .. } = self;
        OptimizerRule::Adamax(AdamaxRule { beta1, beta2, eps })
    }
}
