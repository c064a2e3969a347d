//! Dropping graphs without recursion: a node owns the nodes before it. How: `drop_iteratively.rs`.

use std::cell::RefCell;

use super::hooks::Hooks;
use super::node::Edges;
use super::saved::SavedTensors;
use crate::drop_iteratively::{Pending, drop_iteratively};

/// What a dead node owned.
type Remains = (Edges, SavedTensors, Hooks);

thread_local! {
    static PENDING: Pending<Remains> = const { RefCell::new(None) };
}

/// Drops what a dying node owned.
pub(super) fn contents(edges: Edges, saved: SavedTensors, hooks: Hooks) {
    if edges.iter().any(Option::is_some) || !saved.is_empty() || !hooks.is_empty() {
        drop_iteratively(&PENDING, (edges, saved, hooks));
    }
}
