//! Memory that may be taken away, for watches: a storage counts as it would had it stayed on its
//! device, whether it is there, was spilled to the host or dropped with a recipe. Whoever holds it
//! holds it still. The books alone would see a block go and another come, made in a later step.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plimsoll_core::Device;
use plimsoll_watch::Marks;

use super::growth_watch::{LiveBlock, Place};
use crate::device;
use crate::storage::Storage;

/// The storages of all devices that take memory back; none on those that do not.
pub(crate) struct Movable {
    storages: Vec<Arc<Storage>>,
    /// From the block that has the bytes now, the host's where they were spilled.
    keys: HashMap<Place, Place>,
}

impl Movable {
    /// Looks now.
    pub(crate) fn look() -> Movable {
        let mut storages: Vec<Arc<Storage>> = Vec::new();
        device::for_each(|entry| {
            if entry.reclaimable().is_on() {
                storages.extend(entry.reclaimable().living());
            }
        });
        let places = storages.iter().filter_map(|storage| {
            let key = storage.watch_key()?;
            Some((storage.block_place()?, key))
        });
        let keys = places.collect();
        Movable { storages, keys }
    }

    /// What tells the memory of this block apart: the storage's own key if one of these has it.
    pub(crate) fn key_of(&self, block: Place) -> Place {
        self.keys.get(&block).copied().unwrap_or(block)
    }

    /// Whether a block has the bytes of one of these.
    pub(crate) fn has(&self, block: Place) -> bool {
        self.keys.contains_key(&block)
    }

    /// All of a device, or of every one, as blocks; `made` tells the step of each by its number.
    ///
    /// What lives only to be an ingredient of recipes would be gone had nothing been dropped. It is
    /// not counted by itself, but as what the dropped one takes, if that is more than it had.
    pub(crate) fn blocks(&self, device: Option<Device>, made: &Marks) -> Vec<LiveBlock> {
        let spare = self.ingredients_alone();
        let mut counted = HashSet::new();
        let mut blocks = Vec::new();
        for storage in &self.storages {
            let is_watched = device.is_none_or(|device| device == storage.device());
            if !is_watched || spare.contains(&address_of(storage)) {
                continue;
            }
            if let (Some(place), Some((origin, bytes))) = (storage.watch_key(), storage.at_home()) {
                let bytes = bytes.max(kept_for_recipe(storage, &spare, &mut counted));
                if bytes > 0 {
                    let (kind, step) = (storage.kind(), made.step_of(storage.number().into()));
                    blocks.push(LiveBlock { place, origin, kind, bytes, step });
                }
            }
        }
        blocks
    }

    /// The addresses of those that nobody but recipes holds.
    fn ingredients_alone(&self) -> HashSet<usize> {
        let mut by_recipes: HashMap<usize, usize> = HashMap::new();
        for storage in &self.storages {
            storage.each_ingredient(&mut |held, _, _| {
                *by_recipes.entry(address_of(held)).or_default() += 1;
            });
        }
        // One is here.
        let is_alone = |storage: &&Arc<Storage>| {
            let recipes = by_recipes.get(&address_of(storage)).copied().unwrap_or(0);
            recipes > 0 && Arc::strong_count(storage) <= recipes + 1
        };
        self.storages.iter().filter(is_alone).map(address_of).collect()
    }
}

fn address_of(storage: &Arc<Storage>) -> usize {
    Arc::as_ptr(storage).addr()
}

/// Bytes that live only so that a dropped storage can be made again, as far as they are not counted
/// yet.
fn kept_for_recipe(
    storage: &Arc<Storage>,
    spare: &HashSet<usize>,
    counted: &mut HashSet<usize>,
) -> usize {
    if spare.is_empty() {
        return 0;
    }
    let mut bytes = 0;
    let mut stack = vec![storage.clone()];
    while let Some(dropped) = stack.pop() {
        dropped.each_ingredient(&mut |held, _, _| {
            if spare.contains(&address_of(held)) && counted.insert(address_of(held)) {
                stack.push(held.clone());
            }
        });
        if !Arc::ptr_eq(&dropped, storage) && dropped.block_place().is_some() {
            bytes += dropped.at_home().map_or(0, |(_, bytes)| bytes);
        }
    }
    bytes
}
