//! Taking memory back and bringing it home: a storage is spilled to host memory, or dropped with a recipe that computes
//! it again. No operation knows; `pin` brings a storage home before a kernel sees it.
//!
//! Note [Recipes]
//! While taking back is on, each new storage remembers the operation that made it and, weakly, the storages it was made
//! from with their versions. It can be dropped while nobody wrote it and all of those are alive and unwritten; from then on it
//! holds them strongly, and they know of it: a later write to one first brings its dependents home.
//! Operations are values without hidden state (random ones carry their seed and offset), so running one again gives the same bytes.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use plimsoll_core::Result;
use plimsoll_memory::{Block, Kind, OriginId, Request};
use smallvec::SmallVec;

use super::Storage;
use super::claim::Claim;
use super::pin::{ABSENT, Pins};
use super::place::Place;
use crate::Tensor;
use crate::device::Entry;
use crate::launch;
use crate::operation::{Metas, Operation};
use plimsoll_kernels::Meta;

/// How a dropped storage is computed again. Holds what it needs.
pub(crate) struct Recipe {
    op: Arc<dyn Operation>,
    ingredients: SmallVec<[(Arc<Storage>, Meta); 2]>,
    output: Meta,
    origin: OriginId,
}

/// How a resident storage was made; becomes a [`Recipe`] when it is dropped.
struct Remembered {
    op: Arc<dyn Operation>,
    ingredients: SmallVec<[(Weak<Storage>, Meta, u32); 2]>,
    output: Meta,
    origin: OriginId,
}

/// What a storage knows for being taken back.
#[derive(Default)]
pub(crate) struct Residency {
    remembered: OnceLock<Box<Remembered>>,
    /// Dropped storages whose recipes read this one.
    dependents: Mutex<Vec<Weak<Storage>>>,
}

impl Residency {
    pub(super) const fn new() -> Residency {
        Residency { remembered: OnceLock::new(), dependents: Mutex::new(Vec::new()) }
    }
}

/// Lets the chaos of tests take a storage away. Costs one load when it is off.
#[inline]
pub(crate) fn between_operations(entry: &'static Entry) {
    if entry.chaos().is_on() {
        entry.chaos().strike();
    }
}

/// Notes how a new storage was made, if its device takes memory back.
pub(crate) fn remember_recipe(
    entry: &'static Entry,
    op: &dyn Operation,
    inputs: &[&Tensor],
    outputs: &[Tensor],
    origin: OriginId,
) {
    if !entry.chaos().is_on() {
        return;
    }
    for output in outputs {
        entry.chaos().track(output.storage());
    }
    // One storage, one recipe: an operation with two results would be run twice and half thrown away.
    if let [output] = outputs {
        let ingredients = inputs
            .iter()
            .map(|i| (Arc::downgrade(i.storage()), i.meta().clone(), i.version()))
            .collect();
        let _ = output.storage().residency.remembered.set(Box::new(Remembered {
            op: op.share(),
            ingredients,
            output: output.meta().clone(),
            origin,
        }));
    }
}

/// Brings home, and keeps there, whatever was dropped with a recipe that reads one of `outputs`.
pub(crate) fn pin_dependents(outputs: &[Tensor]) -> Result<Dependents> {
    let mut home = Dependents(Vec::new());
    for output in outputs {
        let dependents = std::mem::take(&mut *output.storage().residency.dependents.lock());
        for dependent in dependents.iter().filter_map(Weak::upgrade) {
            dependent.pin()?;
            home.0.push(dependent);
        }
    }
    Ok(home)
}

/// Storages kept at home while what they were made from is written.
pub(crate) struct Dependents(Vec<Arc<Storage>>);

impl Drop for Dependents {
    fn drop(&mut self) {
        for storage in &self.0 {
            storage.unpin();
        }
    }
}

impl Storage {
    /// Tries to free this storage's device memory; `false` if it is in use or there is nowhere to put it.
    pub(crate) fn try_take_back(self: &Arc<Storage>, may_drop: bool) -> bool {
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
            for (ingredient, _) in &recipe.ingredients {
                ingredient.residency.dependents.lock().push(Arc::downgrade(self));
            }
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

    /// The recipe, if it would still give the present bytes.
    fn recipe(&self) -> Option<Recipe> {
        let remembered = self.residency.remembered.get()?;
        if self.version() != 0 {
            return None;
        }
        let mut ingredients = SmallVec::new();
        for (weak, meta, version) in &remembered.ingredients {
            let storage = weak.upgrade()?;
            if storage.version() != *version {
                return None;
            }
            ingredients.push((storage, meta.clone()));
        }
        Some(Recipe {
            op: remembered.op.clone(),
            ingredients,
            output: remembered.output.clone(),
            origin: remembered.origin,
        })
    }

    fn spill(&self, block: &Block) -> Result<Block> {
        let (origin, kind) = (block.origin(), self.kind());
        let spilled = self.entry.spill_arena().allocate(&Request {
            bytes: self.bytes,
            origin,
            kind,
            stream: plimsoll_memory::StreamId::DEFAULT,
        })?;
        // Nobody has it pinned, so all work that writes it is queued and noted.
        self.entry.order(self.home, self, false)?;
        self.move_bytes(block.address(), spilled.address())?;
        Ok(spilled)
    }

    /// Copies all bytes on the home stream and waits. An operation that failed meanwhile is not told of: nobody asked.
    fn move_bytes(&self, from: usize, to: usize) -> Result<()> {
        self.entry.copy_on_stream(self.home, from, to, self.bytes, None)?;
        self.entry.record(self.home).wait();
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
                // Pinned while its recipe runs: a link of the chain has no pin of the caller's.
                top.pins.fetch_add(1, Ordering::Acquire);
                let restored = top.restore();
                top.unpin();
                restored?;
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
                .ingredients
                .iter()
                .filter(|(storage, _)| storage.pins.load(Ordering::Acquire) & ABSENT != 0)
                .map(|(storage, _)| storage.clone())
                .collect(),
            _ => SmallVec::new(),
        }
    }

    fn restore(self: &Arc<Storage>) -> Result<()> {
        let mut place = self.place.lock();
        let (origin, kind) = match &*place {
            Place::Resident(_) | Place::Moving => return Ok(()),
            Place::Spilled(spilled) => (spilled.origin(), self.kind()),
            Place::Dropped(recipe) => (recipe.origin, self.kind()),
        };
        let block = self.allocate_home(origin, kind)?;
        self.uses.renew(self.home);
        self.address.store(block.address(), Ordering::Release);
        match &*place {
            Place::Spilled(spilled) => {
                self.move_bytes(spilled.address(), block.address())?;
            }
            Place::Dropped(recipe) => self.cook(recipe)?,
            Place::Resident(_) | Place::Moving => {}
        }
        // The old place is dropped after the lock: a recipe can hold a long chain of storages.
        let old = std::mem::replace(&mut *place, Place::Resident(block));
        self.pins.fetch_and(!ABSENT, Ordering::Release);
        drop(place);
        drop(old);
        Ok(())
    }

    fn allocate_home(&self, origin: OriginId, kind: Kind) -> Result<Block> {
        let stream = self.home;
        self.entry.arena().allocate(&Request { bytes: self.bytes, origin, kind, stream })
    }

    /// Runs the recipe into the memory that `address` points to.
    fn cook(self: &Arc<Storage>, recipe: &Recipe) -> Result<()> {
        let inputs: SmallVec<[Tensor; 2]> = recipe
            .ingredients
            .iter()
            .map(|(storage, meta)| Tensor::new(storage.clone(), meta.clone()))
            .collect();
        let output = Tensor::new(self.clone(), recipe.output.clone());
        let inputs: SmallVec<[&Tensor; 2]> = inputs.iter().collect();
        let mut pins = Pins::default();
        for input in &inputs {
            pins.add(input.storage())?;
        }
        let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|input| input.meta()).collect();
        let output_metas: Metas = smallvec::smallvec![recipe.output.clone()];
        let bytes = launch::workspace_bytes(self.entry, recipe.op.as_ref(), &metas, &output_metas);
        let workspace = launch::Scratch::allocate(self.entry, bytes, recipe.origin)?;
        let _claim = Claim::new(inputs.iter().map(|i| i.storage().as_ref()), std::iter::empty());
        let outputs = std::slice::from_ref(&output);
        launch::launch(self.entry, recipe.op.as_ref(), &inputs, outputs, &workspace, recipe.origin)
    }

    /// Tells the arena which other streams may still use `block`, which is about to be freed.
    fn hand_to_streams(&self, block: &Block) {
        self.uses.for_each_other_than(self.home, |stream| block.record_use(stream));
    }
}
