//! What a node keeps for backward: exactly the inputs and outputs that its operation declares, each
//! with the version it had, so that an overwritten one is an error that names who wrote, not a
//! wrong gradient.

use std::any::Any;
use std::sync::Arc;

use plimsoll_core::{Error, Result};
use plimsoll_memory::OriginId;
use smallvec::SmallVec;

use super::node::{Edge, Node};
use super::runs::RunScope;
use super::saved_hooks::{self, PackedTensor};
use super::views;
use crate::Tensor;
use crate::operation::Saves;
use crate::storage::Storage;
use crate::storage::roles::Role;
use crate::tensor::versions::Versions;
use plimsoll_kernels::Meta;

/// A node's saved tensors, by position.
#[derive(Default)]
pub(crate) struct SavedTensors {
    // Not kept inline: a saved tensor is some 200 bytes, and most nodes save none or are never
    // made.
    inputs: Vec<Option<Saved>>,
    outputs: Vec<Option<Saved>>,
    /// Whether backward ran and gave them back.
    released: bool,
}

/// One saved tensor: what is kept of it, and its place in the graph as it was.
///
/// It is never the tensor itself: written in place later, that one can come to lie behind this very
/// node, and both would hold each other for ever.
#[derive(Clone)]
struct Saved {
    kept: Kept,
    place: SavedFrom,
}

#[derive(Clone)]
enum Kept {
    /// The value itself.
    Value(Held),
    /// What a hook made of it.
    Packed(Arc<PackedTensor>),
}

/// Where in the graph a saved tensor is.
#[derive(Clone)]
pub(super) enum SavedFrom {
    /// Where its gradient goes; `None` outside the graph.
    Edge(Option<Edge>),
    /// This output of the node itself.
    Output(u32),
}

/// A value that is kept as it is: its storage and layout, and the version it had.
#[derive(Clone)]
pub(crate) struct Held {
    hold: Hold,
    meta: Meta,
    versions: Versions,
    version: u32,
}

impl Held {
    pub(crate) fn of(tensor: &Tensor) -> Held {
        let hold = Hold::new(tensor.storage());
        let (meta, versions) = (tensor.meta().clone(), tensor.versions().clone());
        Held { hold, meta, versions, version: tensor.version() }
    }

    /// The value outside of every graph.
    pub(crate) fn tensor(&self) -> Tensor {
        Tensor::counting(self.versions.clone(), self.hold.0.clone(), self.meta.clone())
    }

    /// Refuses a value that was overwritten since.
    pub(crate) fn check(&self, saver: &Saver<'_>, role: &str, index: usize) -> Result<()> {
        self.check_at(self.versions.now(&self.hold.0), &self.hold.0, saver, role, index)
    }

    /// Refuses a value that is at version `now`, in this memory, unless it is as it was kept.
    fn check_at(
        &self,
        now: u32,
        memory: &Storage,
        saver: &Saver<'_>,
        role: &str,
        index: usize,
    ) -> Result<()> {
        let version = self.version;
        if now == version {
            return Ok(());
        }
        Err(Error::autograd(
            saver.name,
            format!(
                "one of the variables needed for gradient computation has been modified by an inplace operation: \
                 {role} {index} of the {} is at version {now}; expected version {version} instead. The last write was \
                 the {}. Use the form without the underscore there, or write to a clone",
                saver.origin,
                memory.last_writer()
            ),
        ))
    }
}

/// Who saved a tensor: what errors name, and the node whose own results may be among what is saved.
pub(crate) struct Saver<'a> {
    pub(crate) name: &'static str,
    pub(crate) origin: OriginId,
    pub(crate) node: Option<&'a Arc<Node>>,
}

/// Counts its storage as saved for backward as long as it lives.
struct Hold(Arc<Storage>);

impl Hold {
    fn new(storage: &Arc<Storage>) -> Hold {
        storage.take_role(Role::Saved);
        Hold(storage.clone())
    }
}

impl Clone for Hold {
    fn clone(&self) -> Hold {
        Hold::new(&self.0)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.leave_role(Role::Saved);
    }
}

impl SavedTensors {
    /// Keeps the inputs that `saves` names. Before the operation runs: an in-place write must count
    /// as one after it.
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
                    Some(Saved::new(name, tensor, SavedFrom::Edge(tensor.edge()))?)
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
                    Some(Saved::new(name, tensor, SavedFrom::Output(index as u32))?)
                } else {
                    None
                });
            }
        }
        Ok(())
    }

    /// Keeps what a custom function saves, after it ran; `place` tells where in the graph each
    /// tensor is.
    pub(super) fn keep_list(
        name: &'static str,
        tensors: &[Tensor],
        place: impl Fn(&Tensor) -> SavedFrom,
    ) -> Result<SavedTensors> {
        let mut kept = SavedTensors::default();
        for tensor in tensors {
            kept.inputs.push(Some(Saved::new(name, tensor, place(tensor))?));
        }
        Ok(kept)
    }

    /// Keeps tensors that no operation saves: the inputs of what is computed again.
    pub(crate) fn keep_tensors(name: &'static str, tensors: &[&Tensor]) -> Result<SavedTensors> {
        let mut kept = SavedTensors::default();
        for tensor in tensors {
            kept.inputs.push(Some(Saved::new(name, tensor, SavedFrom::Edge(tensor.edge()))?));
        }
        Ok(kept)
    }

    /// What [`SavedTensors::keep_tensors`] kept. Hooks run in here, so it is called without locks.
    pub(crate) fn tensors(&self, saver: &Saver<'_>) -> Result<Vec<Tensor>> {
        let unpacked = unpack_lists(saver, &self.inputs, &[])?;
        Ok(unpacked.inputs.into_iter().flatten().collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.outputs.is_empty()
    }

    /// What hooks made of saved tensors, as far as nobody uses it now.
    pub(super) fn each_packed(&self, look: &mut dyn FnMut(&dyn Any)) {
        for saved in self.inputs.iter().chain(&self.outputs).flatten() {
            if let Kept::Packed(packed) = &saved.kept
                && Arc::strong_count(packed) == 1
            {
                look(packed.packed());
            }
        }
    }

    /// The places in the graph that saved tensors hold.
    pub(super) fn each_place(&self, look: &mut dyn FnMut(&Edge)) {
        for saved in self.inputs.iter().chain(&self.outputs).flatten() {
            if let SavedFrom::Edge(Some(edge)) = &saved.place {
                look(edge);
            }
        }
    }

    /// Whether hooks made anything of what is saved.
    pub(super) fn has_packed(&self) -> bool {
        let is_packed = |saved: &Saved| matches!(saved.kept, Kept::Packed(_));
        self.inputs.iter().chain(&self.outputs).flatten().any(is_packed)
    }

    /// Gives everything back; a later backward through this node is an error if there was anything,
    /// or if it runs `once` all the same.
    pub(super) fn release(&mut self, once: bool) -> SavedTensors {
        let released = self.released || once || !self.is_empty();
        std::mem::replace(self, SavedTensors { released, ..SavedTensors::default() })
    }

    /// Refuses a second run of `node`, whose these are, once they were given back.
    pub(super) fn check_released(&self, node: &Node) -> Result<()> {
        if !self.released {
            return Ok(());
        }
        Err(Error::autograd(
            node.name(),
            format!(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have \
                 already been freed): what the {} saved was freed by the first backward. Specify retain_graph=True \
                 there if you need two",
                node.origin
            ),
        ))
    }

    /// The storages held, for the walk of a live graph.
    pub(super) fn storages(&self) -> impl Iterator<Item = &Arc<Storage>> {
        self.inputs.iter().chain(&self.outputs).flatten().filter_map(|saved| match &saved.kept {
            Kept::Value(held) => Some(&held.hold.0),
            Kept::Packed(_) => None,
        })
    }
}

/// Saved values ready for use.
#[derive(Default)]
pub(super) struct Unpacked {
    /// Whether hooks gave any of them.
    pub(super) hooked: bool,
    pub(super) inputs: SmallVec<[Option<Tensor>; 2]>,
    pub(super) outputs: SmallVec<[Option<Tensor>; 2]>,
}

/// The values that `node` saved, after checking that nobody overwrote them.
pub(super) fn unpack(node: &Arc<Node>) -> Result<Unpacked> {
    let saved = node.saved.lock();
    saved.check_released(node)?;
    let saver = Saver { name: node.name(), origin: node.origin, node: Some(node) };
    if !saved.has_packed() {
        return unpack_lists(&saver, &saved.inputs, &saved.outputs);
    }
    // Hooks run outside the lock.
    let (inputs, outputs) = (saved.inputs.clone(), saved.outputs.clone());
    drop(saved);
    // What is made again serves all values of the node, also outside of backward.
    let _run = RunScope::enter_if_none();
    Ok(Unpacked { hooked: true, ..unpack_lists(&saver, &inputs, &outputs)? })
}

fn unpack_lists(
    saver: &Saver<'_>,
    inputs: &[Option<Saved>],
    outputs: &[Option<Saved>],
) -> Result<Unpacked> {
    let list = |saved: &[Option<Saved>], role: &str| -> Result<SmallVec<[Option<Tensor>; 2]>> {
        let unpack = |(index, saved): (usize, &Option<Saved>)| {
            saved.as_ref().map(|saved| saved.unpack(saver, role, index)).transpose()
        };
        saved.iter().enumerate().map(unpack).collect()
    };
    let (inputs, outputs) = (list(inputs, "input")?, list(outputs, "output")?);
    Ok(Unpacked { hooked: false, inputs, outputs })
}

impl Saved {
    fn new(name: &'static str, tensor: &Tensor, place: SavedFrom) -> Result<Saved> {
        if tensor.is_inference() {
            return Err(Error::autograd(
                name,
                "Inference tensors cannot be saved for backward: this one was made in inference mode. Clone it outside \
                 the mode, or run this under `no_grad`",
            ));
        }
        let kept = match saved_hooks::in_force() {
            Some(hooks) => {
                Kept::Packed(Arc::new(PackedTensor::pack(name, hooks, &for_hook(tensor, &place))?))
            }
            None => Kept::Value(Held::of(tensor)),
        };
        // Integers, a sort's indices say, come out of a node and have no gradient.
        let place = if tensor.dtype().is_float() { place } else { SavedFrom::Edge(None) };
        Ok(Saved { kept, place })
    }

    fn unpack(&self, saver: &Saver<'_>, role: &str, index: usize) -> Result<Tensor> {
        let tensor = match &self.kept {
            Kept::Value(held) => {
                held.check(saver, role, index)?;
                // The leaf itself, if it is there, so that gradients of gradients see what is
                // registered on it now.
                if let SavedFrom::Edge(Some(Edge::Leaf(accumulator))) = &self.place
                    && let Some(leaf) = accumulator.leaf()
                {
                    // It may have got other memory, and go on counting there.
                    held.check_at(leaf.version(), leaf.storage(), saver, role, index)?;
                    return Ok(leaf);
                }
                held.tensor()
            }
            Kept::Packed(packed) => packed.unpack(saver.name)?,
        };
        match (&self.place, saver.node) {
            (SavedFrom::Edge(Some(Edge::Leaf(accumulator))), _) => {
                tensor.set_accumulator(accumulator.clone());
            }
            (SavedFrom::Edge(Some(Edge::Node(node, output))), _) => {
                tensor.set_node(node.clone(), *output);
            }
            (SavedFrom::Output(output), Some(node)) => match &node.chain {
                None => tensor.set_node(node.clone(), *output),
                // The node is the base's, and this a view of it.
                Some(chain) => {
                    if let Some(Edge::Node(view, output)) = views::written_part(node, chain) {
                        tensor.set_node(view, output);
                    }
                }
            },
            (SavedFrom::Edge(None), _) | (SavedFrom::Output(_), None) => {}
        }
        Ok(tensor)
    }
}

/// A tensor as a pack hook gets it, which may keep it. Leaves themselves, so that a hook can tell
/// parameters. Of other inputs another handle at the same place in the graph: the tensor itself may
/// be written in place later, and then lie behind the node that keeps it. Of results the values
/// alone, because with its graph a result would keep the node that keeps it.
fn for_hook(tensor: &Tensor, place: &SavedFrom) -> Tensor {
    match place {
        SavedFrom::Edge(Some(Edge::Node(node, output))) => {
            let given = Tensor::new(tensor.storage().clone(), tensor.meta().clone());
            given.set_node(node.clone(), *output);
            given
        }
        SavedFrom::Edge(_) if tensor.is_leaf() => tensor.clone(),
        SavedFrom::Edge(_) | SavedFrom::Output(_) => tensor.detach(),
    }
}
