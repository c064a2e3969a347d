//! A source that stops giving memory at the n-th request, and the loop that lets a program fail at
//! every one of its allocations.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{
    AddressSpace, Configuration, Fence, HostSource, Room, Source, SourceFull, StreamId,
};
use plimsoll_tensor::{device, memory};

/// When a failing source fails; shared with the test that decides.
#[derive(Clone, Debug, Default)]
pub struct Tap {
    /// Requests left before it closes; `usize::MAX` while nothing is to fail.
    left: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
}

impl Tap {
    /// Lets `n - 1` requests through and refuses the `n`-th and every later one, until
    /// [`Tap::open`]. Later ones too, because an allocator that frees its cache and asks again must
    /// not get away with it.
    pub fn fail_from(&self, n: usize) {
        self.refused.store(0, Ordering::SeqCst);
        self.left.store(n - 1, Ordering::SeqCst);
    }

    /// Gives memory again; returns how many requests were refused.
    pub fn open(&self) -> usize {
        self.left.store(usize::MAX, Ordering::SeqCst);
        self.refused.load(Ordering::SeqCst)
    }

    fn pass(&self) -> Result<(), SourceFull> {
        let next = |left| match left {
            usize::MAX => Some(usize::MAX),
            0 => None,
            left => Some(left - 1),
        };
        let passes = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_ok();
        if !passes {
            self.refused.fetch_add(1, Ordering::SeqCst);
        }
        if passes { Ok(()) } else { Err(SourceFull::because("the test has closed the tap")) }
    }
}

/// A device's memory behind a [`Tap`].
#[derive(Debug)]
pub struct FailingSource {
    inner: Box<dyn Source>,
    tap: Tap,
}

impl Source for FailingSource {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        self.tap.pass()?;
        self.inner.reserve(bytes)
    }

    unsafe fn release(&self, address: NonZeroUsize, bytes: usize) {
        // SAFETY: the caller's promise is the one that the inner source asks for, and every segment
        // of this source came from there.
        unsafe { self.inner.release(address, bytes) }
    }

    fn room(&self) -> Room {
        self.inner.room()
    }

    fn address_space(&self) -> Result<&dyn AddressSpace, String> {
        self.inner.address_space().map(|_| self as _)
    }

    fn record(&self, stream: StreamId) -> Fence {
        self.inner.record(stream)
    }

    fn synchronize(&self, stream: StreamId) {
        self.inner.synchronize(stream);
    }
}

impl FailingSource {
    fn inner_space(&self) -> Result<&dyn AddressSpace, SourceFull> {
        self.inner.address_space().map_err(SourceFull::because)
    }
}

impl AddressSpace for FailingSource {
    fn reserve_range(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        self.tap.pass()?;
        self.inner_space()?.reserve_range(bytes)
    }

    unsafe fn release_range(&self, address: NonZeroUsize, bytes: usize) {
        if let Ok(space) = self.inner_space() {
            // SAFETY: the caller's promise is the one that the inner source asks for.
            unsafe { space.release_range(address, bytes) };
        }
    }

    unsafe fn map(
        &self,
        address: NonZeroUsize,
        bytes: usize,
        page_bytes: usize,
    ) -> Result<(), SourceFull> {
        self.tap.pass()?;
        // SAFETY: as above.
        unsafe { self.inner_space()?.map(address, bytes, page_bytes) }
    }

    unsafe fn unmap(&self, address: NonZeroUsize, bytes: usize, page_bytes: usize) {
        if let Ok(space) = self.inner_space() {
            // SAFETY: as above.
            unsafe { space.unmap(address, bytes, page_bytes) };
        }
    }
}

/// A host device of its own over a failing source, without a cache: every allocation asks the
/// source.
pub fn failing_device() -> (Device, Tap) {
    let (tap, configuration) = closable();
    let source = FailingSource { inner: Box::new(HostSource::new(false)), tap: tap.clone() };
    let device = device::private_cpu_over(Box::new(source), &configuration)
        .expect("a private CPU device opens");
    (device, tap)
}

/// The same over the memory of GPU 0.
pub fn failing_cuda_device() -> Result<(Device, Tap)> {
    let (tap, configuration) = closable();
    let wrap = |inner| Box::new(FailingSource { inner, tap: tap.clone() }) as Box<dyn Source>;
    let device = device::private_cuda_over(0, wrap, &configuration)?;
    Ok((device, tap))
}

/// An open tap, and a configuration in which every allocation asks the source.
fn closable() -> (Tap, Configuration) {
    let tap = Tap::default();
    tap.open();
    (tap, Configuration::default().with_caching(false))
}

/// Panics unless `device`'s counters are what its blocks add up to.
pub fn assert_balanced(device: Device) {
    if let Err(difference) = memory::arena(device).check_balanced() {
        panic!("the ledger of {device} is not balanced: {difference}");
    }
}

/// Runs `program` with its first allocation failing, then its second, and so on until it succeeds.
/// Each failure must be a clean out-of-memory error that leaves the ledger balanced and no byte
/// more alive than before, and the program must succeed right after it. Returns the number of
/// allocations that failed.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor};
/// use plimsoll_testkit::failing::for_every_allocation_failure;
///
/// let failures = for_every_allocation_failure(|device| {
///     Tensor::zeros(&[4], (DType::F32, device))?.add(1.0)?;
///     Ok(())
/// });
/// assert_eq!(failures, 2);
/// ```
pub fn for_every_allocation_failure(program: impl Fn(Device) -> Result<()>) -> usize {
    let (device, tap) = failing_device();
    for_every_failure_on(device, &tap, program)
}

/// As [`for_every_allocation_failure`], on a device that is there already.
pub fn for_every_failure_on(
    device: Device,
    tap: &Tap,
    program: impl Fn(Device) -> Result<()>,
) -> usize {
    let arena = memory::arena(device);
    let live_before = arena.live_bytes();
    for n in 1.. {
        tap.fail_from(n);
        let result = program(device);
        let refused = tap.open();
        assert_balanced(device);
        assert_eq!(arena.live_bytes(), live_before, "bytes are left over after failure {n}");
        match result {
            Ok(()) => {
                assert_eq!(refused, 0, "the program hid a failed allocation");
                return n - 1;
            }
            Err(error) => check_failure(&error, n, refused),
        }
        if let Err(error) = program(device) {
            panic!("after allocation {n} failed, the program no longer works: {error}");
        }
        assert_eq!(arena.live_bytes(), live_before, "bytes are left over after retry {n}");
    }
    unreachable!("a program makes finitely many allocations")
}

fn check_failure(error: &Error, n: usize, refused: usize) {
    assert!(refused > 0, "the program fails by itself: {error}");
    assert!(error.is_out_of_memory(), "allocation {n} failed, but the error is: {error}");
}
