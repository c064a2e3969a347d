//! What a gradient must be before it is passed on: of the shape and dtype of what it is a gradient
//! of. They part where a tensor got other memory between forward and backward (`set_data`), and
//! where a custom function returns what it likes.

use plimsoll_core::{Error, Result};
use plimsoll_kernels::Meta;

use super::mode;
use super::node::{Edge, Node};
use crate::Tensor;

/// What `edge` takes gradients of, if that is known: a leaf looks when they arrive.
pub(super) fn taken_by(edge: &Edge) -> Option<&Meta> {
    match edge {
        Edge::Node(node, output) => node.outputs.get(*output as usize),
        Edge::Leaf(_) => None,
    }
}

/// `gradient` as `edge` takes it: as it is where it fits, else summed over what was stretched and
/// converted; an error if that does not help. `from` is the node that made it, as the gradient of
/// its input `index`; a root's is the caller's. With `create_graph` what is done is recorded.
pub(super) fn fit(
    from: Option<&Node>,
    index: usize,
    edge: &Edge,
    gradient: Tensor,
    create_graph: bool,
) -> Result<Tensor> {
    match taken_by(edge) {
        Some(meta) if meta.shape() != gradient.shape() || meta.dtype != gradient.dtype() => {
            mode::with_grad(create_graph, || fit_other(from, index, meta, gradient))
        }
        _ => Ok(gradient),
    }
}

#[cold]
fn fit_other(from: Option<&Node>, index: usize, meta: &Meta, gradient: Tensor) -> Result<Tensor> {
    if !is_stretched(gradient.shape(), meta.shape()) {
        let who = from.map_or_else(
            || "the caller gave an".to_string(),
            |node| format!("Function {} returned an", node.backward_name()),
        );
        return Err(Error::autograd(
            "backward",
            format!(
                "{who} invalid gradient at index {index} - got {:?} but expected shape compatible with {:?}; was the \
                 tensor given other memory (`data`) since?",
                gradient.shape(),
                meta.shape()
            ),
        ));
    }
    let gradient = gradient.sum_to(meta.shape())?;
    if gradient.dtype() == meta.dtype { Ok(gradient) } else { gradient.to(meta.dtype) }
}

/// Whether a tensor of shape `to` can be stretched to `from`.
pub(super) fn is_stretched(from: &[usize], to: &[usize]) -> bool {
    from.len() >= to.len()
        && from.iter().rev().zip(to.iter().rev()).all(|(from, to)| from == to || *to == 1)
}
