//! The stand-in accelerator: host memory with a device's manners. It has a capacity, streams that
//! run on threads of their own, copies that overlap with work, and errors that come late, so that
//! everything that can go wrong on a GPU can be tested without one. Its kernels are the CPU's, run
//! by the streams' threads. `queue.rs` is one stream; `stream.rs` is what users see of streams.

use std::alloc::{Layout, alloc, dealloc};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;
use plimsoll_core::{Device, DeviceKind, Error, Result};
use plimsoll_memory::{
    AddressSpace, Arena, Configuration, Fence, HostPages, Room, Source, SourceFull, StreamId,
};

use super::queue::{Failure, Failures, Queue, Work};
use super::stream_pool::StreamPool;
use super::{Backend, Entry, table};

/// Segments start on multiples of this, as a driver's do.
const ALIGNMENT_BYTES: usize = 512;

/// How a stand-in accelerator is made.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, device::StandIn};
/// let device = device::stand_in(StandIn { capacity_bytes: 64 << 20, ..StandIn::default() })?;
/// let x = Tensor::ones(&[1024], (DType::F32, device))?.add(1.0)?; // queued, perhaps not yet run
/// assert_eq!(x.sum()?.item::<f32>()?, 2048.0); // waits for it
/// assert!(Tensor::empty(&[1 << 26], (DType::F32, device)).unwrap_err().is_out_of_memory());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StandIn {
    /// All the memory that the device has.
    pub capacity_bytes: usize,
    /// The settings of its arena; without any, those in force for the process.
    pub configuration: Option<Configuration>,
    /// Whether it answers in the place of a GPU: it calls itself `cuda:0`, and
    /// [`named`](super::named) finds it by that name, so that programs which ask for a GPU run.
    pub as_cuda: bool,
}

impl Default for StandIn {
    /// 1 GiB, with the settings in force.
    fn default() -> StandIn {
        StandIn { capacity_bytes: 1 << 30, configuration: None, as_cuda: false }
    }
}

/// Adds a stand-in accelerator. Each call makes another device, with an arena and streams of its
/// own.
///
/// An operation that fails on a stream (an index out of range) has long returned when it does. The
/// error waits on the device and surfaces, once, at the next point where the host waits for it:
/// `synchronize` of the device, a stream or an event, `to_vec`, `item`, or a copy to the host. It
/// names the operation and the line that queued it. Work queued since then has run on undefined
/// values; after the error surfaced the device works as before.
pub fn stand_in(options: StandIn) -> Result<Device> {
    let configuration = match options.configuration {
        Some(configuration) => configuration,
        None => Configuration::process()?.clone(),
    };
    table::add_called(DeviceKind::StandIn, false, options.as_cuda, |device| {
        let engine = Engine::open(device, options.capacity_bytes, false);
        let arena = Arena::open(device, Box::new(Memory(engine)), &configuration);
        Ok(Entry::new(device, arena, Backend::StandIn(engine), configuration.clone()))
    })
}

/// The part of a stand-in that runs: its streams, and what went wrong on them.
pub(crate) struct Engine {
    device: Device,
    capacity_bytes: usize,
    reserved_bytes: AtomicUsize,
    /// By stream number; 0 is the default stream.
    queues: RwLock<Vec<&'static Queue>>,
    streams: StreamPool,
    failures: Failures,
    /// Streams have numbers (and the arena has pools for them), but nothing is queued.
    dry: bool,
}

impl Engine {
    pub(super) fn open(device: Device, capacity_bytes: usize, dry: bool) -> &'static Engine {
        let engine = Engine {
            device,
            capacity_bytes,
            reserved_bytes: AtomicUsize::new(0),
            queues: RwLock::new(Vec::new()),
            streams: StreamPool::default(),
            failures: Failures::default(),
            dry,
        };
        engine.open_queues(1);
        Box::leak(Box::new(engine))
    }

    /// One that imitates this one's streams and runs nothing.
    pub(super) fn dry(&self, device: Device) -> &'static Engine {
        Engine::open(device, self.capacity_bytes, true)
    }

    pub(super) fn new_stream(&self, priority: i32) -> Result<StreamId> {
        let stream = self.streams.next(priority)?;
        self.open_queues(stream.0 as usize + 1);
        Ok(stream)
    }

    /// Makes sure that there are at least `count`.
    fn open_queues(&self, count: usize) {
        let mut queues = self.queues.write();
        for number in queues.len()..count {
            let name = format!("{} stream {number}", self.device);
            queues.push(Queue::open(name, self.failures.clone()));
        }
    }

    fn queue(&self, stream: StreamId) -> Option<&'static Queue> {
        self.queues.read().get(usize::try_from(stream.0).ok()?).copied()
    }

    /// Appends work to a stream.
    pub(crate) fn enqueue(&self, stream: StreamId, work: Work) -> Result<()> {
        if self.dry {
            return Ok(());
        }
        let Some(queue) = self.queue(stream) else {
            return Err(Error::driver(format!("{} has no stream {}", self.device, stream.0)));
        };
        queue.push(work)
    }

    /// Makes later work on `stream` wait for `fence`.
    pub(crate) fn wait_for(&self, stream: StreamId, fence: Fence) -> Result<()> {
        if fence.is_done() { Ok(()) } else { self.enqueue(stream, Work::Wait(fence)) }
    }

    /// A point after everything that `stream` has been given.
    pub(crate) fn record(&self, stream: StreamId) -> Fence {
        self.queue(stream).map_or_else(Fence::done, Queue::record)
    }

    /// Waits for every stream.
    pub(super) fn synchronize_all(&self) {
        let fences: Vec<Fence> = self.queues.read().iter().map(|queue| queue.record()).collect();
        fences.iter().for_each(Fence::wait);
    }

    /// Tells of an operation that failed since the last time, once.
    pub(crate) fn surface(&self) -> Result<()> {
        let Some(Failure { origin, error }) = self.failures.lock().take() else { return Ok(()) };
        let message = format!(
            "failed on {} after its caller had gone on: it was the {origin}. What was computed since is undefined; \
             the device itself works",
            self.device
        );
        let operation = origin.get().operation;
        Err(Error::new(error.kind(), message).in_operation(operation).because(error))
    }
}

/// The memory of a stand-in: host memory, counted against the capacity, and host addresses.
struct Memory(&'static Engine);

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({}, {} bytes)", self.0.device, self.0.capacity_bytes)
    }
}

impl Memory {
    /// Counts `bytes` in, unless they pass the capacity.
    fn count_in(&self, bytes: usize) -> Result<(), SourceFull> {
        let capacity = self.0.capacity_bytes;
        let fits = |reserved: usize| reserved.checked_add(bytes).filter(|&all| all <= capacity);
        let counted =
            self.0.reserved_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        counted.map(drop).map_err(|_| SourceFull::because("the stand-in has no more room"))
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT_BYTES).ok()
}

impl Source for Memory {
    fn name(&self) -> &'static str {
        "stand-in"
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        self.count_in(bytes)?;
        // SAFETY: the layout's size is not 0.
        let address =
            layout(bytes).map_or(0, |layout| unsafe { alloc(layout) }.expose_provenance());
        NonZeroUsize::new(address).ok_or_else(|| {
            self.0.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
            SourceFull::because("the host has no more memory for the stand-in")
        })
    }

    unsafe fn release(&self, address: NonZeroUsize, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: by this method's contract it came from `reserve(bytes)`, which used the same
            // layout.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address.get()), layout) };
        }
        self.0.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn room(&self) -> Room {
        let reserved = self.0.reserved_bytes.load(Ordering::Relaxed);
        Room {
            total_bytes: Some(self.0.capacity_bytes),
            free_bytes: Some(self.0.capacity_bytes.saturating_sub(reserved)),
            used_by_others_bytes: None,
        }
    }

    fn address_space(&self) -> Result<&dyn AddressSpace, String> {
        Ok(self)
    }

    fn record(&self, stream: StreamId) -> Fence {
        self.0.record(stream)
    }

    fn synchronize(&self, stream: StreamId) {
        self.0.record(stream).wait();
    }
}

impl AddressSpace for Memory {
    fn reserve_range(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        HostPages.reserve_range(bytes)
    }

    unsafe fn release_range(&self, address: NonZeroUsize, bytes: usize) {
        // SAFETY: the caller's promise is the same, and the range came from there.
        unsafe { HostPages.release_range(address, bytes) };
    }

    unsafe fn map(
        &self,
        address: NonZeroUsize,
        bytes: usize,
        page_bytes: usize,
    ) -> Result<(), SourceFull> {
        self.count_in(bytes)?;
        // SAFETY: the caller's promise is the same.
        unsafe { HostPages.map(address, bytes, page_bytes) }.inspect_err(|_| {
            self.0.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    unsafe fn unmap(&self, address: NonZeroUsize, bytes: usize, page_bytes: usize) {
        // SAFETY: the caller's promise is the same.
        unsafe { HostPages.unmap(address, bytes, page_bytes) };
        self.0.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::stream_pool::STREAMS;
    use crate::device::{Stream, synchronize};
    use crate::operation::{Inferred, Needs, OpInfo, Operation};
    use crate::prepare::apply_one;
    use crate::{DType, Tensor};
    use plimsoll_kernels::{CpuLaunch, Meta};
    use plimsoll_memory::Site;

    /// Fails when it runs, or panics.
    #[derive(Clone, Copy, Debug)]
    struct Failing {
        panics: bool,
    }

    static FAILING: OpInfo = OpInfo { name: "failing", family: "test", ..OpInfo::BARE };

    impl Operation for Failing {
        fn info(&self) -> &'static OpInfo {
            &FAILING
        }

        fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
            Ok(Inferred::one(inputs[0].clone()))
        }

        fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
            assert!(!self.panics, "as asked");
            Err(Error::index(launch.operation, "index 7 is out of range for size 3"))
        }

        fn share(&self) -> Arc<dyn Operation> {
            Arc::new(*self)
        }
    }

    fn device() -> Device {
        stand_in(StandIn::default()).unwrap()
    }

    #[test]
    fn a_failure_comes_late_names_operation_and_line_and_comes_once() -> Result<()> {
        let device = device();
        let x = Tensor::ones(&[4], (DType::F32, device))?;
        let line = line!() + 1;
        let y = apply_one(&Failing { panics: false }, &[&x], Site::caller())?;
        let later = y.add(1.0)?; // queued all the same
        let error = later.to_vec::<f32>().unwrap_err();
        let text = error.to_string();
        assert!(error.is_index() && error.operation() == Some("failing"), "{text}");
        assert!(text.contains("index 7 is out of range for size 3"), "{text}");
        assert!(text.contains(&format!("stand_in.rs:{line}")), "{text}");
        assert!(text.contains(&device.to_string()), "{text}");
        assert_eq!(x.add(1.0)?.to_vec::<f32>()?, [2.0; 4], "the device works on");
        synchronize(device)
    }

    #[test]
    fn every_way_of_waiting_tells_of_it() -> Result<()> {
        let device = device();
        let x = Tensor::ones(&[1], (DType::F32, device))?;
        let stream = Stream::current(device);
        let ways: [&dyn Fn() -> Result<()>; 6] = [
            &|| synchronize(device),
            &|| stream.synchronize(),
            &|| stream.record_event().synchronize(),
            &|| x.item::<f32>().map(drop),
            &|| x.cpu().map(drop),
            &|| x.to_vec::<f32>().map(drop),
        ];
        for (number, way) in ways.iter().enumerate() {
            let panics = number % 2 == 1;
            apply_one(&Failing { panics }, &[&x], Site::caller())?;
            let error = way().unwrap_err();
            assert_eq!(error.operation(), Some("failing"), "way {number}: {error}");
            assert_eq!(error.is_driver(), panics, "way {number}: {error}");
            way()?;
        }
        Ok(())
    }

    #[test]
    fn streams_are_handed_out_again_after_the_last_of_their_priority() {
        let device = device();
        let first = Stream::new(device).unwrap();
        let others: Vec<Stream> = (1..STREAMS).map(|_| Stream::new(device).unwrap()).collect();
        assert!(others.iter().all(|other| other != &first && other.id() != 0));
        let urgent = Stream::with_priority(device, -1).unwrap();
        assert!(urgent != first && !others.contains(&urgent));
        assert_eq!(Stream::new(device).unwrap(), first);
        assert!(Stream::with_priority(device, 1).unwrap_err().to_string().contains("priority"));
        let x = crate::device::with_stream(&urgent, || Tensor::ones(&[4], (DType::F32, device)));
        assert_eq!(x.unwrap().to_vec::<f32>().unwrap(), [1.0; 4]);
    }
}
