//! Adagrad: steps that shrink with the sum of the squares of all gradients.

use plimsoll_tensor::Result;
use plimsoll_tensor::optimizers::{Adagrad as AdagradRule, OptimizerRule};

use super::checks::check_number;
use super::fused::Fused;
use super::rule::{FusedRule, Shared};
use crate::StateSlot;

plimsoll_tensor::options! {
    /// The options of [`Adagrad`].
    AdagradOptions {
        /// How far a step goes.
        lr: f64 = 1e-2,
        /// How much the learning rate falls with each step.
        lr_decay: f64 = 0.0,
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 0.0,
        /// What the sums of squares begin with.
        initial_accumulator_value: f64 = 0.0,
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-10,
        /// Up instead of down.
        maximize: bool = false,
        /// Whether float16 and bfloat16 parameters have float32 copies, which the steps change.
        master_weights: bool = false,
    }
}

/// Steps divided by the root of the sum of all squared gradients. What it keeps is made with the
/// optimizer.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F64)?)?;
/// let options = optim::AdagradOptions::new().lr(0.1);
/// let mut optimizer = optim::Adagrad::new([weight.clone()], options)?;
/// weight.tensor().mul(3.0)?.sum()?.backward()?;
/// optimizer.step()?;
/// assert!((weight.tensor().item::<f64>()? - 0.9).abs() < 1e-9);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub type Adagrad = Fused<AdagradOptions>;

impl FusedRule for AdagradOptions {
    const NAME: &'static str = "Adagrad";
    const BEGINS_EARLY: bool = true;
    const UNUSED: &'static [(&'static str, Option<bool>)] =
        &[("foreach", None), ("differentiable", Some(false)), ("fused", None)];

    fn check(&self) -> Result<()> {
        check_number(Self::NAME, "learning rate", self.lr)?;
        check_number(Self::NAME, "lr_decay value", self.lr_decay)?;
        check_number(Self::NAME, "weight_decay value", self.weight_decay)?;
        let first = self.initial_accumulator_value;
        check_number(Self::NAME, "initial_accumulator_value value", first)?;
        check_number(Self::NAME, "epsilon value", self.eps)
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("lr", StateSlot::Float(&mut self.lr)),
            ("lr_decay", StateSlot::Float(&mut self.lr_decay)),
            ("eps", StateSlot::Float(&mut self.eps)),
            ("weight_decay", StateSlot::Float(&mut self.weight_decay)),
            ("initial_accumulator_value", StateSlot::Float(&mut self.initial_accumulator_value)),
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
        OptimizerRule::Adagrad(AdagradRule { lr_decay: self.lr_decay, eps: self.eps })
    }

    fn first_value(&self, _state: &str) -> f64 {
        self.initial_accumulator_value
    }
}
