//! Memory that somebody else owns: a NumPy array's, another framework's, a mapped file's. It is in
//! the book as external bytes, never cached or taken back, and its owner is let go when the last
//! tensor on it is. A storage of ours can move there with all of its tensors, as it does when
//! processes are to share it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_core::{Error, Result};
use plimsoll_memory::{External, Kind, OriginId};

use super::Storage;
use super::claim::Claim;
use super::whereabouts::Whereabouts;
use crate::device::Entry;

/// Foreign bytes of a storage.
pub(crate) struct Foreign {
    /// Its counting in the ledger; declared first so that the book is right when the owner hears of
    /// it.
    pub(super) external: External,
    #[allow(dead_code, reason = "held for its drop")]
    owner: Box<dyn Any + Send + Sync>,
    /// Where the bytes were before they moved here, if somebody outside knows that place.
    #[allow(dead_code, reason = "held for its drop")]
    before: Option<Box<Whereabouts>>,
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
        let place = Whereabouts::Foreign(Foreign { external, owner, before: None });
        let home = entry.current_stream();
        let storage = Storage::at(entry, place, address, bytes, Kind::Input, home, false);
        // Its owner knows where it is, and may write it at any time.
        storage.exposed.store(true, Ordering::Relaxed);
        Arc::new(storage)
    }

    /// Its size stays, because somebody outside uses it.
    pub(crate) fn fix_size(&self) {
        self.fixed_size.store(true, Ordering::Relaxed);
    }

    /// Whether no larger memory may take its place.
    pub(crate) fn is_fixed_size(&self) -> bool {
        self.fixed_size.load(Ordering::Relaxed) || self.foreign_address().is_some()
    }

    /// The address of bytes that are not ours.
    pub(crate) fn foreign_address(&self) -> Option<usize> {
        let is_foreign = matches!(*self.place.lock(), Whereabouts::Foreign(_));
        is_foreign.then(|| self.address.load(Ordering::Acquire))
    }

    /// Moves the bytes to `address`, where `owner` has as many, and with them every tensor on this
    /// storage. Memory whose address went out before stays behind it until the storage goes; what a
    /// captured graph copies from or to cannot move, because its replays would go to the old place.
    ///
    /// # Safety
    /// As for `Tensor::move_storage`.
    pub(crate) unsafe fn move_to_foreign(
        self: &Arc<Storage>,
        address: usize,
        owner: Box<dyn Any + Send + Sync>,
        origin: OriginId,
    ) -> Result<()> {
        // Never unpinned: from now on it cannot be taken back.
        self.pin()?;
        let is_known_outside = self.is_exposed();
        self.expose()?;
        // Kernels read where the bytes are under their claim, so none is between here and there;
        // and captures note there that they have.
        let claim = Claim::new(std::iter::empty(), std::iter::once(self.as_ref()));
        if self.uses.is_fixed() {
            drop(claim);
            self.unpin();
            let why = "a captured graph copies from or to this memory, at the address where it is; move it before \
                       the capture, or drop the graph first";
            return Err(Error::invalid_argument(why).in_operation(origin.get().operation));
        }
        self.entry.wait_for_uses(self);
        let mut place = self.place.lock();
        let from = self.pointer();
        // SAFETY: the storage is pinned, so its bytes are at `from`, and the claim keeps others
        // away from them; `address` is the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, address as *mut u8, self.bytes) };
        let external = self.entry.arena().external(self.bytes, origin, self.kind());
        let there = Whereabouts::Foreign(Foreign { external, owner, before: None });
        let before = std::mem::replace(&mut *place, there);
        self.address.store(address, Ordering::Release);
        let left = match &mut *place {
            Whereabouts::Foreign(foreign) if is_known_outside => {
                foreign.before = Some(Box::new(before));
                None
            }
            _ => Some(before),
        };
        drop(place);
        drop(claim);
        drop(left);
        Ok(())
    }
}
