//! Streams and events, as users see them. Operations go to the thread's current stream; dispatch
//! orders streams that touch the same memory by itself (`storage/stream_order.rs`), so these are
//! for speed (overlap) and never needed for right results.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{Fence, StreamId};

use super::captures::CapturedPoint;
use super::{Backend, Entry, Mark, entry};
use crate::Tensor;
use crate::observe::{self, WaitFor};

/// A queue of work on a device: what is queued on one stream runs in order, streams run beside each
/// other.
///
/// On the CPU there is one, and work has run when the call returns.
///
/// ```
/// use plimsoll_tensor::{DType, Stream, Tensor, device, with_stream};
/// let device = device::stand_in(Default::default())?;
/// let side = Stream::new(device)?;
/// let x = Tensor::ones(&[8], (DType::F32, device))?;
/// let y = with_stream(&side, || x.add(1.0))?; // waits for x's stream by itself
/// assert_eq!(y.to_vec::<f32>()?, [2.0; 8]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    device: Device,
    id: StreamId,
}

impl Stream {
    /// Another stream of `device`. A device has 32 beside its default stream; from then on they are
    /// handed out again.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let gpu = device::stand_in(Default::default())?;
    /// let side = Stream::new(gpu)?;
    /// let x = with_stream(&side, || Tensor::ones(&[8], (DType::F32, gpu)))?;
    /// assert_eq!(x.add(1)?.sum()?.item::<f32>()?, 16.0); // ordered after it
    /// assert_ne!(side, Stream::current(gpu));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new(device: Device) -> Result<Stream> {
        Stream::with_priority(device, 0)
    }

    /// As [`Stream::new`], of one of the 32 streams of `priority`: 0 is the usual one, -1 to -3 are
    /// more urgent where the device tells them apart.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let gpu = device::stand_in(Default::default())?;
    /// assert_ne!(Stream::with_priority(gpu, -1)?, Stream::new(gpu)?);
    /// assert!(Stream::with_priority(gpu, 1).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn with_priority(device: Device, priority: i32) -> Result<Stream> {
        Ok(Stream { device, id: entry(device).new_stream(priority)? })
    }

    /// The stream that this thread's work on `device` goes to.
    pub fn current(device: Device) -> Stream {
        Stream { device, id: entry(device).current_stream() }
    }

    /// The stream that work goes to unless another is named.
    pub fn default_of(device: Device) -> Stream {
        Stream { device, id: StreamId::DEFAULT }
    }

    /// The device whose stream this is.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Its number, as history and snapshots show it.
    pub fn id(&self) -> u64 {
        self.id.0
    }

    /// The driver's own number for it, as other libraries of the process take it; 0 is the GPU's
    /// default stream. Devices that are no GPUs have none.
    pub fn raw(&self) -> Result<usize> {
        if let Backend::Cuda(gpu) = self.entry().backend()
            && let Some(context) = gpu.context()
        {
            return context.raw_stream(self.id);
        }
        Err(Error::device("stream", format!("{} is not a GPU", self.device)))
    }

    pub(crate) fn stream_id(&self) -> StreamId {
        self.id
    }

    pub(crate) fn entry(&self) -> &'static Entry {
        entry(self.device)
    }

    /// Waits until everything queued so far has run. An operation that failed meanwhile is told of
    /// here.
    pub fn synchronize(&self) -> Result<()> {
        self.record_event().synchronize()
    }

    /// Whether everything queued so far has run.
    pub fn query(&self) -> bool {
        self.record_event().query()
    }

    /// Whether a graph is being captured here: what the stream is given is written down, and runs
    /// when the graph is replayed.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let gpu = device::stand_in(Default::default())?;
    /// let (_graph, captures) = Graph::capture(gpu, || Ok(Stream::current(gpu).is_capturing()))?;
    /// assert!(captures && !Stream::current(gpu).is_capturing());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_capturing(&self) -> bool {
        self.entry().captures().of(self.id).is_some()
    }

    /// A point after everything queued so far.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let gpu = device::stand_in(Default::default())?;
    /// let event = Stream::current(gpu).record_event();
    /// event.synchronize()?;
    /// assert!(event.query());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn record_event(&self) -> Event {
        Event { device: self.device, fence: self.entry().point(self.id) }
    }

    /// As [`Stream::record_event`], of a point that remembers when the device passed it.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let gpu = device::stand_in(Default::default())?;
    /// let (stream, x) = (Stream::current(gpu), Tensor::ones(&[1000], (DType::F32, gpu))?);
    /// let begin = stream.record_timed_event();
    /// let y = x.exp()?;
    /// let end = stream.record_timed_event();
    /// end.event().synchronize()?;
    /// assert!(end.since(&begin).is_some());
    /// # drop(y);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn record_timed_event(&self) -> TimedEvent {
        let mark = self.entry().mark_on(self.id);
        let time =
            mark.map_or_else(|| Time::Host(Instant::now()), |mark| Time::Device(mark.into()));
        TimedEvent { event: self.record_event(), time }
    }

    /// Sends this thread's work on the stream's device here from now on, or until the scope that is
    /// open ends.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let gpu = device::stand_in(Default::default())?;
    /// let side = Stream::new(gpu)?;
    /// side.make_current();
    /// assert_eq!(Stream::current(gpu), side);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn make_current(&self) {
        let slot = self.device.slot();
        CURRENT.with_borrow_mut(|streams| match streams.last_mut() {
            Some(newest) if newest.0 == slot => newest.1 = self.id,
            _ => streams.push((slot, self.id)),
        });
    }

    /// Makes work queued here from now on wait for `event`, which may be another device's. The host
    /// does not wait.
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.entry().wait_on_stream(self.id, event.fence.clone())
    }

    /// Makes work queued here from now on wait for everything that `other` has been given.
    pub fn wait_stream(&self, other: &Stream) -> Result<()> {
        self.wait_event(&other.record_event())
    }

    /// Holds the stream back until the returned value is dropped, so that tests can look at work
    /// that is queued and has not run.
    #[doc(hidden)]
    pub fn pause(&self) -> Result<Pause> {
        let gate = std::sync::Arc::new(pause::Gate::default());
        self.entry().wait_on_stream(self.id, Fence::new(gate.clone()))?;
        Ok(Pause(gate))
    }
}

/// A point in a stream's queue.
#[derive(Clone, Debug)]
pub struct Event {
    device: Device,
    fence: Fence,
}

impl Event {
    /// Whether the work before it has run.
    pub fn query(&self) -> bool {
        self.fence.is_done()
    }

    /// Waits until the work before it has run. An operation that failed meanwhile on the device is
    /// told of here.
    pub fn synchronize(&self) -> Result<()> {
        if let Some(point) = self.fence.state::<CapturedPoint>()
            && !self.query()
        {
            return Err(point.capture.refuse("the host would wait for an event"));
        }
        let _heard = observe::wait(self.device, WaitFor::Event);
        self.fence.wait();
        entry(self.device).surface()
    }
}

/// A point in a stream's queue with the time at which the device passed it.
#[derive(Clone, Debug)]
pub struct TimedEvent {
    event: Event,
    time: Time,
}

/// Where work runs at once, the host's clock tells when.
#[derive(Clone, Debug)]
enum Time {
    Host(Instant),
    Device(Arc<Mark>),
}

impl TimedEvent {
    /// The point itself.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The time from `earlier`, an event of the same device, to this one; `None` if the device has
    /// not passed both.
    pub fn since(&self, earlier: &TimedEvent) -> Option<Duration> {
        match (&self.time, &earlier.time) {
            (Time::Host(last), Time::Host(first)) => Some(last.saturating_duration_since(*first)),
            (Time::Device(last), Time::Device(first)) => last.since(first),
            _ => None,
        }
    }
}

/// Waits until all streams of `device` are empty. An operation that failed meanwhile is told of
/// here, once.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device};
/// let device = device::stand_in(Default::default())?;
/// let x = Tensor::zeros(&[4], (DType::F32, device))?;
/// x.add_(1.0)?;
/// device::synchronize(device)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn synchronize(device: Device) -> Result<()> {
    let entry = entry(device);
    entry.synchronize_all()?;
    entry.surface()
}

thread_local! {
    /// This thread's streams other than the default ones, by device slot; the newest for a device
    /// counts.
    static CURRENT: RefCell<Vec<(usize, StreamId)>> = const { RefCell::new(Vec::new()) };
}

/// The stream that this thread's work on the device of `slot` goes to.
pub(super) fn current(slot: usize) -> StreamId {
    CURRENT.with_borrow(|streams| {
        let mine = streams.iter().rev().find(|(of, _)| *of == slot);
        mine.map_or(StreamId::DEFAULT, |(_, stream)| *stream)
    })
}

/// Sends this thread's work on the stream's device to `stream` until the guard is dropped.
#[must_use = "the stream is current only as long as the guard lives"]
#[derive(Debug)]
pub struct StreamScope {
    depth: usize,
    /// Guards nest on one thread.
    not_send: PhantomData<*const ()>,
}

impl StreamScope {
    /// Makes `stream` the current one of its device.
    pub fn enter(stream: &Stream) -> StreamScope {
        CURRENT.with_borrow_mut(|streams| {
            streams.push((stream.device.slot(), stream.id));
            StreamScope { depth: streams.len() - 1, not_send: PhantomData }
        })
    }
}

impl Drop for StreamScope {
    fn drop(&mut self) {
        // Guards dropped out of order end those opened after them; nothing else is left to mean.
        let _ = CURRENT.try_with(|streams| streams.borrow_mut().truncate(self.depth));
    }
}

/// Runs `body` with this thread's work on the stream's device going to `stream`.
pub fn with_stream<R>(stream: &Stream, body: impl FnOnce() -> R) -> R {
    let _scope = StreamScope::enter(stream);
    body()
}

impl Tensor {
    /// Says that `stream` uses this tensor's memory. Operations say so themselves; this is for
    /// memory that is handed to a stream in some other way, and for programs written for PyTorch.
    pub fn record_stream(&self, stream: &Stream) -> Result<()> {
        if stream.device != self.device() {
            return Err(Error::device(
                "record_stream",
                format!("the tensor is on {} and the stream on {}", self.device(), stream.device),
            ));
        }
        self.storage().uses.touch(stream.id);
        Ok(())
    }
}

pub use pause::Pause;

/// The gate behind [`Stream::pause`].
mod pause {
    use parking_lot::{Condvar, Mutex};
    use plimsoll_memory::FenceState;
    use std::sync::Arc;

    #[derive(Debug, Default)]
    pub(super) struct Gate {
        open: Mutex<bool>,
        opened: Condvar,
    }

    impl FenceState for Gate {
        fn is_done(&self) -> bool {
            *self.open.lock()
        }

        fn wait(&self) {
            let mut open = self.open.lock();
            while !*open {
                self.opened.wait(&mut open);
            }
        }
    }

    /// A stream held back; dropping it lets the stream go on.
    #[derive(Debug)]
    pub struct Pause(pub(super) Arc<Gate>);

    impl Drop for Pause {
        fn drop(&mut self) {
            *self.0.open.lock() = true;
            self.0.opened.notify_all();
        }
    }
}
