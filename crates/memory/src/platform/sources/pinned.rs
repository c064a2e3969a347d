//! Host memory that stays where it is, for copies that a device makes by itself. Pages are locked
//! where the system allows it, and a device's driver may register them (CUDA does, later).
//!
//! Size classes, splitting and reuse come from the allocator above, so a request just above a power
//! of two does not take twice its size, and `trim` gives memory back: both are what PyTorch's
//! pinned allocator is blamed for. Locked memory is taken from everybody, so there is a cap.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::platform::lock::Lock;
use crate::platform::source::{Room, Source, SourceFull};
use crate::platform::sources::host::HostSource;

/// Share of the memory of this process that is locked at most, unless a cap is set.
const DEFAULT_CAP: f64 = 0.5;

/// How a device's driver makes host memory known to itself.
pub trait RegisterPinned: Send + Sync + Debug + 'static {
    /// Registers fresh memory.
    ///
    /// # Errors
    /// What the driver said; the memory then goes back to the system.
    fn register(&self, address: NonZeroUsize, bytes: usize) -> Result<(), String>;

    /// Takes a registration back, before the memory goes back to the system.
    fn unregister(&self, address: NonZeroUsize, bytes: usize);
}

/// Host memory with locked pages.
#[derive(Debug)]
pub struct PinnedSource {
    host: HostSource,
    cap_bytes: Option<usize>,
    driver: Option<Box<dyn RegisterPinned>>,
    reserved_bytes: AtomicUsize,
    /// Address and size of the segments whose pages are locked. A fork cannot catch it held: it is
    /// used inside `reserve` and `release`, which arenas call under locks that a fork takes first.
    locked: Lock<BTreeMap<NonZeroUsize, usize>>,
}

impl PinnedSource {
    /// Pinned memory of at most `cap_bytes`; without a cap, of half of the memory of this process.
    pub fn new(cap_bytes: Option<usize>) -> PinnedSource {
        let host = HostSource::default();
        let share = |total: usize| (total as f64 * DEFAULT_CAP) as usize;
        PinnedSource {
            cap_bytes: cap_bytes.or_else(|| host.room().total_bytes.map(share)),
            host,
            driver: None,
            reserved_bytes: AtomicUsize::new(0),
            locked: Lock::new(BTreeMap::new()),
        }
    }

    /// The same, with memory made known to a driver, which then does the locking.
    #[must_use]
    pub fn registered_by(mut self, driver: Box<dyn RegisterPinned>) -> PinnedSource {
        self.driver = Some(driver);
        self
    }

    /// Bytes whose pages are locked. Less than what is reserved where the system refused: then
    /// copies are as correct and merely slower.
    pub fn locked_bytes(&self) -> usize {
        self.locked.lock().values().sum()
    }

    /// Counts `bytes` in, unless they pass the cap.
    fn count_in(&self, bytes: usize) -> Result<(), SourceFull> {
        let cap = self.cap_bytes.unwrap_or(usize::MAX);
        let within = |now: usize| now.checked_add(bytes).filter(|&after| after <= cap);
        let counted =
            self.reserved_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within);
        counted.map(drop).map_err(|_| SourceFull::because(format!("the pinned cap is {cap} bytes")))
    }

    /// Locks or registers a fresh segment.
    fn pin(&self, address: NonZeroUsize, bytes: usize) -> Result<(), SourceFull> {
        match &self.driver {
            Some(driver) => driver.register(address, bytes).map_err(SourceFull::because)?,
            None if !lock_pages(address, bytes) => return Ok(()),
            None => {}
        }
        self.locked.lock().insert(address, bytes);
        Ok(())
    }
}

impl Source for PinnedSource {
    fn name(&self) -> &'static str {
        "pinned"
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        self.count_in(bytes)?;
        let uncounted = |full| {
            self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
            full
        };
        let address = self.host.reserve(bytes).map_err(uncounted)?;
        if let Err(full) = self.pin(address, bytes) {
            // SAFETY: it came from `reserve` just now and nobody knows of it yet.
            unsafe { self.host.release(address, bytes) };
            return Err(uncounted(full));
        }
        Ok(address)
    }

    unsafe fn release(&self, address: NonZeroUsize, bytes: usize) {
        let was_locked = self.locked.lock().remove(&address).is_some();
        match &self.driver {
            Some(driver) => driver.unregister(address, bytes),
            None if was_locked => unlock_pages(address, bytes),
            None => {}
        }
        self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: the caller promises that this is a segment of `reserve(bytes)`, which came from
        // the host source with the same size.
        unsafe { self.host.release(address, bytes) };
    }

    fn room(&self) -> Room {
        let reserved = self.reserved_bytes.load(Ordering::Relaxed);
        let host = self.host.room();
        Room {
            total_bytes: self.cap_bytes.or(host.total_bytes),
            free_bytes: match self.cap_bytes {
                Some(cap) => {
                    let left = cap.saturating_sub(reserved);
                    Some(host.free_bytes.map_or(left, |free| free.min(left)))
                }
                None => host.free_bytes,
            },
            used_by_others_bytes: None,
        }
    }
}

/// Whether the pages could be locked. Programs without the privilege may lock little or nothing.
fn lock_pages(address: NonZeroUsize, bytes: usize) -> bool {
    if cfg!(miri) {
        return false;
    }
    let start = std::ptr::with_exposed_provenance(address.get());
    // SAFETY: the range is a mapping of this process that was just made; locking changes no
    // contents.
    unsafe { libc::mlock(start, bytes) == 0 }
}

fn unlock_pages(address: NonZeroUsize, bytes: usize) {
    let start = std::ptr::with_exposed_provenance(address.get());
    // SAFETY: the range was locked and is still mapped; it is released after this. Where unlocking
    // fails, unmapping unlocks.
    unsafe { libc::munlock(start, bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const SEGMENT: usize = 2 << 20;

    #[test]
    fn the_cap_holds_and_room_comes_back() {
        let source = PinnedSource::new(Some(3 << 20));
        let address = source.reserve(SEGMENT).unwrap();
        assert!(source.locked_bytes() == SEGMENT || source.locked_bytes() == 0);
        assert!(source.reserve(SEGMENT).unwrap_err().reason.contains("cap"));
        assert_eq!(source.room().total_bytes, Some(3 << 20));
        // SAFETY: it came from `reserve` with this size and nothing uses it.
        unsafe { source.release(address, SEGMENT) };
        assert_eq!(source.locked_bytes(), 0);
        let again = source.reserve(SEGMENT).unwrap();
        // SAFETY: as above.
        unsafe { source.release(again, SEGMENT) };
    }

    #[derive(Debug)]
    struct Driver {
        known_bytes: Arc<AtomicUsize>,
        refuses: bool,
    }

    impl RegisterPinned for Driver {
        fn register(&self, _: NonZeroUsize, bytes: usize) -> Result<(), String> {
            if self.refuses {
                return Err("no".to_string());
            }
            self.known_bytes.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }

        fn unregister(&self, _: NonZeroUsize, bytes: usize) {
            self.known_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_driver_knows_exactly_what_is_reserved() {
        let known_bytes = Arc::new(AtomicUsize::new(0));
        let driver = Driver { known_bytes: known_bytes.clone(), refuses: false };
        let source = PinnedSource::new(Some(SEGMENT)).registered_by(Box::new(driver));
        let address = source.reserve(SEGMENT).unwrap();
        assert_eq!(known_bytes.load(Ordering::Relaxed), SEGMENT);
        assert_eq!(source.locked_bytes(), SEGMENT);
        // SAFETY: it came from `reserve` with this size and nothing uses it.
        unsafe { source.release(address, SEGMENT) };
        assert_eq!(known_bytes.load(Ordering::Relaxed), 0);

        let driver = Driver { known_bytes, refuses: true };
        let source = PinnedSource::new(Some(SEGMENT)).registered_by(Box::new(driver));
        for _ in 0..3 {
            assert_eq!(source.reserve(SEGMENT).unwrap_err().reason, "no");
        }
        assert_eq!(source.room().free_bytes.unwrap_or(0).min(SEGMENT), SEGMENT);
    }
}
