//! The pool itself: one job at a time, whose numbered parts the caller and the workers claim one by
//! one.
//!
//! ```text
//! caller  takes `busy` -> writes the job -> opens `ticket` -> wakes sleepers -> claims parts
//!         -> waits for `done == parts` -> gives `busy` back
//! worker  sees an open ticket -> claims a part -> runs it -> `done += 1` -> ...
//! ```
//! `ticket` packs the job's number, the next unclaimed part and the number of parts into one word,
//! so a part is claimed with one compare-exchange and a late worker can never claim from a job that
//! it did not see published. The caller claims too: when the machine is loaded and workers come
//! late, it simply does more of the parts itself, and nobody waits for a thread that has not
//! started.
//!
//! Note [Who may read the job]: `job` is written only by the holder of `busy` while the ticket is
//! closed, and read only by a thread that has claimed a part of it and not yet counted it in
//! `done`. The holder gives `busy` back only after every part is counted.
//!
//! Note [Where a part runs]: the first part of every job is its caller's, so with two threads each
//! core has the same half of the same tensors call after call, and finds in its cache what it left
//! there. When both raced for the first part, halves changed cores every few calls, and a product
//! of 256 x 256 took 160 us instead of 140, fetching from the other core what that had written.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{THREADS_HERE, futex, threads};

/// The most threads a job can use.
pub const MOST_THREADS: usize = 256;

/// How long a thread that ran out of work looks for more before it sleeps: long enough to catch the
/// next operation of a running program, and the next phase of a product whose other threads are
/// late, because waking up takes tens of microseconds (20 us here cost matrix products a tenth);
/// short enough not to matter to anybody else.
const SPIN: Duration = Duration::from_millis(1);

/// What a panic carries.
type Payload = Box<dyn Any + Send>;

/// A job's closure with its type forgotten.
#[derive(Clone, Copy)]
struct Job {
    /// Alive until every part is counted; `None` before the first job.
    body: Option<*const (dyn Fn(usize) + Sync)>,
    /// The caller's thread count, in force inside the parts too so that nested partitions agree.
    threads: usize,
}

/// Parts in `ticket` take 16 bits each.
const MOST_PARTS: usize = u16::MAX as usize;

struct Pool {
    /// Held by the caller whose job is in the pool.
    busy: AtomicBool,
    job: UnsafeCell<Job>,
    /// Job number << 32 | next part << 16 | parts. Open iff next < parts.
    ticket: AtomicU64,
    /// Parts finished; the caller sleeps on it.
    done: AtomicU32,
    /// Whether the caller sleeps on `done`.
    caller_sleeps: AtomicBool,
    /// Counts jobs; idle workers sleep on it.
    published: AtomicU32,
    /// Workers asleep on `published`, or about to be.
    sleepers: AtomicU32,
    /// Workers started in this process.
    workers: AtomicUsize,
    /// The first panic of the job, boxed once more to make it a thin pointer.
    panic: AtomicPtr<Payload>,
}

// SAFETY: every field but `job` is atomic; `job` follows Note [Who may read the job], and the
// closure behind it is `Sync` by the bound of `try_fork`.
unsafe impl Sync for Pool {}

static POOL: Pool = Pool {
    busy: AtomicBool::new(false),
    job: UnsafeCell::new(Job { body: None, threads: 1 }),
    ticket: AtomicU64::new(0),
    done: AtomicU32::new(0),
    caller_sleeps: AtomicBool::new(false),
    published: AtomicU32::new(0),
    sleepers: AtomicU32::new(0),
    workers: AtomicUsize::new(0),
    panic: AtomicPtr::new(ptr::null_mut()),
};

/// Runs `body(0..parts)` on the pool and returns true, or returns false, having done nothing, where
/// the caller should run inline: the pool is busy (perhaps with the job that this thread is part
/// of), has no workers, or cannot number so many parts.
pub(super) fn try_fork(parts: usize, body: &(dyn Fn(usize) + Sync)) -> bool {
    if parts > MOST_PARTS
        || POOL.busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err()
    {
        return false;
    }
    let threads = threads();
    if POOL.workers.load(Ordering::Relaxed) + 1 < threads {
        start_workers(threads - 1);
    }
    if POOL.workers.load(Ordering::Relaxed) == 0 {
        POOL.busy.store(false, Ordering::Release);
        return false;
    }
    // SAFETY: only forgets how long the closure lives. It is called until every part is counted,
    // which this function waits for.
    let body: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(body) };
    // SAFETY: this thread holds `busy` and the ticket is closed: see Note [Who may read the job].
    unsafe {
        *POOL.job.get() = Job { body: Some(ptr::from_ref(body)), threads };
    }
    publish(parts);
    // The caller has the first part in any case: see Note [Where a part runs].
    run_part(0);
    while let Some(part) = claim() {
        run_part(part);
    }
    wait_for(parts as u32);
    let panic = POOL.panic.swap(ptr::null_mut(), Ordering::Acquire);
    POOL.busy.store(false, Ordering::Release);
    if !panic.is_null() {
        // SAFETY: `run_part` made it with `Box::into_raw`, and the swap handed it to this thread
        // alone.
        resume_unwind(*unsafe { Box::from_raw(panic) });
    }
    true
}

fn publish(parts: usize) {
    POOL.done.store(0, Ordering::Relaxed);
    let job_number = POOL.published.load(Ordering::Relaxed).wrapping_add(1);
    POOL.ticket.store(u64::from(job_number) << 32 | 1 << 16 | parts as u64, Ordering::Release);
    // Either a worker about to sleep sees the new count, or this thread sees the sleeper: both
    // sides are SeqCst (see `work_for_ever`).
    POOL.published.store(job_number, Ordering::SeqCst);
    if POOL.sleepers.load(Ordering::SeqCst) > 0 {
        futex::wake(&POOL.published, parts as u32 - 1);
    }
}

/// Claims the next part of the open job.
fn claim() -> Option<usize> {
    let mut ticket = POOL.ticket.load(Ordering::Relaxed);
    loop {
        let (next, parts) = (ticket >> 16 & 0xffff, ticket & 0xffff);
        if next >= parts {
            return None;
        }
        // Acquire pairs with the Release in `publish`: the job is visible to whoever claims from
        // it.
        match POOL.ticket.compare_exchange_weak(
            ticket,
            ticket + (1 << 16),
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => return Some(next as usize),
            Err(now) => ticket = now,
        }
    }
}

fn run_part(part: usize) {
    // SAFETY: this thread has claimed a part and not counted it: see Note [Who may read the job].
    let job = unsafe { *POOL.job.get() };
    let outside = THREADS_HERE.replace(job.threads);
    let result = catch_unwind(AssertUnwindSafe(|| {
        if let Some(body) = job.body {
            // SAFETY: `try_fork` keeps the closure alive until every part is counted.
            unsafe { (*body)(part) }
        }
    }));
    THREADS_HERE.set(outside);
    if let Err(payload) = result {
        let payload = Box::into_raw(Box::new(payload));
        let first = ptr::null_mut();
        let stored =
            POOL.panic.compare_exchange(first, payload, Ordering::Release, Ordering::Relaxed);
        if stored.is_err() {
            // SAFETY: it was made above and nobody else has seen it.
            drop(unsafe { Box::from_raw(payload) });
        }
    }
    // Release: the caller that sees this count also sees what the part wrote. SeqCst with
    // `caller_sleeps`, as in `publish`.
    POOL.done.fetch_add(1, Ordering::SeqCst);
    if POOL.caller_sleeps.load(Ordering::SeqCst) {
        futex::wake(&POOL.done, 1);
    }
}

fn wait_for(parts: u32) {
    if spin_until(|| POOL.done.load(Ordering::Acquire) == parts) {
        return;
    }
    POOL.caller_sleeps.store(true, Ordering::SeqCst);
    loop {
        let done = POOL.done.load(Ordering::SeqCst);
        if done == parts {
            break;
        }
        futex::wait(&POOL.done, done);
    }
    POOL.caller_sleeps.store(false, Ordering::Relaxed);
}

/// Looks for [`SPIN`] whether `ready`; says whether it was.
fn spin_until(ready: impl Fn() -> bool) -> bool {
    let mut start = None;
    loop {
        for _ in 0..64 {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.get_or_insert_with(Instant::now).elapsed() > SPIN {
            return false;
        }
    }
}

fn work_for_ever() {
    loop {
        let seen = POOL.published.load(Ordering::SeqCst);
        while let Some(part) = claim() {
            run_part(part);
        }
        if !spin_until(|| POOL.published.load(Ordering::Relaxed) != seen) {
            POOL.sleepers.fetch_add(1, Ordering::SeqCst);
            if POOL.published.load(Ordering::SeqCst) == seen {
                futex::wait(&POOL.published, seen);
            }
            POOL.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Brings the number of workers up to `wanted`; the caller holds `busy`, which serves as the lock.
/// Where the system refuses a thread, fewer do.
#[cold]
fn start_workers(wanted: usize) {
    #[cfg(unix)]
    {
        static AT_FORK: Once = Once::new();
        AT_FORK.call_once(|| {
            // SAFETY: the handler only stores to atomics, which is allowed between fork and exec.
            unsafe { libc::pthread_atfork(None, None, Some(reset_in_child)) };
        });
    }
    for index in POOL.workers.load(Ordering::Relaxed)..wanted {
        let worker = std::thread::Builder::new().name(format!("plimsoll-{index}"));
        if worker.spawn(work_for_ever).is_err() {
            break;
        }
        POOL.workers.store(index + 1, Ordering::Relaxed);
    }
}

/// A forked child has none of the workers: it starts its own at its first job. (A fork from inside
/// a part of a job is not supported, as everywhere: the child would wait for parts that nobody
/// runs.)
#[cfg(unix)]
extern "C" fn reset_in_child() {
    POOL.ticket.store(0, Ordering::SeqCst);
    POOL.done.store(0, Ordering::SeqCst);
    POOL.caller_sleeps.store(false, Ordering::SeqCst);
    POOL.sleepers.store(0, Ordering::SeqCst);
    POOL.workers.store(0, Ordering::SeqCst);
    POOL.busy.store(false, Ordering::SeqCst);
}
