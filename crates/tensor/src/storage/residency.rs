//! Taking memory back and bringing it home: a storage is spilled to host memory, or dropped with a recipe that computes
//! it again (`recipe.rs`). No operation knows; `pin` brings a storage home before a kernel sees it. Who takes back, and when:
//! `tracked.rs` (no room left) and `chaos.rs` (tests).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_core::Result;
use plimsoll_memory::{Block, Kind, OriginId, Request};
use smallvec::SmallVec;

use super::Storage;
use super::pin::ABSENT;
use super::place::Place;

impl Storage {
    /// Tries to free this storage's device memory; `false` if it is in use or there is nowhere to put it.
    pub(crate) fn try_take_back(self: &Arc<Storage>, may_drop: bool) -> bool {
        if !self.movable {
            return false;
        }
        let Some(mut place) = self.place.try_lock() else { return false };
        let free = self.pins.compare_exchange(0, ABSENT, Ordering::Acquire, Ordering::Relaxed);
        if !matches!(*place, Place::Resident(_)) || free.is_err() {
            if free.is_ok() {
                self.pins.fetch_and(!ABSENT, Ordering::Release);
            }
            return false;
        }
        let Place::Resident(block) = std::mem::replace(&mut *place, Place::Moving) else {
            return false;
        };
        if may_drop && let Some(recipe) = self.recipe() {
            *place = Place::Dropped(Box::new(recipe));
            self.hand_to_streams(&block);
            return true;
        }
        match self.spill(&block) {
            Ok(spilled) => {
                self.hand_to_streams(&block);
                *place = Place::Spilled(spilled);
                true
            }
            Err(_) => {
                *place = Place::Resident(block);
                self.pins.fetch_and(!ABSENT, Ordering::Release);
                false
            }
        }
    }

    fn spill(&self, block: &Block) -> Result<Block> {
        let (origin, kind) = (block.origin(), self.kind());
        let spilled = self
            .entry
            .spill_arena()
            .allocate(&Request { kind, ..Request::new(self.bytes, origin) })?;
        // Nobody has it pinned, so all work that writes it is queued and noted.
        self.entry.order(self.uses.home(), self, false)?;
        self.move_bytes(block.address(), spilled.address())?;
        Ok(spilled)
    }

    /// Copies all bytes on the home stream and waits. An operation that failed meanwhile is not told of: nobody asked.
    fn move_bytes(&self, from: usize, to: usize) -> Result<()> {
        self.entry.copy_on_stream(self.uses.home(), from, to, self.bytes, None)?;
        self.entry.record(self.uses.home()).wait();
        Ok(())
    }

    /// Brings the bytes back to the device. The caller has added a pin, which keeps them there.
    #[cold]
    pub(super) fn bring_home(self: &Arc<Storage>) -> Result<()> {
        // A chain of dropped storages is rebuilt from its far end, with a stack of our own: it can be long.
        let mut stack = vec![self.clone()];
        while let Some(top) = stack.last().cloned() {
            let missing = top.absent_ingredients();
            if missing.is_empty() {
                top.restore()?;
                stack.pop();
            } else {
                stack.extend(missing);
            }
        }
        Ok(())
    }

    fn absent_ingredients(&self) -> SmallVec<[Arc<Storage>; 2]> {
        match &*self.place.lock() {
            Place::Dropped(recipe) => recipe
                .ingredients()
                .filter(|storage| storage.pins.load(Ordering::Acquire) & ABSENT != 0)
                .cloned()
                .collect(),
            _ => SmallVec::new(),
        }
    }

    /// Brings this one home; its ingredients were there a moment ago. Pinned while its recipe runs, as kernels want
    /// their operands: a link of a chain has no pin of the caller's.
    fn restore(self: &Arc<Storage>) -> Result<()> {
        self.pins.fetch_add(1, Ordering::Acquire);
        let outcome = self.restore_pinned();
        self.unpin();
        outcome
    }

    fn restore_pinned(self: &Arc<Storage>) -> Result<()> {
        let mut place = self.place.lock();
        let (origin, kind) = match &*place {
            Place::Resident(_) | Place::Foreign(_) | Place::Moving => return Ok(()),
            Place::Spilled(spilled) => (spilled.origin(), self.kind()),
            Place::Dropped(recipe) => (recipe.origin(), self.kind()),
        };
        let block = self.allocate_home(origin, kind)?;
        self.uses.renew();
        self.address.store(block.address(), Ordering::Release);
        match &*place {
            Place::Spilled(spilled) => {
                self.move_bytes(spilled.address(), block.address())?;
            }
            Place::Dropped(recipe) => recipe.cook(self)?,
            Place::Resident(_) | Place::Foreign(_) | Place::Moving => {}
        }
        // The old place is dropped after the lock: a recipe can hold a long chain of storages.
        let old = std::mem::replace(&mut *place, Place::Resident(block));
        self.pins.fetch_and(!ABSENT, Ordering::Release);
        drop(place);
        drop(old);
        Ok(())
    }

    fn allocate_home(&self, origin: OriginId, kind: Kind) -> Result<Block> {
        let stream = self.uses.home();
        self.entry.arena().allocate(&Request {
            kind,
            stream,
            // What lies in a private pool is never taken away, so it never comes home.
            ..Request::new(self.bytes, origin)
        })
    }

    /// Tells the arena which other streams may still use `block`, which is about to be freed.
    pub(super) fn hand_to_streams(&self, block: &Block) {
        self.uses.for_each_foreign(|stream| block.record_use(stream));
    }
}
