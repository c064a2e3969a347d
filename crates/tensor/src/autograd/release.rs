//! Dropping graphs without recursion.
//!
//! A node owns the nodes before it, so plain drops would recurse once per node and overflow the stack on a deep graph. Here a
//! dying node hands its contents to a list of its thread; only the outermost drop empties the list, and drops
//! nested in that add to it.

use std::cell::RefCell;

use smallvec::SmallVec;

use super::node::Edge;
use super::saved::SavedTensors;

/// What a dead node owned.
type Remains = (SmallVec<[Option<Edge>; 2]>, SavedTensors);

thread_local! {
    /// Remains that wait to be dropped; `None` while nothing is being dropped on this thread.
    static PENDING: RefCell<Option<Vec<Remains>>> = const { RefCell::new(None) };
}

/// Drops what a dying node owned, after whatever this thread is dropping already.
pub(super) fn contents(edges: SmallVec<[Option<Edge>; 2]>, saved: SavedTensors) {
    if edges.iter().all(Option::is_none) && saved.is_empty() {
        return;
    }
    let mut next = Some((edges, saved));
    // Once the thread's locals are gone (a drop inside another local's destructor), recursion is all that is left.
    let outermost = PENDING.try_with(|pending| match &mut *pending.borrow_mut() {
        Some(list) => {
            list.extend(next.take());
            false
        }
        empty => {
            *empty = Some(Vec::new());
            true
        }
    });
    if outermost == Ok(true) {
        while let Some(remains) = next {
            drop(remains);
            next = PENDING.with(|pending| pending.borrow_mut().as_mut().and_then(Vec::pop));
        }
        PENDING.with(|pending| *pending.borrow_mut() = None);
    }
}
