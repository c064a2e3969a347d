//! Recipes: how a storage whose bytes were dropped is computed again.
//!
//! Note [Recipes]
//! While a device takes memory back, each new storage remembers the operation that made it and, weakly, the storages it was made
//! from with their versions. It can be dropped while nobody wrote it and all of those are alive and unwritten; from then on it
//! holds them strongly, and they know of it: a later write to one first brings its dependents home.
//! Operations are values without hidden state (random ones carry their seed and offset), so running one again gives the same bytes.
//!
//! A write and a drop may race: the writer counts itself in before it looks for dependents and out after the version has
//! changed, and nothing is dropped with a recipe that reads a storage while that has a writer.

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use plimsoll_core::Result;
use plimsoll_memory::OriginId;
use smallvec::SmallVec;

use super::Storage;
use super::claim::Claim;
use super::pin::Pins;
use crate::Tensor;
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

/// What a storage knows of how it was made, and of what was made from it. Nothing unless its device takes memory back.
#[derive(Default)]
pub(crate) struct Provenance(OnceLock<Box<Known>>);

#[derive(Default)]
struct Known {
    remembered: OnceLock<Remembered>,
    dependents: Mutex<Dependents>,
}

impl Provenance {
    fn known(&self) -> &Known {
        self.0.get_or_init(Box::default)
    }

    fn dependents(&self) -> MutexGuard<'_, Dependents> {
        self.known().dependents.lock()
    }
}

#[derive(Default)]
struct Dependents {
    /// Dropped storages whose recipes read this one.
    dropped: Vec<Weak<Storage>>,
    /// Launches that are about to write this storage, or do.
    writers: u32,
}

/// Notes how new storages were made. Called under the launch's claim.
pub(crate) fn remember(
    op: &dyn Operation,
    inputs: &[&Tensor],
    outputs: &[Tensor],
    origin: OriginId,
) {
    // One storage, one recipe: an operation with two results would be run twice and half thrown away.
    let [output] = outputs else { return };
    let ingredients = inputs
        .iter()
        .map(|i| (Arc::downgrade(i.storage()), i.meta().clone(), i.version()))
        .collect();
    let _ = output.storage().provenance.known().remembered.set(Remembered {
        op: op.share(),
        ingredients,
        output: output.meta().clone(),
        origin,
    });
}

/// Before `outputs` of a device that takes memory back are written: brings home, and keeps there, whatever was dropped with a recipe that reads one of them.
pub(crate) fn pin_dependents(outputs: &[Tensor]) -> Result<Writing<'_>> {
    for output in outputs {
        output.storage().provenance.dependents().writers += 1;
    }
    let mut writing = Writing { outputs, home: Vec::new() };
    for output in outputs {
        // Another writer of the same storage may be bringing them home at this moment: they stay in the list until they are, so that this one
        // waits for them too (a pin does) instead of writing under their recipes.
        let dropped = output.storage().provenance.dependents().dropped.clone();
        for dependent in dropped.iter().filter_map(Weak::upgrade) {
            dependent.pin()?;
            writing.home.push(dependent);
        }
        // All are home and pinned, and while there is a writer nothing is added.
        output.storage().provenance.dependents().dropped.clear();
    }
    Ok(writing)
}

/// Storages that are about to be written, with what was made from them kept at home meanwhile.
#[must_use = "the dependents are let go when this is dropped"]
pub(crate) struct Writing<'a> {
    outputs: &'a [Tensor],
    home: Vec<Arc<Storage>>,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        for storage in &self.home {
            storage.unpin();
        }
        for output in self.outputs {
            output.storage().provenance.dependents().writers -= 1;
        }
    }
}

impl Storage {
    /// The recipe, if it would still give the present bytes; from now on writers of its ingredients know of this storage.
    pub(super) fn recipe(self: &Arc<Storage>) -> Option<Recipe> {
        let remembered = self.provenance.0.get()?.remembered.get()?;
        if self.version() != 0 {
            return None;
        }
        let mut ingredients = SmallVec::new();
        for (weak, meta, version) in &remembered.ingredients {
            let storage = weak.upgrade()?;
            {
                let mut dependents = storage.provenance.dependents();
                if dependents.writers > 0 || storage.version() != *version {
                    return None;
                }
                let list = &mut dependents.dropped;
                if list.len() == list.capacity() {
                    list.retain(|dropped| dropped.strong_count() > 0);
                }
                list.push(Arc::downgrade(self));
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
}

impl Recipe {
    pub(super) fn origin(&self) -> OriginId {
        self.origin
    }

    /// The storages that it reads.
    pub(super) fn ingredients(&self) -> impl Iterator<Item = &Arc<Storage>> {
        self.ingredients.iter().map(|(storage, _)| storage)
    }

    /// Runs into the memory that `target` now has; its place is locked and says that it is away.
    pub(super) fn cook(&self, target: &Arc<Storage>) -> Result<()> {
        let entry = target.entry;
        let inputs: SmallVec<[Tensor; 2]> = self
            .ingredients
            .iter()
            .map(|(storage, meta)| Tensor::new(storage.clone(), meta.clone()))
            .collect();
        let output = Tensor::new(target.clone(), self.output.clone());
        let inputs: SmallVec<[&Tensor; 2]> = inputs.iter().collect();
        let mut pins = Pins::default();
        for input in &inputs {
            pins.add(input.storage())?;
        }
        let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|input| input.meta()).collect();
        let output_metas: Metas = smallvec::smallvec![self.output.clone()];
        let bytes = launch::workspace_bytes(entry, self.op.as_ref(), &metas, &output_metas);
        let workspace = launch::Scratch::allocate(entry, bytes, self.origin)?;
        let _claim = Claim::new(inputs.iter().map(|i| i.storage().as_ref()), std::iter::empty());
        let outputs = std::slice::from_ref(&output);
        launch::launch(entry, self.op.as_ref(), &inputs, outputs, &workspace, self.origin)
    }
}
