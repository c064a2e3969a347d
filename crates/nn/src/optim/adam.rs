//! Adam, with AMSGrad or without, and AdamW, whose weight decay goes by the parameter itself.

use plimsoll_tensor::Result;
use plimsoll_tensor::optimizers::{Adam as AdamRule, OptimizerRule};

use super::checks::{check_betas, check_number};
use super::fused::Fused;
use super::rule::{FusedRule, Shared};
use crate::StateSlot;

plimsoll_tensor::options! {
    /// The options of [`Adam`].
    AdamOptions {
        /// How far a step goes.
        lr: f64 = 1e-3,
        /// How much of the running means of gradients and of their squares stays.
        betas: (f64, f64) = (0.9, 0.999),
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 0.0,
        /// Whether the divisor is the largest running mean of squares so far.
        amsgrad: bool = false,
        /// Up instead of down.
        maximize: bool = false,
        /// Whether weight decay is taken from the parameter itself, and not added to its gradient.
        decoupled_weight_decay: bool = false,
        /// Whether float16 and bfloat16 parameters have float32 copies, which the steps change.
        master_weights: bool = false,
    }
}

plimsoll_tensor::options! {
    /// The options of [`AdamW`].
    AdamWOptions {
        /// How far a step goes.
        lr: f64 = 1e-3,
        /// How much of the running means of gradients and of their squares stays.
        betas: (f64, f64) = (0.9, 0.999),
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 1e-2,
        /// Whether the divisor is the largest running mean of squares so far.
        amsgrad: bool = false,
        /// Up instead of down.
        maximize: bool = false,
        /// Whether float16 and bfloat16 parameters have float32 copies, which the steps change.
        master_weights: bool = false,
    }
}

/// Steps by a running mean of the gradients, divided by the root of a running mean of their
/// squares.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F64)?)?;
/// let options = optim::AdamOptions::new().lr(0.1);
/// let mut optimizer = optim::Adam::new([weight.clone()], options)?;
/// weight.tensor().mul(3.0)?.sum()?.backward()?;
/// optimizer.step()?;
/// // The first step goes as far as the learning rate, whatever the gradient.
/// assert!((weight.tensor().item::<f64>()? - 0.9).abs() < 1e-8);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub type Adam = Fused<AdamOptions>;

/// Adam whose weight decay shrinks the parameter itself and leaves the running means alone.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F64)?)?;
/// let options = optim::AdamWOptions::new().lr(0.1).weight_decay(0.5);
/// let mut optimizer = optim::AdamW::new([weight.clone()], options)?;
/// weight.tensor().mul(3.0)?.sum()?.backward()?;
/// optimizer.step()?;
/// assert!((weight.tensor().item::<f64>()? - (0.95 - 0.1)).abs() < 1e-8);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub type AdamW = Fused<AdamWOptions>;

impl FusedRule for AdamOptions {
    const NAME: &'static str = "Adam";
    const UNUSED: &'static [(&'static str, Option<bool>)] = &[
        ("foreach", None),
        ("capturable", Some(false)),
        ("differentiable", Some(false)),
        ("fused", None),
    ];

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
            ("amsgrad", StateSlot::Bool(&mut self.amsgrad)),
            ("maximize", StateSlot::Bool(&mut self.maximize)),
            ("decoupled_weight_decay", StateSlot::Bool(&mut self.decoupled_weight_decay)),
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
        let &AdamOptions { betas: (beta1, beta2), eps, amsgrad, .. } = self;
        OptimizerRule::Adam(AdamRule { beta1, beta2, eps, amsgrad })
    }
}

impl FusedRule for AdamWOptions {
    const NAME: &'static str = "AdamW";
    const UNUSED: &'static [(&'static str, Option<bool>)] = &[
        ("foreach", None),
        ("capturable", Some(false)),
        ("differentiable", Some(false)),
        ("fused", None),
        ("decoupled_weight_decay", Some(true)),
    ];

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
            ("amsgrad", StateSlot::Bool(&mut self.amsgrad)),
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
        let &AdamWOptions { betas: (beta1, beta2), eps, amsgrad, .. } = self;
        OptimizerRule::Adam(AdamRule { beta1, beta2, eps, amsgrad })
    }
}
