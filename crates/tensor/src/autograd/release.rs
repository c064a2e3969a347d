//! Dropping graphs without recursion: a node owns the nodes before it. How: `drop_in_turn.rs`.

use std::cell::RefCell;

use smallvec::SmallVec;

use super::node::Edge;
use super::saved::SavedTensors;
use crate::drop_in_turn::{Pending, drop_in_turn};

/// What a dead node owned.
type Remains = (SmallVec<[Option<Edge>; 2]>, SavedTensors);

thread_local! {
    static PENDING: Pending<Remains> = const { RefCell::new(None) };
}

/// Drops what a dying node owned.
pub(super) fn contents(edges: SmallVec<[Option<Edge>; 2]>, saved: SavedTensors) {
    if edges.iter().any(Option::is_some) || !saved.is_empty() {
        drop_in_turn(&PENDING, (edges, saved));
    }
}
