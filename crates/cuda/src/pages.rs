//! A GPU's addresses apart from its memory, for expandable segments: the driver's calls for virtual
//! memory. A range is reserved; pages of it are created, mapped and opened to the GPU; unmapping
//! gives a page's memory back.
//!
//! Note [Who holds a page]
//! The handle of a page is released as soon as the page is mapped: the driver keeps the memory for
//! as long as it is mapped, and frees it when it is unmapped. So there is no table of handles, and
//! nothing to leak. Pages are mapped and unmapped one by one, because the driver unmaps only what
//! was mapped as one.
//!
//! Only the GPU itself may reach them: they are copied to another one by a call that names both
//! (`Context::copy_from_gpu`), and shared with no other process.

use std::num::NonZeroUsize;

use cudarc::driver::{DriverError, result, sys};
use plimsoll_memory::{AddressSpace, SourceFull};

use crate::Context;
use crate::sources::DeviceSource;

/// What pages of expandable segments are multiples of.
const PAGE_UNIT_BYTES: usize = 2 << 20;

/// Why the GPU has no virtual memory that pages can be taken from.
pub(crate) fn supported(context: &Context) -> Result<(), String> {
    let told = |call: &str, error: DriverError| format!("the CUDA driver refused {call}: {error}");
    let _bound = context.bind().map_err(|error| error.to_string())?;
    let device = device(context).map_err(|error| told("cuDeviceGet", error))?;
    let attribute =
        sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    // SAFETY: `device` came from the driver just now.
    let value = unsafe { result::device::get_attribute(device, attribute) };
    if value.map_err(|error| told("cuDeviceGetAttribute", error))? == 0 {
        return Err("the GPU or its driver has no virtual memory management".to_string());
    }
    let (mut unit_bytes, wanted) = (0, properties(device));
    // SAFETY: the driver reads the properties and fills in the number.
    unsafe {
        sys::cuMemGetAllocationGranularity(
            &raw mut unit_bytes,
            &raw const wanted,
            sys::CUmemAllocationGranularity_flags_enum::CU_MEM_ALLOC_GRANULARITY_MINIMUM,
        )
    }
    .result()
    .map_err(|error| told("cuMemGetAllocationGranularity", error))?;
    if unit_bytes == 0 || !PAGE_UNIT_BYTES.is_multiple_of(unit_bytes) {
        return Err(format!("the driver maps multiples of {unit_bytes} bytes, and not of 2 MiB"));
    }
    Ok(())
}

fn device(context: &Context) -> Result<sys::CUdevice, DriverError> {
    result::device::get(context.ordinal() as i32)
}

fn location(device: sys::CUdevice) -> sys::CUmemLocation {
    let type_ = sys::CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE;
    sys::CUmemLocation { type_, id: device }
}

/// Plain memory of the GPU.
fn properties(device: sys::CUdevice) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType_enum::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: sys::CUmemAllocationHandleType_enum::CU_MEM_HANDLE_TYPE_NONE,
        location: location(device),
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

fn full(why: impl std::fmt::Display) -> SourceFull {
    SourceFull::because(why.to_string())
}

/// Creates a page and maps it. See Note [Who holds a page].
///
/// # Safety
/// The page lies in a reserved range and is not mapped; the GPU is bound.
unsafe fn map_page(device: sys::CUdevice, address: u64, bytes: usize) -> Result<(), DriverError> {
    let (mut handle, wanted) = (0, properties(device));
    // SAFETY: the driver reads the properties and fills in the handle.
    unsafe { sys::cuMemCreate(&raw mut handle, bytes, &raw const wanted, 0) }.result()?;
    // SAFETY: the caller's promise, and a handle of as many bytes.
    let mapped = unsafe { sys::cuMemMap(address, bytes, 0, handle, 0) }.result();
    // SAFETY: the handle was made above and is released once, mapped or not. A driver that refuses
    // has failed, which the next call that can tell tells.
    let _ = unsafe { sys::cuMemRelease(handle) };
    mapped
}

impl AddressSpace for DeviceSource {
    fn reserve_range(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        let _bound = self.context().bind().map_err(full)?;
        let mut address = 0;
        // SAFETY: the driver fills in the address of a range that nobody uses.
        unsafe { sys::cuMemAddressReserve(&raw mut address, bytes, 0, 0, 0) }
            .result()
            .map_err(full)?;
        NonZeroUsize::new(address as usize).ok_or_else(|| full("the driver gave address 0"))
    }

    unsafe fn release_range(&self, address: NonZeroUsize, bytes: usize) {
        if let Ok(_bound) = self.context().bind() {
            // SAFETY: the caller promises a whole range without a mapped page. After a failed
            // kernel the driver refuses everything, and the range goes with the process.
            let _ = unsafe { sys::cuMemAddressFree(address.get() as u64, bytes) };
        }
    }

    unsafe fn map(
        &self,
        address: NonZeroUsize,
        bytes: usize,
        page_bytes: usize,
    ) -> Result<(), SourceFull> {
        let _bound = self.context().bind().map_err(full)?;
        let device = device(self.context()).map_err(full)?;
        let start = address.get();
        let mut mapped_to = start;
        let mut mapped = Ok(());
        while mapped.is_ok() && mapped_to < start + bytes {
            // SAFETY: the caller promises pages of one range that are not mapped.
            mapped = unsafe { map_page(device, mapped_to as u64, page_bytes) };
            mapped_to += if mapped.is_ok() { page_bytes } else { 0 };
        }
        let opened = mapped.and_then(|()| {
            let flags = sys::CUmemAccess_flags_enum::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            let access = sys::CUmemAccessDesc { location: location(device), flags };
            // SAFETY: all pages of the range are mapped; the driver reads one description.
            unsafe { sys::cuMemSetAccess(start as u64, bytes, &raw const access, 1) }.result()
        });
        opened.map_err(|error| {
            // SAFETY: these pages were mapped above, and nobody knows of them yet.
            unsafe { unmap_pages(start, mapped_to - start, page_bytes) };
            full(error)
        })
    }

    unsafe fn unmap(&self, address: NonZeroUsize, bytes: usize, page_bytes: usize) {
        if let Ok(_bound) = self.context().bind() {
            // SAFETY: the caller promises mapped pages that nothing uses any more.
            unsafe { unmap_pages(address.get(), bytes, page_bytes) };
        }
    }
}

/// Unmaps pages one by one, which frees their memory.
///
/// # Safety
/// They are mapped, with this size of page, and nothing uses them; the GPU is bound.
unsafe fn unmap_pages(address: usize, bytes: usize, page_bytes: usize) {
    for page in (address..address + bytes).step_by(page_bytes) {
        // SAFETY: the caller's promise. After a failed kernel the driver refuses everything, and
        // the memory goes with the process.
        let _ = unsafe { sys::cuMemUnmap(page as u64, page_bytes) };
    }
}
