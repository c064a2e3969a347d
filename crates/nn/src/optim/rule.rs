//! What a rule tells the fused core: its numbers and what it keeps. Each optimizer's options
//! implement it; `fused.rs` does the rest.

use std::fmt;

use plimsoll_tensor::Result;
use plimsoll_tensor::optimizers::OptimizerRule;

use crate::StateSlot;

/// The numbers that a step has whatever its rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shared {
    /// How far a step goes.
    pub lr: f64,
    /// How much of a parameter goes with each step.
    pub weight_decay: f64,
    /// Whether that is taken from the parameter itself, and not added to its gradient.
    pub decoupled: bool,
    /// Up instead of down.
    pub maximize: bool,
    /// Whether float16 and bfloat16 parameters have float32 copies, which the step changes.
    pub master_weights: bool,
}

/// The options of an optimizer whose step is one operation.
pub trait FusedRule: Clone + fmt::Debug + Send + Sync + 'static {
    /// The name of PyTorch's class.
    const NAME: &'static str;

    /// Whether each parameter's steps are counted.
    const COUNTS_STEPS: bool = true;

    /// Whether what is kept is made with the optimizer, and not by the first step.
    const BEGINS_EARLY: bool = false;

    /// Entries of PyTorch's groups that say how a step is computed, and are of no use here.
    const UNUSED: &'static [(&'static str, Option<bool>)];

    /// Refuses numbers that make no sense.
    fn check(&self) -> Result<()>;

    /// Every option, by PyTorch's names and in its order.
    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)>;

    /// The numbers of every rule.
    fn shared(&self) -> Shared;

    /// The rule; `first` if the momentum buffers have no values yet.
    fn rule(&self, first: bool) -> OptimizerRule;

    /// What fills a tensor that is kept before the first step.
    fn first_value(&self, state: &str) -> f64 {
        let _ = state;
        0.0
    }
}
