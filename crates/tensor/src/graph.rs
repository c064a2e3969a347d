//! Graphs: work that is captured once and replayed as one launch, with memory of its own. Which
//! streams capture, and what must not happen meanwhile, is in
//! `device/captures.rs`.
//!
//! Note [What a graph holds]
//! Replays use the addresses that were captured. Memory from before the capture (inputs,
//! parameters) the graph holds and keeps in its place, so that no program can free it under a
//! replay; PyTorch leaves that to the program. What was allocated while it was captured lies in a
//! private pool, in a part of it that only captures allocate from; its segments stay as long as the
//! graph lives. Tensors in it are ordinary ones, and go when their last holder does. A replay is
//! ordered like one launch that reads and writes all of these. Graphs of one pool share memory that
//! no tensor stands for (what was freed while they were captured), so that one thread at a time
//! orders and launches them (`MemPool::replaying`).

use std::fmt;
use std::sync::Arc;

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{OriginId, Site};

use crate::device::captures::{Capture, Fixed};
use crate::device::queue::Work;
use crate::device::{Backend, CaptureOfPool, Entry, MemPool, Stream, StreamScope};
use crate::generator::Generator;
use crate::observe;
use crate::random::{RngCapture, RngReplay};
use crate::storage::claim::Claim;

/// Memory from before a capture that it uses, and whether it writes it.
type Held = Vec<(Fixed, bool)>;

/// Work of a device that was captured, to be replayed any number of times.
///
/// While a function is captured nothing of it runs: what it would do is written down. Each replay
/// then does it, with whatever its inputs hold at that time. New inputs are copied into the tensors
/// that were captured.
///
/// ```
/// use plimsoll_tensor::{DType, Graph, Tensor, device};
/// let gpu = device::stand_in(Default::default())?;
/// let input = Tensor::ones(&[4], (DType::F32, gpu))?;
/// let (graph, output) = Graph::capture(gpu, || input.add(1.0)?.mul(3.0))?;
/// graph.replay()?;
/// assert_eq!(output.to_vec::<f32>()?, [6.0; 4]);
/// input.fill_(4.0)?;
/// graph.replay()?;
/// assert_eq!(output.to_vec::<f32>()?, [15.0; 4]);
/// // Reading a value means waiting for the device, which a capture cannot.
/// let error = Graph::capture(gpu, || input.sum()?.item::<f32>()).unwrap_err();
/// assert!(error.to_string().contains("when stream is capturing"));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub struct Graph {
    entry: &'static Entry,
    recorded: Recorded,
    /// From before the capture, and whether it is written.
    outside: Held,
    /// Host memory that is copied from, or to: then it is written.
    host: Held,
    draws: Vec<RngReplay>,
    pool: MemPool,
}

enum Recorded {
    /// A dry run's, which computes nothing.
    Dry,
    StandIn(Arc<[Work]>),
    Cuda(plimsoll_cuda::Graph),
}

impl Graph {
    /// Captures what `body` does on `device`, on a stream of its own and into a pool of its own.
    ///
    /// Where `body` fails there is no graph, and memory, streams and generators are as they were.
    /// What `body` did on the host stays done: gradients that it set are tensors whose values
    /// nothing ever wrote, and must be cleared before others are added to them.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let gpu = device::stand_in(Default::default())?;
    /// let weight = Tensor::ones(&[4], (DType::F32, gpu))?.requires_grad_(true)?;
    /// let failed = Graph::capture(gpu, || {
    ///     weight.mul(&weight)?.sum()?.backward()?;
    ///     weight.sum()?.item::<f32>() // waits, which a capture cannot
    /// });
    /// assert!(failed.is_err());
    /// weight.set_grad(None)?; // what the capture left has no values
    /// weight.mul(&weight)?.sum()?.backward()?;
    /// assert_eq!(weight.grad().expect("a gradient").to_vec::<f32>()?, [2.0; 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn capture<R>(device: Device, body: impl FnOnce() -> Result<R>) -> Result<(Graph, R)> {
        let stream = Stream::new(device)?;
        let capture = GraphCapture::begin(&stream, None, &[])?;
        let made = {
            let _scope = StreamScope::enter(&stream);
            body()?
        };
        Ok((capture.end()?, made))
    }

    /// The device that it was captured on.
    pub fn device(&self) -> Device {
        self.entry.device()
    }

    /// The pool of what was allocated while it was captured; another capture may share it, if the
    /// graphs are replayed in the order of their captures and none needs what another one's replay
    /// has overwritten.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let gpu = device::stand_in(Default::default())?;
    /// let x = Tensor::ones(&[1000], (DType::F32, gpu))?;
    /// let (graph, y) = Graph::capture(gpu, || x.add(1.0)?.add(1.0))?;
    /// assert_eq!(graph.pool().usage().active_bytes, 4096); // y; what lies between is free again
    /// let reserved = memory::memory_reserved(gpu);
    /// drop((graph, y)); // and with them the pool
    /// assert_eq!(memory::memory_reserved(gpu), reserved - (2 << 20));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn pool(&self) -> &MemPool {
        &self.pool
    }

    /// How many kernels, copies and other pieces of work it holds; a dry run's holds none.
    pub fn nodes(&self) -> usize {
        match &self.recorded {
            Recorded::Dry => 0,
            Recorded::StandIn(works) => works.len(),
            Recorded::Cuda(graph) => graph.nodes(),
        }
    }

    /// Queues all of it on this thread's stream. Random numbers are drawn anew each time.
    #[track_caller]
    pub fn replay(&self) -> Result<()> {
        let site = Site::caller();
        let (entry, stream) = (self.entry, self.entry.current_stream());
        if let Some(capture) = entry.captures().of(stream) {
            return Err(capture.refuse("a graph would be replayed inside of a capture"));
        }
        let origin = || OriginId::intern("graph_replay", site);
        let is_dry = matches!(self.recorded, Recorded::Dry);
        let observed = (observe::is_on() && !is_dry)
            .then(|| observe::begin(entry, "graph_replay", origin(), &[], &[]))
            .flatten();
        // Until the launch: what draws read is this replay's, and no other graph of the pool comes
        // between the order of the streams and the work itself.
        let replaying = self.pool.replaying();
        self.draws.iter().try_for_each(RngReplay::advance)?;
        if is_dry {
            return Ok(());
        }
        let written = self.pool.written();
        let outside = self.outside.iter().map(|(fixed, writes)| (fixed.storage(), *writes));
        let host = self.host.iter().map(|(fixed, writes)| (fixed.storage(), *writes));
        let given = outside.chain(host);
        let reads = given.clone().filter(|(_, writes)| !writes).map(|(storage, _)| storage);
        let writes = given.filter(|(_, writes)| *writes).map(|(storage, _)| storage);
        let claim = Claim::new(
            reads.map(|storage| storage.as_ref()),
            writes.chain(&written).map(|storage| storage.as_ref()),
        );
        for (fixed, writes) in &self.outside {
            entry.order_outside(stream, fixed.storage(), *writes)?;
        }
        written.iter().try_for_each(|storage| entry.order_outside(stream, storage, true))?;
        let mut ordered = Ok(());
        self.pool.replay_on(stream, |other| {
            if ordered.is_ok() {
                ordered = entry.wait_on_stream(stream, entry.record(other));
            }
        });
        ordered.and_then(|()| self.launch())?;
        if !self.host.is_empty() {
            let fence = entry.record(stream);
            for (host, writes) in &self.host {
                host.storage().uses.busy_until(fence.clone(), *writes);
            }
        }
        drop((claim, replaying, observed));
        Ok(())
    }

    fn launch(&self) -> Result<()> {
        let stream = self.entry.current_stream();
        match (&self.recorded, self.entry.backend()) {
            (Recorded::StandIn(works), Backend::StandIn(engine)) => {
                engine.enqueue(stream, Work::Replay(works.clone()))
            }
            (Recorded::Cuda(graph), Backend::Cuda(gpu)) => {
                let Some(context) = gpu.context() else { return Ok(()) };
                // SAFETY: the graph holds what it uses, or its pool does, all of it ordered on the
                // stream by `replay`. Launches of graphs of one pool follow each other, because
                // `replay` holds the pool's lock from before it waits for the stream of the one
                // before until this has returned; so no other thread launches this graph either.
                unsafe { context.launch_graph(stream, graph) }
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // The memory that it holds goes next: what still runs must be done with it.
        self.pool.replayed_on(|stream| self.entry.record(stream).wait());
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("device", &self.device())
            .field("nodes", &self.nodes())
            .field("pool", &self.pool.usage())
            .finish_non_exhaustive()
    }
}

/// A capture that is open on a stream; [`Graph::capture`] is easier to use. Dropped without
/// [`GraphCapture::end`], what was captured is forgotten.
///
/// ```
/// use plimsoll_tensor::device::{self, MemPool, Stream, with_stream};
/// use plimsoll_tensor::{DType, GraphCapture, Tensor};
/// let gpu = device::stand_in(Default::default())?;
/// let x = Tensor::ones(&[4], (DType::F32, gpu))?;
/// let (side, pool) = (Stream::new(gpu)?, MemPool::for_graph(gpu));
/// let capture = GraphCapture::begin(&side, Some(&pool), &[])?;
/// with_stream(&side, || x.add_(1.0).map(drop))?;
/// let graph = capture.end()?;
/// graph.replay()?;
/// graph.replay()?;
/// assert_eq!(x.to_vec::<f32>()?, [3.0; 4]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[must_use = "a capture that is dropped is forgotten"]
pub struct GraphCapture {
    entry: &'static Entry,
    capture: Arc<Capture>,
    pool: MemPool,
    draws: Vec<RngCapture>,
    open: Option<CaptureOfPool>,
}

impl GraphCapture {
    /// Begins to capture on `stream`, which is not a default stream: waits for what it has been
    /// given, and writes down from now on. Memory comes from `pool`, or a new one. Random numbers
    /// may be drawn from the device's own generator, and from `generators`.
    #[track_caller]
    pub fn begin(
        stream: &Stream,
        pool: Option<&MemPool>,
        generators: &[Generator],
    ) -> Result<GraphCapture> {
        const OP: &str = "graph_capture";
        let (entry, device, id) = (stream.entry(), stream.device(), stream.stream_id());
        if matches!(entry.backend(), Backend::Cpu) {
            let why = format!("{device} runs its work at once, and has no graphs");
            return Err(Error::device(OP, why));
        }
        if *stream == Stream::default_of(device) {
            let why = "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to \
                       replay them on the default stream.)";
            return Err(Error::driver(why).in_operation(OP));
        }
        if entry.captures().of(id).is_some() {
            let why = format!("a graph is being captured on stream {} of {device} already", id.0);
            return Err(Error::driver(why).in_operation(OP));
        }
        let pool = pool.cloned().unwrap_or_else(|| MemPool::for_graph(device));
        if pool.device() != device {
            let why = format!("the pool is on {} and the stream on {device}", pool.device());
            return Err(Error::device(OP, why));
        }
        let capture = Capture::new(device, id, pool.captured_id());
        let mut draws = Vec::new();
        {
            let _scope = StreamScope::enter(stream);
            let own = Generator::default_of(device);
            for generator in std::iter::once(&own).chain(generators) {
                draws.push(RngCapture::begin_in(generator, Some(capture.clone()))?);
            }
        }
        entry.wait_for(id)?;
        if let (Backend::Cuda(gpu), false) = (entry.backend(), device.is_dry())
            && let Some(context) = gpu.context()
        {
            context.begin_capture(id)?;
        }
        entry.captures().open(&capture);
        let open = Some(CaptureOfPool::open());
        Ok(GraphCapture { entry, capture, pool, draws, open })
    }

    /// Ends the capture. It fails if something was done meanwhile that cannot be captured.
    pub fn end(mut self) -> Result<Graph> {
        let (recorded, outside, host) = self.close()?;
        let draws = self.draws.drain(..).map(RngCapture::end).collect();
        Ok(Graph { entry: self.entry, recorded, outside, host, draws, pool: self.pool.clone() })
    }

    /// Has the stream run what it is given again; returns what was written down, and the memory
    /// from before that it uses, of the device and of the host.
    fn close(&mut self) -> Result<(Recorded, Held, Held)> {
        const OP: &str = "graph_capture";
        if self.open.take().is_none() {
            return Err(Error::driver("the capture has ended already").in_operation(OP));
        }
        let (entry, origin) = (self.entry, self.capture.origin());
        let context = match entry.backend() {
            Backend::Cuda(gpu) if !entry.device().is_dry() => gpu.context(),
            _ => None,
        };
        let by_driver = context.map(|context| context.end_capture(origin));
        entry.captures().close(&self.capture);
        let mut written = self.capture.take_written();
        // Also where it failed: what lives of it lies where other graphs of the pool may write.
        let (outside, own) = written.take_touched();
        self.pool.add_written(own);
        if let Some(why) = written.failure.take() {
            return Err(Error::driver(format!("the capture failed: {why}")).in_operation(OP));
        }
        if let Some(stream) = written.unjoined(origin) {
            let why = format!(
                "stream {} was captured too, and stream {}, where the capture began, never waited for its last work; \
                 call `wait_stream` before the capture ends",
                stream.0, origin.0
            );
            return Err(Error::driver(why).in_operation(OP));
        }
        let recorded = match by_driver {
            Some(graph) => Recorded::Cuda(graph.map_err(|error| error.in_operation(OP))?),
            None if entry.device().is_dry() => Recorded::Dry,
            None => Recorded::StandIn(std::mem::take(&mut written.work).into()),
        };
        Ok((recorded, outside, written.host))
    }
}

impl Drop for GraphCapture {
    fn drop(&mut self) {
        if self.open.is_some() {
            drop(self.close());
        }
    }
}

impl fmt::Debug for GraphCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphCapture({}, stream {})", self.entry.device(), self.capture.origin().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{self, StandIn};
    use crate::{DType, Tensor};

    #[test]
    fn replays_are_ordered_with_what_a_failed_capture_left_in_their_pool() -> Result<()> {
        let stand_in = StandIn { configuration: Some(Default::default()), ..StandIn::default() };
        let gpu = device::stand_in(stand_in)?;
        let x = Tensor::ones(&[1000], (DType::F32, gpu))?;
        let (graph, y) = Graph::capture(gpu, || x.add(1.0)?.mul(2.0))?;
        let side = Stream::new(gpu)?;
        let failed = GraphCapture::begin(&side, Some(graph.pool()), &[])?;
        // It lies where the sum of the first graph was, which each of its replays writes.
        let left = {
            let _scope = StreamScope::enter(&side);
            x.mul(3.0)?
        };
        drop(failed);
        let written = graph.pool().written();
        assert_eq!(written.len(), 2);
        for tensor in [&y, &left] {
            assert!(written.iter().any(|storage| Arc::ptr_eq(storage, tensor.storage())));
        }
        Ok(())
    }
}
