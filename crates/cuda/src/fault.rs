//! What kernels find wrong while they run: an index outside its dimension, which the host learns
//! only later.
//!
//! Note [Faults]
//! A trap would end the context, and with it everything that is on the GPU. So a kernel that finds
//! an index out of range writes it down and goes on as if the element were not there. The record
//! is one block of host memory that the GPU writes itself: whoever has waited for the GPU looks
//! at it without another call of the driver. The first fault takes it; those that follow are lost
//! until the host has read it, since they are often its consequence.

use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys;
use plimsoll_core::Result;

use crate::error::Told;
use crate::{Context, Fault};

/// States of a record. The kernels know the first three.
const FREE: u32 = 0;
const WRITTEN: u32 = 2;
const BEING_READ: u32 = 3;

/// Mirrors `FaultRecord` in `prelude.cuh`. Kernels write 1 to the state while they fill it in.
#[repr(C)]
#[derive(Debug)]
struct Record {
    state: AtomicU32,
    origin: u32,
    wrong: u32,
    unused: u32,
    value: i64,
    dim: i64,
    size: i64,
}

/// The record of one GPU, by the host's address and by the GPU's.
#[derive(Debug)]
pub(crate) struct Faults {
    record: *mut Record,
    device_address: u64,
}

impl Faults {
    /// Host memory of the context that is current on this thread, for ever.
    pub(crate) fn allocate() -> Result<Faults> {
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        let (mut host, mut device_address) = (std::ptr::null_mut(), 0);
        // SAFETY: the driver fills in an address, or refuses.
        unsafe { sys::cuMemHostAlloc(&raw mut host, size_of::<Record>(), flags) }
            .result()
            .told("cuMemHostAlloc")?;
        let record = host.cast::<Record>();
        // SAFETY: the block is fresh, aligned to a page and large enough; all zeros is a record
        // that is free.
        unsafe { record.write_bytes(0, 1) };
        // SAFETY: the block was allocated just now with a mapping for the GPU.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut device_address, host, 0) }
            .result()
            .told("cuMemHostGetDevicePointer")?;
        Ok(Faults { record, device_address })
    }
}

impl Context {
    /// Where kernels write faults, by the GPU's address.
    pub fn fault_address(&self) -> u64 {
        self.faults.device_address
    }

    /// The fault that a kernel wrote down since the last time, if one did. For whoever has waited
    /// for the GPU. See Note \[Faults\].
    pub fn take_fault(&self) -> Option<Fault> {
        let record = self.faults.record;
        // SAFETY: the record lives as long as the context, which is for ever, and the state is
        // only touched as an atomic.
        let state = unsafe { &(*record).state };
        // Of several threads that waited, one tells.
        state.compare_exchange(WRITTEN, BEING_READ, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // SAFETY: the kernel wrote the fields before the state, and none takes the record again
        // before it is free. Volatile, because the compiler knows nothing of the GPU.
        let fault = unsafe {
            Fault {
                origin: (&raw const (*record).origin).read_volatile(),
                wrong: (&raw const (*record).wrong).read_volatile(),
                value: (&raw const (*record).value).read_volatile(),
                dim: (&raw const (*record).dim).read_volatile(),
                size: (&raw const (*record).size).read_volatile(),
            }
        };
        state.store(FREE, Ordering::Release);
        Some(fault)
    }
}
