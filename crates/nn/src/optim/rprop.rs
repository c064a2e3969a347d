//! Rprop: steps by the sign of the gradient alone.

use plimsoll_tensor::Result;
use plimsoll_tensor::optimizers::{OptimizerRule, Rprop as RpropRule};

use super::checks::{check, check_number};
use super::fused::Fused;
use super::rule::{FusedRule, Shared};
use crate::StateSlot;

plimsoll_tensor::options! {
    /// The options of [`Rprop`].
    RpropOptions {
        /// How far the first step goes.
        lr: f64 = 1e-2,
        /// What an element's step is multiplied by where the gradient turned, and where it did not.
        etas: (f64, f64) = (0.5, 1.2),
        /// The smallest and the largest step.
        step_sizes: (f64, f64) = (1e-6, 50.0),
        /// Up instead of down.
        maximize: bool = false,
        /// Whether float16 and bfloat16 parameters have float32 copies, which the steps change.
        master_weights: bool = false,
    }
}

/// Steps by the sign of the gradient alone; each element's step grows while the sign stays and
/// shrinks where it turns.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F64)?)?;
/// let options = optim::RpropOptions::new().lr(0.25);
/// let mut optimizer = optim::Rprop::new([weight.clone()], options)?;
/// weight.tensor().mul(3.0)?.sum()?.backward()?;
/// optimizer.step()?;
/// assert_eq!(weight.tensor().item::<f64>()?, 0.75);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub type Rprop = Fused<RpropOptions>;

impl FusedRule for RpropOptions {
    const NAME: &'static str = "Rprop";
    const UNUSED: &'static [(&'static str, Option<bool>)] =
        &[("foreach", None), ("differentiable", Some(false)), ("capturable", Some(false))];

    fn check(&self) -> Result<()> {
        check_number(Self::NAME, "learning rate", self.lr)?;
        let (minus, plus) = self.etas;
        let is_fine = 0.0 < minus && minus < 1.0 && 1.0 < plus;
        check(Self::NAME, is_fine, || format!("Invalid eta values: {minus}, {plus}"))
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("lr", StateSlot::Float(&mut self.lr)),
            ("etas", StateSlot::Pair(&mut self.etas)),
            ("step_sizes", StateSlot::Pair(&mut self.step_sizes)),
            ("maximize", StateSlot::Bool(&mut self.maximize)),
            ("master_weights", StateSlot::Bool(&mut self.master_weights)),
        ]
    }

    fn shared(&self) -> Shared {
        Shared {
            lr: self.lr,
            weight_decay: 0.0,
            decoupled: false,
            maximize: self.maximize,
            master_weights: self.master_weights,
        }
    }

    fn rule(&self, _first: bool) -> OptimizerRule {
        let &RpropOptions { etas: (eta_minus, eta_plus), step_sizes, .. } = self;
        let (step_size_min, step_size_max) = step_sizes;
        OptimizerRule::Rprop(RpropRule { eta_minus, eta_plus, step_size_min, step_size_max })
    }

    fn first_value(&self, state: &str) -> f64 {
        if state == "step_size" { self.lr } else { 0.0 }
    }
}
