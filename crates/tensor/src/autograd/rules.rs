//! What autograd refuses, each with an error that says why and what to do: writes that would make
//! gradients wrong.

use plimsoll_core::{Error, Result};

use super::mode::records;
use super::node::Edge;
use super::views::MadeIn;
use super::{is_grad_enabled, is_inference_mode_enabled};
use crate::Tensor;
use crate::operation::{Needs, OpInfo};

/// Which inputs of a recorded operation need gradients: none if recording is off or nobody asks.
pub(crate) fn needs(info: &OpInfo, inputs: &[&Tensor]) -> Needs {
    if !info.differentiable || !records() {
        return Needs::NONE;
    }
    let mut needs = Needs::NONE;
    for (index, input) in inputs.iter().enumerate() {
        if input.requires_grad() {
            needs = needs.with(index);
        }
    }
    needs
}

/// Refuses a write outside of inference mode to a tensor that was made in it: nothing counts its
/// versions.
fn check_inference(op: &'static str, target: &Tensor) -> Result<()> {
    if !target.is_inference() || is_inference_mode_enabled() {
        return Ok(());
    }
    Err(Error::autograd(
        op,
        "a tensor made in inference mode cannot be written outside of it, in place or as `out=`; clone it first",
    ))
}

/// Whether `target` may be written in place now, `needs` being the gradients that the operation
/// needs.
pub(crate) fn check_in_place(op: &'static str, target: &Tensor, needs: Needs) -> Result<()> {
    check_inference(op, target)?;
    if !is_grad_enabled() {
        return Ok(());
    }
    if target.requires_grad() && matches!(target.edge(), Some(Edge::Leaf(_))) {
        return Err(Error::autograd(
            op,
            "a leaf that requires gradients cannot be written in place while recording: its old value is what the \
             gradient belongs to. Wrap the write in `no_grad`, or use the form without the underscore",
        ));
    }
    if let Some(view) = target.view_of() {
        let base = view.base();
        if base.requires_grad() && matches!(base.edge(), Some(Edge::Leaf(_))) {
            return Err(Error::autograd(
                op,
                "this is a view of a leaf that requires gradients, which cannot be written in place while \
                 recording. Wrap the write in `no_grad`, or clone the leaf first",
            ));
        }
        if !needs.any() && !base.requires_grad() {
            return Ok(());
        }
        let mode = match view.made_in() {
            MadeIn::Normal => return Ok(()),
            MadeIn::Function => {
                return Err(Error::autograd(
                    op,
                    "this is an input that a custom function returned as it is, which cannot be written in place while \
                     recording; have the function return a clone",
                ));
            }
            MadeIn::NoGrad => "`no_grad`",
            MadeIn::Inference => "inference mode",
        };
        return Err(Error::autograd(
            op,
            format!(
                "this view was made in {mode} and is written in place while recording; make the view outside the mode, \
                 or write inside it too"
            ),
        ));
    }
    Ok(())
}

/// Whether `out` may receive a result: never as part of a recorded operation.
pub(crate) fn check_out(info: &OpInfo, outs: &[&Tensor], inputs: &[&Tensor]) -> Result<()> {
    let op = info.name;
    outs.iter().try_for_each(|out| check_inference(op, out))?;
    // What has no derivative is not recorded anyway.
    if !is_grad_enabled() || !info.differentiable {
        return Ok(());
    }
    if inputs.iter().chain(outs).any(|tensor| tensor.requires_grad()) {
        return Err(Error::autograd(
            op,
            "the `out=` form cannot be recorded, and one of its tensors requires gradients; use the plain form, or \
             wrap it in `no_grad`",
        ));
    }
    Ok(())
}

/// Whether `input` is where its memory is: in the graph, or outside of it.
pub(crate) fn check_up_to_date(op: &'static str, input: &Tensor) -> Result<()> {
    let Some(view) = input.view_of().filter(|view| view.is_out_of_date(input)) else {
        return Ok(());
    };
    Err(Error::autograd(
        op,
        match view.made_in() {
            MadeIn::Function => {
                "this is an input that a custom function returned, and its memory was written since: the function's \
                 derivative would be lost. Have the function return a clone"
            }
            _ => {
                "this view was made under `no_grad`, and its memory was written since by a recorded operation: whether \
                 gradients should flow through it is not clear. Make the view again, or make both under `no_grad`"
            }
        },
    ))
}
