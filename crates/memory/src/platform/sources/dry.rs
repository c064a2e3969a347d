//! Addresses without memory, for the dry run: the allocator above takes the same branches and
//! counts the same bytes as on the device that it imitates, and nothing is ever touched.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::platform::lock::Lock;
use crate::platform::source::{AddressSpace, Room, Source, SourceFull};

/// Where addresses start: no mapping of a real process is likely there, and below 2^53, past which
/// the snapshot viewers (JavaScript numbers) lose digits.
const FIRST_ADDRESS: usize = 1 << 44;

/// Segments start on multiples of this, as those of device drivers do.
const ALIGNMENT_BYTES: usize = 2 << 20;

/// Gives out addresses that nothing lies behind.
///
/// ```
/// use plimsoll_memory::{DrySource, Source};
/// let source = DrySource::new(Some(1 << 20));
/// assert!(source.reserve(1 << 20).is_ok());
/// assert!(source.reserve(1).is_err());
/// ```
#[derive(Debug)]
pub struct DrySource {
    total_bytes: Option<usize>,
    overcommits: bool,
    /// Whether the imitated device has no addresses apart from its memory.
    whole_segments: bool,
    reserved_bytes: AtomicUsize,
    next_address: AtomicUsize,
    /// Ranges that were given back, to be given out again: they are huge, and a program that
    /// empties its cache in a loop would get to addresses that viewers cannot show.
    ranges: Lock<Vec<(NonZeroUsize, usize)>>,
}

impl DrySource {
    /// A source that imitates a device of `total_bytes`, or one without end.
    pub fn new(total_bytes: Option<usize>) -> DrySource {
        DrySource {
            total_bytes,
            overcommits: false,
            whole_segments: false,
            reserved_bytes: AtomicUsize::new(0),
            next_address: AtomicUsize::new(FIRST_ADDRESS),
            ranges: Lock::new(Vec::new()),
        }
    }

    /// A source that imitates `other`: the same room, the same default cap above it, and addresses
    /// apart from memory if it has them.
    pub fn imitating(other: &dyn Source) -> DrySource {
        DrySource {
            overcommits: other.overcommits(),
            whole_segments: other.address_space().is_err(),
            ..DrySource::new(other.room().total_bytes)
        }
    }

    /// Counts `bytes` in, unless the imitated device has no room for them.
    fn count_in(&self, bytes: usize) -> Result<(), SourceFull> {
        let fits = |reserved: usize| {
            let after = reserved.checked_add(bytes)?;
            (after <= self.total_bytes.unwrap_or(usize::MAX)).then_some(after)
        };
        self.reserved_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map(drop)
            .map_err(|_| SourceFull::because("the imitated device has no more room"))
    }

    /// Addresses that nobody has had yet.
    fn take_addresses(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        let span = bytes.checked_next_multiple_of(ALIGNMENT_BYTES);
        let next = |address: usize| address.checked_add(span?);
        let address =
            self.next_address.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok();
        let found = address.and_then(NonZeroUsize::new);
        found.ok_or_else(|| SourceFull::because("no addresses are left"))
    }
}

impl Source for DrySource {
    fn name(&self) -> &'static str {
        "dry"
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        self.count_in(bytes)?;
        self.take_addresses(bytes).inspect_err(|_| {
            self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    unsafe fn release(&self, _address: NonZeroUsize, bytes: usize) {
        self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn room(&self) -> Room {
        let reserved = self.reserved_bytes.load(Ordering::Relaxed);
        Room {
            total_bytes: self.total_bytes,
            free_bytes: self.total_bytes.map(|total| total.saturating_sub(reserved)),
            used_by_others_bytes: None,
        }
    }

    fn overcommits(&self) -> bool {
        self.overcommits
    }

    fn address_space(&self) -> Result<&dyn AddressSpace, String> {
        match self.whole_segments {
            true => Err("the imitated memory comes in whole segments only".to_string()),
            false => Ok(self),
        }
    }
}

impl AddressSpace for DrySource {
    fn reserve_range(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        let mut ranges = self.ranges.lock();
        match ranges.iter().position(|range| range.1 == bytes) {
            Some(place) => Ok(ranges.swap_remove(place).0),
            None => self.take_addresses(bytes),
        }
    }

    unsafe fn release_range(&self, address: NonZeroUsize, bytes: usize) {
        self.ranges.lock().push((address, bytes));
    }

    unsafe fn map(
        &self,
        _address: NonZeroUsize,
        bytes: usize,
        _page_bytes: usize,
    ) -> Result<(), SourceFull> {
        self.count_in(bytes)
    }

    unsafe fn unmap(&self, _address: NonZeroUsize, bytes: usize, _page_bytes: usize) {
        self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_do_not_overlap_and_room_comes_back() {
        let source = DrySource::new(Some(10 << 20));
        let first = source.reserve(3 << 20).unwrap();
        let second = source.reserve(7 << 20).unwrap();
        assert!(second.get() >= first.get() + (3 << 20));
        assert_eq!(first.get() % 512, 0);
        assert!(source.reserve(1).is_err());
        // SAFETY: both came from `reserve` with these sizes and nothing lies behind them.
        unsafe { source.release(first, 3 << 20) };
        assert_eq!(source.room().free_bytes, Some(3 << 20));
        assert!(source.reserve(usize::MAX).is_err());
        assert!(source.reserve(3 << 20).is_ok());
    }

    #[test]
    fn huge_sizes_neither_wrap_nor_leak() {
        let source = DrySource::new(None);
        assert!(source.reserve(usize::MAX).is_err());
        assert!(source.reserve(usize::MAX - (1 << 20)).is_err());
        assert!(source.reserve(1 << 40).is_ok());
    }

    #[test]
    fn ranges_take_no_room_and_are_given_out_again() {
        let source = DrySource::new(Some(4 << 20));
        let space = source.address_space().unwrap();
        let range = space.reserve_range(1 << 30).unwrap();
        assert_eq!(source.room().free_bytes, Some(4 << 20));
        // SAFETY: nothing lies behind the range, whose pages are mapped and unmapped in turn.
        unsafe {
            space.map(range, 4 << 20, 2 << 20).unwrap();
            assert_eq!(source.room().free_bytes, Some(0));
            assert!(space.map(range.saturating_add(4 << 20), 2 << 20, 2 << 20).is_err());
            space.unmap(range, 2 << 20, 2 << 20);
            assert_eq!(source.room().free_bytes, Some(2 << 20));
            space.unmap(range.saturating_add(2 << 20), 2 << 20, 2 << 20);
            space.release_range(range, 1 << 30);
        }
        assert_ne!(space.reserve_range(2 << 30).unwrap(), range);
        assert_eq!(space.reserve_range(1 << 30).unwrap(), range);
    }

    #[test]
    fn whole_segments_are_imitated_too() {
        let host = crate::platform::sources::HostSource::default();
        assert!(DrySource::imitating(&host).address_space().is_err());
        assert!(DrySource::imitating(&DrySource::new(None)).address_space().is_ok());
    }
}
