//! Adadelta: steps in the measure of the steps before.

use plimsoll_tensor::Result;
use plimsoll_tensor::optimizers::{Adadelta as AdadeltaRule, OptimizerRule};

use super::checks::{check, check_number};
use super::fused::Fused;
use super::rule::{FusedRule, Shared};
use crate::StateSlot;

plimsoll_tensor::options! {
    /// The options of [`Adadelta`].
    AdadeltaOptions {
        /// How far a step goes.
        lr: f64 = 1.0,
        /// How much of the running means of squares stays.
        rho: f64 = 0.9,
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-6,
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 0.0,
        /// Up instead of down.
        maximize: bool = false,
        /// Whether float16 and bfloat16 parameters have float32 copies, which the steps change.
        master_weights: bool = false,
    }
}

/// Steps in the measure of the steps before, so that the learning rate matters little.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F64)?)?;
/// let options = optim::AdadeltaOptions::new();
/// let mut optimizer = optim::Adadelta::new([weight.clone()], options)?;
/// weight.tensor().sum()?.backward()?;
/// optimizer.step()?;
/// assert!(weight.tensor().item::<f64>()? < 1.0);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub type Adadelta = Fused<AdadeltaOptions>;

impl FusedRule for AdadeltaOptions {
    const NAME: &'static str = "Adadelta";
    const UNUSED: &'static [(&'static str, Option<bool>)] =
        &[("foreach", None), ("capturable", Some(false)), ("differentiable", Some(false))];

    fn check(&self) -> Result<()> {
        check_number(Self::NAME, "learning rate", self.lr)?;
        let is_fine = (0.0..=1.0).contains(&self.rho);
        check(Self::NAME, is_fine, || format!("Invalid rho value: {}", self.rho))?;
        check_number(Self::NAME, "epsilon value", self.eps)?;
        check_number(Self::NAME, "weight_decay value", self.weight_decay)
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("lr", StateSlot::Float(&mut self.lr)),
            ("rho", StateSlot::Float(&mut self.rho)),
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
        OptimizerRule::Adadelta(AdadeltaRule { rho: self.rho, eps: self.eps })
    }
}
