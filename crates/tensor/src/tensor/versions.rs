//! Which writes a tensor counts as versions. All tensors on one storage count together, so that
//! autograd sees a write through any of them; what [`Tensor::data`](crate::Tensor::data) gave, with
//! its views, counts apart, so that graphs made from the original do not see its writes.
//!
//! Whether bytes changed at all, for recipes, is the storage's own affair (`Storage::writes`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_memory::OriginId;

use crate::storage::Storage;

/// A count of writes: the storage's, or one that some handles share among themselves.
#[derive(Clone, Default)]
pub(crate) struct Versions {
    own: Option<Arc<AtomicU32>>,
    /// What a tensor had counted before it got the memory that it has now.
    before: u32,
}

impl Versions {
    /// A new count, beside the storage's.
    pub(crate) fn apart() -> Versions {
        Versions::apart_from(0)
    }

    /// A count of its own, which goes on from `count`: of a tensor that got other memory, whose
    /// writes by others are not its own.
    pub(crate) fn apart_from(count: u32) -> Versions {
        Versions { own: Some(Arc::new(AtomicU32::new(count))), before: 0 }
    }

    /// The count of `storage`, which goes on from `count`: of a tensor that comes to stand for it.
    pub(crate) fn going_on(storage: &Storage, count: u32) -> Versions {
        Versions { own: None, before: count.wrapping_sub(storage.version()) }
    }

    /// How many writes there were.
    #[inline]
    pub(crate) fn now(&self, storage: &Storage) -> u32 {
        let counted = match &self.own {
            None => storage.version(),
            Some(own) => own.load(Ordering::Acquire),
        };
        counted.wrapping_add(self.before)
    }

    /// Counts a write by `writer`. Called under a write claim.
    pub(crate) fn written_by(&self, storage: &Storage, writer: OriginId) {
        match &self.own {
            None => storage.written_by(writer),
            Some(own) => {
                storage.written_aside(writer);
                own.fetch_add(1, Ordering::Release);
            }
        }
    }
}
