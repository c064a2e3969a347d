//! The storages of a device that takes memory back: a list, oldest first, of what could be taken.
//! Off (and free of cost) unless the configuration key `spill` or the chaos of tests asks for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use plimsoll_memory::{Owner, Reclaim, Shortage};

use super::Storage;
use crate::device::Entry;
use crate::lock::Mutex;

/// The storages of one device that may lose their memory while nobody uses them.
#[derive(Default)]
pub(crate) struct Reclaimable {
    on: AtomicBool,
    list: Mutex<List>,
    /// Bytes of records, for `provenance.rs`.
    record_bytes: AtomicUsize,
    /// Bytes of storages that lie in host memory at the moment.
    spilled_bytes: AtomicUsize,
}

#[derive(Default)]
struct List {
    storages: Vec<Weak<Storage>>,
    /// Dead ones are swept out when the list is this long.
    sweep_at: usize,
}

impl Reclaimable {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// From now on new storages are listed and remember how they were made.
    pub(crate) fn turn_on(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    pub(super) fn record_bytes(&self) -> &AtomicUsize {
        &self.record_bytes
    }

    pub(crate) fn spilled_bytes(&self) -> &AtomicUsize {
        &self.spilled_bytes
    }

    pub(super) fn add(&self, storage: &Arc<Storage>) {
        let mut list = self.list.lock();
        if list.storages.len() >= list.sweep_at.max(64) {
            list.storages.retain(|storage| storage.strong_count() > 0);
            list.sweep_at = 2 * list.storages.len();
        }
        list.storages.push(Arc::downgrade(storage));
    }

    /// One of them, by a random number.
    pub(super) fn pick(&self, random: u64) -> Option<Arc<Storage>> {
        let list = self.list.lock();
        let index = random.checked_rem(list.storages.len() as u64)?;
        list.storages[index as usize].upgrade()
    }

    /// All that live, oldest first.
    pub(crate) fn living(&self) -> Vec<Arc<Storage>> {
        self.list.lock().storages.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Reclaim for Entry {
    /// Takes the cheapest neighbours that make room for the block that is missing. Where no run of
    /// neighbours can go, whatever can, oldest first: in training that is needed last.
    fn reclaim(&self, shortage: &Shortage) -> usize {
        let living = self.reclaimable().living();
        let by_owner = costs(&living);
        let cost = |owner: Owner| by_owner.get(&owner).map(|(cost, _)| *cost);
        if let Some(run) = self.arena().cheapest_run(shortage, cost) {
            let storages = run.owners.iter().filter_map(|owner| by_owner.get(owner));
            let freed = storages.map(|(_, storage)| take(storage)).sum();
            if freed > 0 {
                return freed;
            }
        }
        let mut freed = 0;
        for may_drop in [false, true] {
            for storage in &living {
                if freed >= shortage.wanted_bytes {
                    return freed;
                }
                if storage.nbytes() > 0 && storage.try_take_back(may_drop) {
                    freed += storage.nbytes();
                }
            }
        }
        freed
    }
}

/// What it costs to take each storage that could be taken: its bytes, and up to as much again the
/// newer it is.
fn costs(living: &[Arc<Storage>]) -> HashMap<Owner, (u64, &Arc<Storage>)> {
    let count = living.len() as u64;
    let aged = |age: usize, bytes: usize| bytes as u64 + bytes as u64 * age as u64 / count;
    let free = living.iter().enumerate().filter(|(_, storage)| storage.is_free_to_take());
    let cost = |(age, storage): (usize, _)| {
        let storage: &Arc<Storage> = storage;
        (Owner::new(storage.number), (aged(age, storage.nbytes()), storage))
    };
    free.map(cost).collect()
}

/// Spills a storage. What cannot be spilled (the host is full) is dropped if it has a recipe;
/// dropping comes second because a recipe keeps its ingredients alive. Returns how many bytes went.
fn take(storage: &Arc<Storage>) -> usize {
    let went = storage.try_take_back(false) || storage.try_take_back(true);
    if went { storage.nbytes() } else { 0 }
}
