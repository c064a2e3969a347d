//! Marks: points of a stream's queue that remember when the device passed them, so that two of them
//! tell how long what lies between took. For observers (`observe/`); ordering work takes fences,
//! which know no time and cost less.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use plimsoll_cuda::TimedEvent;
use plimsoll_memory::{Fence, StreamId};

use super::queue::Work;
use super::stand_in::Engine;
use super::{Backend, Entry};

/// A point of a stream's queue with its time.
#[derive(Debug)]
pub(crate) enum Mark {
    StandIn { passed: Arc<OnceLock<Instant>>, fence: Fence },
    Cuda(TimedEvent),
}

impl Mark {
    fn on_stand_in(engine: &'static Engine, stream: StreamId) -> Option<Mark> {
        let passed = Arc::new(OnceLock::new());
        engine.enqueue(stream, Work::Stamp(passed.clone())).ok()?;
        Some(Mark::StandIn { passed, fence: engine.record(stream) })
    }

    /// The time from `earlier`, a mark of the same stream, to this one; `None` if the device has
    /// not passed both.
    pub(crate) fn since(&self, earlier: &Mark) -> Option<Duration> {
        match (self, earlier) {
            (Mark::StandIn { passed: last, .. }, Mark::StandIn { passed: first, .. }) => {
                Some(last.get()?.duration_since(*first.get()?))
            }
            (Mark::Cuda(last), Mark::Cuda(first)) => last.since(first),
            _ => None,
        }
    }

    /// Waits until the device has passed it.
    pub(crate) fn wait(&self) {
        match self {
            Mark::StandIn { fence, .. } => fence.wait(),
            Mark::Cuda(event) => event.wait(),
        }
    }
}

impl Entry {
    /// A mark at the end of this thread's stream; `None` where work runs at once, or not at all.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.mark_on(self.current_stream())
    }

    /// A mark at the end of `stream`; `None` where work runs at once, or not at all.
    pub(crate) fn mark_on(&self, stream: StreamId) -> Option<Mark> {
        // A capture notes no times.
        if !self.is_asynchronous() || self.captures().of(stream).is_some() {
            return None;
        }
        match self.backend() {
            Backend::Cpu => None,
            Backend::StandIn(engine) => Mark::on_stand_in(engine, stream),
            Backend::Cuda(gpu) => gpu.context()?.record_timed(stream).ok().map(Mark::Cuda),
        }
    }
}
