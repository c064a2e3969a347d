//! One GPU: its context, name, streams and loaded kernels. Lives for ever once opened, like the device table entry over it.

use std::cell::Cell;

use cudarc::driver::{result, sys};
use parking_lot::Mutex;
use plimsoll_core::{Error, Result};

use crate::blas::Blas;
use crate::error::Told;
use crate::fence::EventPool;
use crate::kernel::Kernels;
use crate::library;
use crate::stream::Streams;

/// A GPU that is open for work.
pub struct Context {
    ordinal: usize,
    name: String,
    /// Compute capability, 90 for 9.0.
    capability: u32,
    multiprocessors: u32,
    handle: sys::CUcontext,
    pub(crate) streams: Streams,
    pub(crate) events: EventPool,
    pub(crate) kernels: Kernels,
    pub(crate) blas: Mutex<Option<Blas>>,
}

// SAFETY: the handle names a context of the driver, which may be used from any thread; `bind` makes it current on the thread first.
unsafe impl Send for Context {}
// SAFETY: as for Send.
unsafe impl Sync for Context {}

thread_local! {
    /// The context that is current on this thread, so that `bind` costs nothing when it is ours.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

impl Context {
    /// GPU `ordinal`, opened at the first call, or why it cannot be used.
    pub fn open(ordinal: usize) -> Result<&'static Context> {
        // One context a GPU: streams are numbers that only their own context knows.
        static OPEN: Mutex<Vec<&'static Context>> = Mutex::new(Vec::new());
        let mut open = OPEN.lock();
        if let Some(context) = open.iter().find(|context| context.ordinal == ordinal) {
            return Ok(context);
        }
        let context = Context::open_new(ordinal)?;
        open.push(context);
        Ok(context)
    }

    fn open_new(ordinal: usize) -> Result<&'static Context> {
        if let Some(why) = library::unavailable() {
            return Err(Error::device("cuda", format!("there is no CUDA device: {why}")));
        }
        if ordinal >= library::count() {
            return Err(Error::device(
                "cuda",
                format!("there is no cuda:{ordinal}; this machine has {} GPUs", library::count()),
            ));
        }
        let device = result::device::get(ordinal as i32).told("cuDeviceGet")?;
        let attribute = |attribute| -> Result<u32> {
            // SAFETY: `device` came from the driver just now.
            let value = unsafe { result::device::get_attribute(device, attribute) };
            value.told("cuDeviceGetAttribute").map(|value| value as u32)
        };
        use sys::CUdevice_attribute_enum as A;
        let major = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let multiprocessors = attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        // SAFETY: as above; the context is never released, because contexts live for ever here.
        let handle =
            unsafe { result::primary_ctx::retain(device) }.told("cuDevicePrimaryCtxRetain")?;
        let context = Box::leak(Box::new(Context {
            ordinal,
            name: result::device::get_name(device).told("cuDeviceGetName")?,
            capability: major * 10 + minor,
            multiprocessors,
            handle,
            streams: Streams::new(),
            events: EventPool::new(),
            kernels: Kernels::new(),
            blas: Mutex::new(None),
        }));
        context.bind()?;
        Ok(context)
    }

    /// Makes this GPU the one that the thread's driver calls go to.
    pub(crate) fn bind(&self) -> Result<()> {
        let address = self.handle.addr();
        if CURRENT.get() != address {
            // SAFETY: the handle is a context that was retained in `open` and is never released.
            unsafe { result::ctx::set_current(self.handle) }.told("cuCtxSetCurrent")?;
            CURRENT.set(address);
        }
        Ok(())
    }

    /// The index of the GPU.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// The GPU's name as the driver gives it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compute capability, 90 for 9.0.
    pub fn capability(&self) -> u32 {
        self.capability
    }

    /// How many multiprocessors it has: enough blocks for each is what fills the GPU.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Free and total bytes of the GPU's memory, all processes counted.
    pub fn memory_info(&self) -> Result<(usize, usize)> {
        self.bind()?;
        result::mem_get_info().told("cuMemGetInfo")
    }

    /// Waits until all streams have no queued work.
    pub fn synchronize(&self) -> Result<()> {
        self.bind()?;
        result::ctx::synchronize().told("cuCtxSynchronize")
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cuda:{} ({}, sm_{})", self.ordinal, self.name, self.capability)
    }
}
