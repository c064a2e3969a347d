//! Views and in-place writes.
//!
//! Note [Views under in-place writes]
//! A view remembers its base (never itself a view) and the chain of view operations from the base
//! to it. The base's node is the truth: an in-place write through any view gives the base a new
//! node (one with a `chain`), and a view whose storage changed since its own node was made gets a
//! fresh node, by replaying the chain from the base's present node.

use std::sync::Arc;

use plimsoll_core::Result;

use super::hooks::Hooks;
use super::node::{Chain, Derivative, Edge, Node};
use super::saved::SavedTensors;
use super::slot::State;
use crate::Tensor;
use crate::device::Entry;
use crate::lock::Mutex;
use crate::operation::{Inferred, Needs, Operation};
use plimsoll_kernels::Meta;

/// Under which mode a view was made; decides whether it may be written in place later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MadeIn {
    Normal,
    NoGrad,
    Inference,
    /// Returned by a custom function.
    Function,
    /// Returned with others by one function, such as `unbind`.
    Several,
}

/// What a view is a view of.
pub(crate) struct ViewOf {
    base: Tensor,
    /// From the base to the view.
    chain: Chain,
    made_in: MadeIn,
    /// The storage's version when it was made.
    version: u32,
}

impl ViewOf {
    /// The view that `op` makes of `source`, which may be a view itself.
    pub(crate) fn extend(source: &Tensor, op: &dyn Operation) -> Arc<ViewOf> {
        let made_in = if super::is_inference_mode_enabled() {
            MadeIn::Inference
        } else if !super::is_grad_enabled() {
            MadeIn::NoGrad
        } else {
            MadeIn::Normal
        };
        let version = source.version();
        Arc::new(match source.view_of() {
            Some(view) => {
                let chain = view.chain.iter().cloned().chain([op.share()]).collect();
                // What is seen through a view from outside the graph is outside too.
                let made_in = if made_in == MadeIn::Normal { view.made_in } else { made_in };
                ViewOf { base: view.base.clone(), chain, made_in, version }
            }
            None => ViewOf {
                base: source.clone(),
                chain: smallvec::smallvec![op.share()],
                made_in,
                version,
            },
        })
    }

    /// `result`, an input of a custom function that returned it as it is.
    pub(super) fn returned(result: &Tensor) -> Arc<ViewOf> {
        let (base, chain) = match result.view_of() {
            Some(view) => (view.base.clone(), view.chain.clone()),
            None => (result.clone(), Chain::new()),
        };
        Arc::new(ViewOf { base, chain, made_in: MadeIn::Function, version: result.version() })
    }

    /// The operation that made the view.
    pub(crate) fn operation(&self) -> &'static str {
        self.chain.last().map_or("view", |op| op.info().name)
    }

    pub(crate) fn base(&self) -> &Tensor {
        &self.base
    }

    pub(super) fn made_in(&self) -> MadeIn {
        self.made_in
    }

    /// Whether `tensor`, this view, stands outside a graph that its memory has come into since it
    /// was made or recorded.
    pub(super) fn is_out_of_date(&self, tensor: &Tensor) -> bool {
        if !matches!(self.made_in, MadeIn::NoGrad | MadeIn::Function | MadeIn::Several) {
            return false;
        }
        let recorded = |state: &State| state.node.is_some().then_some(state.node_version);
        let own = tensor.slot().read(recorded).flatten();
        let in_graph = own.is_some() || self.base.slot().is_tracked();
        in_graph && own.unwrap_or(self.version) != tensor.version()
    }
}

/// The edge of a view, brought up to date with its base. `None` if the view's own state is the
/// truth.
pub(super) fn edge(tensor: &Tensor, view: &Arc<ViewOf>) -> Option<Edge> {
    let now = tensor.version();
    let own =
        tensor.slot().read(|state| (state.node.clone(), state.node_version, state.requires_grad));
    match own {
        // A view made without recording can be made a leaf by the user.
        Some((None, _, true)) => None,
        Some((Some((node, output)), version, _)) if version == now => {
            Some(Edge::Node(node, output))
        }
        _ => {
            // Made while recording was off, or of a base that needs nothing: the view is outside
            // the graph.
            if view.made_in != MadeIn::Normal {
                return None;
            }
            let edge = replay(&view.base, &view.chain)?;
            if let Edge::Node(node, output) = &edge {
                tensor.set_node(node.clone(), *output);
            }
            Some(edge)
        }
    }
}

/// Nodes for the chain of views, starting from the base's present edge.
fn replay(base: &Tensor, chain: &[Arc<dyn Operation>]) -> Option<Edge> {
    let origin = base.storage().origin().unwrap_or(plimsoll_memory::OriginId::UNKNOWN);
    replay_from(base.edge()?, base.meta().clone(), (origin, base.entry()), chain)
}

/// The place in the graph of what `node` wrote through a view: the view of the base as it left it.
pub(super) fn written_part(node: &Arc<Node>, chain: &[Arc<dyn Operation>]) -> Option<Edge> {
    let base = node.outputs.first()?.clone();
    replay_from(Edge::Node(node.clone(), 0), base, (node.origin, node.entry), chain)
}

fn replay_from(
    mut edge: Edge,
    mut meta: Meta,
    (origin, entry): (plimsoll_memory::OriginId, &'static Entry),
    chain: &[Arc<dyn Operation>],
) -> Option<Edge> {
    for op in chain {
        // The same rule gave this layout before, so it gives it again.
        let Ok(Inferred::View(output)) = op.infer(&[&meta], Needs::ALL) else { return None };
        let made_by = origin.get();
        let node = Node {
            derivative: Derivative::Operation(op.clone()),
            chain: None,
            sequence: Node::next_sequence(),
            origin,
            site: made_by.site,
            module: made_by.module,
            entry,
            edges: smallvec::smallvec![Some(edge)],
            inputs: smallvec::smallvec![meta],
            outputs: smallvec::smallvec![output.clone()],
            needs: Needs::NONE.with(0),
            saved: Mutex::new(SavedTensors::default()),
            hooks: Hooks::default(),
        };
        edge = Edge::Node(Arc::new(node), 0);
        meta = output;
    }
    Some(edge)
}

/// Gives the base of a view the node of an in-place operation on the view.
pub(super) fn rebase(view: &ViewOf, mut node: Node) -> Arc<Node> {
    let base = view.base();
    node.chain = Some(view.chain.clone());
    // Input 0 is the base now; the other inputs stay as they are.
    node.edges[0] = base.edge();
    node.needs = if node.edges[0].is_some() { node.needs.with(0) } else { node.needs };
    node.outputs = smallvec::smallvec![base.meta().clone()];
    let node = Arc::new(node);
    base.set_node(node.clone(), 0);
    node
}

/// Has the place of a view in the graph found anew, after its base got another.
pub(super) fn make_stale(view: &Tensor) {
    let version = view.version().wrapping_sub(1);
    view.slot().with(|state| state.node_version = version);
}

/// The base's gradient with its view's part opened: a copy of `grad`, and the view of that copy.
pub(super) fn open_slice(
    _name: &'static str,
    grad: &Tensor,
    base: &Meta,
    chain: &[Arc<dyn Operation>],
) -> Result<(Tensor, Tensor)> {
    let copy = grad.clone_as(base)?;
    let mut slice = copy.clone();
    for op in chain {
        slice = slice.viewed_by(op.as_ref())?;
    }
    Ok((copy, slice))
}

impl Tensor {
    /// The same view as one of several that a function returns together: where recording is on, it
    /// may not be written in place, as in PyTorch.
    pub(crate) fn as_one_of_several(&self) -> Tensor {
        let recording = super::is_grad_enabled() && !super::is_inference_mode_enabled();
        let Some(view) = self.view_of().filter(|_| recording) else { return self.clone() };
        let (base, chain) = (view.base.clone(), view.chain.clone());
        let several = ViewOf { base, chain, made_in: MadeIn::Several, version: view.version };
        let part = self.alias(self.meta().clone(), Some(Arc::new(several)));
        if let Some(Edge::Node(node, output)) = self.edge() {
            part.set_node(node, output);
        }
        part
    }

    /// The same memory and place in the graph as no view: for a view of what nobody else has.
    pub(crate) fn without_base(&self) -> Tensor {
        let alone = Tensor::new(self.storage().clone(), self.meta().clone());
        if let Some(Edge::Node(node, output)) = self.edge() {
            alone.set_node(node, output);
        }
        alone
    }
}
