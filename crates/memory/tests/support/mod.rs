//! A source for tests: addresses without memory, calls that fail when told to, and streams whose
//! fences pass when the test says so.

// Each test file uses its own part of it.
#![allow(dead_code, unreachable_pub)]

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, Configuration, DrySource, Fence, FenceState, OriginId, Request, Room, Site, Source,
    SourceFull, StreamId,
};

pub const MIB: usize = 1 << 20;

/// What the test keeps to steer its source.
#[derive(Debug, Default)]
pub struct Helm {
    /// Calls of `reserve` so far.
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
        let call = self.helm.reserves.fetch_add(1, Ordering::SeqCst) + 1;
        let fail_at = self.helm.fail_at.load(Ordering::SeqCst);
        let later = self.helm.fail_after.load(Ordering::SeqCst);
        if fail_at != 0 && (call == fail_at || (later && call > fail_at)) {
            return Err(SourceFull::because("the test said so"));
        }
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
