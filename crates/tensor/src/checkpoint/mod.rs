//! Checkpointing: a function of the user whose saved values are not kept but made again when
//! backward needs them, by running the function once more.
//!
//! `frame` is one such call and the page to read first; `surroundings` is what it runs in both
//! times, `failure` what is said if the two runs differ, `trace` what they did, and `selective`
//! what is kept all the same. `reentrant` is PyTorch's older form, a custom function that runs a
//! backward inside backward.

mod failure;
mod frame;
mod reentrant;
pub(crate) mod selective;
mod surroundings;
mod trace;

use std::sync::Arc;

use plimsoll_core::{Error, Result};
use plimsoll_memory::{OriginId, Site};

use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::autograd::runs::{self, RunScope};
pub use failure::{CheckpointFailure, RecomputationStopped};
use frame::{Again, Frame, Settings};
pub use reentrant::checkpoint_reentrant;
pub use selective::{
    CheckpointPolicy, CheckpointedOperation, SelectiveCheckpoint, SelectiveScope, checkpoint_region,
};
pub use surroundings::Surroundings;

/// How [`checkpoint_with`] runs. All names and defaults are PyTorch's.
#[derive(Clone, Debug)]
pub struct CheckpointOptions {
    /// Whether the second run draws the same random numbers as the first, on every device.
    pub preserve_rng_state: bool,
    /// Whether the second run ends as soon as everything that backward needs is made.
    pub early_stop: bool,
    /// Whether recomputed tensors must have the shape, dtype and device of the first run's.
    pub determinism_check: bool,
    /// Whether an error lists the operations of both runs.
    pub debug: bool,
    /// Which results are kept all the same.
    pub selective: Option<SelectiveCheckpoint>,
}

impl Default for CheckpointOptions {
    fn default() -> CheckpointOptions {
        CheckpointOptions {
            preserve_rng_state: true,
            early_stop: true,
            determinism_check: true,
            debug: false,
            selective: None,
        }
    }
}

/// Runs `function` on `inputs` and keeps only the inputs; backward runs it again for the rest.
///
/// The function gets the inputs both times, with the same random numbers and mixed precision, and
/// must do the same with them. What it captures beside them, its parameters say, is held until
/// backward. An error that an operation returns inside must be passed on: one of them ends the
/// second run when all is made.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, checkpoint, device, memory};
/// let device = device::private_cpu(&Default::default())?;
/// let x = Tensor::ones(&[1024], (DType::F32, device))?.requires_grad_(true)?;
/// let y = checkpoint(&[&x], |inputs| inputs[0].exp()?.exp()?.sum())?;
/// assert_eq!(memory::memory_allocated(device), 4096 + 512); // `x` and `y`, and no result of `exp`
/// y.backward()?;
/// assert!(x.grad().is_some());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn checkpoint<R>(
    inputs: &[&Tensor],
    function: impl Fn(&[Tensor]) -> Result<R> + Send + Sync + 'static,
) -> Result<R> {
    checkpoint_with(inputs, CheckpointOptions::default(), function)
}

/// As [`checkpoint`], with options.
///
/// ```
/// use plimsoll_tensor::{CheckpointOptions, DType, Tensor, checkpoint_with};
/// let x = Tensor::ones(&[4], DType::F32)?.requires_grad_(true)?;
/// let options = CheckpointOptions { early_stop: false, ..CheckpointOptions::default() };
/// checkpoint_with(&[&x], options, |inputs| inputs[0].exp()?.sum())?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1f32.exp(); 4]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn checkpoint_with<R>(
    inputs: &[&Tensor],
    options: CheckpointOptions,
    function: impl Fn(&[Tensor]) -> Result<R> + Send + Sync + 'static,
) -> Result<R> {
    let function = Arc::new(function);
    let again = function.clone();
    checkpoint_apart(
        inputs,
        options,
        |inputs| function(inputs),
        move |inputs| again(inputs).map(drop),
    )
}

/// As [`checkpoint_with`], with one function for the first run and another that makes what it saved
/// again: for bindings, which run them in different contexts.
#[track_caller]
pub fn checkpoint_apart<R>(
    inputs: &[&Tensor],
    options: CheckpointOptions,
    forward: impl FnOnce(&[Tensor]) -> Result<R>,
    again: impl Fn(&[Tensor]) -> Result<()> + Send + Sync + 'static,
) -> Result<R> {
    let origin = OriginId::intern(failure::OP, Site::caller());
    let given: Vec<Tensor> = inputs.iter().map(|&input| input.clone()).collect();
    if !is_grad_enabled() {
        return forward(&given);
    }
    let CheckpointOptions { preserve_rng_state, early_stop, debug, .. } = options;
    let compares = options.determinism_check;
    let selective = options.selective.as_ref().map(SelectiveCheckpoint::fresh);
    let settings = Settings { preserve_rng_state, early_stop, compares, debug, selective, origin };
    let again: Again = Box::new(again);
    let frame = Arc::new(Frame::new(settings, inputs, again)?);
    frame.record(|| forward(&given))
}

/// One of the functions of [`checkpoint_sequential`].
pub type Stage = Arc<dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync>;

/// Runs functions one after the other in `segments` parts, each checkpointed but the last: backward
/// begins with that one, so making it again would save nothing.
///
/// ```
/// use plimsoll_tensor::{DType, Stage, Tensor, checkpoint_sequential};
/// use std::sync::Arc;
/// let stages: Vec<Stage> = (0..4).map(|_| Arc::new(|x: &Tensor| x.exp()) as Stage).collect();
/// let x = Tensor::full(&[2], -1.0, DType::F64)?.requires_grad_(true)?;
/// checkpoint_sequential(&stages, 2, &x)?.sum()?.backward()?;
/// assert!(x.grad().is_some());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn checkpoint_sequential(
    functions: &[Stage],
    segments: usize,
    input: &Tensor,
) -> Result<Tensor> {
    let size = match functions.len().checked_div(segments) {
        Some(size) if size > 0 => size,
        _ => {
            return Err(Error::invalid_argument(format!(
                "{} functions cannot be cut into {segments} segments; ask for 1 to {0}",
                functions.len()
            ))
            .in_operation("checkpoint_sequential"));
        }
    };
    let run = |stages: &[Stage], input: &Tensor| {
        stages.iter().try_fold(input.clone(), |value, stage| stage(&value))
    };
    let (kept_apart, last) = functions.split_at(size * (segments - 1));
    let mut value = input.clone();
    for part in kept_apart.chunks(size) {
        let part = part.to_vec();
        value = checkpoint(&[&value], move |inputs| run(&part, &inputs[0]))?;
    }
    run(last, &value)
}

/// While it lives, every backward of this thread counts as one: a checkpointed function runs again
/// once for all of them. No two may need the same saved value.
///
/// ```
/// use plimsoll_tensor::{DType, GraphExecGroup, Tensor, checkpoint};
/// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
/// let (a, b) = checkpoint(&[&x], |inputs| Ok((inputs[0].exp()?, inputs[0].sin()?)))?;
/// let _group = GraphExecGroup::enter()?;
/// a.sum()?.backward()?; // runs the function again
/// b.sum()?.backward()?; // and this one finds its values made
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "the group ends when the guard is dropped"]
pub struct GraphExecGroup {
    _run: RunScope,
}

impl GraphExecGroup {
    /// Begins a group, until the guard drops. Groups do not nest.
    pub fn enter() -> Result<GraphExecGroup> {
        if runs::in_group() {
            let why = "GraphExecGroup contexts cannot be nested. Leave the one around it first";
            return Err(Error::autograd(failure::OP, why));
        }
        Ok(GraphExecGroup { _run: RunScope::enter_group() })
    }
}

/// Whether a backward inside this one would do no harm: it reaches every leaf, and not only chosen
/// tensors. [`checkpoint_reentrant`] asks.
pub fn is_checkpoint_valid() -> bool {
    runs::reaches_every_leaf()
}
