//! What a recording is made of: events with their times and bytes, and points of the memory's
//! history. How they come about is in `build.rs`.

use plimsoll_core::Device;
use plimsoll_memory::{ModulePath, Phase, Site};

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// An operation, or a function made of operations: `aten::add`.
    Operation,
    /// A node of the graph, in backward: `AddBackward0`.
    Backward,
    /// A range that the program named.
    Range,
    /// The host waited for a device.
    Wait,
    /// Work on a device that queues it, or a copy to one.
    Kernel,
    /// Memory that came or went outside of every other event.
    Memory,
}

/// One thing that happened. Times are in nanoseconds, from the start of the session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// Its name, as PyTorch's profiler has it: `aten::add`, `AddBackward0`.
    pub name: String,
    /// What it is.
    pub kind: EventKind,
    /// The event that it lies in; of a kernel, the one that launched it. An index into the
    /// recording's events.
    pub parent: Option<usize>,
    /// The thread, numbered from 1 in the order of appearance; of a kernel, the one that launched.
    pub thread: u64,
    /// Where it runs: the host, or a kernel's device.
    pub device: Device,
    /// A kernel's stream.
    pub stream: u64,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Host time outside of the events that lie in it.
    pub self_cpu_ns: u64,
    /// Time of the kernels that it launched, with those of events in it; of a kernel, its own.
    pub device_ns: u64,
    /// Time of the kernels that it launched itself; of a kernel, its own.
    pub self_device_ns: u64,
    /// Change of allocated bytes in host memory, with events in it.
    pub cpu_bytes: i64,
    /// The same, without events in it.
    pub self_cpu_bytes: i64,
    /// Change of allocated bytes on other devices, with events in it.
    pub device_bytes: i64,
    /// The same, without events in it.
    pub self_device_bytes: i64,
    /// Bytes that a source (the system, a driver) gave while it ran, without events in it.
    pub source_bytes: u64,
    /// Shapes of its operands, if they were asked for.
    pub input_shapes: Vec<Vec<usize>>,
    /// Dtypes of its operands, as PyTorch's profiler writes them.
    pub input_dtypes: Vec<&'static str>,
    /// The lines that called it, innermost first, if they were asked for.
    pub stack: Vec<Site>,
    /// The line that it runs on behalf of; of what runs backward, the forward one.
    pub site: Site,
    /// The module that it runs in, or for; the root if modules were not asked for.
    pub module: ModulePath,
    /// The phase of training.
    pub phase: Phase,
    /// Floating point operations, if they were asked for and are counted.
    pub flops: u64,
    /// It copied from or to host memory that is not pinned.
    pub pageable: bool,
    /// Bytes that a copy between devices moved.
    pub copied_bytes: u64,
    /// Bytes of the elements that a kernel reads and writes, every operand once.
    pub moved_bytes: u64,
}

impl Event {
    /// Host time from begin to end; 0 of a kernel.
    pub fn cpu_ns(&self) -> u64 {
        if self.is_on_device() { 0 } else { self.end_ns - self.start_ns }
    }

    /// Whether it is work of a device, not of the host.
    pub fn is_on_device(&self) -> bool {
        self.kind == EventKind::Kernel
    }

    /// The name that averages group by: steps are one.
    pub fn key(&self) -> &str {
        if self.name.starts_with("ProfilerStep#") { "ProfilerStep*" } else { &self.name }
    }
}

/// What an arena's book said at a moment.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MemoryPoint {
    /// When, in nanoseconds from the start of the session.
    pub at_ns: u64,
    /// Whose memory it is.
    pub device: Device,
    /// The arena's name, where the device has several.
    pub arena: Option<&'static str>,
    /// Where the block lies.
    pub address: usize,
    /// How allocated bytes changed; 0 where only the source gave or took.
    pub change_bytes: i64,
    /// Allocated bytes of the arena from then on.
    pub allocated_bytes: usize,
    /// Bytes that the arena has from its source from then on.
    pub reserved_bytes: usize,
}
