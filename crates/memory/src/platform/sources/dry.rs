//! Addresses without memory, for the dry run: the allocator above takes the same branches and
//! counts the same bytes as on the device that it imitates, and nothing is ever touched.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::platform::source::{Room, Source, SourceFull};

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
    reserved_bytes: AtomicUsize,
    next_address: AtomicUsize,
}

impl DrySource {
    /// A source that imitates a device of `total_bytes`, or one without end.
    pub fn new(total_bytes: Option<usize>) -> DrySource {
        DrySource {
            total_bytes,
            overcommits: false,
            reserved_bytes: AtomicUsize::new(0),
            next_address: AtomicUsize::new(FIRST_ADDRESS),
        }
    }

    /// A source that imitates `other`: the same room, and the same default cap above it.
    pub fn imitating(other: &dyn Source) -> DrySource {
        DrySource { overcommits: other.overcommits(), ..DrySource::new(other.room().total_bytes) }
    }
}

impl Source for DrySource {
    fn name(&self) -> &'static str {
        "dry"
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        let fits = |reserved: usize| {
            let after = reserved.checked_add(bytes)?;
            (after <= self.total_bytes.unwrap_or(usize::MAX)).then_some(after)
        };
        self.reserved_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|_| SourceFull::because("the imitated device has no more room"))?;
        let span = bytes.checked_next_multiple_of(ALIGNMENT_BYTES);
        let next = |address: usize| address.checked_add(span?);
        let address =
            self.next_address.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok();
        address.and_then(NonZeroUsize::new).ok_or_else(|| {
            self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
            SourceFull::because("no addresses are left")
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
}
