//! Frees that must wait. A block that another stream uses is not reusable when its owner lets go of
//! it, but when that stream has passed the point of the free. Each used stream has a queue of its
//! own, so a slow one holds back only what it uses itself.

use std::collections::{HashMap, VecDeque};

use smallvec::SmallVec;

use crate::platform::source::{Fence, StreamId};

#[derive(Debug, Default)]
pub(crate) struct Deferred {
    /// Streams beside its own that use a live block; only blocks marked `shared` are here.
    pub(crate) uses: HashMap<u32, SmallVec<[StreamId; 2]>>,
    /// Freed blocks in the order of their fences, by the stream that they wait for.
    pub(crate) queues: Vec<(StreamId, VecDeque<(Fence, u32)>)>,
    /// How many fences each waiting block still waits for.
    pub(crate) waiting: HashMap<u32, u32>,
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

    pub(crate) fn queue(&mut self, stream: StreamId) -> &mut VecDeque<(Fence, u32)> {
        let place = self.queues.iter().position(|(of, _)| *of == stream).unwrap_or_else(|| {
            self.queues.push((stream, VecDeque::new()));
            self.queues.len() - 1
        });
        &mut self.queues[place].1
    }
}
