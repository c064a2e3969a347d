//! Observers: whoever wants to see every launch of the one path (a profiler, a watch, a planner of
//! dry runs), and the calls that launch (`calls.rs`). Off, they cost each launch and each call one
//! load. An observer hears of a launch before its storages are claimed and after they are let go,
//! so it may run operations of its own; those it hears of too.
//!
//! On a device that queues its work the end is heard when the work is queued. How long it took the
//! device is asked later ([`LaunchTime`]): two marks in the stream's queue, before and after.

mod calls;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::Device;
use plimsoll_memory::{OriginId, hear_calls};
use smallvec::SmallVec;

use crate::Tensor;
use crate::device::{Entry, Mark};
use crate::lock::{Mutex, RwLock};
pub use calls::{Call, CallKind, Range, range};
pub(crate) use calls::{WaitFor, backward, enter, is_on, wait};

/// One launch of an operation's kernel, or a copy between devices.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Launch {
    /// Its place in the order of launches.
    pub number: u64,
    /// The operation, as the registry names it.
    pub operation: &'static str,
    /// Who asked for it.
    pub origin: OriginId,
    /// Where it runs.
    pub device: Device,
    /// The number of the stream that it runs on.
    pub stream: u64,
    /// Bytes of the elements that it reads.
    pub bytes_read: usize,
    /// Bytes of the elements that it writes.
    pub bytes_written: usize,
    /// Of a copy between devices, its way.
    pub copy: Option<CopyWay>,
}

/// The way of a copy between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyWay {
    /// Where the bytes lie.
    pub from: Device,
    /// Where they go.
    pub to: Device,
    /// An end in host memory that may be moved: the driver copies it to memory that may not first.
    pub pageable: bool,
}

/// Somebody who hears of every launch and every call. All functions run on the thread that launches
/// or calls; a panic inside is ignored.
pub trait Observer: Send + Sync + 'static {
    /// A launch is about to begin.
    fn begin(&self, launch: &Launch) {
        let _ = launch;
    }

    /// A launch was made, or failed: it ran (CPU), is queued (devices), or is only accounted for
    /// (dry run).
    fn end(&self, launch: &Launch, time: &LaunchTime) {
        let _ = (launch, time);
    }

    /// A call begins on this thread, inside those that have begun and not ended. A wait may begin
    /// while storages are claimed: whoever hears of one must not run operations.
    fn enter(&self, call: &Call<'_>) {
        let _ = call;
    }

    /// The innermost call of this thread ended, with these results, or none if it failed or its
    /// results are not known. Who began to listen inside a call hears of its end alone.
    fn leave(&self, outputs: &[Tensor]) {
        let _ = outputs;
    }
}

/// How long a launch takes on its device; from when the stream gets to it, so time that the stream
/// waits for others counts.
#[derive(Clone, Debug)]
pub struct LaunchTime(Time);

#[derive(Clone, Debug)]
enum Time {
    /// A dry run takes none.
    None,
    Host(Duration),
    Device(Arc<(Mark, Mark)>),
}

impl LaunchTime {
    /// How long it took; `None` if the device has not come so far, or computes nothing.
    pub fn elapsed(&self) -> Option<Duration> {
        match &self.0 {
            Time::None => None,
            Time::Host(elapsed) => Some(*elapsed),
            Time::Device(marks) => marks.1.since(&marks.0),
        }
    }

    /// How long after the start of `earlier` it started, on a device that queues: both were
    /// launched on one device, which has come so far; 0 if it started before.
    pub fn started_after(&self, earlier: &LaunchTime) -> Option<Duration> {
        match (&self.0, &earlier.0) {
            (Time::Device(marks), Time::Device(before)) => marks.0.since(&before.0),
            _ => None,
        }
    }

    /// Waits until the device has come so far; then as [`LaunchTime::elapsed`].
    pub fn wait(&self) -> Option<Duration> {
        if let Time::Device(marks) = &self.0 {
            marks.1.wait();
        }
        self.elapsed()
    }
}

static ON: AtomicBool = AtomicBool::new(false);
static OBSERVERS: RwLock<Vec<(u64, Arc<dyn Observer>)>> = RwLock::new(Vec::new());

/// An observer hears of launches as long as this lives.
#[derive(Debug)]
#[must_use = "the observer hears of launches only while this lives"]
pub struct Observing {
    id: u64,
}

/// Lets `observer` hear of every launch of the process until the returned value is dropped.
///
/// ```
/// use plimsoll_tensor::observe::{LaunchCounts, observe};
/// use plimsoll_tensor::{DType, Tensor};
/// use std::sync::Arc;
/// let counts = Arc::new(LaunchCounts::default());
/// let observing = observe(counts.clone());
/// let x = Tensor::ones(&[256], DType::F32)?;
/// x.add(&x)?.add(1.0)?;
/// drop(observing);
/// let add = counts.of("add");
/// assert_eq!((add.launches, add.bytes_read, add.bytes_written), (2, 3072, 2048));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn observe(observer: Arc<dyn Observer>) -> Observing {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut observers = OBSERVERS.write();
    observers.push((id, observer));
    ON.store(true, Ordering::Relaxed);
    hear_calls(calls::NAMED, true);
    Observing { id }
}

/// Those who listen now; they are told without the lock, so that they may run operations.
fn listening() -> SmallVec<[Arc<dyn Observer>; 2]> {
    OBSERVERS.read().iter().map(|(_, observer)| observer.clone()).collect()
}

fn tell(what: impl Fn(&dyn Observer)) {
    for observer in &listening() {
        let _ = catch_unwind(AssertUnwindSafe(|| what(&**observer)));
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        let gone = {
            let mut observers = OBSERVERS.write();
            let at = observers.iter().position(|(id, _)| *id == self.id);
            let gone = at.map(|at| observers.remove(at));
            ON.store(!observers.is_empty(), Ordering::Relaxed);
            hear_calls(calls::NAMED, !observers.is_empty());
            gone
        };
        drop(gone);
    }
}

/// A launch that observers heard the beginning of; they hear its end when this is dropped.
pub(crate) struct Observed {
    launch: Launch,
    observers: SmallVec<[Arc<dyn Observer>; 2]>,
    entry: &'static Entry,
    begun: Instant,
    mark: Option<Mark>,
}

/// Tells observers that `operation` is about to run, if there are any. Called without a claim.
#[inline]
pub(crate) fn begin(
    entry: &'static Entry,
    operation: &'static str,
    origin: OriginId,
    inputs: &[&Tensor],
    outputs: &[Tensor],
) -> Option<Observed> {
    is_on().then(|| Observed::begin(entry, operation, origin, (inputs, outputs), None))
}

/// The same of a copy between devices, on a stream of its target, or of its source if that is the
/// host.
pub(crate) fn begin_copy(
    operation: &'static str,
    origin: OriginId,
    (from, to): (&Tensor, &Tensor),
) -> Option<Observed> {
    is_on().then(|| {
        let pageable = |end: &Tensor| end.device().is_cpu() && !end.storage().is_page_locked();
        let crosses = from.device().is_cpu() != to.device().is_cpu();
        let way = CopyWay {
            from: from.device(),
            to: to.device(),
            pageable: crosses && (pageable(from) || pageable(to)),
        };
        let to_host = from.entry().is_asynchronous() && to.device().is_cpu();
        let entry = if to_host && !to.device().is_dry() { from.entry() } else { to.entry() };
        Observed::begin(entry, operation, origin, (&[from], std::slice::from_ref(to)), Some(way))
    })
}

impl Observed {
    #[cold]
    fn begin(
        entry: &'static Entry,
        operation: &'static str,
        origin: OriginId,
        (inputs, outputs): (&[&Tensor], &[Tensor]),
        copy: Option<CopyWay>,
    ) -> Observed {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let launch = Launch {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            operation,
            origin,
            // A copy to the host is a launch of the host's, at its device's time.
            device: copy.map_or(entry.device(), |way| way.to),
            stream: entry.current_stream().0,
            bytes_read: inputs.iter().map(|input| input.nbytes()).sum(),
            bytes_written: outputs.iter().map(Tensor::nbytes).sum(),
            copy,
        };
        let observers = listening();
        for observer in &observers {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.begin(&launch)));
        }
        let mark = entry.mark();
        Observed { launch, observers, entry, begun: Instant::now(), mark }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let time = match (self.mark.take(), self.entry.device().is_dry()) {
            (_, true) => Time::None,
            (Some(first), _) => match self.entry.mark() {
                Some(last) => Time::Device(Arc::new((first, last))),
                None => Time::None,
            },
            (None, _) => Time::Host(self.begun.elapsed()),
        };
        let time = LaunchTime(time);
        for observer in &self.observers {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.end(&self.launch, &time)));
        }
    }
}

/// An observer that counts launches and their bytes by operation.
#[derive(Default)]
pub struct LaunchCounts(Mutex<BTreeMap<&'static str, LaunchCount>>);

/// What [`LaunchCounts`] counts of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchCount {
    /// How often it was launched.
    pub launches: u64,
    /// Bytes of the elements that it read.
    pub bytes_read: u64,
    /// Bytes of the elements that it wrote.
    pub bytes_written: u64,
}

impl LaunchCounts {
    /// The figures of one operation; zeros if it was never launched.
    pub fn of(&self, operation: &str) -> LaunchCount {
        self.0.lock().get(operation).copied().unwrap_or_default()
    }

    /// The figures of every operation that was launched, by name.
    pub fn all(&self) -> BTreeMap<&'static str, LaunchCount> {
        self.0.lock().clone()
    }
}

impl Observer for LaunchCounts {
    fn end(&self, launch: &Launch, _time: &LaunchTime) {
        let mut counts = self.0.lock();
        let count = counts.entry(launch.operation).or_default();
        count.launches += 1;
        count.bytes_read += launch.bytes_read as u64;
        count.bytes_written += launch.bytes_written as u64;
    }
}

impl std::fmt::Debug for LaunchCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LaunchCounts").field(&*self.0.lock()).finish()
    }
}
