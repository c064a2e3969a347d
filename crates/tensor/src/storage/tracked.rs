//! The storages of a device that takes memory back: a list, oldest first, of what could be taken. Off (and free of cost) unless the
//! configuration key `spill` or the chaos of tests asks for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use plimsoll_memory::Reclaim;

use super::Storage;
use crate::device::Entry;

/// The storages of one device that may lose their memory while nobody uses them.
#[derive(Default)]
pub(crate) struct Tracked {
    on: AtomicBool,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    storages: Vec<Weak<Storage>>,
    /// Dead ones are swept out when the list is this long.
    sweep_at: usize,
}

impl Tracked {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// From now on new storages are listed and remember how they were made.
    pub(crate) fn turn_on(&self) {
        self.on.store(true, Ordering::Relaxed);
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
    fn living(&self) -> Vec<Arc<Storage>> {
        self.list.lock().storages.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Reclaim for Entry {
    /// Spills storages that nobody has pinned, oldest first: in training those are needed last. What cannot be spilled (the host
    /// is full) is dropped if it has a recipe; dropping comes second because a recipe keeps its ingredients alive.
    fn reclaim(&self, wanted_bytes: usize) -> usize {
        let living = self.tracked().living();
        let mut freed = 0;
        for may_drop in [false, true] {
            for storage in &living {
                if freed >= wanted_bytes {
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
