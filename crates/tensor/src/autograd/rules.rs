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
        "Inplace update to inference tensor outside InferenceMode is not allowed, nor as `out=`; clone it first",
    ))
}

/// Whether `target` may be written in place now, `needs` being the gradients that the operation
/// needs.
pub(crate) fn check_in_place(op: &'static str, target: &Tensor, needs: Needs) -> Result<()> {
    check_inference(op, target)?;
    if !is_grad_enabled() {
        return Ok(());
    }
    if !needs.any() && !target.requires_grad() {
        return Ok(());
    }
    if let Some(view) = target.view_of() {
        check_made_in(op, target, view.made_in())?;
        // Whatever view of the base asked for a gradient: the write would go to the base's node,
        // which that view, a leaf, does not look at.
        if target.requires_grad() && view.base().is_leaf() {
            return Err(Error::autograd(
                op,
                "a view of a leaf Variable that requires grad is being used in an in-place operation. Wrap the \
                 write in `no_grad`, or clone the leaf first",
            ));
        }
    }
    if target.requires_grad() && target.is_leaf() {
        return Err(Error::autograd(
            op,
            "a leaf Variable that requires grad is being used in an in-place operation: its old value is what the \
             gradient belongs to. Wrap the write in `no_grad`, or use the form without the underscore",
        ));
    }
    Ok(())
}

/// Whether `target`, a view that was made in such a way, may be written where gradients are needed.
fn check_made_in(op: &'static str, target: &Tensor, made_in: MadeIn) -> Result<()> {
    let mode = match made_in {
        MadeIn::Normal => return Ok(()),
        MadeIn::Function => {
            return Err(Error::autograd(
                op,
                format!(
                    "{} is a view and is being modified inplace. This view was created inside a custom Function, or \
                     is an input that one returned as it is: the write would lose the function's derivative. Have \
                     it return a clone",
                    place(target)
                ),
            ));
        }
        MadeIn::Several => {
            return Err(Error::autograd(
                op,
                format!(
                    "{} is a view and is being modified inplace. This view is the output of a function that returns \
                     multiple views. Such functions do not allow the output views to be modified inplace: use the \
                     form without the underscore, or take the part with `narrow` or `select`",
                    place(target)
                ),
            ));
        }
        MadeIn::NoGrad => ("no_grad mode", "with grad mode enabled", "no_grad"),
        MadeIn::Inference => ("inference mode", "in normal mode", "inference_mode"),
    };
    let (made, now, block) = mode;
    Err(Error::autograd(
        op,
        format!(
            "A view was created in {made} and is being modified inplace {now}, or a view of a view that was is \
             being modified: make the view and write it both inside the {block} block, or both outside of it"
        ),
    ))
}

/// Which result of which operation `target` is, in words.
fn place(target: &Tensor) -> String {
    match target.edge() {
        Some(Edge::Node(node, output)) => {
            format!("Output {output} of {}", node.name().trim_end_matches("Backward"))
        }
        _ => "this tensor".to_string(),
    }
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
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments \
             requires grad; use the plain form, or wrap it in `no_grad`",
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
            MadeIn::Several => {
                "this is a view and its base or another view of its base has been modified inplace. This view is the \
                 output of a function that returns multiple views, which are not brought up to date. Take it again"
            }
            _ => {
                "this view was made under `no_grad`, and its memory was written since by a recorded operation: whether \
                 gradients should flow through it is not clear. Make the view again, or make both under `no_grad`"
            }
        },
    ))
}
