//! Expandable segments: a range of addresses with memory behind some of its pages. Here is where
//! one can grow for a request, and the moves that keep records, pools and ledger in step while
//! pages come and go. The source is called by `allocate.rs` (to map) and `release.rs` (to unmap).
//!
//! A stream has one such segment in each pool, and another only once no run of free and unmapped
//! neighbours in it is long enough. The rules are PyTorch's.

use crate::allocator::records::{BlockState, NONE, SegmentRecord};
use crate::allocator::request::Request;
use crate::allocator::size_class::Fit;
use crate::allocator::state::{Detached, State, segment_event};
use crate::book::event::Action;

/// Where an expandable segment can grow so that a request fits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    /// The first of the neighbours: free, or unmapped.
    pub(crate) first: u32,
    /// What has to be mapped in all.
    pub(crate) bytes: usize,
}

/// Cached memory that can go back to the source: a segment that is wholly free, or whole pages of
/// a free block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The free block that it is, or is part of.
    pub(crate) block: u32,
    address: usize,
    pub(crate) bytes: usize,
    /// Of pages, the size of one.
    pub(crate) page_bytes: Option<usize>,
}

impl Part {
    /// No more of it than `bytes` takes, if it has pages: the ones at the end, so that what stays
    /// is next to what is older.
    pub(crate) fn shorten(&mut self, bytes: usize) {
        if let Some(page_bytes) = self.page_bytes {
            let kept = bytes.next_multiple_of(page_bytes).min(self.bytes);
            self.address += self.bytes - kept;
            self.bytes = kept;
        }
    }
}

impl State {
    /// The first place where a request fits once pages are mapped: unmapped pages, with the free
    /// block in front of them and whatever is free or unmapped behind.
    pub(crate) fn growth(&mut self, fit: &Fit, request: &Request) -> Option<Growth> {
        let lane = self.lane(request.pool, request.stream) as usize;
        let unmapped = self.lanes[lane].unmapped().iter().copied();
        unmapped.filter(|&index| self.blocks[index].pool == fit.pool).find_map(|index| {
            let previous = self.blocks[index].previous;
            let free = previous != NONE && self.blocks[previous].state == BlockState::Free;
            let first = if free { previous } else { index };
            let bytes = self.missing_from(first, fit)?;
            Some(Growth { first, bytes })
        })
    }

    /// The bytes to map so that the request fits from `first` on; `None` if something in use comes
    /// first.
    fn missing_from(&self, first: u32, fit: &Fit) -> Option<usize> {
        let (mut at, mut found, mut missing) = (first, 0, 0);
        while found < fit.block_bytes {
            if at == NONE {
                return None;
            }
            let block = &self.blocks[at];
            match block.state {
                BlockState::Free => found += block.bytes,
                BlockState::Unmapped => {
                    let bytes = self.pages_for(at, fit.block_bytes - found);
                    found += bytes;
                    missing += bytes;
                }
                _ => return None,
            }
            at = block.next;
        }
        Some(missing)
    }

    /// Whole pages of an unmapped block for `bytes`, or all that it has.
    fn pages_for(&self, unmapped: u32, bytes: usize) -> usize {
        let block = &self.blocks[unmapped];
        bytes.next_multiple_of(self.rules.page_bytes(block.pool)).min(block.bytes)
    }

    /// What to map next so that `first` (free or unmapped) comes to hold the request: an unmapped
    /// block and how many bytes from its start; `None` once it does.
    pub(crate) fn next_to_map(&self, first: u32, fit: &Fit) -> Option<(u32, usize)> {
        let block = &self.blocks[first];
        if block.state == BlockState::Unmapped {
            return Some((first, self.pages_for(first, fit.block_bytes)));
        }
        let missing = fit.block_bytes.checked_sub(block.bytes).filter(|&missing| missing > 0)?;
        debug_assert_eq!(self.blocks[block.next].state, BlockState::Unmapped, "see `growth`");
        Some((block.next, self.pages_for(block.next, missing)))
    }

    /// Books that the first `bytes` of an unmapped block have memory now; returns the free block
    /// that they became with their free neighbours, in its pool.
    pub(crate) fn mapped(&mut self, index: u32, bytes: usize, request: &Request) -> u32 {
        let segment = self.blocks[index].segment;
        let lane = self.segments[segment].lane as usize;
        self.lanes[lane].remove_unmapped(index);
        if bytes < self.blocks[index].bytes {
            let rest = self.cut(index, bytes);
            self.lanes[lane].insert_unmapped(&self.blocks, &self.segments, rest);
        }
        let address = self.blocks[index].address;
        let pages =
            SegmentRecord { address, bytes, origin: request.origin, ..self.segments[segment] };
        self.ledger.apply(&segment_event(Action::SegmentMapped, &pages));
        self.put_back(index).0
    }

    /// What can go back to the source of a segment: all of it if it is free and whole, or the whole
    /// pages of each free block if it is expandable.
    pub(crate) fn leavable_of(&self, segment: &SegmentRecord, parts: &mut Vec<Part>) {
        let page_bytes = segment.expandable.then(|| self.rules.page_bytes(segment.pool));
        let mut at = segment.first_block;
        while at != NONE {
            let (index, block) = (at, &self.blocks[at]);
            at = block.next;
            if block.state != BlockState::Free {
                continue;
            }
            let (address, bytes) = match page_bytes {
                Some(page) => {
                    let (from, to) = (block.address - segment.address, block.bytes);
                    let (from, to) = (from.next_multiple_of(page), (from + to) / page * page);
                    (segment.address + from, to.saturating_sub(from))
                }
                None if block.is_split() => return,
                None => (block.address, block.bytes),
            };
            if bytes > 0 {
                parts.push(Part { block: index, address, bytes, page_bytes });
            }
        }
    }

    /// Books a part as given back and takes it out of the pools. What is left is to hand it to the
    /// source, without the lock, and to say so by [`State::left`] or [`State::unmapped`].
    pub(crate) fn detach_part(&mut self, part: Part) -> Detached {
        let Some(page_bytes) = part.page_bytes else { return self.detach(part.block) };
        let free = self.blocks[part.block];
        debug_assert_eq!(free.state, BlockState::Free, "only free pages can leave");
        let segment = self.segments[free.segment];
        let lane = segment.lane as usize;
        self.lanes[lane].remove(&mut self.blocks, &self.segments, part.block);
        let mut index = part.block;
        if part.address > free.address {
            index = self.cut(part.block, part.address - free.address);
            self.lanes[lane].insert(&mut self.blocks, &self.segments, part.block);
        }
        if part.bytes < self.blocks[index].bytes {
            let rest = self.cut(index, part.bytes);
            self.lanes[lane].insert(&mut self.blocks, &self.segments, rest);
        }
        self.blocks[index].state = BlockState::Leaving;
        self.leaving_bytes += part.bytes;
        let pages = SegmentRecord { address: part.address, bytes: part.bytes, ..segment };
        self.ledger.apply(&segment_event(Action::SegmentUnmapped, &pages));
        let Part { address, bytes, .. } = part;
        Detached { address, bytes, stream: segment.stream, pages: Some((index, page_bytes)) }
    }

    /// Leaving pages are back at the source: from now on they can be mapped again. Returns the
    /// segment if it has no page left; it is in no record any more, and its addresses are to be
    /// given back.
    pub(crate) fn unmapped(&mut self, leaving: u32) -> Option<SegmentRecord> {
        let segment = self.blocks[leaving].segment;
        let lane = self.segments[segment].lane as usize;
        let mut merged = leaving;
        self.blocks[leaving].state = BlockState::Unmapped;
        let is_unmapped = |state: &State, index: u32| {
            index != NONE && state.blocks[index].state == BlockState::Unmapped
        };
        let (previous, next) = (self.blocks[leaving].previous, self.blocks[leaving].next);
        if is_unmapped(self, next) {
            self.lanes[lane].remove_unmapped(next);
            self.absorb(leaving, next);
        }
        if is_unmapped(self, previous) {
            self.lanes[lane].remove_unmapped(previous);
            self.absorb(previous, leaving);
            merged = previous;
        }
        if self.blocks[merged].is_split() {
            self.lanes[lane].insert_unmapped(&self.blocks, &self.segments, merged);
            return None;
        }
        self.blocks.remove(merged);
        Some(self.segments.remove(segment))
    }

    /// Takes an expandable segment that never got memory out of the records.
    pub(crate) fn remove_unmapped_range(&mut self, block: u32) -> Option<SegmentRecord> {
        let record = self.blocks[block];
        if record.is_split() || record.state != BlockState::Unmapped {
            return None;
        }
        let lane = self.segments[record.segment].lane as usize;
        self.lanes[lane].remove_unmapped(block);
        self.blocks.remove(block);
        Some(self.segments.remove(record.segment))
    }

    /// Bytes of a segment that the book counts as reserved.
    pub(crate) fn reserved_in(&self, segment: &SegmentRecord) -> usize {
        if !segment.expandable {
            return segment.bytes;
        }
        let (mut at, mut bytes) = (segment.first_block, 0);
        while at != NONE {
            let block = &self.blocks[at];
            bytes += if block.state.is_mapped() { block.bytes } else { 0 };
            at = block.next;
        }
        bytes
    }
}
