//! What an arena's lock guards: records, pools and ledger, and the moves on them that keep all
//! three in step: hand out (with a split), take back (with merges), add a segment, detach one. What
//! expandable segments do besides is in `pages.rs`.
//!
//! Nothing here calls the source or decides what to do when memory is short: that is the ladder in
//! `allocate.rs`. Frees that wait for other streams are in `deferred.rs`.

use crate::allocator::deferred::Deferred;
use crate::allocator::limits::Limits;
use crate::allocator::pool_id::PoolId;
use crate::allocator::pools::Lane;
use crate::allocator::records::{
    BlockRecord, BlockSlab, BlockState, HeapLinks, NONE, SegmentRecord, SegmentSlab,
};
use crate::allocator::request::Request;
use crate::allocator::size_class::{Fit, SizeRules};
use crate::book::event::{Action, Event, SplitChange};
use crate::book::ledger::Ledger;
use crate::book::stamp::Stamp;
use crate::origin::iteration::current_step;
use crate::platform::source::StreamId;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) rules: SizeRules,
    pub(crate) blocks: BlockSlab,
    pub(crate) segments: SegmentSlab,
    /// The free blocks of each stream that ever allocated, in each pool that it allocated from;
    /// those of the default stream in the common pool come first.
    pub(crate) lanes: Vec<Lane>,
    /// The private pools that somebody holds.
    pub(crate) open_pools: Vec<PoolId>,
    pub(crate) ledger: Ledger,
    pub(crate) limits: Limits,
    pub(crate) deferred: Deferred,
    /// The clock by which free blocks age: it ticks with every allocation.
    pub(crate) tick: u64,
    /// Bytes of segments that are booked as released and not yet back at the source, which takes
    /// them without the lock. They count against the limits until it has them.
    pub(crate) leaving_bytes: usize,
    /// The tick of the last call of `trim_idle`.
    pub(crate) idle_mark: u64,
    /// Segments that went back to the source so far.
    pub(crate) releases: u64,
    /// Whether free segments leave at once: without caching, and where a closed pool has some left.
    pub(crate) eager: bool,
    /// Whether a free that had waited for another stream completed in a segment that leaves at
    /// once. The source cannot be called then; the next allocation or free does it.
    pub(crate) leaves_late: bool,
    /// Birth number of the next segment.
    next_birth: u64,
}

/// What a request was given: to become a [`Block`] at once, which owns it.
#[derive(Clone, Copy, Debug)]
#[must_use = "nobody else gives it back"]
pub(crate) struct Granted {
    /// Number of the record.
    pub(crate) index: u32,
    pub(crate) address: usize,
    pub(crate) bytes: usize,
}

/// A segment, or pages of one, that no block in use refers to, on its way back to the source.
#[derive(Debug)]
#[must_use = "what is detached must be released and booked"]
pub(crate) struct Detached {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) stream: StreamId,
    /// Of pages: the block that stands for them, and the size of one.
    pub(crate) pages: Option<(u32, usize)>,
}

impl State {
    pub(crate) fn new(rules: SizeRules, limits: Limits) -> State {
        State {
            ledger: Ledger::new(rules.max_split_bytes),
            eager: !rules.caching,
            leaves_late: false,
            rules,
            blocks: BlockSlab::new(),
            segments: SegmentSlab::default(),
            lanes: vec![Lane::new(PoolId::COMMON, StreamId::DEFAULT, true)],
            open_pools: Vec::new(),
            limits,
            deferred: Deferred::default(),
            tick: 0,
            leaving_bytes: 0,
            idle_mark: 0,
            releases: 0,
            next_birth: 0,
        }
    }

    /// The number of `stream`'s free blocks in `pool`. Both are few, so a list is faster than a
    /// map.
    #[inline]
    pub(crate) fn lane(&mut self, pool: PoolId, stream: StreamId) -> u32 {
        match self.lanes.iter().position(|lane| lane.stream == stream && lane.pool == pool) {
            Some(number) => number as u32,
            None => {
                // Who still names a pool that was closed gets memory that leaves when it is free:
                // nobody is left to close it once more.
                let open = pool == PoolId::COMMON || self.open_pools.contains(&pool.whole());
                self.add_lane(Lane::new(pool, stream, open))
            }
        }
    }

    /// Puts a lane in the place of one whose pool was closed and has nothing left, or at the end.
    #[cold]
    fn add_lane(&mut self, lane: Lane) -> u32 {
        let used = |number: usize| self.segments.iter().any(|(_, s)| s.lane as usize == number);
        let vacant = (0..self.lanes.len()).find(|&at| !self.lanes[at].open && !used(at));
        match vacant {
            Some(number) => {
                self.lanes[number] = lane;
                number as u32
            }
            None => {
                self.lanes.push(lane);
                (self.lanes.len() - 1) as u32
            }
        }
    }

    /// Hands out a free block, if one fits: a hit, or a split of a larger one.
    #[inline]
    pub(crate) fn reuse(&mut self, fit: &Fit, request: &Request, stamp: Stamp) -> Option<Granted> {
        if !self.rules.caching && request.pool == PoolId::COMMON {
            return None;
        }
        let lane = self.lane(request.pool, request.stream) as usize;
        let lane = &mut self.lanes[lane];
        let index = lane.best(&self.blocks, &self.segments, fit, &self.rules)?;
        lane.remove(&mut self.blocks, &self.segments, index);
        Some(self.hand_out(index, fit, request, stamp))
    }

    /// Marks a free block, already out of its pool, as allocated, and puts what is left over back.
    #[inline]
    pub(crate) fn hand_out(
        &mut self,
        index: u32,
        fit: &Fit,
        request: &Request,
        stamp: Stamp,
    ) -> Granted {
        let free = &self.blocks[index];
        let (was_split, free_bytes) = (free.is_split(), free.bytes);
        let expandable = self.rules.expandable && self.segments[free.segment].expandable;
        let split = if self.rules.splits(free.pool, free_bytes, fit.block_bytes) {
            self.split(index, fit.block_bytes);
            match was_split {
                true => SplitChange { blocks: 0, bytes: -(fit.block_bytes as i64) },
                false => SplitChange { blocks: 1, bytes: (free_bytes - fit.block_bytes) as i64 },
            }
        } else if was_split {
            SplitChange { blocks: -1, bytes: -(free_bytes as i64) }
        } else {
            SplitChange::default()
        };
        let split = if expandable { SplitChange::default() } else { split };
        let step = current_step();
        let block = &mut self.blocks[index];
        block.state = BlockState::Allocated;
        block.requested_or_freed_at = request.bytes as u64;
        block.origin = request.origin;
        block.kind = request.kind;
        block.step = step;
        block.shared = false;
        block.set_owner(NONE);
        let event = Event {
            action: Action::Allocated,
            pool: block.pool,
            kind: request.kind,
            origin: request.origin,
            address: block.address,
            requested_bytes: request.bytes,
            allocated_bytes: block.bytes,
            stream: request.stream,
            step,
            split,
            stamp,
        };
        self.ledger.allocated(&event);
        Granted { index, address: event.address, bytes: event.allocated_bytes }
    }

    /// Cuts a free block, which is in no pool, to `bytes`; the rest is a free block in its pool.
    #[inline]
    fn split(&mut self, index: u32, bytes: usize) {
        let rest = self.cut(index, bytes);
        let lane = self.segments[self.blocks[rest].segment].lane as usize;
        self.lanes[lane].insert(&mut self.blocks, &self.segments, rest);
    }

    /// Cuts a block to `bytes`; returns the rest, a block of the same state. Both are in no pool.
    #[inline]
    pub(crate) fn cut(&mut self, index: u32, bytes: usize) -> u32 {
        let block = self.blocks[index];
        let rest = self.blocks.insert(BlockRecord {
            address: block.address + bytes,
            bytes: block.bytes - bytes,
            previous: index,
            next: block.next,
            ..block
        });
        if block.next != NONE {
            self.blocks[block.next].previous = rest;
        }
        let block = &mut self.blocks[index];
        block.bytes = bytes;
        block.next = rest;
        rest
    }

    /// An event about a block as it is now.
    #[inline]
    pub(crate) fn event(&self, index: u32, action: Action, stamp: Stamp) -> Event {
        let block = &self.blocks[index];
        Event {
            action,
            pool: block.pool,
            kind: block.kind,
            origin: block.origin,
            address: block.address,
            requested_bytes: block.requested_bytes(),
            allocated_bytes: block.bytes,
            stream: self.segments[block.segment].stream,
            step: current_step(),
            split: SplitChange::default(),
            stamp,
        }
    }

    /// Books a segment that came from the source; returns its one block, free and in no pool.
    pub(crate) fn add_segment(
        &mut self,
        address: usize,
        bytes: usize,
        fit: &Fit,
        request: &Request,
    ) -> u32 {
        let block = self.insert_segment(address, bytes, fit, request);
        let segment = &self.segments[self.blocks[block].segment];
        self.ledger.apply(&segment_event(Action::SegmentReserved, segment));
        block
    }

    /// Adds a range of addresses that came from the source, an expandable segment without memory;
    /// returns its one block, unmapped. No byte of it is booked.
    pub(crate) fn add_range(
        &mut self,
        address: usize,
        bytes: usize,
        fit: &Fit,
        request: &Request,
    ) -> u32 {
        let block = self.insert_segment(address, bytes, fit, request);
        self.blocks[block].state = BlockState::Unmapped;
        let segment = self.blocks[block].segment;
        self.segments[segment].expandable = true;
        let lane = self.segments[segment].lane as usize;
        self.lanes[lane].insert_unmapped(&self.blocks, &self.segments, block);
        block
    }

    /// A new record of a segment with one free block, in no pool and in no book.
    fn insert_segment(
        &mut self,
        address: usize,
        bytes: usize,
        fit: &Fit,
        request: &Request,
    ) -> u32 {
        let (lane, birth) = (self.lane(request.pool, request.stream), self.next_birth);
        let step = current_step();
        self.next_birth += 1;
        self.eager |= !self.lanes[lane as usize].open;
        let segment = self.segments.insert(SegmentRecord {
            address,
            bytes,
            stream: request.stream,
            lane,
            pool: fit.pool,
            expandable: false,
            birth,
            first_block: NONE,
            origin: request.origin,
            step,
        });
        let block = self.blocks.insert(BlockRecord {
            address,
            bytes,
            requested_or_freed_at: self.tick,
            step,
            segment,
            previous: NONE,
            next: NONE,
            origin: request.origin,
            links: HeapLinks::NONE,
            state: BlockState::Free,
            pool: fit.pool,
            kind: request.kind,
            shared: false,
        });
        self.segments[segment].first_block = block;
        block
    }

    /// Books a segment whose one block is free as released and takes it out of the records. What is
    /// left is to hand it to the source, without the lock, and to say so by [`State::left`].
    ///
    /// It is booked before the source has it, not after: the source may give the same address to
    /// another thread at once, and in the log that thread's segment must come second.
    pub(crate) fn detach(&mut self, block: u32) -> Detached {
        let record = self.blocks[block];
        debug_assert!(
            record.state == BlockState::Free && !record.is_split(),
            "only a wholly free segment can leave"
        );
        let lane = self.segments[record.segment].lane as usize;
        if self.caches(lane) {
            self.lanes[lane].remove(&mut self.blocks, &self.segments, block);
        }
        self.blocks.remove(block);
        let segment = self.segments.remove(record.segment);
        self.leaving_bytes += segment.bytes;
        self.ledger.apply(&segment_event(Action::SegmentReleased, &segment));
        let SegmentRecord { address, bytes, stream, .. } = segment;
        Detached { address, bytes, stream, pages: None }
    }

    /// What was detached is back at the source.
    pub(crate) fn left(&mut self, detached: &Detached) {
        self.leaving_bytes -= detached.bytes;
        self.releases += 1;
    }
}

pub(crate) fn segment_event(action: Action, segment: &SegmentRecord) -> Event {
    Event {
        action,
        pool: segment.pool,
        kind: crate::origin::kind::Kind::Unknown,
        origin: segment.origin,
        address: segment.address,
        requested_bytes: segment.bytes,
        allocated_bytes: segment.bytes,
        stream: segment.stream,
        step: current_step(),
        split: SplitChange::default(),
        stamp: Stamp::default(),
    }
}
