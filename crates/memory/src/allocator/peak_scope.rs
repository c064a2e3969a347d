//! The peak of a region of the program, as a guard. Scopes nest, may end in any order, count what
//! every thread does on the device, and do not notice when the peaks of the statistics are reset.

use crate::allocator::arena::Arena;

/// Measures peaks from its opening until it is dropped.
///
/// ```
/// # use plimsoll_core::Device;
/// # use plimsoll_memory::{Arena, Configuration, DrySource, OriginId, Request};
/// # let source = Box::new(DrySource::new(None));
/// # let arena = Arena::open(Device::cpu(), source, &Configuration::default());
/// let scope = arena.scoped_peak();
/// drop(arena.allocate(&Request::new(4096, OriginId::UNKNOWN))?);
/// arena.reset_peak_stats();
/// assert_eq!(scope.allocated_bytes_peak(), 4096);
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
#[derive(Debug)]
pub struct PeakScope {
    arena: &'static Arena,
    id: u64,
}

impl Arena {
    /// Opens a scope; its peaks start at what there is now.
    #[must_use = "a scope measures only while it lives"]
    pub fn scoped_peak(&'static self) -> PeakScope {
        let id = self.state().ledger.open_scope();
        PeakScope { arena: self, id }
    }
}

impl PeakScope {
    /// The most bytes that were allocated at once since it was opened.
    pub fn allocated_bytes_peak(&self) -> usize {
        self.arena.state().ledger.scope_peaks(self.id).0
    }

    /// The most bytes that were reserved at once since it was opened.
    pub fn reserved_bytes_peak(&self) -> usize {
        self.arena.state().ledger.scope_peaks(self.id).1
    }
}

impl Drop for PeakScope {
    fn drop(&mut self) {
        self.arena.state().ledger.close_scope(self.id);
    }
}
