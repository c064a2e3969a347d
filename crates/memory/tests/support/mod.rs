//! A source for tests: addresses without memory, calls that fail when told to, and streams whose
//! fences pass when the test says so. It keeps which pages are mapped, and panics at a call that
//! breaks the contract of an address space.

// Each test file uses its own part of it.
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use plimsoll_core::Device;
use plimsoll_memory::{
    AddressSpace, Arena, Configuration, DrySource, Fence, FenceState, OriginId, Request, Room,
    Site, Source, SourceFull, StreamId,
};

pub const MIB: usize = 1 << 20;

/// What the test keeps to steer its source.
#[derive(Debug, Default)]
pub struct Helm {
    /// Calls of `reserve`, `reserve_range` and `map` so far.
    pub reserves: AtomicUsize,
    /// The number of the call that fails (from 1); 0 for none.
    pub fail_at: AtomicUsize,
    /// Whether all later calls fail too.
    pub fail_after: AtomicBool,
    pub releases: AtomicUsize,
    /// While true, `release` does not return.
    pub hold_releases: Mutex<bool>,
    pub released: Condvar,
    pub synchronized: Mutex<Vec<StreamId>>,
    queues: Mutex<Vec<(StreamId, Arc<Point>)>>,
    /// Whether work on streams takes until `pass`; otherwise it is done at once.
    pub slow_streams: AtomicBool,
    /// Ranges of addresses that are reserved, and the pages of them that are mapped.
    pub ranges: Mutex<BTreeMap<usize, usize>>,
    pub pages: Mutex<BTreeSet<usize>>,
}

impl Helm {
    /// Lets `stream` pass every point recorded so far.
    pub fn pass(&self, stream: StreamId) {
        let mut queues = self.queues.lock().unwrap();
        for (_, point) in queues.iter().filter(|(of, _)| *of == stream) {
            *point.done.lock().unwrap() = true;
            point.changed.notify_all();
        }
        queues.retain(|(of, _)| *of != stream);
    }

    /// How many points of `stream` are not passed.
    pub fn waiting(&self, stream: StreamId) -> usize {
        self.queues.lock().unwrap().iter().filter(|(of, _)| *of == stream).count()
    }

    /// Counts a call that asks for something, and fails it if the test says so.
    fn asked(&self) -> Result<(), SourceFull> {
        let call = self.reserves.fetch_add(1, Ordering::SeqCst) + 1;
        let fail_at = self.fail_at.load(Ordering::SeqCst);
        let later = self.fail_after.load(Ordering::SeqCst);
        if fail_at != 0 && (call == fail_at || (later && call > fail_at)) {
            return Err(SourceFull::because("the test said so"));
        }
        Ok(())
    }

    /// The pages from `address` on, all in one range; panics if they are not.
    fn pages_at(&self, address: usize, bytes: usize, page: usize) -> impl Iterator<Item = usize> {
        let ranges = self.ranges.lock().unwrap();
        let (start, range) = ranges.range(..=address).next_back().expect("a range is there");
        assert!(address + bytes <= start + range, "the pages are in one range");
        assert!((address - start).is_multiple_of(page) && bytes.is_multiple_of(page) && bytes > 0);
        (address..address + bytes).step_by(page)
    }
}

#[derive(Debug, Default)]
struct Point {
    done: Mutex<bool>,
    changed: Condvar,
}

impl FenceState for Point {
    fn is_done(&self) -> bool {
        *self.done.lock().unwrap()
    }

    fn wait(&self) {
        drop(self.changed.wait_while(self.done.lock().unwrap(), |done| !*done).unwrap());
    }
}

#[derive(Debug)]
pub struct TestSource {
    dry: DrySource,
    helm: Arc<Helm>,
}

impl TestSource {
    pub fn new(total_bytes: Option<usize>) -> (Box<TestSource>, Arc<Helm>) {
        let helm = Arc::new(Helm::default());
        (Box::new(TestSource { dry: DrySource::new(total_bytes), helm: helm.clone() }), helm)
    }
}

impl Source for TestSource {
    fn name(&self) -> &'static str {
        "test"
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        self.helm.asked()?;
        self.dry.reserve(bytes)
    }

    unsafe fn release(&self, address: NonZeroUsize, bytes: usize) {
        self.helm.releases.fetch_add(1, Ordering::SeqCst);
        let held = self.helm.hold_releases.lock().unwrap();
        drop(self.helm.released.wait_while(held, |held| *held).unwrap());
        // SAFETY: the caller's promise is the same.
        unsafe { self.dry.release(address, bytes) };
    }

    fn room(&self) -> Room {
        self.dry.room()
    }

    fn address_space(&self) -> Result<&dyn AddressSpace, String> {
        Ok(self)
    }

    fn record(&self, stream: StreamId) -> Fence {
        if !self.helm.slow_streams.load(Ordering::SeqCst) {
            return Fence::done();
        }
        let point = Arc::new(Point::default());
        self.helm.queues.lock().unwrap().push((stream, point.clone()));
        Fence::new(point)
    }

    fn synchronize(&self, stream: StreamId) {
        self.helm.synchronized.lock().unwrap().push(stream);
    }
}

impl AddressSpace for TestSource {
    fn reserve_range(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        self.helm.asked()?;
        let address = self.dry.reserve_range(bytes)?;
        assert!(self.helm.ranges.lock().unwrap().insert(address.get(), bytes).is_none());
        Ok(address)
    }

    unsafe fn release_range(&self, address: NonZeroUsize, bytes: usize) {
        assert_eq!(self.helm.ranges.lock().unwrap().remove(&address.get()), Some(bytes));
        let pages = self.helm.pages.lock().unwrap();
        assert_eq!(pages.range(address.get()..address.get() + bytes).next(), None);
        // SAFETY: the caller's promise is the same.
        unsafe { self.dry.release_range(address, bytes) };
    }

    unsafe fn map(
        &self,
        address: NonZeroUsize,
        bytes: usize,
        page_bytes: usize,
    ) -> Result<(), SourceFull> {
        self.helm.asked()?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.dry.map(address, bytes, page_bytes)? };
        for page in self.helm.pages_at(address.get(), bytes, page_bytes) {
            assert!(self.helm.pages.lock().unwrap().insert(page), "the page is mapped already");
        }
        Ok(())
    }

    unsafe fn unmap(&self, address: NonZeroUsize, bytes: usize, page_bytes: usize) {
        self.helm.releases.fetch_add(1, Ordering::SeqCst);
        let held = self.helm.hold_releases.lock().unwrap();
        drop(self.helm.released.wait_while(held, |held| *held).unwrap());
        for page in self.helm.pages_at(address.get(), bytes, page_bytes) {
            assert!(self.helm.pages.lock().unwrap().remove(&page), "the page is not mapped");
        }
        // SAFETY: the caller's promise is the same.
        unsafe { self.dry.unmap(address, bytes, page_bytes) };
    }
}

/// An arena over a test source of `total_bytes`.
pub fn arena(
    total_bytes: Option<usize>,
    configuration: &Configuration,
) -> (&'static Arena, Arc<Helm>) {
    let (source, helm) = TestSource::new(total_bytes);
    (Arena::open(Device::cpu(), source, configuration), helm)
}

pub fn request(bytes: usize) -> Request {
    Request::new(bytes, OriginId::intern("test", Site::Unknown))
}

pub fn on(stream: u64, bytes: usize) -> Request {
    Request { stream: StreamId(stream), ..request(bytes) }
}
