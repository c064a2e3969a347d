//! One device: its arena, and what the rest of the crate asks of it whatever its backend (streams,
//! fences, copies, late errors). On a backend that does its work at once, fences are passed already
//! and waiting costs nothing.

use std::sync::Arc;

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{Arena, Block, Configuration, Fence, StreamId};

use super::captures::Captures;
use super::gpu::Gpu;
use super::queue::{Copy, Work};
use super::stand_in::Engine;
use super::{spill_arena, stream};
use crate::generator::Generator;
use crate::lock::Mutex;
use crate::observe::{self, WaitFor};
use crate::operation::Metas;
use crate::storage::Storage;
use crate::storage::chaos::Chaos;
use crate::storage::reclaim::Reclaimable;

/// How a device runs kernels.
pub(crate) enum Backend {
    /// At once, on the calling thread and the fork-join pool.
    Cpu,
    /// On the threads of its streams.
    StandIn(&'static Engine),
    /// On a GPU.
    Cuda(&'static Gpu),
}

impl Backend {
    /// The same with nothing behind it, for a dry run: streams have numbers and take no work.
    pub(super) fn dry(&self, device: Device) -> Backend {
        match self {
            Backend::Cpu => Backend::Cpu,
            Backend::StandIn(engine) => Backend::StandIn(engine.dry(device)),
            Backend::Cuda(gpu) => Backend::Cuda(gpu.dry()),
        }
    }
}

/// Host memory that a device still copies, alive until it has.
#[allow(dead_code, reason = "held for its drop")]
pub(crate) enum Kept {
    Storage(Arc<Storage>),
    Block(Block),
}

impl From<Arc<Storage>> for Kept {
    fn from(storage: Arc<Storage>) -> Kept {
        Kept::Storage(storage)
    }
}

impl From<Block> for Kept {
    fn from(block: Block) -> Kept {
        Kept::Block(block)
    }
}

/// One device.
pub(crate) struct Entry {
    device: Device,
    arena: &'static Arena,
    /// Host memory for storages that are taken off this device.
    spill: &'static Arena,
    backend: Backend,
    generator: Generator,
    /// Its storages, while it takes memory back.
    reclaimable: Reclaimable,
    chaos: Chaos,
    captures: Captures,
    configuration: Configuration,
    /// Host memory of copies that run by themselves, until they have.
    kept: Mutex<Vec<(Fence, Kept)>>,
    /// What is wrong with the configuration in force, if something is.
    fault: Option<Error>,
}

impl Entry {
    pub(super) fn new(
        device: Device,
        arena: &'static Arena,
        backend: Backend,
        configuration: Configuration,
    ) -> Entry {
        Entry {
            device,
            arena,
            spill: spill_arena(),
            backend,
            generator: Generator::first_of(device),
            reclaimable: Reclaimable::default(),
            chaos: Chaos::default(),
            captures: Captures::default(),
            configuration,
            kept: Mutex::new(Vec::new()),
            fault: None,
        }
    }

    /// Makes every allocation tell of `fault`.
    pub(super) fn with_fault(self, fault: Option<Error>) -> Entry {
        Entry { fault, ..self }
    }

    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// Refuses work on a device whose configuration has a mistake.
    pub(crate) fn check_configuration(&self) -> Result<()> {
        match &self.fault {
            None => Ok(()),
            Some(error) => Err(Error::configuration(error.to_string())),
        }
    }

    pub(crate) fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    pub(crate) fn arena(&self) -> &'static Arena {
        self.arena
    }

    pub(crate) fn spill_arena(&self) -> &'static Arena {
        self.spill
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    pub(crate) fn generator(&self) -> &Generator {
        &self.generator
    }

    /// The captures that are open on it.
    pub(crate) fn captures(&self) -> &Captures {
        &self.captures
    }

    pub(crate) fn reclaimable(&self) -> &Reclaimable {
        &self.reclaimable
    }

    /// Begins its life in the table: taking memory back starts where the configuration asks for it.
    /// A dry run takes nothing back: its bytes are those of a run in which everything stays.
    pub(super) fn opened(&'static self) {
        if self.device.is_dry() {
            return;
        }
        if self.configuration.spill() {
            self.reclaimable.turn_on();
            self.arena.set_reclaimer(self);
        }
        self.set_chaos(self.configuration.chaos_seed());
    }

    pub(super) fn set_chaos(&self, seed: Option<u64>) {
        if seed.is_some() {
            self.reclaimable.turn_on();
        }
        self.chaos.set(seed);
    }

    /// Lets the chaos of tests take a storage away. Costs one load when it is off.
    #[inline]
    pub(crate) fn between_operations(&self) {
        if self.chaos.is_on() {
            self.chaos.strike(&self.reclaimable);
        }
    }

    /// Whether work is queued and runs later.
    pub(crate) fn is_asynchronous(&self) -> bool {
        match self.backend {
            Backend::Cpu => false,
            Backend::StandIn(_) | Backend::Cuda(_) => !self.device.is_dry(),
        }
    }

    /// The stream that this thread's work goes to.
    #[inline]
    pub(crate) fn current_stream(&self) -> StreamId {
        match self.backend {
            Backend::Cpu => StreamId::DEFAULT,
            Backend::StandIn(_) | Backend::Cuda(_) => stream::current(self.device.slot()),
        }
    }

    pub(super) fn new_stream(&self, priority: i32) -> Result<StreamId> {
        match self.backend {
            Backend::Cpu => Ok(StreamId::DEFAULT),
            Backend::StandIn(engine) => engine.new_stream(priority),
            Backend::Cuda(gpu) => gpu.new_stream(priority),
        }
    }

    /// A point after everything that `stream` has been given. One that captures has passed it; see
    /// Note [Streams of a capture].
    pub(crate) fn record(&self, stream: StreamId) -> Fence {
        self.arena.source().record(stream)
    }

    /// Makes the host wait for everything that `stream` has been given; observers hear of it.
    pub(crate) fn wait_for(&self, stream: StreamId) -> Result<()> {
        self.check_wait(stream)?;
        let _heard = observe::wait(self.device, WaitFor::Stream);
        self.record(stream).wait();
        Ok(())
    }

    /// Makes later work on `stream` wait for `fence`; where work runs at once, that is now.
    pub(crate) fn wait_on_stream(&self, stream: StreamId, fence: Fence) -> Result<()> {
        match self.waits_in_capture(stream, &fence)? {
            true => Ok(()),
            false => self.wait_on_backend(stream, fence),
        }
    }

    pub(super) fn wait_on_backend(&self, stream: StreamId, fence: Fence) -> Result<()> {
        match self.backend {
            Backend::Cpu => fence.wait(),
            Backend::StandIn(engine) => engine.wait_for(stream, fence)?,
            Backend::Cuda(gpu) => match gpu.context() {
                Some(context) => context.wait_for_fence(stream, &fence)?,
                None => fence.wait(),
            },
        }
        Ok(())
    }

    /// Lets work on `stream` touch `storage`, which is this device's: it waits for the streams that
    /// must come before. Called under a claim on the storage, or by whoever is moving it. See Note
    /// [Safe code cannot race streams].
    pub(crate) fn order(
        &self,
        stream: StreamId,
        storage: &Arc<Storage>,
        writes: bool,
    ) -> Result<()> {
        match self.captures.of(stream) {
            Some(capture) => self.order_in_capture(&capture, stream, storage, writes),
            None => self.order_outside(stream, storage, writes),
        }
    }

    /// The same on a stream that does not capture.
    pub(crate) fn order_outside(
        &self,
        stream: StreamId,
        storage: &Storage,
        writes: bool,
    ) -> Result<()> {
        let mut outcome = Ok(());
        storage.uses.note(stream, writes, |other| {
            if outcome.is_ok() {
                outcome = self.wait_on_stream(stream, self.record(other));
            }
        });
        outcome
    }

    /// Makes another library's stream wait for the work queued so far that writes `storage`.
    ///
    /// # Safety
    /// On a GPU, `raw` is a stream of it that is alive, by the driver's numbers.
    pub(crate) unsafe fn hand_over(&self, storage: &Arc<Storage>, raw: usize) -> Result<()> {
        let stream = self.current_stream();
        match self.backend {
            Backend::Cpu => Ok(()),
            // Its memory is the host's, and whoever reads it there knows no streams.
            Backend::StandIn(_) => {
                self.order(stream, storage, false)?;
                self.wait_for(stream)?;
                self.surface()
            }
            Backend::Cuda(gpu) => {
                let Some(context) = gpu.context() else { return Ok(()) };
                self.order(stream, storage, false)?;
                // SAFETY: the caller's promise.
                unsafe { context.order_with_raw(stream, raw, true) }
            }
        }
    }

    /// Waits until all streams have passed the work queued so far that touches `storage`.
    pub(crate) fn wait_for_uses(&self, storage: &Storage) {
        if self.is_asynchronous() {
            storage.uses.for_each(|stream| self.record(stream).wait());
        }
    }

    pub(super) fn synchronize_all(&self) -> Result<()> {
        if let Some(capture) = self.captures.of(self.current_stream()) {
            return Err(capture.refuse("the host would wait for all streams"));
        }
        let _heard = self.is_asynchronous().then(|| observe::wait(self.device, WaitFor::Device));
        match self.backend {
            Backend::Cpu => {}
            Backend::StandIn(engine) => engine.synchronize_all(),
            // An error is sticky and told by `surface`.
            Backend::Cuda(gpu) => drop(gpu.context().map(|context| context.synchronize())),
        }
        let passed = take_passed(&mut self.kept.lock());
        drop(passed);
        Ok(())
    }

    /// Tells of an operation that failed after its caller had gone on, once. For whoever has just
    /// waited for the device.
    pub(crate) fn surface(&self) -> Result<()> {
        match self.backend {
            Backend::Cpu => Ok(()),
            Backend::StandIn(engine) => engine.surface(),
            Backend::Cuda(gpu) => gpu.surface(self.device),
        }
    }

    /// Copies between this device's memory and the host's or another device's, in the order of
    /// `stream`; at once where there are no queues. The caller owns both ranges (one pinned or just
    /// moving, one fresh) until the stream has passed, or gives `keeps`.
    pub(crate) fn copy_on_stream(
        &self,
        stream: StreamId,
        from: usize,
        to: usize,
        bytes: usize,
        keeps: Option<Arc<Storage>>,
    ) -> Result<()> {
        if self.device.is_dry() {
            return Ok(());
        }
        match self.backend {
            Backend::Cpu => {
                // SAFETY: both are live blocks of at least `bytes`; the caller owns them, so they
                // do not overlap and nobody writes them.
                unsafe {
                    std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes);
                }
                Ok(())
            }
            Backend::StandIn(engine) => {
                let keeps = self.hold_in_capture(stream, to, keeps)?;
                self.give(engine, stream, Work::Copy(Copy { from, to, bytes, keeps }))
            }
            Backend::Cuda(gpu) => {
                let Some(context) = gpu.context() else { return Ok(()) };
                // SAFETY: as above, until the stream has passed.
                unsafe { context.copy(stream, from, to, bytes) }?;
                if let Some(storage) = self.hold_in_capture(stream, to, keeps)? {
                    self.keep_until(self.record(stream), storage);
                }
                Ok(())
            }
        }
    }

    /// As [`Entry::copy_on_stream`], from memory of another accelerator.
    pub(crate) fn copy_from_accelerator(
        &self,
        other: &Entry,
        stream: StreamId,
        from: usize,
        to: usize,
        bytes: usize,
    ) -> Result<()> {
        if let (Backend::Cuda(here), Backend::Cuda(there)) = (&self.backend, &other.backend)
            && let (Some(here), Some(there)) = (here.context(), there.context())
            && here.ordinal() != there.ordinal()
            && [self, other].iter().any(|entry| entry.arena().has_expandable_segments())
        {
            self.hold_in_capture(stream, to, None)?;
            // SAFETY: both are live blocks of at least `bytes`, which the caller owns until the
            // stream has passed.
            return unsafe { here.copy_from_gpu(there, stream, from, to, bytes) };
        }
        self.copy_on_stream(stream, from, to, bytes, None)
    }

    /// Holds host memory that the device still copies; a driver cannot. Looked through at every new
    /// one.
    pub(crate) fn keep_until(&self, fence: Fence, memory: impl Into<Kept>) {
        let passed = {
            let mut kept = self.kept.lock();
            let passed = take_passed(&mut kept);
            kept.push((fence, memory.into()));
            passed
        };
        drop(passed);
    }

    /// In a dry run, what stands in for a result whose size only data tells.
    pub(crate) fn dry_bound(&self, op: &'static str, bound: Metas) -> Result<Metas> {
        if self.configuration.dry_upper_bounds() {
            return Ok(bound);
        }
        Err(Error::unsupported(
            op,
            format!(
                "the size of its result depends on data, which a dry run does not have; set the configuration key \
                 `dry_upper_bounds` to count the largest possible result (here {:?}) instead",
                bound.first().map(|meta| meta.shape().to_vec()).unwrap_or_default()
            ),
        ))
    }
}

/// What the device is done with. Dropped by the caller, after the lock.
fn take_passed(kept: &mut Vec<(Fence, Kept)>) -> Vec<(Fence, Kept)> {
    kept.extract_if(.., |(fence, _)| fence.is_done()).collect()
}
