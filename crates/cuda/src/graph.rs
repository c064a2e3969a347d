//! Captured graphs: what a stream is given is written down instead of run, and launched as one.
//!
//! Note [What a capture allows]
//! The driver refuses calls that it takes for dangerous while a stream captures (allocations,
//! loading modules), unless the capture is relaxed. Captures here are: allocations go to a pool of
//! the graph's, kernels are loaded by whoever needs them first, and neither disturbs what is
//! written down. What can never be captured is waiting for the stream. The driver would make the
//! whole capture void; so whoever waits for a device asks first (`Entry` in the `tensor` crate),
//! and the calls below that only look at a stream do not look at one that captures. Nothing of it
//! runs: whoever begins a capture waits for what came before.

use std::sync::atomic::Ordering;

use cudarc::driver::{result, sys};
use plimsoll_core::Result;
use plimsoll_memory::{Fence, StreamId};

use crate::Context;
use crate::error::Told;

/// Work that was captured, ready to be launched.
#[derive(Debug)]
pub struct Graph {
    ready: sys::CUgraphExec,
    context: &'static Context,
    nodes: usize,
}

// SAFETY: the handle is a name that the driver accepts from any thread; it is destroyed once, by
// its only owner. Two threads that launch it at once are the caller's affair (`launch_graph`).
unsafe impl Send for Graph {}
// SAFETY: as for Send.
unsafe impl Sync for Graph {}

impl Graph {
    /// How many kernels, copies and other pieces of work it holds.
    pub fn nodes(&self) -> usize {
        self.nodes
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: nobody else has the handle, and its owner has waited for its launches.
            let _ = unsafe { result::graph::exec_destroy(self.ready) };
        }
    }
}

impl Context {
    /// From now on `stream` writes down what it is given. It is not the default stream, which
    /// cannot. See Note [What a capture allows].
    pub fn begin_capture(&self, stream: StreamId) -> Result<()> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream is one of ours, which are never destroyed.
        unsafe { result::stream::begin_capture(handle, mode) }.told("cuStreamBeginCapture")?;
        self.captures.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Ends what [`Context::begin_capture`] began, whatever became of it.
    pub fn end_capture(&'static self, stream: StreamId) -> Result<Graph> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        // SAFETY: as above; the capture began on this stream.
        let written = unsafe { result::stream::end_capture(handle) }.told("cuStreamEndCapture");
        self.captures.fetch_sub(1, Ordering::Release);
        let written = Written(written?);
        let nodes = written.nodes()?;
        let flags = sys::CUgraphInstantiate_flags(0);
        // SAFETY: the graph is alive until the end of this function.
        let ready =
            unsafe { result::graph::instantiate(written.0, flags) }.told("cuGraphInstantiate")?;
        Ok(Graph { ready, context: self, nodes })
    }

    /// Whether what `stream` is given is written down. Costs one load while nothing is captured.
    pub fn is_capturing(&self, stream: StreamId) -> bool {
        if self.captures.load(Ordering::Acquire) == 0 || stream == StreamId::DEFAULT {
            return false;
        }
        let (Ok(_bound), Ok(handle)) = (self.bind(), self.handle(stream)) else { return false };
        let mut status = sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is one of ours; the driver fills in a word.
        let asked = unsafe { sys::cuStreamIsCapturing(handle, &raw mut status) }.result();
        asked.is_ok() && status != sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE
    }

    /// A point in what `stream`, which captures, has written down. Streams that wait for it are
    /// captured too; nobody else may ask about it.
    pub fn record_captured(&'static self, stream: StreamId) -> Result<Fence> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        self.events.record(self, handle)
    }

    /// Queues all that a graph holds.
    ///
    /// # Safety
    /// Every address that was captured is memory of this GPU that `stream` may read or write as the
    /// captured work does, and no other launch of the graph runs beside this one.
    pub unsafe fn launch_graph(&self, stream: StreamId, graph: &Graph) -> Result<()> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        // SAFETY: the graph is alive; the rest is the caller's promise.
        unsafe { result::graph::launch(graph.ready, handle) }.told("cuGraphLaunch")
    }
}

/// A graph as it was written down, from which the one that is launched is made.
struct Written(sys::CUgraph);

impl Written {
    fn nodes(&self) -> Result<usize> {
        let mut nodes = 0;
        // SAFETY: the graph is alive; with no list to fill in, the driver fills in their number.
        unsafe { sys::cuGraphGetNodes(self.0, std::ptr::null_mut(), &raw mut nodes) }
            .result()
            .told("cuGraphGetNodes")?;
        Ok(nodes)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // SAFETY: made by the capture, and destroyed once.
        let _ = unsafe { result::graph::destroy(self.0) };
    }
}
