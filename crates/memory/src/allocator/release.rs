//! The way back to the source: freeing blocks, and giving cached segments back (all of them, down
//! to a size, the oversize ones, the ones that lay idle longest). Of an expandable segment the
//! whole pages of its free blocks go back; the addresses follow once none is left.
//!
//! A segment leaves in two moves: under the lock it is booked as released and taken out of the
//! records; without it its stream is waited for and the source takes it (returning pages to the
//! system can take milliseconds). In between it counts against the limits, not as reserved. The
//! lock `releasing` lets one thread at a time do this, so that no thread gives up while another is
//! about to make room.

use std::num::NonZeroUsize;

use crate::allocator::arena::Arena;
use crate::allocator::pages::Part;
use crate::allocator::pool_id::PoolId;
use crate::allocator::pools::Lane;
use crate::allocator::records::SegmentRecord;
use crate::allocator::request::Request;
use crate::allocator::shortage::Shortage;
use crate::allocator::size_class::Fit;
use crate::allocator::state::{Detached, State};
use crate::book::pool::Pool;
use crate::book::stamp::Stamp;
use crate::platform::source::StreamId;

impl Arena {
    /// Takes a block back from its owner; called by `Block`'s drop only.
    #[inline]
    pub(crate) fn free(&self, index: u32) {
        let stamp = Stamp::of_free(self.history_level());
        let mut state = self.state();
        state.ledger.history.prepare();
        let mut leaves = state.eager && state.leaves_with(index);
        if state.blocks[index].shared {
            state.request_free(index, stamp);
            match state.defer(index, self.source()) {
                true => leaves = state.leaves_late,
                false => state.complete_free(index, stamp),
            }
        } else {
            state.free(index, stamp);
        }
        if leaves {
            drop(state);
            self.release_eagerly();
        }
    }

    /// Gives every cached segment that holds no block back to the source, and every page of an
    /// expandable one; returns how many bytes.
    ///
    /// Frees that wait for other streams are waited for.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// drop(arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?);
    /// assert_eq!(arena.empty_cache(), 2 << 20); // the whole segment that the block was cut from
    /// assert_eq!(arena.stats().reserved_bytes.all.current, 0);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn empty_cache(&self) -> usize {
        self.release_cached()
    }

    /// Gives cached segments back to the source, largest first, until at most `keep_bytes` of
    /// wholly free segments and pages are left; returns how many bytes went back.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// for bytes in [1000, 4 << 20] {
    ///     drop(arena.allocate(&Request::new(bytes, OriginId::UNKNOWN))?);
    /// }
    /// assert_eq!(arena.trim(2 << 20), 20 << 20); // the larger segment goes, the smaller may stay
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn trim(&self, keep_bytes: usize) -> usize {
        self.release_where(|state| {
            let mut parts = leavable(state);
            parts.sort_unstable_by_key(|part| std::cmp::Reverse(part.bytes));
            let all: usize = parts.iter().map(|part| part.bytes).sum();
            as_much_as(parts, all.saturating_sub(keep_bytes))
        })
    }

    /// Gives back the cached segments that lay untouched since the call before this one; returns
    /// how many bytes. Called now and then (once a step, or by a timer), it trims what a program
    /// stopped using and keeps what it uses.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// drop(arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?);
    /// assert_eq!(arena.trim_idle(), 0); // freed since the last call: perhaps used again
    /// assert_eq!(arena.trim_idle(), 2 << 20);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn trim_idle(&self) -> usize {
        let since = {
            let mut state = self.state();
            // A tick of its own tells frees before this call from frees after it.
            state.tick += 1;
            let now = state.tick;
            std::mem::replace(&mut state.idle_mark, now)
        };
        self.release_where(|state| {
            let mut parts = leavable(state);
            parts.retain(|part| state.blocks[part.block].freed_at() < since);
            parts
        })
    }

    /// Waits for deferred frees and gives every wholly free segment and page back.
    pub(crate) fn release_cached(&self) -> usize {
        let fences = self.state().deferred.fences();
        if !fences.is_empty() {
            fences.iter().for_each(crate::platform::source::Fence::wait);
            let mut state = self.state();
            state.ledger.synchronized();
            state.finish_deferred();
        }
        self.release_where(leavable)
    }

    /// Where splitting has a limit: gives back one oversize segment that is large enough by itself,
    /// or several, largest first, until there is room.
    pub(crate) fn release_oversize(&self, fit: &Fit, stream: StreamId) -> usize {
        let common = |lane: &&Lane| lane.stream == stream && lane.pool == PoolId::COMMON;
        if self.rules().max_split_bytes == usize::MAX || fit.pool == Pool::Small {
            return 0;
        }
        let wanted = fit.block_bytes.max(self.rules().max_split_bytes);
        self.release_where(|state| {
            let Some(lane) = state.lanes.iter().find(common) else {
                return Vec::new();
            };
            // Pages of expandable segments go back when all cached memory does.
            let whole = |index: u32| {
                let mut parts = Vec::new();
                state.leavable_of(&state.segments[state.blocks[index].segment], &mut parts);
                parts.into_iter().find(|part| part.page_bytes.is_none())
            };
            let from = |bytes| lane.large_from(&state.blocks, &state.segments, bytes).into_iter();
            if let Some(part) = from(wanted).find_map(whole) {
                return vec![part];
            }
            let oversize = from(self.rules().max_split_bytes).rev().filter_map(whole);
            as_much_as(oversize.collect(), wanted)
        })
    }

    /// Before memory for a request is reserved: gives back the cached segments that lay idle
    /// longest, as far as the soft limit and the garbage threshold ask for.
    pub(crate) fn collect_excess(&self, fit: &Fit, request: &Request) {
        let soft_excess = loop {
            let (excess, soft_excess) = self.state().excess(fit, request);
            if excess == 0 {
                return;
            }
            let released = self.release_where(|state| {
                let mut parts = leavable(state);
                parts.retain(|part| state.blocks[part.block].pool == Pool::Large);
                parts.sort_unstable_by_key(|part| {
                    let block = &state.blocks[part.block];
                    (block.freed_at(), state.segments[block.segment].birth, block.address)
                });
                as_much_as(parts, excess)
            });
            // Again, because pages may have gone that the request would have grown from: then more
            // has to be mapped than before.
            if released == 0 {
                break soft_excess;
            }
        };
        // The garbage threshold is content with cached memory; the soft limit asks the program too.
        if soft_excess > 0 {
            self.reclaim(&Shortage::of_bytes(soft_excess));
            self.release_where(leavable);
        }
    }

    /// Without caching: gives the segments back whose blocks were freed.
    fn release_uncached(&self) {
        if !self.rules().caching {
            self.release_where(leavable);
        }
    }

    /// Gives back the free segments of pools that were closed.
    pub(crate) fn release_closed(&self) {
        self.release_where(|state| {
            let mut parts = leavable(state);
            let lane = |index: u32| state.segments[state.blocks[index].segment].lane as usize;
            parts.retain(|part| !state.lanes[lane(part.block)].open);
            parts
        });
        self.state().update_eager();
    }

    /// After a free: what cannot be reused by anybody goes back.
    #[cold]
    pub(crate) fn release_eagerly(&self) {
        self.state().leaves_late = false;
        if self.rules().caching {
            self.release_closed();
        } else {
            self.release_uncached();
        }
    }

    /// Gives back the parts that `select` names; returns how many bytes.
    fn release_where(&self, select: impl FnOnce(&State) -> Vec<Part>) -> usize {
        let _one_at_a_time = self.releasing();
        let detached: Vec<_> = {
            let mut state = self.state();
            let selected = select(&state);
            selected.into_iter().map(|part| state.detach_part(part)).collect()
        };
        if detached.is_empty() { 0 } else { self.give_back(detached) }
    }

    /// Hands what was detached to the source; returns how many bytes.
    fn give_back(&self, detached: Vec<Detached>) -> usize {
        let mut streams: Vec<StreamId> = detached.iter().map(|left| left.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        streams.into_iter().for_each(|stream| self.source().synchronize(stream));
        let mut bytes = 0;
        for left in &detached {
            bytes += left.bytes;
            let Some(address) = NonZeroUsize::new(left.address) else { continue };
            match (left.pages, self.source().address_space()) {
                // SAFETY: the segment came from this source with this size (`Arena::reserve`). It
                // is detached (a `Detached` is made once and cannot be copied), so it is released
                // once and no block lies in it: its blocks were all free, which means that other
                // streams have passed their use of them, and its own stream was waited for just
                // now.
                (None, _) => unsafe { self.source().release(address, left.bytes) },
                // SAFETY: the pages were mapped by this source with this size of page
                // (`Arena::expand`) and were part of a free block, which means the same as above.
                // The block that stands for them is marked as leaving, so that nobody maps or
                // unmaps them until `State::unmapped` below.
                (Some((_, page_bytes)), Ok(space)) => unsafe {
                    space.unmap(address, left.bytes, page_bytes);
                },
                (Some(_), Err(_)) => debug_assert!(false, "pages came from an address space"),
            }
        }
        let mut state = self.state();
        let mut ranges = Vec::new();
        for left in detached {
            state.left(&left);
            ranges.extend(left.pages.and_then(|(block, _)| state.unmapped(block)));
        }
        drop(state);
        self.release_ranges(ranges);
        bytes
    }
}

impl State {
    /// Whether something leaves once the block is free: its own segment, or one of which a deferred
    /// free was the last.
    #[cold]
    fn leaves_with(&mut self, index: u32) -> bool {
        self.finish_deferred();
        self.leaves_late || self.leaves_when_free(index)
    }

    /// How many bytes should go back before memory for a request is reserved, and how many of them
    /// because of the soft limit.
    fn excess(&mut self, fit: &Fit, request: &Request) -> (usize, usize) {
        // The whole of a new segment, or the pages that an expandable one lacks.
        let growth = if self.rules.expandable { self.growth(fit, request) } else { None };
        let bytes = growth.map_or(fit.segment_bytes, |growth| growth.bytes);
        let reserved = self.ledger.reserved_bytes();
        let soft = self.limits.soft_bytes;
        let over = soft.map_or(0, |soft| reserved.saturating_add(bytes).saturating_sub(soft));
        (self.limits.excess(reserved, bytes), over)
    }
}

/// What may leave: the free blocks that are whole segments, and whole pages of free blocks.
fn leavable(state: &State) -> Vec<Part> {
    let mut parts = Vec::new();
    let may_leave = |segment: &SegmentRecord| state.may_leave(segment.first_block);
    for (_, segment) in state.segments.iter().filter(|(_, segment)| may_leave(segment)) {
        state.leavable_of(segment, &mut parts);
    }
    parts
}

/// The first of `parts` that are `bytes` together; of the last one no more pages than it takes.
fn as_much_as(mut parts: Vec<Part>, bytes: usize) -> Vec<Part> {
    let mut left = bytes;
    parts.retain_mut(|part| {
        let goes = left > 0;
        part.shorten(left);
        left = left.saturating_sub(part.bytes);
        goes
    });
    parts
}
