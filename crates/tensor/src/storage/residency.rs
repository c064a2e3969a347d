//! Taking memory back and bringing it home: a storage is spilled to host memory, or dropped with a
//! recipe that computes it again (`recipe.rs`). No operation knows; `pin` brings a storage home
//! before a kernel sees it. Who takes back, and when: `reclaim.rs` (no room left) and `chaos.rs`
//! (tests).
//!
//! Note [Nobody waits for a spill]
//! A spill is a copy on the storage's own stream, and so is the way back: the stream orders them
//! with each other, and with whatever uses the device memory next. Only the host memory has no
//! stream. It is pinned, and kept until the fence behind the last copy is passed
//! (`Entry::keep_until`). Where pinned memory is full, ordinary host memory takes the bytes, and
//! the host waits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_core::{Error, Result};
use plimsoll_memory::{Block, Kind, OriginId, Owner, Request, StreamId};
use smallvec::SmallVec;

use super::Storage;
use super::pin::ABSENT;
use super::whereabouts::{Spilled, Whereabouts};
use crate::device;

impl Storage {
    /// Tries to free this storage's device memory; `false` if it is in use or there is nowhere to
    /// put it.
    pub(crate) fn try_take_back(self: &Arc<Storage>, may_drop: bool) -> bool {
        if !self.movable {
            return false;
        }
        let Some(mut place) = self.place.try_lock() else { return false };
        let free = self.pins.compare_exchange(0, ABSENT, Ordering::Acquire, Ordering::Relaxed);
        if !matches!(*place, Whereabouts::Resident(_)) || free.is_err() {
            if free.is_ok() {
                self.pins.fetch_and(!ABSENT, Ordering::Release);
            }
            return false;
        }
        let Whereabouts::Resident(block) = std::mem::replace(&mut *place, Whereabouts::Moving)
        else {
            return false;
        };
        if may_drop && let Some(mut recipe) = self.recipe() {
            recipe.home = (block.origin(), block.allocated_bytes());
            *place = Whereabouts::Dropped(Box::new(recipe));
            self.hand_to_streams(&block);
            return true;
        }
        match self.spill(&block) {
            Ok(spilled) => {
                self.hand_to_streams(&block);
                *place = Whereabouts::Spilled(spilled);
                true
            }
            Err(_) => {
                *place = Whereabouts::Resident(block);
                self.pins.fetch_and(!ABSENT, Ordering::Release);
                false
            }
        }
    }

    /// Whether it could be taken back at this moment, as far as one can tell without trying.
    pub(super) fn is_free_to_take(&self) -> bool {
        self.movable && self.bytes > 0 && self.pins.load(Ordering::Relaxed) == 0
    }

    /// See Note [Nobody waits for a spill].
    fn spill(&self, block: &Block) -> Result<Spilled> {
        let to = self.host_block(block.origin())?;
        let home = self.uses.home();
        // A stream that captures would copy at each replay.
        self.check_stays(home)?;
        // Nobody has it pinned, so all work that writes it is queued and noted.
        self.entry.order_outside(home, self, false)?;
        self.entry.copy_on_stream(home, block.address(), to.address(), self.bytes, None)?;
        let arrives = self.entry.record(home);
        if !self.copies_alone(&to) {
            arrives.wait();
        }
        self.entry.reclaimable().spilled_bytes().fetch_add(self.bytes, Ordering::Relaxed);
        Ok(Spilled { block: to, arrives, home_bytes: block.allocated_bytes() })
    }

    /// Host memory for the bytes: pinned for a device that copies by itself, if there is any left.
    fn host_block(&self, origin: OriginId) -> Result<Block> {
        let (bytes, kind, stream) = (self.bytes, self.kind(), StreamId::DEFAULT);
        let request = Request { kind, stream, ..Request::new(bytes, origin) };
        if self.entry.is_asynchronous()
            && let Ok(block) = device::pinned_arena().allocate(&request)
        {
            return Ok(block);
        }
        self.entry.spill_arena().allocate(&request)
    }

    /// Whether the device copies from and to `block` while the host goes on.
    fn copies_alone(&self, block: &Block) -> bool {
        self.entry.is_asynchronous() && std::ptr::eq(block.arena(), device::pinned_arena())
    }

    /// Lets go of spilled bytes, which the device may still be copying.
    pub(super) fn let_go(&self, spilled: Spilled) {
        self.entry.reclaimable().spilled_bytes().fetch_sub(self.bytes, Ordering::Relaxed);
        let Spilled { block, arrives, .. } = spilled;
        if arrives.is_done() { drop(block) } else { self.entry.keep_until(arrives, block) }
    }

    /// Brings the bytes back to the device. The caller has added a pin, which keeps them there.
    ///
    /// A chain of dropped storages is rebuilt from its far end, with a stack of our own: it can be
    /// long. What a recipe reads is pinned from the moment it is home until the recipe has run: two
    /// ingredients that do not fit together would otherwise push each other out for ever, instead
    /// of ending in an error.
    #[cold]
    pub(super) fn bring_home(self: &Arc<Storage>) -> Result<()> {
        let mut stack = vec![Wanted::new(self.clone())];
        while let Some(top) = stack.last_mut() {
            match top.next_absent() {
                Some(absent) => stack.push(Wanted::new(absent)),
                None => {
                    top.storage.restore()?;
                    stack.pop();
                }
            }
        }
        Ok(())
    }

    /// Who made it, and the bytes that it has on its device, after rounding, or would have if it
    /// were there. `None` if they are not ours. Waits for whoever moves them.
    pub(crate) fn at_home(&self) -> Option<(OriginId, usize)> {
        match &*self.place.lock() {
            Whereabouts::Resident(block) => Some((block.origin(), block.allocated_bytes())),
            Whereabouts::Spilled(spilled) => Some((spilled.block.origin(), spilled.home_bytes)),
            Whereabouts::Dropped(recipe) => Some(recipe.home),
            Whereabouts::Foreign(_) | Whereabouts::Moving => None,
        }
    }

    /// The operation and origin of the recipe by which this dropped storage holds `ingredient`, if
    /// it does.
    pub(crate) fn recipe_holding(
        &self,
        ingredient: &Arc<Storage>,
    ) -> Option<(&'static str, OriginId)> {
        // Whoever holds the lock is bringing it home, or taking it away.
        match &*self.place.try_lock()? {
            Whereabouts::Dropped(recipe) => recipe
                .ingredients()
                .any(|held| Arc::ptr_eq(held, ingredient))
                .then(|| (recipe.operation(), recipe.origin())),
            _ => None,
        }
    }

    /// What the recipe of this storage holds, if it was dropped, with its operation and origin.
    pub(crate) fn each_ingredient(
        &self,
        look: &mut dyn FnMut(&Arc<Storage>, &'static str, OriginId),
    ) {
        // Whoever holds the lock is bringing it home, or taking it away.
        if let Some(place) = self.place.try_lock()
            && let Whereabouts::Dropped(recipe) = &*place
        {
            recipe.ingredients().for_each(|held| look(held, recipe.operation(), recipe.origin()));
        }
    }

    fn ingredients(&self) -> SmallVec<[Arc<Storage>; 2]> {
        match &*self.place.lock() {
            Whereabouts::Dropped(recipe) => recipe.ingredients().cloned().collect(),
            _ => SmallVec::new(),
        }
    }

    /// Brings this one home; its ingredients are there. Pinned while its recipe runs, as kernels
    /// want their operands: a link of a chain has no pin of the caller's.
    fn restore(self: &Arc<Storage>) -> Result<()> {
        self.pins.fetch_add(1, Ordering::Acquire);
        let outcome = self.restore_pinned();
        self.unpin();
        outcome
    }

    fn restore_pinned(self: &Arc<Storage>) -> Result<()> {
        let mut place = self.place.lock();
        let origin = match &*place {
            Whereabouts::Resident(_) | Whereabouts::Foreign(_) | Whereabouts::Moving => {
                return Ok(());
            }
            Whereabouts::Spilled(spilled) => spilled.block.origin(),
            Whereabouts::Dropped(recipe) => recipe.origin(),
        };
        self.check_stays(self.uses.home())?;
        self.check_stays(self.entry.current_stream())?;
        let block = self.allocate_home(origin, self.kind())?;
        self.uses.renew();
        self.address.store(block.address(), Ordering::Release);
        match &mut *place {
            Whereabouts::Spilled(spilled) => {
                let home = self.uses.home();
                let (from, to) = (spilled.block.address(), block.address());
                self.entry.copy_on_stream(home, from, to, self.bytes, None)?;
                spilled.arrives = self.entry.record(home);
                if !self.copies_alone(&spilled.block) {
                    spilled.arrives.wait();
                }
            }
            Whereabouts::Dropped(recipe) => recipe.cook(self)?,
            Whereabouts::Resident(_) | Whereabouts::Foreign(_) | Whereabouts::Moving => {}
        }
        // The old place is dropped after the lock: a recipe can hold a long chain of storages.
        let old = std::mem::replace(&mut *place, Whereabouts::Resident(block));
        self.pins.fetch_and(!ABSENT, Ordering::Release);
        drop(place);
        match old {
            Whereabouts::Spilled(spilled) => self.let_go(spilled),
            old => drop(old),
        }
        Ok(())
    }

    /// Refuses to move bytes by a stream that captures: what moves them would be written down.
    fn check_stays(&self, stream: StreamId) -> Result<()> {
        match self.entry.captures().of(stream) {
            None => Ok(()),
            Some(_) => Err(Error::driver(format!(
                "a capture on {} touches a tensor whose {} bytes were taken off it; run the captured function once \
                 before, with enough memory for all that it uses",
                self.entry.device(),
                self.bytes
            ))),
        }
    }

    fn allocate_home(&self, origin: OriginId, kind: Kind) -> Result<Block> {
        let stream = self.uses.home();
        // What lies in a private pool is never taken away, so it never comes home.
        let request = Request { kind, stream, ..Request::new(self.bytes, origin) };
        let block = self.entry.arena().allocate(&request)?;
        block.set_owner(Owner::new(self.number));
        Ok(block)
    }

    /// Tells the arena which other streams may still use `block`, which is about to be freed.
    pub(super) fn hand_to_streams(&self, block: &Block) {
        self.uses.for_each_foreign(|stream| block.record_use(stream));
    }
}

/// A storage on its way home, with those of its ingredients that are pinned for it.
struct Wanted {
    storage: Arc<Storage>,
    ingredients: SmallVec<[Arc<Storage>; 2]>,
    pinned: usize,
}

impl Wanted {
    fn new(storage: Arc<Storage>) -> Wanted {
        let ingredients = storage.ingredients();
        Wanted { storage, ingredients, pinned: 0 }
    }

    /// Pins its ingredients up to the next one that is away, and gives that.
    fn next_absent(&mut self) -> Option<Arc<Storage>> {
        while let Some(ingredient) = self.ingredients.get(self.pinned) {
            self.pinned += 1;
            if ingredient.movable && ingredient.pins.fetch_add(1, Ordering::Acquire) & ABSENT != 0 {
                return Some(ingredient.clone());
            }
        }
        None
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.ingredients[..self.pinned].iter().for_each(|ingredient| ingredient.unpin());
    }
}
