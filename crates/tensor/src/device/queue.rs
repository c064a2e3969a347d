//! One stream of the stand-in accelerator: a queue of work and the thread that does it in order.
//! Knows nothing of tensors, arenas or which streams must wait for which; that is `launch.rs` and
//! `stand_in.rs`.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use plimsoll_core::{Error, Result};
use plimsoll_memory::{Fence, FenceState, OriginId};
use smallvec::SmallVec;

use crate::operation::Operation;
use crate::storage::Storage;
use plimsoll_kernels::{CpuLaunch, Meta, Operand, Workspace, parallel};

/// One thing for a stream to do.
pub(crate) enum Work {
    Kernel(Box<Kernel>),
    Copy(Copy),
    /// Nothing, until a point of some other queue is passed.
    Wait(Fence),
    /// Notes the time.
    Stamp(Arc<OnceLock<Instant>>),
    /// What was captured, one after another.
    Replay(Arc<[Work]>),
}

/// A launch with everything it needs but the memory itself: queued work does not own storages. The
/// order of frees on the memory's own stream, and fences on others, keep the addresses good until
/// it ran (see `storage/stream_order.rs`).
pub(crate) struct Kernel {
    pub(crate) op: Arc<dyn Operation>,
    pub(crate) inputs: SmallVec<[(usize, Meta); 4]>,
    pub(crate) outputs: SmallVec<[(usize, Meta); 2]>,
    pub(crate) workspace: Workspace,
    /// The launching thread's number of kernel threads, which the workspace was measured for.
    pub(crate) threads: usize,
    pub(crate) origin: OriginId,
}

/// Bytes to move.
pub(crate) struct Copy {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) bytes: usize,
    /// Host memory that nobody waits for: it has no stream to order its free, so the copy keeps it
    /// alive.
    #[allow(dead_code, reason = "held for its drop")]
    pub(crate) keeps: Option<Arc<Storage>>,
}

/// An operation that failed after its caller had gone on.
pub(crate) struct Failure {
    pub(crate) origin: OriginId,
    pub(crate) error: Error,
}

/// Where the streams of one device put the first failure that nobody has heard of.
pub(super) type Failures = Arc<Mutex<Option<Failure>>>;

/// A stream's queue. Lives for ever, like its device.
pub(crate) struct Queue {
    /// Of the thread.
    name: String,
    failures: Failures,
    waiting: Mutex<Waiting>,
    /// Something was queued.
    arrived: Condvar,
    /// Some work was done.
    passed: Condvar,
    /// How much was done since the start. Written under the lock; read without it for a quick
    /// answer.
    done: AtomicU64,
    /// The process whose thread does the work, 0 before the first. A forked child has the queue and
    /// not the thread, and may find the lock held for ever: it asks here before it locks.
    process: AtomicU32,
}

#[derive(Default)]
struct Waiting {
    work: VecDeque<Work>,
    /// How much was queued since the start: the newest ticket.
    queued: u64,
    has_thread: bool,
}

impl Queue {
    pub(super) fn open(name: String, failures: Failures) -> &'static Queue {
        Box::leak(Box::new(Queue {
            name,
            failures,
            waiting: Mutex::new(Waiting::default()),
            arrived: Condvar::new(),
            passed: Condvar::new(),
            done: AtomicU64::new(0),
            process: AtomicU32::new(0),
        }))
    }

    /// Whether this is a forked child of the process whose thread does the work.
    fn is_of_the_parent(&self) -> bool {
        let process = self.process.load(Ordering::Acquire);
        process != 0 && process != std::process::id()
    }

    /// Appends work. The thread starts with the first.
    pub(super) fn push(&'static self, work: Work) -> Result<()> {
        if self.is_of_the_parent() {
            return Err(Error::driver(
                "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, \
                 you must use the 'spawn' start method: the device was used before the fork, and \
                 its streams are the parent's",
            ));
        }
        let mut waiting = self.waiting.lock();
        if !waiting.has_thread {
            std::thread::Builder::new()
                .name(self.name.clone())
                .spawn(|| self.run())
                .map_err(|cause| Error::driver("cannot start a stream's thread").because(cause))?;
            waiting.has_thread = true;
            self.process.store(std::process::id(), Ordering::Release);
        }
        waiting.work.push_back(work);
        waiting.queued += 1;
        self.arrived.notify_one();
        Ok(())
    }

    /// A point after all that is queued now.
    pub(super) fn record(&'static self) -> Fence {
        // In a forked child nothing that the parent queued will ever be done.
        if self.is_of_the_parent() {
            return Fence::done();
        }
        let ticket = self.waiting.lock().queued;
        if self.done.load(Ordering::Acquire) >= ticket {
            return Fence::done();
        }
        Fence::new(Arc::new(Ticket { queue: self, ticket }))
    }

    fn run(&'static self) {
        loop {
            let work = {
                let mut waiting = self.waiting.lock();
                loop {
                    match waiting.work.pop_front() {
                        Some(work) => break work,
                        None => self.arrived.wait(&mut waiting),
                    }
                }
            };
            if let Err(failure) = work.run() {
                // The first one is the cause; what follows may be its consequence.
                self.failures.lock().get_or_insert(failure);
            }
            // What it keeps goes before anybody hears that it is done.
            drop(work);
            // Under the lock, so that whoever looks and then sleeps cannot miss it.
            let _waiting = self.waiting.lock();
            self.done.fetch_add(1, Ordering::Release);
            self.passed.notify_all();
        }
    }
}

/// The point after the `ticket`-th work of a queue.
struct Ticket {
    queue: &'static Queue,
    ticket: u64,
}

impl FenceState for Ticket {
    fn is_done(&self) -> bool {
        self.queue.done.load(Ordering::Acquire) >= self.ticket || self.queue.is_of_the_parent()
    }

    fn wait(&self) {
        if self.is_done() {
            return;
        }
        let mut waiting = self.queue.waiting.lock();
        while !self.is_done() {
            self.queue.passed.wait(&mut waiting);
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({} of {})", self.queue.done.load(Ordering::Relaxed), self.ticket)
    }
}

impl Work {
    fn run(&self) -> Result<(), Failure> {
        match self {
            Work::Kernel(kernel) => kernel.run(),
            Work::Copy(copy) => {
                // SAFETY: both ranges were live blocks when this was queued and stay so until it
                // ran: device memory by the order of its streams, host memory because somebody
                // waits or `keeps` holds it. One of them is fresh, so they do not overlap.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        copy.from as *const u8,
                        copy.to as *mut u8,
                        copy.bytes,
                    );
                }
                Ok(())
            }
            Work::Wait(fence) => {
                fence.wait();
                Ok(())
            }
            Work::Stamp(passed) => {
                let _ = passed.set(Instant::now());
                Ok(())
            }
            Work::Replay(works) => {
                // All of them run, as they would one by one; the first failure is the cause.
                works.iter().map(Work::run).fold(Ok(()), Result::and)
            }
        }
    }
}

impl Kernel {
    fn run(&self) -> Result<(), Failure> {
        let reads: SmallVec<[Operand<'_>; 4]> = self
            .inputs
            .iter()
            // SAFETY: `launch` took the address from a pinned storage that holds the meta, ordered
            // this stream after the storage's writers, and its memory is not reused before this
            // stream passed.
            .map(|(address, meta)| unsafe { Operand::new(*address as *mut u8, meta) })
            .collect();
        let writes: SmallVec<[Operand<'_>; 2]> = self
            .outputs
            .iter()
            // SAFETY: as above, and the stream is ordered after the storage's readers too.
            .map(|(address, meta)| unsafe { Operand::new(*address as *mut u8, meta) })
            .collect();
        let launch = CpuLaunch {
            operation: self.op.info().name,
            inputs: &reads,
            outputs: &writes,
            workspace: self.workspace,
        };
        // A panic must not end the stream: whoever waits for it would wait for ever.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            parallel::with_threads(self.threads, || self.op.cpu(&launch))
        }));
        let error = match outcome {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => Error::driver("the kernel panicked").in_operation(self.op.info().name),
        };
        Err(Failure { origin: self.origin, error })
    }
}
