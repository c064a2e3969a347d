//! What a node keeps for backward: exactly the inputs and outputs that its operation declares, each with the version
//! it had, so that an overwritten one is an error that names who wrote, not a wrong gradient.

use std::sync::Arc;

use plimsoll_core::{Error, Result};
use smallvec::SmallVec;

use super::node::{Edge, Node};
use crate::Tensor;
use crate::operation::Saves;
use crate::storage::Storage;
use crate::storage::roles::Role;
use plimsoll_kernels::Meta;

/// A node's saved tensors, by position.
#[derive(Default)]
pub(crate) struct SavedTensors {
    // Not kept inline: a saved tensor is some 200 bytes, and most nodes save none or are never made.
    inputs: Vec<Option<Saved>>,
    outputs: Vec<Option<Saved>>,
    /// Whether backward ran and gave them back.
    released: bool,
}

/// One saved tensor.
struct Saved {
    value: Value,
    /// Its storage's version when it was saved.
    version: u32,
    hold: Hold,
}

/// A saved tensor is never the tensor itself: written in place later, that one can come to lie behind this very node, and both would hold
/// each other for ever. What is kept is its storage, its layout and its place in the graph as it was.
enum Value {
    /// An input, and where its gradient goes.
    Input(Meta, Option<Edge>),
    /// An output of the node itself.
    Output(Meta),
}

/// Counts its storage as saved for backward as long as it lives.
struct Hold(Arc<Storage>);

impl Hold {
    fn new(storage: &Arc<Storage>) -> Hold {
        storage.take_role(Role::Saved);
        Hold(storage.clone())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.leave_role(Role::Saved);
    }
}

impl SavedTensors {
    /// Keeps the inputs that `saves` names. Before the operation runs: an in-place write must count as one after it.
    pub(crate) fn keep_inputs(
        name: &'static str,
        saves: Saves,
        inputs: &[&Tensor],
    ) -> Result<SavedTensors> {
        let mut kept = SavedTensors::default();
        if saves.inputs.any() {
            kept.inputs.reserve_exact(inputs.len());
            for (index, &tensor) in inputs.iter().enumerate() {
                kept.inputs.push(if saves.inputs.has(index) {
                    let value = Value::Input(tensor.meta().clone(), tensor.edge());
                    Some(Saved::new(name, tensor, value)?)
                } else {
                    None
                });
            }
        }
        Ok(kept)
    }

    /// Keeps the outputs that `saves` names, after the operation ran.
    pub(crate) fn keep_outputs(
        &mut self,
        name: &'static str,
        saves: Saves,
        outputs: &[Tensor],
    ) -> Result<()> {
        if saves.outputs.any() {
            self.outputs.reserve_exact(outputs.len());
            for (index, tensor) in outputs.iter().enumerate() {
                self.outputs.push(if saves.outputs.has(index) {
                    Some(Saved::new(name, tensor, Value::Output(tensor.meta().clone()))?)
                } else {
                    None
                });
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.outputs.is_empty()
    }

    /// Gives everything back; a later backward through this node is an error if there was anything.
    pub(super) fn release(&mut self) -> SavedTensors {
        let released = self.released || !self.is_empty();
        std::mem::replace(self, SavedTensors { released, ..SavedTensors::default() })
    }

    /// The storages held, for the walk of a live graph.
    pub(super) fn storages(&self) -> impl Iterator<Item = &Arc<Storage>> {
        self.inputs.iter().chain(&self.outputs).flatten().map(|saved| &saved.hold.0)
    }
}

/// Saved values ready for use.
pub(super) struct Unpacked {
    pub(super) inputs: SmallVec<[Option<Tensor>; 2]>,
    pub(super) outputs: SmallVec<[Option<Tensor>; 1]>,
}

/// The values that `node` saved, after checking that nobody overwrote them.
pub(super) fn unpack(node: &Arc<Node>) -> Result<Unpacked> {
    let saved = node.saved.lock();
    if saved.released {
        return Err(Error::autograd(
            node.name(),
            format!(
                "backward through the graph a second time: what the {} saved was freed by the first backward; \
                 pass `retain_graph` to that one if you need two",
                node.origin
            ),
        ));
    }
    let mut inputs = SmallVec::new();
    for (index, saved) in saved.inputs.iter().enumerate() {
        inputs.push(saved.as_ref().map(|s| s.check(node, "input", index)).transpose()?);
    }
    let mut outputs = SmallVec::new();
    for (index, saved) in saved.outputs.iter().enumerate() {
        outputs.push(saved.as_ref().map(|s| s.check(node, "output", index)).transpose()?);
    }
    Ok(Unpacked { inputs, outputs })
}

impl Saved {
    fn new(name: &'static str, tensor: &Tensor, value: Value) -> Result<Saved> {
        if tensor.is_inference() {
            return Err(Error::autograd(
                name,
                "a tensor made in inference mode cannot be saved for backward; clone it outside the mode, or run \
                 this under `no_grad`",
            ));
        }
        Ok(Saved { value, version: tensor.version(), hold: Hold::new(tensor.storage()) })
    }

    fn check(&self, node: &Arc<Node>, role: &str, index: usize) -> Result<Tensor> {
        let storage = &self.hold.0;
        let now = storage.version();
        if now != self.version {
            let writer = storage.last_writer();
            return Err(Error::autograd(
                node.name(),
                format!(
                    "{role} {index} of the {}, which backward needs, was overwritten in place: it had version {} and \
                     now has {now}; the last write was the {}. Use the form without the underscore there, or \
                     `clone_tensor` before it",
                    node.origin, self.version, writer
                ),
            ));
        }
        let kept = |meta: &Meta| Tensor::new(storage.clone(), meta.clone());
        Ok(match &self.value {
            Value::Input(meta, Some(Edge::Leaf(accumulator))) => {
                accumulator.leaf().unwrap_or_else(|| {
                    // Nobody holds the leaf any more; its hooks still want their gradients.
                    let tensor = kept(meta);
                    tensor.set_accumulator(accumulator.clone());
                    tensor
                })
            }
            Value::Input(meta, None) => kept(meta),
            Value::Input(meta, Some(Edge::Node(node, output))) => {
                let tensor = kept(meta);
                tensor.set_node(node.clone(), *output);
                tensor
            }
            Value::Output(meta) => {
                let tensor = kept(meta);
                tensor.set_node(node.clone(), index as u32);
                tensor
            }
        })
    }
}
