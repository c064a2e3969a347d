//! A node of the graph: one recorded operation, what it saved, and where its inputs' gradients go.
//!
//! Nodes own their edges, tensors own their node, and there is no table of graphs: what nobody can reach is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_memory::{OriginId, Site};
use smallvec::SmallVec;

use super::hooks::NodeHooks;
use super::saved::SavedTensors;
use super::tasks::Target;
use crate::WeakTensor;
use crate::device::Entry;
use crate::lock::Mutex;
use crate::operation::{Needs, Operation};
use crate::storage::Storage;
use plimsoll_kernels::Meta;

/// Where a gradient flows: into an output of another node, or into a leaf.
///
/// A graph does not keep its leaves: what nobody else holds, nobody can ask for its gradient. If it did, a leaf that is later written
/// in place by what was computed from it would hold itself for ever.
#[derive(Clone)]
pub(crate) enum Edge {
    Node(Arc<Node>, u32),
    Leaf(WeakTensor),
}

impl Edge {
    /// Identifies the target; two edges to one target compare equal.
    pub(super) fn target(&self) -> Target {
        match self {
            Edge::Node(node, _) => Target::of(node),
            Edge::Leaf(leaf) => Target::of_leaf(leaf.id()),
        }
    }
}

/// What a node computes backward.
pub(crate) enum Function {
    /// The operation's own derivative.
    Plain(Arc<dyn Operation>),
    /// An in-place operation on a view: its derivative applied to the view's part of the base's gradient.
    /// `chain` leads from the base to the view.
    OnView { op: Arc<dyn Operation>, chain: Arc<[Arc<dyn Operation>]> },
}

/// One recorded operation.
pub(crate) struct Node {
    pub(super) function: Function,
    /// Order of creation over all threads: the engine runs the newest ready node first.
    pub(super) sequence: u64,
    /// The forward operation's origin; backward allocates in its name, with the phase changed.
    pub(super) origin: OriginId,
    pub(super) site: Site,
    pub(super) entry: &'static Entry,
    /// For each input, where its gradient goes (`None` if it needs none).
    pub(super) edges: SmallVec<[Option<Edge>; 2]>,
    pub(super) inputs: SmallVec<[Meta; 2]>,
    pub(super) outputs: SmallVec<[Meta; 1]>,
    pub(super) needs: Needs,
    pub(super) saved: Mutex<SavedTensors>,
    pub(super) hooks: NodeHooks,
}

impl Node {
    /// The next place in the order of creation.
    pub(super) fn next_sequence() -> u64 {
        static SEQUENCE: AtomicU64 = AtomicU64::new(0);
        SEQUENCE.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn operation(&self) -> &dyn Operation {
        match &self.function {
            Function::Plain(op) | Function::OnView { op, .. } => op.as_ref(),
        }
    }

    /// The operation's name.
    pub(crate) fn name(&self) -> &'static str {
        self.operation().info().name
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

    /// Whether it saved `storage` for backward.
    pub(crate) fn saves(&self, storage: &Arc<Storage>) -> bool {
        self.saved.lock().storages().any(|saved| Arc::ptr_eq(saved, storage))
    }

    pub(crate) fn hooks(&self) -> &NodeHooks {
        &self.hooks
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        super::release::contents(
            std::mem::take(&mut self.edges),
            std::mem::take(self.saved.get_mut()),
        );
    }
}
