//! Claims: who may touch a storage's bytes while a kernel runs.
//!
//! Note [Claims, not lock guards]
//! A launch claims all its storages at once: each storage once (so `x.add_(&x)` does not wait for
//! itself), in the order of their addresses (so two launches cannot wait for each other in a
//! circle), writing if any operand writes. A thread holds at most one claim, kernels never start
//! operations, the fork-join pool never runs anybody else's work while it waits, and hooks run
//! outside. So every claim ends, and a thread that waits for one only ever waits for running
//! kernels. A read-write lock per tensor held by guards fails each of these points. A replay takes
//! the lock of its pool (`MemPool::replaying`) before its claim; nobody who has a claim takes one.
//!
//! On an asynchronous device the claim covers the enqueueing; `stream_order.rs` orders the queued
//! work itself.

use std::cmp::Ordering::{Equal, Greater, Less};

use parking_lot::RawRwLock;
use parking_lot::lock_api::RawRwLock as _;
use plimsoll_memory::Holding;
use smallvec::SmallVec;

use super::Storage;

/// The lock word of a storage; only this file locks it.
pub(crate) struct Access(RawRwLock);

impl Access {
    pub(crate) const fn new() -> Access {
        Access(RawRwLock::INIT)
    }
}

/// A storage to claim, `true` for writing.
type Wanted<'a> = (&'a Storage, bool);

/// By ascending address, each storage once.
enum Held<'a> {
    /// What almost every operation has, without a list.
    Few(Option<Wanted<'a>>, Option<Wanted<'a>>),
    Many(SmallVec<[Wanted<'a>; 4]>),
}

fn address(wanted: &Wanted<'_>) -> usize {
    std::ptr::from_ref(wanted.0).addr()
}

impl<'a> Held<'a> {
    #[inline]
    fn new(mut wanted: impl Iterator<Item = Wanted<'a>>) -> Held<'a> {
        let (Some(first), second) = (wanted.next(), wanted.next()) else {
            return Held::Few(None, None);
        };
        let Some(second) = second else { return Held::Few(Some(first), None) };
        if let Some(third) = wanted.next() {
            let mut many = SmallVec::from_iter([first, second, third]);
            many.extend(wanted);
            return Held::many(many);
        }
        match address(&first).cmp(&address(&second)) {
            Less => Held::Few(Some(first), Some(second)),
            Equal => Held::Few(Some((first.0, first.1 || second.1)), None),
            Greater => Held::Few(Some(second), Some(first)),
        }
    }

    fn many(mut many: SmallVec<[Wanted<'a>; 4]>) -> Held<'a> {
        // Writers sort before readers of the same storage, so that the one kept is the stronger.
        many.sort_unstable_by_key(|wanted| (address(wanted), !wanted.1));
        many.dedup_by(|later, first| std::ptr::eq(later.0, first.0));
        Held::Many(many)
    }

    #[inline]
    fn for_each(&self, mut visit: impl FnMut(&Storage, bool)) {
        match self {
            Held::Few(first, second) => {
                first.iter().for_each(|&(storage, writes)| visit(storage, writes));
                second.iter().for_each(|&(storage, writes)| visit(storage, writes));
            }
            Held::Many(many) => many.iter().for_each(|&(storage, writes)| visit(storage, writes)),
        }
    }
}

/// The right to read some storages and write others, until it is dropped.
#[must_use = "the claim ends when this is dropped"]
pub(crate) struct Claim<'a> {
    held: Held<'a>,
    /// A fork waits for the claim to end.
    _holding: Holding,
}

impl<'a> Claim<'a> {
    /// Waits until all of `reads` may be read and all of `writes` written.
    #[inline]
    pub(crate) fn new(
        reads: impl Iterator<Item = &'a Storage>,
        writes: impl Iterator<Item = &'a Storage>,
    ) -> Claim<'a> {
        let holding = Holding::new();
        let wanted = reads.map(|storage| (storage, false));
        let held = Held::new(wanted.chain(writes.map(|storage| (storage, true))));
        held.for_each(|storage, writes| {
            if writes {
                storage.access.0.lock_exclusive();
            } else {
                storage.access.0.lock_shared();
            }
        });
        let claim = Claim { held, _holding: holding };
        claim.held.for_each(|storage, writes| storage.uses.settle(writes));
        claim
    }
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        self.held.for_each(|storage, writes| {
            if writes {
                // SAFETY: `new` locked it exclusively, and only this drop unlocks it.
                unsafe { storage.access.0.unlock_exclusive() }
            } else {
                // SAFETY: `new` locked it shared, and only this drop unlocks that share.
                unsafe { storage.access.0.unlock_shared() }
            }
        });
    }
}
