//! Memory of a GPU as a source for arenas, and host memory made known to the driver, so that GPUs
//! copy from and to it by themselves. Its addresses apart from its memory are in `pages.rs`.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use cudarc::driver::{result, sys};
use plimsoll_core::Result;
use plimsoll_memory::{AddressSpace, Fence, Room, Source, SourceFull, StreamId};

use crate::Context;
use crate::error::Told;
use crate::pages;

/// GPU memory by `cuMemAlloc`, and pages by the calls for virtual memory.
#[derive(Debug)]
pub struct DeviceSource {
    context: &'static Context,
    /// Whether it has an address space; asked once.
    pages: OnceLock<std::result::Result<(), String>>,
}

impl DeviceSource {
    /// The memory of `context`'s GPU.
    pub fn new(context: &'static Context) -> DeviceSource {
        DeviceSource { context, pages: OnceLock::new() }
    }

    pub(crate) fn context(&self) -> &'static Context {
        self.context
    }
}

fn full(why: impl std::fmt::Display) -> SourceFull {
    SourceFull::because(why.to_string())
}

impl Source for DeviceSource {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn reserve(&self, bytes: usize) -> std::result::Result<NonZeroUsize, SourceFull> {
        let _bound = self.context.bind().map_err(full)?;
        // SAFETY: asks for memory; the segment owns it until `release`.
        let address = unsafe { result::malloc_sync(bytes) }.map_err(full)?;
        NonZeroUsize::new(address as usize).ok_or_else(|| full("the driver gave address 0"))
    }

    unsafe fn release(&self, address: NonZeroUsize, bytes: usize) {
        let _ = bytes;
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: the caller hands back a segment that nothing uses. After a failed kernel the
            // driver refuses everything, and the memory goes with the process.
            let _ = unsafe { result::free_sync(address.get() as u64) };
        }
    }

    fn room(&self) -> Room {
        match self.context.memory_info() {
            Ok((free, total)) => Room {
                total_bytes: Some(total),
                free_bytes: Some(free),
                used_by_others_bytes: None,
            },
            Err(_) => Room::default(),
        }
    }

    fn address_space(&self) -> std::result::Result<&dyn AddressSpace, String> {
        self.pages.get_or_init(|| pages::supported(self.context)).clone().map(|()| self as _)
    }

    fn record(&self, stream: StreamId) -> Fence {
        // A device that cannot record any more has failed, and its queued work will not run.
        self.context.record(stream).unwrap_or(Fence::done())
    }

    fn synchronize(&self, stream: StreamId) {
        // The error is sticky and is told by the next call that can tell it.
        let _ = self.context.synchronize_stream(stream);
    }
}

impl Context {
    /// Locks host memory and makes it known to every GPU of the process, so that copies from and to
    /// it need no help of the host.
    ///
    /// # Safety
    /// `bytes` at `address` are memory of this process, and stay so until [`Context::unregister`].
    pub unsafe fn register(&self, address: NonZeroUsize, bytes: usize) -> Result<()> {
        let _bound = self.bind()?;
        // SAFETY: the caller's promise; registering changes no contents.
        unsafe {
            sys::cuMemHostRegister_v2(
                address.get() as *mut _,
                bytes,
                sys::CU_MEMHOSTREGISTER_PORTABLE,
            )
        }
        .result()
        .told("cuMemHostRegister")
    }

    /// Takes back what [`Context::register`] did. No copy from or to the memory runs any more.
    ///
    /// # Safety
    /// `address` was registered, and is unregistered once.
    pub unsafe fn unregister(&self, address: NonZeroUsize) {
        if let Ok(_bound) = self.bind() {
            // SAFETY: the caller's promise. A driver that refuses has failed; the memory is
            // unlocked when it is unmapped.
            let _ = unsafe { sys::cuMemHostUnregister(address.get() as *mut _) };
        }
    }
}
