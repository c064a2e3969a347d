//! What a thread writes down while a session runs: beginnings and ends of calls, kernels, and
//! changes of memory, in the order in which they happened on that thread. Nothing is worked out
//! here; that is `build.rs`, when the session is over.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::Mutex;
use plimsoll_core::{DType, Device};
use plimsoll_memory::{OriginId, Site};
use plimsoll_tensor::Tensor;
use plimsoll_tensor::observe::{CallKind, CopyWay, LaunchTime};

/// The log of one thread. Its lock is the thread's own until the session ends.
#[derive(Debug)]
pub(crate) struct ThreadLog {
    /// Threads are numbered in the order of their first entries.
    pub(crate) thread: u64,
    pub(crate) name: Option<String>,
    pub(crate) entries: Mutex<Vec<Entry>>,
}

/// Times are nanoseconds since the session began.
#[derive(Debug)]
pub(crate) enum Entry {
    Enter(Box<Enter>),
    Leave { at_ns: u64, outputs: Vec<Vec<usize>> },
    Kernel(Kernel),
    Memory(MemoryEntry),
}

/// A call or a range begins.
#[derive(Debug)]
pub(crate) struct Enter {
    pub(crate) at_ns: u64,
    pub(crate) name: Cow<'static, str>,
    pub(crate) what: What,
    pub(crate) origin: OriginId,
    pub(crate) inputs: Vec<InputMeta>,
    /// Innermost first.
    pub(crate) stack: Vec<Site>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Call(CallKind),
    Range,
}

/// What is kept of an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputMeta {
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: DType,
}

impl InputMeta {
    pub(crate) fn of(tensor: &Tensor) -> InputMeta {
        InputMeta { shape: tensor.shape().to_vec(), dtype: tensor.dtype() }
    }
}

/// Work given to a device that queues it.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) at_ns: u64,
    pub(crate) operation: &'static str,
    pub(crate) device: Device,
    pub(crate) stream: u64,
    pub(crate) copy: Option<CopyWay>,
    pub(crate) bytes: usize,
    pub(crate) moved_bytes: usize,
    pub(crate) time: LaunchTime,
}

/// A change in an arena's book.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryEntry {
    pub(crate) at_ns: u64,
    pub(crate) device: Device,
    pub(crate) arena: Option<&'static str>,
    pub(crate) address: usize,
    /// How allocated bytes changed.
    pub(crate) change_bytes: i64,
    /// How bytes from the source changed.
    pub(crate) source_bytes: i64,
    pub(crate) allocated_bytes: usize,
    pub(crate) reserved_bytes: usize,
    pub(crate) origin: OriginId,
}

impl ThreadLog {
    pub(crate) fn new(thread: u64) -> Arc<ThreadLog> {
        let name = std::thread::current().name().map(str::to_string);
        Arc::new(ThreadLog { thread, name, entries: Mutex::new(Vec::new()) })
    }

    pub(crate) fn push(&self, entry: Entry) {
        self.entries.lock().push(entry);
    }
}
