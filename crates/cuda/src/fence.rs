//! Fences over CUDA events. Events are pooled: making one costs more than recording it.

use std::sync::Arc;

use cudarc::driver::{result, sys};
use parking_lot::Mutex;
use plimsoll_core::Result;
use plimsoll_memory::{Fence, FenceState};

use crate::Context;
use crate::error::Told;

/// An event of the driver.
#[derive(Clone, Copy, Debug)]
struct CudaEvent(sys::CUevent);

// SAFETY: an event handle is a name that the driver accepts from any thread; events are never
// destroyed while the context lives.
unsafe impl Send for CudaEvent {}
// SAFETY: as for Send.
unsafe impl Sync for CudaEvent {}

/// Events that nobody waits for at the moment.
pub(crate) struct EventPool(Mutex<Vec<CudaEvent>>);

impl EventPool {
    pub(crate) const fn new() -> EventPool {
        EventPool(Mutex::new(Vec::new()))
    }

    fn take(&self) -> Result<CudaEvent> {
        if let Some(event) = self.0.lock().pop() {
            return Ok(event);
        }
        // Without timing an event is cheaper, and nobody reads the times.
        let flags = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING;
        result::event::create(flags).told("cuEventCreate").map(CudaEvent)
    }

    fn give_back(&self, event: CudaEvent) {
        self.0.lock().push(event);
    }

    /// A fence at the end of `stream`'s queue.
    pub(crate) fn record(&self, context: &'static Context, stream: sys::CUstream) -> Result<Fence> {
        let event = self.take()?;
        // SAFETY: both handles are alive: events and streams are never destroyed.
        unsafe { result::event::record(event.0, stream) }.told("cuEventRecord")?;
        Ok(Fence::new(Arc::new(Recorded { event, context })))
    }
}

/// An event recorded in a stream.
#[derive(Debug)]
pub(crate) struct Recorded {
    event: CudaEvent,
    context: &'static Context,
}

impl FenceState for Recorded {
    fn is_done(&self) -> bool {
        let Ok(_bound) = self.context.bind() else { return false };
        // SAFETY: the event is ours until it goes back to the pool in `drop`.
        let state = unsafe { result::event::query(self.event.0) };
        // A failed kernel makes every later call fail: the work will never run, so nothing has to
        // be waited for.
        !matches!(state, Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NOT_READY)
    }

    fn wait(&self) {
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: as above. An error here is the stream's, and is told by whoever synchronises
            // next.
            let _ = unsafe { result::event::synchronize(self.event.0) };
        }
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl Recorded {
    /// Makes `waiting`, a stream of any GPU, wait for the event.
    pub(crate) fn hold_back(&self, waiting: sys::CUstream) -> Result<()> {
        let flags = sys::CUevent_wait_flags_enum::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the event is ours until it goes back to the pool, and streams are never
        // destroyed.
        unsafe { result::stream::wait_event(waiting, self.event.0, flags) }
            .told("cuStreamWaitEvent")
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.context.events.give_back(self.event);
    }
}
