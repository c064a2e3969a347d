//! RMSprop: steps divided by the root of the gradients' mean square.

use plimsoll_tensor::Result;
use plimsoll_tensor::optimizers::{OptimizerRule, RmsProp};

use super::checks::check_number;
use super::fused::Fused;
use super::rule::{FusedRule, Shared};
use crate::StateSlot;

plimsoll_tensor::options! {
    /// The options of [`RMSprop`].
    RMSpropOptions {
        /// How far a step goes.
        lr: f64 = 1e-2,
        /// How much of the running means stays.
        alpha: f64 = 0.99,
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 0.0,
        /// How much of the momentum buffer stays; 0 for no buffer.
        momentum: f64 = 0.0,
        /// Whether the divisor is of the variance rather than of the mean square.
        centered: bool = false,
        /// Up instead of down.
        maximize: bool = false,
        /// Whether float16 and bfloat16 parameters have float32 copies, which the steps change.
        master_weights: bool = false,
    }
}

/// Steps divided by the root of the gradients' mean square or, centered, of their variance.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F64)?)?;
/// let options = optim::RMSpropOptions::new().lr(0.1).alpha(0.75);
/// let mut optimizer = optim::RMSprop::new([weight.clone()], options)?;
/// weight.tensor().mul(3.0)?.sum()?.backward()?;
/// optimizer.step()?;
/// // The mean square is a quarter of the square so far.
/// assert!((weight.tensor().item::<f64>()? - 0.8).abs() < 1e-8);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub type RMSprop = Fused<RMSpropOptions>;

impl FusedRule for RMSpropOptions {
    const NAME: &'static str = "RMSprop";
    const UNUSED: &'static [(&'static str, Option<bool>)] =
        &[("capturable", Some(false)), ("foreach", None), ("differentiable", Some(false))];

    fn check(&self) -> Result<()> {
        check_number(Self::NAME, "learning rate", self.lr)?;
        check_number(Self::NAME, "epsilon value", self.eps)?;
        check_number(Self::NAME, "momentum value", self.momentum)?;
        check_number(Self::NAME, "weight_decay value", self.weight_decay)?;
        check_number(Self::NAME, "alpha value", self.alpha)
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("lr", StateSlot::Float(&mut self.lr)),
            ("momentum", StateSlot::Float(&mut self.momentum)),
            ("alpha", StateSlot::Float(&mut self.alpha)),
            ("eps", StateSlot::Float(&mut self.eps)),
            ("centered", StateSlot::Bool(&mut self.centered)),
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
        let &RMSpropOptions { alpha, eps, momentum, centered, .. } = self;
        OptimizerRule::RmsProp(RmsProp { alpha, eps, momentum, centered })
    }
}
