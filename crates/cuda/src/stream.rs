//! Streams and copies on them. A stream is a number here, as everywhere in Plimsoll; 0 is the GPU's
//! default stream.

use std::collections::HashMap;

use cudarc::driver::{result, sys};
use parking_lot::RwLock;
use plimsoll_core::{Error, Result};
use plimsoll_memory::{Fence, StreamId};

use crate::Context;
use crate::error::Told;
use crate::fence::Recorded;

/// The driver's handle of each stream.
pub(crate) struct Streams(RwLock<HashMap<u64, Handle>>);

#[derive(Clone, Copy)]
struct Handle(sys::CUstream);

// SAFETY: a stream handle is a name that the driver accepts from any thread; streams are never
// destroyed while the context lives.
unsafe impl Send for Handle {}
// SAFETY: as for Send.
unsafe impl Sync for Handle {}

impl Streams {
    pub(crate) fn new() -> Streams {
        Streams(RwLock::new(HashMap::new()))
    }
}

impl Context {
    /// Makes sure that `stream` exists. It does not wait for the default one. The smaller
    /// `priority` is, the more urgent its work, within what the GPU tells apart.
    pub fn open_stream(&self, stream: StreamId, priority: i32) -> Result<()> {
        if stream == StreamId::DEFAULT || self.streams.0.read().contains_key(&stream.0) {
            return Ok(());
        }
        let _bound = self.bind()?;
        let mut streams = self.streams.0.write();
        if streams.contains_key(&stream.0) {
            return Ok(());
        }
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the driver fills in two numbers.
        unsafe { sys::cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest) }
            .result()
            .told("cuCtxGetStreamPriorityRange")?;
        let kind = result::stream::StreamKind::NonBlocking;
        // Smaller is more urgent: `greatest` is the most negative number.
        let priority = priority.min(least).max(greatest);
        let handle = result::stream::create_with_priority(kind, priority)
            .told("cuStreamCreateWithPriority")?;
        streams.insert(stream.0, Handle(handle));
        Ok(())
    }

    /// The driver's handle of `stream`.
    pub(crate) fn handle(&self, stream: StreamId) -> Result<sys::CUstream> {
        if stream == StreamId::DEFAULT {
            return Ok(result::stream::null());
        }
        match self.streams.0.read().get(&stream.0) {
            Some(handle) => Ok(handle.0),
            None => Err(Error::device(
                "stream",
                format!("cuda:{} has no stream {}", self.ordinal(), stream.0),
            )),
        }
    }

    /// The driver's own number for `stream`, as other libraries take it; 0 is the default stream.
    pub fn raw_stream(&self, stream: StreamId) -> Result<usize> {
        self.handle(stream).map(|handle| handle.addr())
    }

    /// Makes `stream` wait for what another library has queued on its stream `raw`, or the other
    /// way round if `ours_first`.
    ///
    /// # Safety
    /// `raw` is a stream of this GPU that is alive, by the driver's numbers (0 and 1 are the
    /// default stream, 2 the default stream of the thread).
    pub unsafe fn order_with_raw(
        &'static self,
        stream: StreamId,
        raw: usize,
        ours_first: bool,
    ) -> Result<()> {
        let _bound = self.bind()?;
        let (ours, theirs) = (self.handle(stream)?, raw as sys::CUstream);
        let (first, second) = if ours_first { (ours, theirs) } else { (theirs, ours) };
        let fence = self.events.record(self, first)?;
        match fence.state::<Recorded>() {
            Some(recorded) => recorded.hold_back(second),
            None => Ok(()),
        }
    }

    /// Waits until `stream` has no queued work. Errors of earlier kernels show here.
    pub fn synchronize_stream(&self, stream: StreamId) -> Result<()> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        // SAFETY: the handle is the default stream or one of ours, which are never destroyed.
        unsafe { result::stream::synchronize(handle) }.told("cuStreamSynchronize")
    }

    /// A point in `stream`'s queue.
    pub fn record(&'static self, stream: StreamId) -> Result<Fence> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        self.events.record(self, handle)
    }

    /// Makes later work on `stream` wait for `fence`: by itself where the fence is CUDA's, else by
    /// stopping the host.
    pub fn wait_for_fence(&self, stream: StreamId, fence: &Fence) -> Result<()> {
        let _bound = self.bind()?;
        match fence.state::<Recorded>() {
            Some(recorded) => recorded.hold_back(self.handle(stream)?),
            None => {
                fence.wait();
                Ok(())
            }
        }
    }

    /// Whether an earlier kernel failed. Does not wait.
    pub fn check(&self) -> Result<()> {
        let _bound = self.bind()?;
        // SAFETY: asks about the default stream, which always exists.
        match unsafe { sys::cuStreamQuery(result::stream::null()) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(()),
            state => state.result().told("cuStreamQuery"),
        }
    }

    /// Queues a copy between any two of host memory, this GPU's and another's; the driver knows
    /// which is which. Of host memory that is not pinned the driver copies in its own time, but
    /// never later than the stream.
    ///
    /// # Safety
    /// `from` is `bytes` of memory that stays alive and unwritten until the stream passed the copy,
    /// and `to` is `bytes` that the stream may write; they do not overlap.
    pub unsafe fn copy(
        &self,
        stream: StreamId,
        from: usize,
        to: usize,
        bytes: usize,
    ) -> Result<()> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        // SAFETY: the caller's promise.
        unsafe { sys::cuMemcpyAsync(to as u64, from as u64, bytes, handle) }
            .result()
            .told("cuMemcpyAsync")
    }
}
