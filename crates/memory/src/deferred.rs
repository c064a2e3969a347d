//! Frees that must wait. A block that another stream uses is not reusable when its owner lets go of
//! it, but when that stream has passed the point of the free. Each used stream has a queue of its
//! own, so a slow one holds back only what it uses itself.

use std::collections::{HashMap, VecDeque};

use smallvec::SmallVec;

use crate::records::BlockState;
use crate::source::{Fence, Source, StreamId};
use crate::stamp::Stamp;
use crate::state::State;

#[derive(Debug, Default)]
pub(crate) struct Deferred {
    /// Streams beside its own that use a live block; only blocks marked `shared` are here.
    uses: HashMap<u32, SmallVec<[StreamId; 2]>>,
    /// Freed blocks in the order of their fences, by the stream that they wait for.
    queues: Vec<(StreamId, VecDeque<(Fence, u32)>)>,
    /// How many fences each waiting block still waits for.
    waiting: HashMap<u32, u32>,
}

impl Deferred {
    /// The fences that frees wait for now.
    pub(crate) fn fences(&self) -> Vec<Fence> {
        let waiting = self.queues.iter().flat_map(|(_, queue)| queue);
        waiting.map(|(fence, _)| fence.clone()).collect()
    }

    pub(crate) fn waiting_blocks(&self) -> usize {
        self.waiting.len()
    }

    fn queue(&mut self, stream: StreamId) -> &mut VecDeque<(Fence, u32)> {
        let place = self.queues.iter().position(|(of, _)| *of == stream).unwrap_or_else(|| {
            self.queues.push((stream, VecDeque::new()));
            self.queues.len() - 1
        });
        &mut self.queues[place].1
    }
}

impl State {
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

    /// Completes the frees whose fences have been passed.
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
                    self.complete_free(index, Stamp::default());
                }
            }
        }
    }
}
