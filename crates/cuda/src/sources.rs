//! Memory of a GPU, and host memory that a GPU can copy from by itself, as sources for arenas.

use std::num::NonZeroUsize;

use cudarc::driver::{result, sys};
use plimsoll_memory::{Fence, Room, Source, SourceFull, StreamId};

use crate::Context;

/// GPU memory by `cuMemAlloc`.
#[derive(Debug)]
pub struct DeviceSource(&'static Context);

impl DeviceSource {
    /// The memory of `context`'s GPU.
    pub fn new(context: &'static Context) -> DeviceSource {
        DeviceSource(context)
    }
}

fn full(why: impl std::fmt::Display) -> SourceFull {
    SourceFull::because(why.to_string())
}

impl Source for DeviceSource {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        self.0.bind().map_err(full)?;
        // SAFETY: asks for memory; the segment owns it until `release`.
        let address = unsafe { result::malloc_sync(bytes) }.map_err(full)?;
        NonZeroUsize::new(address as usize).ok_or_else(|| full("the driver gave address 0"))
    }

    unsafe fn release(&self, address: NonZeroUsize, bytes: usize) {
        let _ = bytes;
        if self.0.bind().is_ok() {
            // SAFETY: the caller hands back a segment that nothing uses. After a failed kernel the driver refuses everything,
            // and the memory goes with the process.
            let _ = unsafe { result::free_sync(address.get() as u64) };
        }
    }

    fn room(&self) -> Room {
        match self.0.memory_info() {
            Ok((free, total)) => Room {
                total_bytes: Some(total),
                free_bytes: Some(free),
                used_by_others_bytes: None,
            },
            Err(_) => Room::default(),
        }
    }

    fn record(&self, stream: StreamId) -> Fence {
        // A device that cannot record any more has failed, and its queued work will not run.
        self.0.record(stream).unwrap_or(Fence::done())
    }

    fn synchronize(&self, stream: StreamId) {
        // The error is sticky and is told by the next call that can tell it.
        let _ = self.0.synchronize_stream(stream);
    }
}

/// Host memory locked for copies without the CPU.
#[derive(Debug)]
pub struct PinnedSource(&'static Context);

impl PinnedSource {
    /// Pinned memory that `context`'s GPU can reach.
    pub fn new(context: &'static Context) -> PinnedSource {
        PinnedSource(context)
    }
}

impl Source for PinnedSource {
    fn name(&self) -> &'static str {
        "pinned"
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        self.0.bind().map_err(full)?;
        // SAFETY: asks for memory that every GPU of the process may use; the segment owns it until `release`.
        let pointer = unsafe { result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_PORTABLE) };
        NonZeroUsize::new(pointer.map_err(full)?.addr())
            .ok_or_else(|| full("the driver gave address 0"))
    }

    unsafe fn release(&self, address: NonZeroUsize, bytes: usize) {
        let _ = bytes;
        if self.0.bind().is_ok() {
            // SAFETY: the caller hands back a segment that nothing uses.
            let _ = unsafe { result::free_host(address.get() as *mut _) };
        }
    }

    fn record(&self, stream: StreamId) -> Fence {
        self.0.record(stream).unwrap_or(Fence::done())
    }

    fn synchronize(&self, stream: StreamId) {
        let _ = self.0.synchronize_stream(stream);
    }
}
