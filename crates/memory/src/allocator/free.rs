//! The way back of one block: it is let go of, waits for the streams that use it (`deferred.rs`),
//! and is put back into its pool, merged with its free neighbours. What gives whole segments back
//! to the source is `release.rs`.

use crate::allocator::records::{BlockState, NONE};
use crate::allocator::state::State;
use crate::book::event::{Action, SplitChange};
use crate::book::stamp::Stamp;
use crate::platform::source::{Source, StreamId};

impl State {
    /// Books that the owner of a block let go of it.
    pub(crate) fn request_free(&mut self, index: u32, stamp: Stamp) {
        let event = self.event(index, Action::FreeRequested, stamp);
        self.ledger.free_requested(&event);
        self.blocks[index].state = BlockState::Pending;
    }

    /// Books that nothing uses a block any more, and puts it back.
    pub(crate) fn complete_free(&mut self, index: u32, stamp: Stamp) {
        let mut event = self.event(index, Action::FreeCompleted, stamp);
        event.split = self.put_back(index).1;
        self.ledger.free_completed(&event);
    }

    /// Both at once, for a block that no other stream uses.
    #[inline]
    pub(crate) fn free(&mut self, index: u32, stamp: Stamp) {
        let mut event = self.event(index, Action::FreeRequested, stamp);
        event.split = self.put_back(index).1;
        self.ledger.freed(&event);
    }

    /// Puts a block into its pool, merged with free neighbours; returns the block that it became,
    /// and how that changed the free parts of split segments.
    #[inline]
    pub(crate) fn put_back(&mut self, index: u32) -> (u32, SplitChange) {
        let segment = &self.segments[self.blocks[index].segment];
        let (lane, expandable) = (segment.lane as usize, segment.expandable);
        let mut split = SplitChange::default();
        let mut merged = index;
        let previous = self.blocks[index].previous;
        if previous != NONE && self.blocks[previous].state == BlockState::Free {
            self.lanes[lane].remove(&mut self.blocks, &self.segments, previous);
            split.blocks -= 1;
            split.bytes -= self.blocks[previous].bytes as i64;
            self.absorb(previous, index);
            merged = previous;
        }
        let next = self.blocks[merged].next;
        if next != NONE && self.blocks[next].state == BlockState::Free {
            self.lanes[lane].remove(&mut self.blocks, &self.segments, next);
            split.blocks -= 1;
            split.bytes -= self.blocks[next].bytes as i64;
            self.absorb(merged, next);
        }
        let tick = self.tick;
        let block = &mut self.blocks[merged];
        block.state = BlockState::Free;
        block.requested_or_freed_at = tick;
        block.shared = false;
        if block.is_split() {
            split.blocks += 1;
            split.bytes += block.bytes as i64;
        }
        if self.caches(lane) {
            self.lanes[lane].insert(&mut self.blocks, &self.segments, merged);
        }
        (merged, if expandable { SplitChange::default() } else { split })
    }

    /// Joins `gone` to its neighbour `kept`, which lies right before it; both are in no pool.
    #[inline]
    pub(crate) fn absorb(&mut self, kept: u32, gone: u32) {
        let (bytes, next) = (self.blocks[gone].bytes, self.blocks[gone].next);
        let block = &mut self.blocks[kept];
        debug_assert_eq!(block.next, gone, "only neighbours merge");
        block.bytes += bytes;
        block.next = next;
        if next != NONE {
            self.blocks[next].previous = kept;
        }
        self.blocks.remove(gone);
    }

    /// Remembers that `stream` uses a live block that belongs to another one.
    pub(crate) fn record_use(&mut self, index: u32, stream: StreamId) {
        let own = self.segments[self.blocks[index].segment].stream;
        if stream == own {
            return;
        }
        self.blocks[index].shared = true;
        let uses = self.deferred.uses.entry(index).or_default();
        if !uses.contains(&stream) {
            uses.push(stream);
        }
    }

    /// Puts a block, whose free was requested, behind fences of the streams that use it. Returns
    /// whether there is anything to wait for.
    pub(crate) fn defer(&mut self, index: u32, source: &dyn Source) -> bool {
        let mut fences = 0;
        for stream in self.deferred.uses.remove(&index).unwrap_or_default() {
            let fence = source.record(stream);
            if !fence.is_done() {
                self.deferred.queue(stream).push_back((fence, index));
                fences += 1;
            }
        }
        if fences > 0 {
            self.deferred.waiting.insert(index, fences);
        }
        fences > 0
    }

    /// Completes the frees whose fences have been passed. Segments that leave at once are noted in
    /// `leaves_late`.
    #[inline]
    pub(crate) fn finish_deferred(&mut self) {
        if !self.deferred.waiting.is_empty() {
            self.finish_passed();
        }
    }

    #[cold]
    fn finish_passed(&mut self) {
        for place in 0..self.deferred.queues.len() {
            // Fences of one stream are passed in order, so the first that is not ends the search.
            while let Some((_, index)) =
                self.deferred.queues[place].1.pop_front_if(|(fence, _)| fence.is_done())
            {
                let Some(left) = self.deferred.waiting.get_mut(&index) else { continue };
                *left -= 1;
                if *left == 0 {
                    self.deferred.waiting.remove(&index);
                    debug_assert_eq!(self.blocks[index].state, BlockState::Pending);
                    self.leaves_late |= self.eager && self.leaves_when_free(index);
                    self.complete_free(index, Stamp::default());
                }
            }
        }
    }
}
