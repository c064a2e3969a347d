//! Memory that somebody else owns: a NumPy array's, another framework's, a mapped file's. It is in
//! the book as external bytes, never cached, moved or taken back, and its owner is let go when the
//! last tensor on it is.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_memory::{External, Kind, OriginId};

use super::Storage;
use super::whereabouts::Whereabouts;
use crate::device::Entry;

/// Foreign bytes of a storage.
pub(crate) struct Foreign {
    /// Its counting in the ledger; declared first so that the book is right when the owner hears of
    /// it.
    pub(super) external: External,
    #[allow(dead_code, reason = "held for its drop")]
    owner: Box<dyn Any + Send + Sync>,
}

impl Storage {
    /// Whether elements of `bytes` bytes may lie at its start. They may in an arena's blocks; a
    /// foreign owner saw to the elements that it told of, and to no larger ones.
    pub(crate) fn is_aligned_for(&self, bytes: usize) -> bool {
        self.address.load(Ordering::Relaxed).is_multiple_of(bytes)
    }

    /// A storage over the `bytes` at `address`, which belong to `owner`. Whether they really are
    /// there is the promise of `Tensor::from_foreign`'s caller.
    pub(crate) fn over_foreign(
        entry: &'static Entry,
        address: usize,
        bytes: usize,
        owner: Box<dyn Any + Send + Sync>,
        origin: OriginId,
    ) -> Arc<Storage> {
        let external = entry.arena().external(bytes, origin, Kind::Input);
        let place = Whereabouts::Foreign(Foreign { external, owner });
        let home = entry.current_stream();
        let storage = Storage::at(entry, place, address, bytes, Kind::Input, home, false);
        // Its owner knows where it is, and may write it at any time.
        storage.exposed.store(true, Ordering::Relaxed);
        Arc::new(storage)
    }
}
