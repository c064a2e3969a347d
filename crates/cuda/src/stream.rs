//! Streams and copies on them. A stream is a number here, as everywhere in Plimsoll; 0 is the GPU's
//! default stream.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use cudarc::driver::{result, sys};
use parking_lot::Mutex;
use plimsoll_core::{Error, Result};
use plimsoll_memory::{Fence, StreamId};

use crate::Context;
use crate::error::Told;
use crate::fence::Recorded;

/// Stream numbers are below this.
const MOST_STREAMS: usize = 256;

/// The driver's handle of each stream, null where there is none yet: every launch asks here, so
/// that asking is one load. Streams are never destroyed while the context lives.
pub(crate) struct Streams {
    handles: [AtomicPtr<sys::CUstream_st>; MOST_STREAMS],
    /// Held by whoever opens one.
    opening: Mutex<()>,
}

impl Streams {
    pub(crate) fn new() -> Streams {
        let handles = [const { AtomicPtr::new(null_mut()) }; MOST_STREAMS];
        Streams { handles, opening: Mutex::new(()) }
    }

    /// The handle of a stream that is not the default one.
    fn get(&self, stream: StreamId) -> Option<sys::CUstream> {
        let handle = self.handles.get(usize::try_from(stream.0).ok()?)?.load(Ordering::Acquire);
        (!handle.is_null()).then_some(handle)
    }
}

impl Context {
    /// Makes sure that `stream` exists. It does not wait for the default one. The smaller
    /// `priority` is, the more urgent its work, within what the GPU tells apart.
    pub fn open_stream(&self, stream: StreamId, priority: i32) -> Result<()> {
        if stream == StreamId::DEFAULT || self.streams.get(stream).is_some() {
            return Ok(());
        }
        let _bound = self.bind()?;
        let _opening = self.streams.opening.lock();
        if self.streams.get(stream).is_some() {
            return Ok(());
        }
        let place = usize::try_from(stream.0).ok().and_then(|at| self.streams.handles.get(at));
        let Some(place) = place else { return Err(self.no_stream(stream)) };
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
        place.store(handle, Ordering::Release);
        Ok(())
    }

    #[cold]
    fn no_stream(&self, stream: StreamId) -> Error {
        let why = format!("cuda:{} has no stream {}", self.ordinal(), stream.0);
        Error::device("stream", why)
    }

    /// The driver's handle of `stream`.
    pub(crate) fn handle(&self, stream: StreamId) -> Result<sys::CUstream> {
        if stream == StreamId::DEFAULT {
            return Ok(result::stream::null());
        }
        self.streams.get(stream).ok_or_else(|| self.no_stream(stream))
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

    /// Waits until `stream` has no queued work. Errors of earlier kernels show here. One that
    /// captures has none; see Note [What a capture allows].
    pub fn synchronize_stream(&self, stream: StreamId) -> Result<()> {
        if self.is_capturing(stream) {
            return Ok(());
        }
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        // SAFETY: the handle is the default stream or one of ours, which are never destroyed.
        unsafe { result::stream::synchronize(handle) }.told("cuStreamSynchronize")
    }

    /// Waits for one stream after the other, past those that capture: the driver waits for all of
    /// them only while none does.
    pub(crate) fn synchronize_each(&self) -> Result<()> {
        let streams = (0..MOST_STREAMS as u64).map(StreamId);
        let open = streams
            .filter(|&stream| stream == StreamId::DEFAULT || self.streams.get(stream).is_some());
        open.into_iter().try_for_each(|stream| self.synchronize_stream(stream))
    }

    /// A point in `stream`'s queue. One that captures has passed it; see Note
    /// [What a capture allows].
    pub fn record(&'static self, stream: StreamId) -> Result<Fence> {
        if self.is_capturing(stream) {
            return Ok(Fence::done());
        }
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

    /// As [`Context::copy`], from memory of the GPU of `other` to this one's. Pages that only their
    /// own GPU may reach (`pages.rs`) have to be copied so: the driver does not find out by itself
    /// whose they are.
    ///
    /// # Safety
    /// As for [`Context::copy`].
    pub unsafe fn copy_from_gpu(
        &self,
        other: &Context,
        stream: StreamId,
        from: usize,
        to: usize,
        bytes: usize,
    ) -> Result<()> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        let (to, from) = (to as u64, from as u64);
        // SAFETY: the caller's promise; contexts live for ever.
        unsafe { sys::cuMemcpyPeerAsync(to, self.handle, from, other.handle, bytes, handle) }
            .result()
            .told("cuMemcpyPeerAsync")
    }
}
