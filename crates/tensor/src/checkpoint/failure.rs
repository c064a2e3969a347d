//! What goes wrong when a checkpointed function is run again, in words: it saved other tensors than
//! the first time. Also what is no failure, and travels as one: the end of a recomputation that has
//! all it needs.

use std::fmt;

use plimsoll_core::{DType, Device, Error};

use crate::Tensor;

/// The name of the operation in errors.
pub(super) const OP: &str = "checkpoint";

/// What is compared of a tensor that was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    shape: Vec<usize>,
    dtype: DType,
    device: Device,
}

impl Facts {
    pub(super) fn of(tensor: &Tensor) -> Facts {
        Facts { shape: tensor.shape().to_vec(), dtype: tensor.dtype(), device: tensor.device() }
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shape {:?}, {} on {}", self.shape, self.dtype, self.device)
    }
}

/// The detail of an error that says that a recomputation did not match its forward.
#[derive(Debug)]
pub struct CheckpointFailure(());

impl fmt::Display for CheckpointFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "The function must do the same both times: look for what depends on anything but its inputs, or set \
             `debug` to list the operations of both runs.",
        )
    }
}

impl std::error::Error for CheckpointFailure {}

/// The detail of the error that ends a recomputation early: everything that backward needs is made.
/// Nobody sees it but functions that catch errors of operations, which should pass it on.
#[derive(Debug)]
pub struct RecomputationStopped(());

impl fmt::Display for RecomputationStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the recomputation has made all that backward needs")
    }
}

impl std::error::Error for RecomputationStopped {}

pub(super) fn stop() -> Error {
    let why = "all that backward needs is made; this ends the recomputation and is no failure";
    Error::autograd(OP, why).because(RecomputationStopped(()))
}

fn failure(why: String) -> Error {
    Error::autograd(OP, why).because(CheckpointFailure(()))
}

fn lines<'a>(title: &str, facts: impl Iterator<Item = &'a Facts>) -> String {
    let lines = facts.enumerate().map(|(index, facts)| format!("\n  {index}: {facts}"));
    format!("{title}{}", lines.collect::<String>())
}

/// Both sides, tensor by tensor.
fn both(forward: &[Facts], again: &[Facts]) -> String {
    let (forward, again) = (forward.iter(), again.iter());
    lines("Saved during forward:", forward) + "\n" + &lines("Saved during recomputation:", again)
}

pub(super) fn fewer(forward: &[Facts], again: &[Facts]) -> Error {
    failure(format!(
        "A different number of tensors was saved during the original forward and recomputation.\n\
         Number of tensors saved during forward: {}\n\
         Number of tensors saved during recomputation: {}.\n{}",
        forward.len(),
        again.len(),
        both(forward, again)
    ))
}

pub(super) fn more(forward: &[Facts], again: &[Facts]) -> Error {
    failure(format!(
        "trying to save more tensors during recomputation than during the original forward pass.\n{}",
        both(forward, again)
    ))
}

/// The error for tensors that differ at `positions`, if there are any.
pub(super) fn different(forward: &[Facts], again: &[Facts], positions: &[usize]) -> Option<Error> {
    if positions.is_empty() {
        return None;
    }
    let pair = |&at: &usize| {
        let (saved, recomputed) = (&forward[at], &again[at]);
        format!(
            "tensor at position {at}:\nsaved metadata: {saved}\nrecomputed metadata: {recomputed}\n"
        )
    };
    Some(failure(format!(
        "Recomputed values for the following tensors have different metadata than during the forward pass.\n\
         {}",
        positions.iter().map(pair).collect::<String>().trim_end()
    )))
}

pub(super) fn unpacked_twice(in_group: bool) -> Error {
    let group = if in_group {
        "Performing two backward calls that overlap, which need the same saved value, is not allowed within one group. "
    } else {
        ""
    };
    failure(format!(
        "Unpack is being triggered for a tensor that was already unpacked once. {group}Read the saved tensors \
         of a custom function once in its backward, and keep them in variables."
    ))
}

/// `error` with the operations of both runs in front of it.
pub(super) fn with_operations(error: &Error, forward: &[String], again: &[String]) -> Error {
    let remedy = format!("\n{}", CheckpointFailure(()));
    let list = |title: &str, operations: &[String]| {
        let lines = operations.iter().map(|operation| format!("  {operation}\n"));
        format!("{title}\n{}", lines.collect::<String>())
    };
    failure(format!(
        "An error happened while unpacking tensors. You are seeing this error because you passed `debug=True` to \
         checkpoint.\n{}{}{}",
        list("Operations executed during the original forward:", forward),
        list("Operations executed during recomputation:", again),
        error.to_string().trim_end_matches(&remedy)
    ))
}
