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
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: at an address of the kernel's choice, so it touches nothing that exists.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(SourceFull::because(format!("mmap: {}", io::Error::last_os_error())));
        }
        NonZeroUsize::new(mapped.expose_provenance())
            .ok_or_else(|| SourceFull::because("mmap gave address 0"))
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
        // The mapping stays, so that the addresses are ours whatever fails. A new one in its place
        // was refused: the kernel may take the old one away and then have none to give, and
        // `release_range` would unmap what somebody else has put there meanwhile.
        let at = pointer(address);
        // SAFETY: the caller promises mapped pages of a range of ours that nothing uses any more.
        unsafe {
            if libc::madvise(at, bytes, libc::MADV_DONTNEED) != 0 {
                // A program that locks its memory has locked this too.
                libc::munlock(at, bytes);
                let failed = libc::madvise(at, bytes, libc::MADV_DONTNEED);
                debug_assert_eq!(failed, 0, "madvise: {}", io::Error::last_os_error());
            }
            // Where this fails the pages may still be touched, and are empty: no harm.
            libc::mprotect(at, bytes, libc::PROT_NONE);
        }
    }
}

fn pointer(address: NonZeroUsize) -> *mut libc::c_void {
    ptr::with_exposed_provenance_mut(address.get())
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
            byte(1).write(9);
            // Locked pages go back too; where locking is not allowed, they are like others.
            libc::mlock(pointer(at(1)), 4096);
            HostPages.unmap(at(1), PAGE, PAGE);
            let mut resident = [0_u8; PAGE / 4096];
            // The range is still ours: `mincore` fails for addresses that nobody has.
            let known = libc::mincore(pointer(at(1)), PAGE, resident.as_mut_ptr());
            assert_eq!((known, resident.iter().any(|page| page & 1 == 1)), (0, false));
            HostPages.map(at(1), PAGE, PAGE).unwrap();
            assert_eq!(byte(1).read(), 0);
            HostPages.unmap(at(0), 3 * PAGE, PAGE);
            HostPages.release_range(range, 4 * PAGE);
        }
        assert!(HostPages.reserve_range(usize::MAX / 2).unwrap_err().reason.contains("mmap"));
    }
}
