//! One GPU: its context, properties, streams and loaded kernels. Lives for ever once opened, like
//! the device table entry over it.
//!
//! Note [Whose context is current]
//! A driver call goes to the context that is current on the thread, and other libraries in the
//! process set it too. So every call asks the driver which one that is (a read of the thread's own
//! memory) instead of trusting a note of ours. Where it is ours nothing happens. Where there is
//! none, ours stays: nobody is disturbed. Where it is another library's, ours is pushed for the
//! one call and popped after it, so that the other library finds its own again.

use std::sync::atomic::{AtomicUsize, Ordering};

use cudarc::driver::{result, sys};
use parking_lot::Mutex;
use plimsoll_core::{Error, Result};

use crate::Properties;
use crate::blas::Blas;
use crate::dnn::Dnn;
use crate::error::Told;
use crate::fault::Faults;
use crate::fence::EventPool;
use crate::kernel::Kernels;
use crate::library;
use crate::stream::Streams;
use crate::turn::OVERLAPS_FROM;

/// The first driver that captures launches that overlap in graphs: CUDA 12.3's.
const CAPTURES_OVERLAP: i32 = 12_030;

/// A GPU that is open for work.
pub struct Context {
    ordinal: usize,
    properties: Properties,
    pub(crate) handle: sys::CUcontext,
    pub(crate) streams: Streams,
    pub(crate) events: EventPool,
    pub(crate) kernels: Kernels,
    pub(crate) blas: Mutex<Option<Blas>>,
    pub(crate) dnn: Mutex<Dnn>,
    pub(crate) faults: Faults,
    /// Whether launches may begin early: see Note [Launches that overlap] in `kernel.rs`.
    pub(crate) overlaps: bool,
    /// Captures that are open; see `graph.rs`.
    pub(crate) captures: AtomicUsize,
}

// SAFETY: the handle names a context of the driver, which may be used from any thread; `bind` makes
// it current on the thread first. The record of faults is claimed by an atomic.
unsafe impl Send for Context {}
// SAFETY: as for Send.
unsafe impl Sync for Context {}

/// While this lives, the thread's driver calls go to the GPU that was bound.
#[must_use = "the GPU is current only as long as this lives"]
pub(crate) struct Bound {
    /// Whether another library's context waits below ours.
    pushed: bool,
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.pushed {
            let mut ours = std::ptr::null_mut();
            // SAFETY: `bind` pushed it on this thread, and a `Bound` stays on its thread and within
            // one call. A driver that refuses has failed, which the next call that can tell tells.
            let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut ours) };
        }
    }
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
        let properties = properties_of(device)?;
        // SAFETY: `device` came from the driver; the context is never released, because contexts
        // live for ever here.
        let handle =
            unsafe { result::primary_ctx::retain(device) }.told("cuDevicePrimaryCtxRetain")?;
        let _bound = bind(handle)?;
        let faults = Faults::allocate()?;
        Ok(Box::leak(Box::new(Context {
            ordinal,
            overlaps: properties.capability >= OVERLAPS_FROM
                && library::driver_version() >= CAPTURES_OVERLAP,
            properties,
            handle,
            streams: Streams::new(),
            events: EventPool::new(),
            kernels: Kernels::new(),
            blas: Mutex::new(None),
            dnn: Mutex::new(Dnn::Unasked),
            faults,
            captures: AtomicUsize::new(0),
        })))
    }

    /// Makes this GPU the one that the thread's driver calls go to.
    /// See Note [Whose context is current].
    pub(crate) fn bind(&self) -> Result<Bound> {
        bind(self.handle)
    }

    /// The index of the GPU.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// What the GPU is.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Free and total bytes of the GPU's memory, all processes counted.
    pub fn memory_info(&self) -> Result<(usize, usize)> {
        let _bound = self.bind()?;
        result::mem_get_info().told("cuMemGetInfo")
    }

    /// Waits until all streams have no queued work; those that capture have none.
    pub fn synchronize(&self) -> Result<()> {
        if self.captures.load(Ordering::Acquire) > 0 {
            return self.synchronize_each();
        }
        let _bound = self.bind()?;
        result::ctx::synchronize().told("cuCtxSynchronize")
    }
}

fn bind(handle: sys::CUcontext) -> Result<Bound> {
    match result::ctx::get_current().told("cuCtxGetCurrent")? {
        Some(current) if current == handle => Ok(Bound { pushed: false }),
        None => {
            // SAFETY: the handle is a context that was retained in `open` and is never released.
            unsafe { result::ctx::set_current(handle) }.told("cuCtxSetCurrent")?;
            Ok(Bound { pushed: false })
        }
        Some(_) => {
            // SAFETY: as above.
            unsafe { sys::cuCtxPushCurrent_v2(handle) }.result().told("cuCtxPushCurrent")?;
            Ok(Bound { pushed: true })
        }
    }
}

fn properties_of(device: sys::CUdevice) -> Result<Properties> {
    let attribute = |attribute| -> Result<u32> {
        // SAFETY: `device` came from the driver just now.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        value.told("cuDeviceGetAttribute").map(|value| value as u32)
    };
    use sys::CUdevice_attribute_enum as A;
    let major = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(Properties {
        name: result::device::get_name(device).told("cuDeviceGetName")?,
        // SAFETY: as above.
        memory_bytes: unsafe { result::device::total_mem(device) }.told("cuDeviceTotalMem")?,
        multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        capability: major * 10 + minor,
        l2_bytes: attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
    })
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Properties { name, capability, .. } = &self.properties;
        write!(f, "cuda:{} ({name}, sm_{capability})", self.ordinal)
    }
}

/// For tests: another library's context on the same GPU, current on this thread until it is
/// dropped.
#[doc(hidden)]
#[derive(Debug)]
pub struct ForeignContext(sys::CUcontext);

impl ForeignContext {
    /// Makes one and makes it current.
    pub fn enter(ordinal: usize) -> Result<ForeignContext> {
        let device = result::device::get(ordinal as i32).told("cuDeviceGet")?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the driver fills in the handle of a new context, current on this thread from now
        // on. Null asks for no special parameters.
        unsafe { sys::cuCtxCreate_v4(&raw mut handle, std::ptr::null_mut(), 0, device) }
            .result()
            .told("cuCtxCreate")?;
        Ok(ForeignContext(handle))
    }

    /// Whether it is current on this thread.
    pub fn is_current(&self) -> bool {
        result::ctx::get_current().ok().flatten() == Some(self.0)
    }
}

impl Drop for ForeignContext {
    fn drop(&mut self) {
        // SAFETY: made in `enter`, and destroyed once; that takes it off this thread too.
        let _ = unsafe { sys::cuCtxDestroy_v2(self.0) };
    }
}
