//! Host addresses apart from host memory: a range is a mapping that nothing may touch, and a page
//! of it has memory once it may be read and written. The stand-in accelerator has its expandable
//! segments of these. It is no source: host arenas keep whole segments, see docs/decisions.md.

use std::io;
use std::num::NonZeroUsize;
use std::ptr;

use crate::platform::source::{AddressSpace, SourceFull};

/// Ranges of this process's addresses, by `mmap`.
///
/// ```
/// use plimsoll_memory::{AddressSpace, HostPages};
/// # if cfg!(miri) { return Ok(()) }
/// let range = HostPages.reserve_range(1 << 40)?; // a tebibyte of addresses
/// // SAFETY: the pages lie in the range, are mapped once, and are touched only while they are.
/// unsafe {
///     HostPages.map(range, 2 << 20, 2 << 20)?;
///     std::ptr::with_exposed_provenance_mut::<u8>(range.get()).write(7);
///     HostPages.unmap(range, 2 << 20, 2 << 20);
///     HostPages.release_range(range, 1 << 40);
/// }
/// # Ok::<(), plimsoll_memory::SourceFull>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HostPages;

impl AddressSpace for HostPages {
    fn reserve_range(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        // SAFETY: at an address of the kernel's choice, so it touches nothing that exists.
        unsafe { map_closed(None, bytes) }
    }

    unsafe fn release_range(&self, address: NonZeroUsize, bytes: usize) {
        // SAFETY: the caller promises a whole range that nothing uses.
        let failed = unsafe { libc::munmap(pointer(address), bytes) };
        debug_assert_eq!(failed, 0, "munmap: {}", io::Error::last_os_error());
    }

    unsafe fn map(
        &self,
        address: NonZeroUsize,
        bytes: usize,
        _page_bytes: usize,
    ) -> Result<(), SourceFull> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the caller promises pages of a range of ours, which nothing uses yet.
        match unsafe { libc::mprotect(pointer(address), bytes, access) } {
            0 => Ok(()),
            _ => Err(SourceFull::because(format!("mprotect: {}", io::Error::last_os_error()))),
        }
    }

    unsafe fn unmap(&self, address: NonZeroUsize, bytes: usize, _page_bytes: usize) {
        // A new closed mapping in the place of the pages gives their memory back at once.
        // SAFETY: the caller promises mapped pages of a range of ours that nothing uses any more.
        let closed = unsafe { map_closed(Some(address), bytes) };
        debug_assert!(closed.is_ok(), "{closed:?}");
    }
}

fn pointer(address: NonZeroUsize) -> *mut libc::c_void {
    ptr::with_exposed_provenance_mut(address.get())
}

/// Maps `bytes` that nobody may touch, at `place` if there is one.
///
/// # Safety
/// `place` and the bytes behind it are in a range of ours, and nothing uses them.
unsafe fn map_closed(
    place: Option<NonZeroUsize>,
    bytes: usize,
) -> Result<NonZeroUsize, SourceFull> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let (hint, flags) = match place {
        Some(address) => (pointer(address), flags | libc::MAP_FIXED),
        None => (ptr::null_mut(), flags),
    };
    // SAFETY: without a place the kernel chooses one where nothing is; with one, the caller
    // promises that nothing uses what is replaced.
    let mapped = unsafe { libc::mmap(hint, bytes, libc::PROT_NONE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(SourceFull::because(format!("mmap: {}", io::Error::last_os_error())));
    }
    NonZeroUsize::new(mapped.expose_provenance())
        .ok_or_else(|| SourceFull::because("mmap gave address 0"))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    const PAGE: usize = 2 << 20;

    #[test]
    fn pages_come_empty_and_neighbours_keep_theirs() {
        let range = HostPages.reserve_range(4 * PAGE).unwrap();
        let at = |page: usize| range.saturating_add(page * PAGE);
        let byte = |page: usize| ptr::with_exposed_provenance_mut::<u8>(at(page).get() + 100);
        // SAFETY: every page is touched only while it is mapped, and the range is released once.
        unsafe {
            HostPages.map(at(0), 3 * PAGE, PAGE).unwrap();
            (0..3).for_each(|page| byte(page).write(page as u8 + 1));
            HostPages.unmap(at(1), PAGE, PAGE);
            assert_eq!((byte(0).read(), byte(2).read()), (1, 3));
            HostPages.map(at(1), PAGE, PAGE).unwrap();
            assert_eq!(byte(1).read(), 0, "the memory went back and new memory came");
            HostPages.unmap(at(0), 3 * PAGE, PAGE);
            HostPages.release_range(range, 4 * PAGE);
        }
        assert!(HostPages.reserve_range(usize::MAX / 2).unwrap_err().reason.contains("mmap"));
    }
}
