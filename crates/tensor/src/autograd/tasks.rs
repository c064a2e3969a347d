//! What a run of backward waits for: a table with a task for every node and leaf behind the
//! outputs, and the queue of those that are ready. The engine that fills and empties them is
//! `engine.rs`.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use super::node::{Edge, Node};
use super::parts::Parts;
use crate::Tensor;

/// A node or a leaf of a graph, by number: a node's place in the order of creation, a leaf's
/// address. Good for as long as somebody holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target(u64);

impl Target {
    /// Set in the numbers of leaves; neither addresses nor places reach it.
    const LEAF: u64 = 1 << 63;

    pub(super) fn of(node: &Node) -> Target {
        Target(node.sequence)
    }

    pub(super) fn of_leaf(id: usize) -> Target {
        Target(id as u64 | Target::LEAF)
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }
}

/// The gradients of a node's outputs, as far as they arrived.
pub(super) type Received = SmallVec<[Option<Tensor>; 1]>;

/// A node or leaf that waits for gradients.
#[derive(Default)]
pub(super) struct Task {
    /// Edges into it from nodes that have not run yet.
    pub(super) waits_for: u32,
    /// Whether it runs: what was asked for lies behind it.
    pub(super) runs: bool,
    /// Whether what arrives at it was asked for.
    pub(super) captured: bool,
    pub(super) queued: bool,
    pub(super) grads: Received,
    /// Gradients that are being laid together from those of parts, by output. An output has one of
    /// these or a gradient, never both.
    pub(super) parts: Vec<(u32, Parts)>,
}

impl Task {
    /// Whether gradients are to arrive at it.
    pub(super) fn is_wanted(&self) -> bool {
        self.runs || self.captured
    }
}

/// All tasks of a run.
pub(super) type Tasks = HashMap<Target, Task, BuildHasherDefault<NeighbourHasher>>;

/// Puts 64 neighbours side by side and mixes the rest.
///
/// Backward runs the newest node first, so it asks for numbers one after the other: with neighbours
/// together the next task is in the cache in a graph of any size. Not all bits can be kept as they
/// are, since graphs may use every thousandth number. There is no defence against crafted
/// collisions: nobody chooses these numbers.
#[derive(Default)]
pub(super) struct NeighbourHasher(u64);

impl NeighbourHasher {
    const TOGETHER: u32 = 6;
}

impl Hasher for NeighbourHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 << 8 | u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let within = number & ((1 << Self::TOGETHER) - 1);
        // Folded before and after, so that no bit of the number has only the uppermost ones of the
        // product to change.
        let rest = number >> Self::TOGETHER;
        let mixed = (rest ^ (rest >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = (mixed ^ (mixed >> 32)) << Self::TOGETHER | within;
        // The table tells entries in one place apart by the topmost seven bits.
        self.0 = place ^ (within << 57);
    }
}

/// Newest first; leaves before all nodes, so that a finished gradient is written and its memory
/// settled at once.
pub(super) struct Ready {
    order: u64,
    pub(super) edge: Edge,
}

impl Ready {
    pub(super) fn new(edge: Edge) -> Ready {
        let order = match &edge {
            Edge::Node(node, _) => node.sequence,
            Edge::Leaf(_) => u64::MAX,
        };
        Ready { order, edge }
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Ready) -> bool {
        self.order == other.order
    }
}
impl Eq for Ready {}
impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Ready) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ready {
    fn cmp(&self, other: &Ready) -> Ordering {
        self.order.cmp(&other.order)
    }
}

/// The nodes of `edges`, oldest first: each after all that its inputs were made by.
pub(super) fn oldest_first(edges: &[Edge]) -> Vec<&Arc<Node>> {
    let mut nodes: Vec<&Arc<Node>> = edges
        .iter()
        .filter_map(|edge| match edge {
            Edge::Node(node, _) => Some(node),
            Edge::Leaf(_) => None,
        })
        .collect();
    nodes.sort_unstable_by_key(|node| node.sequence);
    nodes
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    fn hash(number: u64) -> u64 {
        BuildHasherDefault::<NeighbourHasher>::default().hash_one(Target(number))
    }

    #[test]
    fn neighbours_lie_side_by_side_and_look_different() {
        let places: Vec<u64> = (0..64).map(|number| hash(number) & 0xFFFF).collect();
        assert!(places.windows(2).all(|pair| pair[1] == pair[0] + 1), "{places:?}");
        let tags: HashSet<u64> = (0..64).map(|number| hash(number) >> 57).collect();
        assert_eq!(tags.len(), 64);
    }

    #[test]
    fn numbers_at_any_distance_spread_over_the_table() {
        const TABLE: u64 = 1 << 14;
        for distance in (0..50).map(|power| 1u64 << power) {
            let places: HashSet<u64> = (0..TABLE / 64)
                .map(|number| (hash(number * distance) & (TABLE - 1)) >> NeighbourHasher::TOGETHER)
                .collect();
            // 256 numbers in 256 places: chance would fill about 162 of them. A dense run fills
            // four.
            let least = if distance < 64 { distance as usize * 2 } else { 120 };
            assert!(places.len() >= least, "distance {distance}: {} places", places.len());
        }
    }
}
