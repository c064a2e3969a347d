//! Host memory, by anonymous `mmap`: a released segment goes back to the system at once and whole.
//! Segments of 2 MiB and more are aligned to 2 MiB and offered to the kernel as huge pages, which
//! makes the first touch of a large tensor several times cheaper.

use std::num::NonZeroUsize;

use crate::platform::source::{Room, Source, SourceFull};
use crate::platform::system_memory::SystemMemory;

/// The size and alignment of a huge page on the machines that have them.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Below this a segment comes from the process's heap: only uncached allocations are that small,
/// and a mapping each would run into the kernel's limit on mappings (65,530).
const SMALLEST_MAPPING_BYTES: usize = 1 << 20;

/// Alignment of every segment: a cache line, and the widest vector register.
const ALIGNMENT_BYTES: usize = 64;

/// Memory of this process.
#[derive(Debug)]
pub struct HostSource {
    huge_pages: bool,
}

impl HostSource {
    /// Host memory; `huge_pages` offers large segments to the kernel as huge pages.
    pub fn new(huge_pages: bool) -> HostSource {
        HostSource { huge_pages }
    }
}

impl Default for HostSource {
    fn default() -> HostSource {
        HostSource::new(true)
    }
}

impl Source for HostSource {
    fn name(&self) -> &'static str {
        "host"
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        if cfg!(miri) || bytes < SMALLEST_MAPPING_BYTES {
            heap::reserve(bytes)
        } else {
            mapping::reserve(bytes, self.huge_pages)
        }
    }

    unsafe fn release(&self, address: NonZeroUsize, bytes: usize) {
        if cfg!(miri) || bytes < SMALLEST_MAPPING_BYTES {
            // SAFETY: the caller promises that this is a segment of `reserve(bytes)`, and `bytes`
            // decides in both places that it came from the heap.
            unsafe { heap::release(address, bytes) }
        } else {
            // SAFETY: as above, and here it came from a mapping.
            unsafe { mapping::release(address, bytes) }
        }
    }

    fn room(&self) -> Room {
        SystemMemory::read().room()
    }

    fn overcommits(&self) -> bool {
        true
    }
}

/// Small segments, from the process's heap. Under Miri, which has no `mmap`, all of them.
mod heap {
    use super::{ALIGNMENT_BYTES, NonZeroUsize, SourceFull};
    use std::alloc::{Layout, alloc, dealloc};

    pub(super) fn reserve(bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        let full = || SourceFull::because("the heap has no more memory");
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT_BYTES).map_err(|_| full())?;
        // SAFETY: the layout's size is not 0.
        let pointer = unsafe { alloc(layout) };
        // Blocks are handed out as numbers; whoever reads the bytes makes the pointer again.
        NonZeroUsize::new(pointer.expose_provenance()).ok_or_else(full)
    }

    /// # Safety
    /// `address` came from `reserve(bytes)` above and nothing uses it any more.
    pub(super) unsafe fn release(address: NonZeroUsize, bytes: usize) {
        let pointer = std::ptr::with_exposed_provenance_mut(address.get());
        if let Ok(layout) = Layout::from_size_align(bytes.max(1), ALIGNMENT_BYTES) {
            // SAFETY: the caller promises that this is what `alloc` gave for the same layout.
            unsafe { dealloc(pointer, layout) }
        }
    }
}

/// Large segments, each a mapping of its own.
pub(super) mod mapping {
    use super::{HUGE_PAGE_BYTES, NonZeroUsize, SourceFull};
    use std::io;
    use std::ptr;

    /// Maps `bytes`. Those that can hold a huge page are aligned to one: the kernel only places
    /// them so, and `mmap` alone aligns to 4 KiB.
    pub(crate) fn reserve(bytes: usize, huge_pages: bool) -> Result<NonZeroUsize, SourceFull> {
        if bytes < HUGE_PAGE_BYTES {
            return map(bytes);
        }
        let full = || SourceFull::because("the size is beyond any address space");
        let padded = bytes.checked_add(HUGE_PAGE_BYTES).ok_or_else(full)?;
        let start = map(padded)?.get();
        let aligned = start.next_multiple_of(HUGE_PAGE_BYTES);
        let page_end = aligned + bytes.next_multiple_of(page_bytes());
        unmap(start, aligned - start);
        unmap(page_end, (start + padded.next_multiple_of(page_bytes())) - page_end);
        if huge_pages {
            // SAFETY: the range is the mapping that was just made. The advice changes no contents,
            // and a kernel without huge pages refuses it, which is as good.
            unsafe {
                libc::madvise(ptr::with_exposed_provenance_mut(aligned), bytes, libc::MADV_HUGEPAGE)
            };
        }
        NonZeroUsize::new(aligned).ok_or_else(full)
    }

    /// # Safety
    /// `address` came from `reserve(bytes)` above and nothing uses it any more.
    pub(crate) unsafe fn release(address: NonZeroUsize, bytes: usize) {
        unmap(address.get(), bytes);
    }

    fn map(bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing that
        // exists.
        let pointer = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if pointer == libc::MAP_FAILED {
            return Err(SourceFull::because(format!("mmap: {}", io::Error::last_os_error())));
        }
        NonZeroUsize::new(pointer.expose_provenance())
            .ok_or_else(|| SourceFull::because("mmap gave address 0"))
    }

    /// Gives `bytes` at `address`, both within one of our own mappings, back to the system.
    fn unmap(address: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        // SAFETY: callers in this module pass ranges of mappings that they made and that nothing
        // uses: the unused ends of one, or (by `release`'s contract) a whole one.
        let failed = unsafe { libc::munmap(ptr::with_exposed_provenance_mut(address), bytes) };
        // It fails only on a range that was never mapped, or when splitting a mapping in two
        // exceeds the kernel's limit; then the bytes stay mapped, which is a leak and not an error.
        debug_assert_eq!(failed, 0, "munmap of {bytes} bytes at {address:#x} failed");
    }

    fn page_bytes() -> usize {
        // SAFETY: `sysconf` reads a constant of the system.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).unwrap_or(4096)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_and_read(source: &HostSource, bytes: usize) {
        let address = source.reserve(bytes).unwrap();
        assert_eq!(address.get() % ALIGNMENT_BYTES, 0);
        let first = std::ptr::with_exposed_provenance_mut::<u8>(address.get());
        // SAFETY: the segment has `bytes` bytes that only this test uses, until `release`.
        unsafe {
            first.write(7);
            first.add(bytes - 1).write(9);
            assert_eq!(first.read(), if bytes == 1 { 9 } else { 7 });
            source.release(address, bytes);
        }
    }

    #[test]
    fn every_size_of_segment_is_usable_to_its_last_byte() {
        let source = HostSource::default();
        for bytes in [1, 512, 4096, 1 << 20, (1 << 20) + 512, 2 << 20, (2 << 20) + 1, 20 << 20] {
            written_and_read(&source, bytes);
        }
    }

    #[test]
    #[cfg(not(miri))]
    fn large_segments_start_on_a_huge_page() {
        let source = HostSource::default();
        let address = source.reserve(6 << 20).unwrap();
        assert_eq!(address.get() % HUGE_PAGE_BYTES, 0);
        // SAFETY: it came from `reserve` with this size and nothing uses it.
        unsafe { source.release(address, 6 << 20) };
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let source = HostSource::default();
        // Miri has no end of memory: what a layout can hold is an abort there, not a refusal.
        let largest = if cfg!(miri) { 1 << 63 } else { 1 << 62 };
        for bytes in [usize::MAX, usize::MAX - (2 << 20), largest] {
            assert!(source.reserve(bytes).is_err(), "{bytes}");
        }
    }
}
