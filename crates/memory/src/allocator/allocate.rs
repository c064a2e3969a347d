//! The ladder: how a request becomes a block. Each rung is tried only when the ones above it
//! failed.
//!
//! ```text
//! 1 hit       a free block of this stream fits            nothing is asked of the system
//! 2 split     a larger one is cut
//! 3 collect   above the soft limit or the garbage threshold, cached segments go back first
//! 4 reserve   a new segment from the source, or pages of an expandable one, if the limits allow
//! 5 release   cached segments go back: oversize ones that make room, then all; reserve again
//! 6 tight     a segment no larger than needed, never an expandable one
//! 7 reclaim   the program gives live memory back (spilled or rebuilt later); rungs 4 to 6 again
//! 8 fail      an error with a report; nothing was lost, and the same call works once memory is free
//! ```
//!
//! Rungs 1 and 2 run under the arena's lock in one go; the others take it only for their own part.
//! Rung 4 keeps it while the source is asked, so that limits hold to the byte; memory goes back to
//! the source, and the program's reclaimer runs, while other threads may allocate.
//! The steps themselves are in `state.rs` (1, 2), `pages.rs` (4) and `release.rs` (3, 5); the
//! report is in `oom.rs`.

use std::num::NonZeroUsize;

use plimsoll_core::{Error, Result};

use crate::allocator::arena::Arena;
use crate::allocator::block::Block;
use crate::allocator::pages::Growth;
use crate::allocator::records::SegmentRecord;
use crate::allocator::request::Request;
use crate::allocator::shortage::Shortage;
use crate::allocator::size_class::Fit;
use crate::allocator::state::{Granted, State};
use crate::book::stamp::Stamp;
use crate::platform::source::{AddressSpace, SourceFull};

/// How often the program is asked for memory before an allocation fails. Each round frees
/// something, but other threads may take it first.
const RECLAIM_ROUNDS: usize = 16;

/// A segment could not be reserved.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// What the source said; `None` where a limit refused before it was asked.
    pub(crate) source: Option<SourceFull>,
    /// How many segments had gone back to the source by then. If more have since, by whichever
    /// thread, it is worth asking again.
    releases: u64,
}

impl Arena {
    /// Allocates memory. A request of 0 bytes succeeds and takes none.
    ///
    /// Where memory runs out, the error carries an [`OutOfMemory`](crate::OutOfMemory) report
    /// (`error.detail()`), nothing is lost, and the same call succeeds once memory was freed.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// let block = arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?;
    /// assert_eq!((block.requested_bytes(), block.allocated_bytes()), (1000, 1024));
    /// assert_eq!(block.address() % 64, 0);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    // Always inlined, and the block made at the end: one that is returned through memory and moved
    // at once is read back before it has left the processor's store buffer, which takes longer than
    // to make it.
    #[inline(always)]
    pub fn allocate(&'static self, request: &Request) -> Result<Block> {
        if request.bytes == 0 {
            return Ok(Block::empty(self, request));
        }
        let Some(fit) = self.rules().fit(request.bytes) else {
            return Err(beyond_any_memory(request));
        };
        let granted = match self.reuse(&fit, request) {
            Some(granted) => granted,
            None => self.climb(&fit, request)?,
        };
        Ok(Block::new(self, request, granted))
    }

    /// Rungs 1 and 2.
    #[inline(always)]
    fn reuse(&'static self, fit: &Fit, request: &Request) -> Option<Granted> {
        let stamp = Stamp::of_allocation(self.history_level());
        let mut state = self.state();
        state.ledger.history.prepare();
        state.tick += 1;
        state.finish_deferred();
        let granted = state.reuse(fit, request, stamp);
        if state.leaves_late {
            drop(state);
            self.release_eagerly();
        }
        granted
    }

    /// Rungs 3 to 8.
    #[cold]
    fn climb(&'static self, fit: &Fit, request: &Request) -> Result<Granted> {
        self.collect_excess(fit, request);
        let refusal = match self.grow(fit, request) {
            Ok(granted) => return Ok(granted),
            Err(refusal) => refusal,
        };
        if self.release_oversize(fit, request.stream) > 0
            && let Ok(granted) = self.grow(fit, request)
        {
            return Ok(granted);
        }
        if let Some(granted) = self.make_room(&refusal, fit, request) {
            return Ok(granted);
        }
        for _ in 0..RECLAIM_ROUNDS {
            if self.reclaim(&Shortage::of_block(fit, request)) == 0 {
                break;
            }
            let refusal = match self.grow(fit, request) {
                Ok(granted) => return Ok(granted),
                Err(refusal) => refusal,
            };
            if let Some(granted) = self.make_room(&refusal, fit, request) {
                return Ok(granted);
            }
        }
        Err(self.out_of_memory(fit, request, refusal))
    }

    /// Releases every cached segment and reserves again, the usual size or no more than needed. A
    /// source that refused is not asked the same again unless something went back to it since.
    fn make_room(
        &'static self,
        refusal: &Refusal,
        fit: &Fit,
        request: &Request,
    ) -> Option<Granted> {
        self.release_cached();
        if self.state().releases > refusal.releases {
            self.state().ledger.retried();
            if let Ok(granted) = self.grow(fit, request) {
                return Some(granted);
            }
        }
        if fit.tight_segment_bytes == fit.segment_bytes {
            return None;
        }
        self.reserve(fit.tight_segment_bytes, fit, request).ok()
    }

    /// Rung 4: a segment of the usual size, or pages where segments expand.
    fn grow(&'static self, fit: &Fit, request: &Request) -> Result<Granted, Refusal> {
        match self.source().address_space() {
            Ok(space) if self.rules().expandable => self.expand(space, fit, request),
            _ => self.reserve(fit.segment_bytes, fit, request),
        }
    }

    /// Maps pages of an expandable segment and hands out of it, or out of what became free
    /// meanwhile. Where the source refuses halfway, what was mapped by then is cached.
    fn expand(
        &'static self,
        space: &dyn AddressSpace,
        fit: &Fit,
        request: &Request,
    ) -> Result<Granted, Refusal> {
        let mut state = self.state();
        state.finish_deferred();
        if let Some(granted) = state.reuse(fit, request, Stamp::default()) {
            return Ok(granted);
        }
        let releases = state.releases;
        let refused = |full| Refusal { source: Some(full), releases };
        let growth = state.growth(fit, request);
        // Before a range is reserved, the most that its first pages can take.
        let bytes = growth.map_or(fit.segment_bytes, |growth| growth.bytes);
        let reserved = state.ledger.reserved_bytes() + state.leaving_bytes;
        if bytes > 0 && !state.limits.allow(reserved, bytes) {
            return Err(Refusal { source: None, releases });
        }
        let Growth { mut first, .. } = match growth {
            Some(growth) => growth,
            None => {
                let range_bytes = self.rules().range_bytes(fit);
                let address = space.reserve_range(range_bytes).map_err(refused)?;
                let first = state.add_range(address.get(), range_bytes, fit, request);
                Growth { first, bytes }
            }
        };
        while let Some((unmapped, bytes)) = state.next_to_map(first, fit) {
            let page_bytes = self.rules().page_bytes(fit.pool);
            let address = NonZeroUsize::new(state.blocks[unmapped].address);
            let mapped = match address {
                // SAFETY: the pages are the first of an unmapped block, which is part of a range
                // of this source and has no memory: blocks are unmapped from the start, or once
                // the source has taken their pages back (`Arena::give_back`). The lock is held.
                Some(address) => unsafe { space.map(address, bytes, page_bytes) },
                None => Err(SourceFull::because("a range starts at address 0")),
            };
            if let Err(full) = mapped {
                self.release_ranges(state.remove_unmapped_range(unmapped));
                return Err(refused(full));
            }
            first = state.mapped(unmapped, bytes, request);
        }
        Ok(state.take(first, fit, request))
    }

    /// Gives the addresses of expandable segments back that no record refers to any more.
    pub(crate) fn release_ranges(&self, ranges: impl IntoIterator<Item = SegmentRecord>) {
        let Ok(space) = self.source().address_space() else { return };
        for range in ranges {
            if let Some(address) = NonZeroUsize::new(range.address) {
                // SAFETY: the range came from `reserve_range` with this size (`expand`), and its
                // record is gone, so this happens once. The record went because its one block was
                // unmapped: no page of it has memory.
                unsafe { space.release_range(address, range.bytes) };
            }
        }
    }

    /// Reserves a segment of `bytes` and hands out of it, or out of what became free meanwhile.
    fn reserve(
        &'static self,
        bytes: usize,
        fit: &Fit,
        request: &Request,
    ) -> Result<Granted, Refusal> {
        let mut state = self.state();
        state.finish_deferred();
        if let Some(granted) = state.reuse(fit, request, Stamp::default()) {
            return Ok(granted);
        }
        let releases = state.releases;
        if !state.limits.allow(state.ledger.reserved_bytes() + state.leaving_bytes, bytes) {
            return Err(Refusal { source: None, releases });
        }
        let refused = |full| Refusal { source: Some(full), releases };
        let address = self.source().reserve(bytes).map_err(refused)?;
        let index = state.add_segment(address.get(), bytes, fit, request);
        Ok(state.hand_out(index, fit, request, Stamp::default()))
    }
}

impl State {
    /// Hands out of a free block that is in its pool.
    fn take(&mut self, index: u32, fit: &Fit, request: &Request) -> Granted {
        let lane = self.segments[self.blocks[index].segment].lane as usize;
        self.lanes[lane].remove(&mut self.blocks, &self.segments, index);
        self.hand_out(index, fit, request, Stamp::default())
    }
}

#[cold]
fn beyond_any_memory(request: &Request) -> Error {
    let operation = request.origin.get().operation;
    Error::invalid_argument(format!(
        "{} bytes are more than any memory can hold: check the sizes that were asked for",
        request.bytes
    ))
    .in_operation(operation)
}
