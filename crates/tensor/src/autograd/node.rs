//! A node of the graph: one recorded operation, what it saved, and where its inputs' gradients go.
//!
//! Nodes own their edges, tensors own their node, and there is no table of graphs: what nobody can
//! reach is gone.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_memory::{ModulePath, OriginId, Site};
use smallvec::SmallVec;

use super::accumulate::Accumulator;
use super::custom::{Custom, Function};
use super::hooks::Hooks;
use super::node_names;
use super::saved::SavedTensors;
use super::tasks::Target;
use crate::device::Entry;
use crate::lock::Mutex;
use crate::operation::{Needs, Operation};
use crate::storage::Storage;
use plimsoll_kernels::Meta;

/// Where a gradient flows: into an output of another node, or into a leaf's accumulator.
///
/// A graph keeps the accumulators of its leaves, so that their hooks run, and not the leaves: what
/// nobody else holds, nobody can ask for its gradient. If it did, a leaf that is later written in
/// place by what was computed from it would hold itself for ever.
#[derive(Clone)]
pub(crate) enum Edge {
    Node(Arc<Node>, u32),
    Leaf(Arc<Accumulator>),
}

impl Edge {
    /// Identifies the target; two edges to one target compare equal.
    pub(super) fn target(&self) -> Target {
        match self {
            Edge::Node(node, _) => Target::of(node),
            Edge::Leaf(accumulator) => Target::of_leaf(Arc::as_ptr(accumulator).addr()),
        }
    }

    /// Which output of the target it leads to; a leaf has one.
    pub(super) fn output(&self) -> u32 {
        match self {
            Edge::Node(_, output) => *output,
            Edge::Leaf(_) => 0,
        }
    }

    /// The target's hooks.
    pub(super) fn hooks(&self) -> &Hooks {
        match self {
            Edge::Node(node, _) => &node.hooks,
            Edge::Leaf(accumulator) => &accumulator.hooks,
        }
    }

    /// How many hold the target.
    pub(super) fn holders(&self) -> usize {
        match self {
            Edge::Node(node, _) => Arc::strong_count(node),
            Edge::Leaf(accumulator) => Arc::strong_count(accumulator),
        }
    }

    /// What the target owns in another language: with its hooks, as a custom function, and what
    /// hooks made of the tensors that it saved.
    pub(super) fn each_foreign(&self, look: &mut dyn FnMut(&dyn Any)) {
        self.hooks().each_foreign(look);
        let Edge::Node(node, _) = self else { return };
        if let Some(owned) = node.function().and_then(Function::foreign) {
            look(owned);
        }
        if let Some(saved) = node.saved.try_lock() {
            saved.each_packed(look);
        }
    }

    /// Takes the target's hooks away, and what hooks made of the tensors that it saved: it cannot
    /// run any more then. To be dropped outside of every lock.
    pub(super) fn take_foreign(&self) -> impl Sized + use<> {
        let packed = match self {
            Edge::Node(node, _) => {
                let mut saved = node.saved.lock();
                saved.has_packed().then(|| saved.release(true))
            }
            Edge::Leaf(_) => None,
        };
        (self.hooks().take_all(), packed)
    }

    /// Shows `look` the target, which is the caller's own, and what only it and those behind it
    /// keep, however many of them do. A garbage collector asks this of every tensor, so it goes no
    /// further than a few nodes.
    pub(super) fn each_own(&self, look: &mut dyn FnMut(&Edge)) {
        const FURTHEST: usize = 64;
        let mut found = vec![self];
        // Those that others hold too, as far as is known, and how many of their holders were found.
        let mut shared: SmallVec<[(&Edge, usize); 8]> = SmallVec::new();
        let mut next = 0;
        while next < found.len() && found.len() < FURTHEST {
            let edge = found[next];
            next += 1;
            let Edge::Node(node, _) = edge else { continue };
            for behind in node.edges.iter().flatten() {
                match shared.iter_mut().find(|(edge, _)| edge.target() == behind.target()) {
                    Some((_, holders)) => *holders += 1,
                    None => shared.push((behind, 1)),
                }
            }
            // A saved input holds its place in the graph too.
            if let Some(saved) = node.saved.try_lock() {
                saved.each_place(&mut |place| {
                    let known = shared.iter_mut().find(|(edge, _)| edge.target() == place.target());
                    known.into_iter().for_each(|(_, holders)| *holders += 1);
                });
            }
            shared.retain(|(edge, holders)| {
                let own = edge.holders() == *holders;
                if own {
                    found.push(edge);
                }
                !own
            });
        }
        found.into_iter().for_each(look);
    }
}

/// For each input of an operation, where its gradient goes (`None` if it needs none).
pub(crate) type Edges = SmallVec<[Option<Edge>; 2]>;

/// What a node computes backward.
pub(crate) enum Derivative {
    /// An operation's.
    Operation(Arc<dyn Operation>),
    /// The user's own.
    Custom(Custom),
}

/// The view operations from a base to a view, in order; mostly one.
pub(super) type Chain = SmallVec<[Arc<dyn Operation>; 1]>;

/// One recorded operation.
pub(crate) struct Node {
    pub(super) derivative: Derivative,
    /// For an in-place operation on a view, the way from the base to the view: the derivative is
    /// applied to the view's part of the base's gradient.
    pub(super) chain: Option<Chain>,
    /// Order of creation over all threads: the engine runs the newest ready node first.
    pub(super) sequence: u64,
    /// The forward operation's origin; backward allocates in its name, with the phase changed.
    pub(super) origin: OriginId,
    pub(super) site: Site,
    /// The module that the forward operation ran in.
    pub(super) module: ModulePath,
    pub(super) entry: &'static Entry,
    pub(super) edges: Edges,
    pub(super) inputs: SmallVec<[Meta; 2]>,
    pub(super) outputs: SmallVec<[Meta; 1]>,
    pub(super) needs: Needs,
    pub(super) saved: Mutex<SavedTensors>,
    pub(super) hooks: Hooks,
}

static SEQUENCE: AtomicU64 = AtomicU64::new(0);

impl Node {
    /// The next place in the order of creation.
    pub(super) fn next_sequence() -> u64 {
        SEQUENCE.fetch_add(1, Ordering::Relaxed)
    }

    /// The place in the order of creation that the next node gets.
    pub(crate) fn following_sequence() -> u64 {
        SEQUENCE.load(Ordering::Relaxed)
    }

    /// Its place in the order of creation.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The operation's name.
    pub(crate) fn name(&self) -> &'static str {
        match &self.derivative {
            Derivative::Operation(op) => op.info().name,
            Derivative::Custom(custom) => custom.name(),
        }
    }

    /// The name of what it computes in backward, as PyTorch builds it: `MulBackward0`.
    pub(crate) fn backward_name(&self) -> String {
        let name = self.name();
        let known = match &self.derivative {
            Derivative::Operation(op) => op.node_name(&self.inputs),
            Derivative::Custom(_) => None,
        };
        match known.or_else(|| node_names::listed(name)) {
            Some(known) => known.to_string(),
            // A custom function's is its class's.
            None if self.function().is_some() => name.to_string(),
            None => node_names::built(name),
        }
    }

    /// The user's own function, if it is one.
    pub(super) fn function(&self) -> Option<&dyn Function> {
        match &self.derivative {
            Derivative::Operation(_) => None,
            Derivative::Custom(custom) => Some(custom.function()),
        }
    }

    /// Who ran the operation.
    pub(crate) fn origin(&self) -> OriginId {
        self.origin
    }

    /// The nodes that its inputs came from.
    pub(crate) fn parents(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.edges.iter().flatten().filter_map(|edge| match edge {
            Edge::Node(node, _) => Some(node),
            Edge::Leaf(_) => None,
        })
    }

    /// What it saved for backward, as far as nobody changes that now.
    pub(crate) fn each_saved(&self, look: &mut dyn FnMut(&Arc<Storage>)) {
        if let Some(saved) = self.saved.try_lock() {
            saved.storages().for_each(look);
        }
    }

    /// Whether it saved `storage` for backward.
    pub(crate) fn saves(&self, storage: &Arc<Storage>) -> bool {
        self.saved.lock().storages().any(|saved| Arc::ptr_eq(saved, storage))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        super::release::contents(
            std::mem::take(&mut self.edges),
            std::mem::take(self.saved.get_mut()),
            std::mem::take(&mut self.hooks),
        );
    }
}
