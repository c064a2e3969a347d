//! Claims: who may touch a storage's bytes while a kernel runs.
//!
//! Note [Claims, not lock guards]
//! A launch claims all its storages at once: each storage once (so `x.add_(&x)` does not wait for itself), in the
//! order of their addresses (so two launches cannot wait for each other in a circle), writing if any operand
//! writes. A thread holds at most one claim, kernels never start operations, the fork-join pool never runs
//! anybody else's work while it waits, and hooks run outside. So every claim ends, and a thread that waits for one
//! only ever waits for running kernels. A read-write lock per tensor held by guards fails each of these points.
//!
//! On an asynchronous device the claim covers the enqueueing; `uses.rs` orders the queued work itself.

use parking_lot::RawRwLock;
use parking_lot::lock_api::RawRwLock as _;
use smallvec::SmallVec;

use super::Storage;

/// The lock word of a storage; only this file locks it.
pub(crate) struct Access(RawRwLock);

impl Access {
    pub(crate) const fn new() -> Access {
        Access(RawRwLock::INIT)
    }
}

/// Storages to claim, `true` for writing.
type Held<'a> = SmallVec<[(&'a Storage, bool); 4]>;

/// By ascending address, each storage once.
fn put_in_order(held: &mut Held<'_>) {
    // Writers sort before readers of the same storage, so that the one kept is the stronger.
    let order =
        |&(storage, writes): &(&Storage, bool)| (std::ptr::from_ref(storage).addr(), !writes);
    if let [first, second] = &mut held[..] {
        // As the sort would, for the usual two.
        if order(second) < order(first) {
            std::mem::swap(first, second);
        }
    } else {
        held.sort_unstable_by_key(order);
    }
    held.dedup_by(|later, first| std::ptr::eq(later.0, first.0));
}

/// The right to read some storages and write others, until it is dropped.
#[must_use = "the claim ends when this is dropped"]
pub(crate) struct Claim<'a> {
    /// In ascending order of address, each storage once.
    held: Held<'a>,
}

impl<'a> Claim<'a> {
    /// Waits until all of `reads` may be read and all of `writes` written.
    pub(crate) fn new(
        reads: impl Iterator<Item = &'a Storage>,
        writes: impl Iterator<Item = &'a Storage>,
    ) -> Claim<'a> {
        let mut held = SmallVec::new();
        reads.for_each(|storage| held.push((storage, false)));
        writes.for_each(|storage| held.push((storage, true)));
        if held.len() > 1 {
            put_in_order(&mut held);
        }
        for &(storage, writes) in &held {
            if writes {
                storage.access.0.lock_exclusive();
            } else {
                storage.access.0.lock_shared();
            }
        }
        let claim = Claim { held };
        for &(storage, writes) in &claim.held {
            storage.uses.settle(writes);
        }
        claim
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        for &(storage, writes) in self.held.iter().rev() {
            if writes {
                // SAFETY: `new` locked it exclusively, and only this drop unlocks it.
                unsafe { storage.access.0.unlock_exclusive() }
            } else {
                // SAFETY: `new` locked it shared, and only this drop unlocks that share.
                unsafe { storage.access.0.unlock_shared() }
            }
        }
    }
}
