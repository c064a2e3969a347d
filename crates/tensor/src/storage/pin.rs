//! Pins: while a storage is pinned, its bytes stay where they are. Whoever takes memory back
//! (`residency.rs`) only tries, and passes over pinned storages.
//!
//! `Storage::pins` is one word: the number of pins, and on top `ABSENT` while the bytes are not
//! resident. Pinning adds one and looks at the flag. Taking away holds the `place` lock, swaps 0
//! for `ABSENT`, and then moves the bytes; a pin that comes in between sees the flag and waits for
//! that lock. So the fast path is one addition, and a pinned storage without `ABSENT` is resident
//! and stays so.
//!
//! A storage whose device does not take memory back (`Storage::movable`) is always resident, and a
//! pin on it does nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_core::Result;
use smallvec::SmallVec;

use super::Storage;

/// The flag: the bytes are not in the device's memory at the moment.
pub(super) const ABSENT: u32 = 1 << 31;

impl Storage {
    /// Host memory: whether the bytes are there, and no copy is under way.
    #[inline]
    pub(crate) fn is_at_hand(&self) -> bool {
        let is_away = self.movable && self.pins.load(Ordering::Relaxed) & ABSENT != 0;
        !is_away && !self.uses.has_copies()
    }

    /// Pins, and brings the bytes home if they are away.
    #[inline]
    pub(crate) fn pin(self: &Arc<Storage>) -> Result<()> {
        if !self.movable {
            return Ok(());
        }
        let before = self.pins.fetch_add(1, Ordering::Acquire);
        if before & ABSENT != 0
            && let Err(error) = self.bring_home()
        {
            self.unpin();
            return Err(error);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn unpin(&self) {
        if self.movable {
            self.pins.fetch_sub(1, Ordering::Release);
        }
    }

    /// The start of the bytes. Only while pinned.
    pub(crate) fn pointer(&self) -> *mut u8 {
        debug_assert!(
            !self.movable || self.pins.load(Ordering::Relaxed) & !ABSENT > 0,
            "only a pinned storage's address is stable"
        );
        self.address.load(Ordering::Acquire) as *mut u8
    }
}

/// Pinned storages of one launch; dropping it unpins them.
#[must_use = "the storages are unpinned when this is dropped"]
#[derive(Default)]
pub(crate) struct Pins<'a> {
    held: SmallVec<[&'a Arc<Storage>; 4]>,
}

impl<'a> Pins<'a> {
    /// Pins one more.
    #[inline]
    pub(crate) fn add(&mut self, storage: &'a Arc<Storage>) -> Result<()> {
        if storage.movable {
            storage.pin()?;
            self.held.push(storage);
        }
        Ok(())
    }
}

impl Drop for Pins<'_> {
    fn drop(&mut self) {
        for storage in &self.held {
            storage.unpin();
        }
    }
}
