//! What a device does differently while a stream captures: work is written down, points are points
//! in what was written, and nobody waits. See Note [Streams of a capture] in `captures.rs`.

use std::sync::Arc;

use plimsoll_core::Result;
use plimsoll_memory::{Fence, FenceState, StreamId};

use super::captures::{Capture, CapturedPoint};
use super::queue::Work;
use super::stand_in::Engine;
use super::{Backend, Entry};
use crate::storage::Storage;

impl Entry {
    /// The same for whoever may make other streams wait for it: while `stream` captures, a point in
    /// what it has written down.
    pub(super) fn point(&self, stream: StreamId) -> Fence {
        let Some(capture) = self.captures().of(stream) else { return self.record(stream) };
        let order = match self.backend() {
            Backend::Cuda(gpu) => gpu.context().map(|context| context.record_captured(stream)),
            Backend::Cpu | Backend::StandIn(_) => None,
        };
        let order = order.unwrap_or_else(|| Ok(Fence::done()));
        let order = order.unwrap_or_else(|error| {
            capture.fail(&error.to_string());
            Fence::done()
        });
        capture.point(stream, order)
    }

    /// Refuses what makes the host wait for `stream` if that captures.
    #[inline]
    pub(crate) fn check_wait(&self, stream: StreamId) -> Result<()> {
        match self.captures().of(stream) {
            None => Ok(()),
            Some(capture) => Err(capture.refuse(
                "the host would wait for a value, a size or a copy (`item`, `cpu`, `nonzero`, \
                 memory that is not pinned)",
            )),
        }
    }

    /// Gives a stand-in's stream work: queued, or written down while it captures.
    pub(crate) fn give(&self, engine: &Engine, stream: StreamId, work: Work) -> Result<()> {
        match self.captures().of(stream) {
            None => engine.enqueue(stream, work),
            Some(capture) => {
                capture.write_down(work);
                Ok(())
            }
        }
    }

    /// Whether it is a capture that decides what `stream` waits for, and has.
    pub(super) fn waits_in_capture(&self, stream: StreamId, fence: &Fence) -> Result<bool> {
        if let Some(point) = fence.state::<CapturedPoint>() {
            return self.wait_in_capture(stream, point).map(|()| true);
        }
        match self.captures().of(stream) {
            Some(own) => Err(own.refuse("a stream would wait for work outside of its capture")),
            None => Ok(false),
        }
    }

    /// Makes `stream` wait for a point that was written down, and joins it to the capture.
    #[cold]
    fn wait_in_capture(&self, stream: StreamId, point: &CapturedPoint) -> Result<()> {
        let capture = &point.capture;
        if capture.device() != self.device() {
            return Err(capture.refuse("another device would wait for its work"));
        }
        match self.captures().of(stream) {
            _ if point.is_done() => return Ok(()),
            Some(own) if Arc::ptr_eq(&own, capture) => {}
            Some(own) => return Err(own.refuse("a stream would wait for another capture")),
            None => self.record(stream).wait(),
        }
        capture.wait(stream, point);
        match self.backend() {
            Backend::Cpu | Backend::StandIn(_) => Ok(()),
            Backend::Cuda(_) => self.wait_on_backend(stream, point.order.clone()),
        }
    }

    /// Orders work that is written down: after what touches the same memory in the capture.
    pub(super) fn order_in_capture(
        &self,
        capture: &Capture,
        stream: StreamId,
        storage: &Arc<Storage>,
        writes: bool,
    ) -> Result<()> {
        let first = capture.touch(stream, storage, writes)?;
        first.iter().try_for_each(|&other| self.wait_on_stream(stream, self.point(other)))
    }

    /// Host memory that a copy to `to` uses: a capture keeps it for its graph.
    pub(super) fn hold_in_capture(
        &self,
        stream: StreamId,
        to: usize,
        storage: Option<Arc<Storage>>,
    ) -> Result<Option<Arc<Storage>>> {
        match (self.captures().of(stream), storage) {
            (Some(capture), Some(storage)) => {
                let start = storage.pointer().addr();
                let writes = (start..start + storage.nbytes()).contains(&to);
                capture.hold_host(&storage, writes)?;
                Ok(None)
            }
            (_, storage) => Ok(storage),
        }
    }
}
