//! Plimsoll without the driver: the same names as in the files that call it, and no GPU. A
//! [`Context`] cannot be made, so what takes one is never called, and the compiler knows it. `cargo
//! xtask test features` compiles this; a method that `tensor` calls on a context is added here too.

use std::num::NonZeroUsize;
use std::time::Duration;

use plimsoll_core::{Error, Result};
use plimsoll_memory::{Fence, Source, SourceFull, StreamId};

use crate::{
    Argument, Convolution, ConvolutionMemory, Fault, Grid, KernelName, KernelSource, Matmul,
    MatmulMemory, Properties,
};

const WHY: &str = "this program was built without the feature `cuda`";

/// A GPU that is open for work. There is none.
#[derive(Debug)]
pub enum Context {}

/// A function on the GPU. There is none.
#[derive(Clone, Copy, Debug)]
pub enum Kernel {}

/// Work that was captured. There is none.
#[derive(Debug)]
pub struct Graph(&'static Context);

/// GPU memory. There is none.
#[derive(Debug)]
pub struct DeviceSource(&'static Context);

/// A point of a stream's queue with its time. There is none.
#[derive(Debug)]
pub struct TimedEvent(&'static Context);

/// How many GPUs there are.
pub fn count() -> usize {
    0
}

/// Why there is no GPU to use.
pub fn unavailable() -> Option<&'static str> {
    Some(WHY)
}

/// The version of cuDNN. It is not asked for.
pub fn cudnn_version() -> Option<usize> {
    None
}

/// How many convolutions cuDNN has computed.
#[doc(hidden)]
pub fn cudnn_convolutions() -> usize {
    0
}

/// Compiles nothing, and says why.
pub fn compile(name: &str, _source: &str, _architecture: &str) -> Result<Vec<u8>> {
    Err(Error::unsupported("cuda", format!("{name}.cu cannot be compiled: {WHY}")))
}

impl Context {
    /// Why GPU `ordinal` cannot be used.
    pub fn open(ordinal: usize) -> Result<&'static Context> {
        Err(Error::device("cuda", format!("there is no cuda:{ordinal}: {WHY}")))
    }

    /// The index of the GPU.
    pub fn ordinal(&self) -> usize {
        match *self {}
    }

    /// What the GPU is.
    pub fn properties(&self) -> &Properties {
        match *self {}
    }

    /// Free and total bytes of the GPU's memory.
    pub fn memory_info(&self) -> Result<(usize, usize)> {
        match *self {}
    }

    /// Waits until all streams have no queued work.
    pub fn synchronize(&self) -> Result<()> {
        match *self {}
    }

    /// Waits until `stream` has no queued work.
    pub fn synchronize_stream(&self, _stream: StreamId) -> Result<()> {
        match *self {}
    }

    /// Where kernels write faults.
    pub fn fault_address(&self) -> u64 {
        match *self {}
    }

    /// The fault that a kernel wrote down since the last time.
    pub fn take_fault(&self) -> Option<Fault> {
        match *self {}
    }

    /// Whether an earlier kernel failed.
    pub fn check(&self) -> Result<()> {
        match *self {}
    }

    /// Makes sure that `stream` exists.
    pub fn open_stream(&self, _stream: StreamId, _priority: i32) -> Result<()> {
        match *self {}
    }

    /// The driver's own number for `stream`.
    pub fn raw_stream(&self, _stream: StreamId) -> Result<usize> {
        match *self {}
    }

    /// Has `stream` write down what it is given.
    pub fn begin_capture(&self, _stream: StreamId) -> Result<()> {
        match *self {}
    }

    /// Ends a capture.
    pub fn end_capture(&'static self, _stream: StreamId) -> Result<Graph> {
        match *self {}
    }

    /// A point in what a stream has written down.
    pub fn record_captured(&'static self, _stream: StreamId) -> Result<Fence> {
        match *self {}
    }

    /// Queues all that a graph holds.
    ///
    /// # Safety
    /// It cannot be called.
    pub unsafe fn launch_graph(&self, _stream: StreamId, _graph: &Graph) -> Result<()> {
        match *self {}
    }

    /// Makes later work on `stream` wait for `fence`.
    pub fn wait_for_fence(&self, _stream: StreamId, _fence: &Fence) -> Result<()> {
        match *self {}
    }

    /// A point at the end of `stream`'s queue that keeps its time.
    pub fn record_timed(&'static self, _stream: StreamId) -> Result<TimedEvent> {
        match *self {}
    }

    /// The function `name` of `source`.
    pub fn kernel(
        &self,
        _source: &'static KernelSource,
        _name: impl Into<KernelName>,
    ) -> Result<Kernel> {
        match *self {}
    }

    /// Orders `stream` and another library's.
    ///
    /// # Safety
    /// It cannot be called.
    pub unsafe fn order_with_raw(
        &'static self,
        _stream: StreamId,
        _raw: usize,
        _ours_first: bool,
    ) -> Result<()> {
        match *self {}
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// It cannot be called.
    pub unsafe fn launch(
        &self,
        _stream: StreamId,
        _kernel: Kernel,
        _grid: Grid,
        _arguments: &[Argument],
    ) -> Result<()> {
        match *self {}
    }

    /// Queues a matrix product.
    ///
    /// # Safety
    /// It cannot be called.
    pub unsafe fn matmul(
        &'static self,
        _stream: StreamId,
        _matmul: &Matmul,
        _factors: [f64; 2],
        _memory: MatmulMemory,
    ) -> Result<()> {
        match *self {}
    }

    /// Whether cuDNN computes `convolution`.
    pub fn can_convolve(
        &self,
        _convolution: &Convolution,
        _workspace_bytes: usize,
    ) -> Result<bool> {
        match *self {}
    }

    /// Queues a convolution.
    ///
    /// # Safety
    /// It cannot be called.
    pub unsafe fn convolve(
        &self,
        _stream: StreamId,
        _convolution: &Convolution,
        _memory: ConvolutionMemory,
    ) -> Result<bool> {
        match *self {}
    }

    /// What was chosen for each convolution so far.
    #[doc(hidden)]
    pub fn convolution_plans(&self) -> Result<Vec<String>> {
        match *self {}
    }

    /// Queues a copy.
    ///
    /// # Safety
    /// It cannot be called.
    pub unsafe fn copy(
        &self,
        _stream: StreamId,
        _from: usize,
        _to: usize,
        _bytes: usize,
    ) -> Result<()> {
        match *self {}
    }

    /// Queues a copy from another GPU's memory.
    ///
    /// # Safety
    /// It cannot be called.
    pub unsafe fn copy_from_gpu(
        &self,
        _other: &Context,
        _stream: StreamId,
        _from: usize,
        _to: usize,
        _bytes: usize,
    ) -> Result<()> {
        match *self {}
    }

    /// Makes host memory known to GPUs.
    ///
    /// # Safety
    /// It cannot be called.
    pub unsafe fn register(&self, _address: NonZeroUsize, _bytes: usize) -> Result<()> {
        match *self {}
    }

    /// Takes back what [`Context::register`] did.
    ///
    /// # Safety
    /// It cannot be called.
    pub unsafe fn unregister(&self, _address: NonZeroUsize) {
        match *self {}
    }
}

impl Graph {
    /// How many pieces of work it holds.
    pub fn nodes(&self) -> usize {
        match *self.0 {}
    }
}

impl DeviceSource {
    /// The memory of `context`'s GPU.
    pub fn new(context: &'static Context) -> DeviceSource {
        match *context {}
    }
}

impl TimedEvent {
    /// The time from `earlier` to this one.
    pub fn since(&self, _earlier: &TimedEvent) -> Option<Duration> {
        match *self.0 {}
    }

    /// Waits until the device has passed it.
    pub fn wait(&self) {
        match *self.0 {}
    }
}

impl Source for DeviceSource {
    fn name(&self) -> &'static str {
        match *self.0 {}
    }

    fn reserve(&self, _bytes: usize) -> std::result::Result<NonZeroUsize, SourceFull> {
        match *self.0 {}
    }

    unsafe fn release(&self, _address: NonZeroUsize, _bytes: usize) {
        match *self.0 {}
    }
}
