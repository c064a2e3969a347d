//! The rule for `out=` of operations that are not elementwise: the target may not even be the same view as an input, because
//! elements are written before others are read. Elementwise operations allow that one; dispatch checks the rest for all.

use plimsoll_core::{Error, Result};

use crate::Tensor;

/// Refuses an `out` that shares memory with an input.
pub(crate) fn check_separate(op: &'static str, out: &Tensor, inputs: &[&Tensor]) -> Result<()> {
    let shared = inputs
        .iter()
        .position(|input| input.shares_storage_with(out) && input.layout().overlaps(out.layout()));
    match shared {
        None => Ok(()),
        Some(index) => Err(Error::shape(
            op,
            format!(
                "the target of shape {:?} shares memory with input {index}, which is still read while the result is \
                 written; use another tensor as `out`, or the form without `out`",
                out.shape()
            ),
        )),
    }
}
