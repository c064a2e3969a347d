//! Points of a stream's queue with their time, over CUDA events that keep it. For observers: fences
//! (`fence.rs`) are cheaper and know no time.

use std::time::Duration;

use cudarc::driver::{result, sys};
use plimsoll_core::Result;
use plimsoll_memory::StreamId;

use crate::Context;
use crate::error::Told;

/// A point of a stream's queue; the device notes when it passes it.
#[derive(Debug)]
pub struct TimedEvent {
    event: sys::CUevent,
    context: &'static Context,
}

// SAFETY: an event handle is a name that the driver accepts from any thread; this one is destroyed
// once, by its only owner.
unsafe impl Send for TimedEvent {}
// SAFETY: as for Send; asking changes nothing.
unsafe impl Sync for TimedEvent {}

impl Context {
    /// A point at the end of `stream`'s queue that keeps its time.
    pub fn record_timed(&'static self, stream: StreamId) -> Result<TimedEvent> {
        let _bound = self.bind()?;
        let stream = self.handle(stream)?;
        let flags = sys::CUevent_flags_enum::CU_EVENT_DEFAULT;
        let event = result::event::create(flags).told("cuEventCreate")?;
        let timed = TimedEvent { event, context: self };
        // SAFETY: the event was just made and the stream is never destroyed.
        unsafe { result::event::record(timed.event, stream) }.told("cuEventRecord")?;
        Ok(timed)
    }
}

impl TimedEvent {
    /// The time from `earlier` to this one; `None` if the device has not passed both.
    pub fn since(&self, earlier: &TimedEvent) -> Option<Duration> {
        let _bound = self.context.bind().ok()?;
        // SAFETY: both events were recorded and are alive.
        let milliseconds = unsafe { result::event::elapsed(earlier.event, self.event) }.ok()?;
        Some(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }

    /// Waits until the device has passed it.
    pub fn wait(&self) {
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: the event is ours. An error here is the stream's, and is told by whoever
            // synchronises next.
            let _ = unsafe { result::event::synchronize(self.event) };
        }
    }
}

impl Drop for TimedEvent {
    fn drop(&mut self) {
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: nobody else has the event; the driver keeps what it needs until the stream
            // has passed it.
            let _ = unsafe { result::event::destroy(self.event) };
        }
    }
}
