//! Writes and recipes: what was dropped with a recipe that reads a storage comes home before that
//! storage is written, or before its address goes to somebody who may write it.
//!
//! A write and a drop may race: the writer counts itself in before it looks for dependents and out
//! after the version has changed, and nothing is dropped with a recipe that reads a storage while
//! that has a writer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use plimsoll_core::Result;

use super::Storage;
use crate::Tensor;

/// What was made from a storage and is gone.
#[derive(Default)]
pub(super) struct Dependents {
    /// Dropped storages whose recipes read this one.
    dropped: Vec<Weak<Storage>>,
    /// Launches that are about to write this storage, or do.
    writers: u32,
}

/// Before `outputs` of a device that takes memory back are written: brings home, and keeps there,
/// whatever was dropped with a recipe that reads one of them.
pub(crate) fn pin_dependents(outputs: &[Tensor]) -> Result<Writing<'_>> {
    for output in outputs {
        output.storage().provenance.known().dependents.lock().writers += 1;
    }
    let mut writing = Writing { outputs, home: Vec::new() };
    for output in outputs {
        // Another writer of the same storage may be bringing them home at this moment: they stay in
        // the list until they are, so that this one waits for them too (a pin does) instead of
        // writing under their recipes.
        output.storage().pin_dropped(&mut writing.home)?;
        // All are home and pinned, and while there is a writer nothing is added.
        output.storage().provenance.known().dependents.lock().dropped.clear();
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
            output.storage().provenance.known().dependents.lock().writers -= 1;
        }
    }
}

impl Storage {
    fn pin_dropped(&self, home: &mut Vec<Arc<Storage>>) -> Result<()> {
        let Some(known) = self.provenance.if_known() else { return Ok(()) };
        let dropped = known.dependents.lock().dropped.clone();
        for dependent in dropped.iter().filter_map(Weak::upgrade) {
            dependent.pin()?;
            home.push(dependent);
        }
        Ok(())
    }

    /// Makes this an ingredient of `dependent`'s recipe, which read it after so many `writes`.
    /// Refused if it was written since, or may be at any time.
    pub(super) fn serve(&self, dependent: &Arc<Storage>, writes: u32) -> bool {
        let mut dependents = self.provenance.known().dependents.lock();
        if dependents.writers > 0 || self.writes() != writes || self.is_exposed() {
            return false;
        }
        let list = &mut dependents.dropped;
        if list.len() == list.capacity() {
            list.retain(|dropped| dropped.strong_count() > 0);
        }
        list.push(Arc::downgrade(dependent));
        true
    }

    /// Whether somebody outside knows the address of the bytes, and may write them without a
    /// version being counted.
    #[inline]
    pub(crate) fn is_exposed(&self) -> bool {
        self.exposed.load(Ordering::Acquire)
    }

    /// The address of the bytes goes out. For good: nobody says when the last writer outside is
    /// done. Whatever was dropped with a recipe that reads them comes home first.
    pub(crate) fn expose(&self) -> Result<()> {
        if self.is_exposed() {
            return Ok(());
        }
        {
            // Under the lock, so that no recipe takes this as an ingredient from now on.
            let reclaimable = self.entry.reclaimable().is_on();
            let _dependents = reclaimable.then(|| self.provenance.known().dependents.lock());
            self.exposed.store(true, Ordering::Release);
        }
        let mut home = Vec::new();
        let outcome = self.pin_dropped(&mut home);
        home.iter().for_each(|storage| storage.unpin());
        outcome
    }
}
