//! Splitting one kernel's work over the cores: [`split`] (equal parts), [`split_dynamic`] (parts
//! taken as threads come free), [`split_there_and_back`] (equal parts, with help for those who are
//! late), [`fork`] (numbered parts).
//!
//! This is a fork-join pool for kernels, not a task scheduler: a thread that waits here waits, and
//! never picks up somebody else's work, so a kernel can be called under any lock and from inside
//! any other pool. When the pool is busy with another caller's job, or the caller is itself one of
//! its parts, the work runs inline, part after part, with the same partition: results do not depend
//! on who was busy. No call allocates. `pool.rs` is the mechanism, `cores.rs` the default number of
//! threads.

mod cores;
mod futex;
mod pool;

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use plimsoll_memory::Configuration;

pub use pool::MOST_THREADS;

/// The process-wide number of threads; 0 before the first question.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// [`with_threads`]'s number on this thread, and on workers that of the job they run; 0 is
    /// none.
    static THREADS_HERE: Cell<usize> = const { Cell::new(0) };
}

/// How many threads a kernel called from here is split over.
///
/// By default the configuration's `threads`, else the physical cores that affinity and cgroup
/// limits leave to this process.
#[inline]
pub fn threads() -> usize {
    match THREADS_HERE.get() {
        0 => match THREADS.load(Ordering::Relaxed) {
            0 => first_threads(),
            threads => threads,
        },
        threads => threads,
    }
}

#[cold]
fn first_threads() -> usize {
    let configured = Configuration::process().ok().and_then(Configuration::threads);
    let found = configured.map_or_else(cores::usable, NonZeroUsize::get).clamp(1, MOST_THREADS);
    // A `set_threads` that came between wins.
    match THREADS.compare_exchange(0, found, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => found,
        Err(set) => set,
    }
}

/// Sets the process-wide number of threads (1 to [`MOST_THREADS`], others are brought into that
/// range) and returns the previous one.
///
/// ```
/// use plimsoll_engine::parallel;
/// let previous = parallel::set_threads(3);
/// assert_eq!(parallel::threads(), 3);
/// parallel::set_threads(previous);
/// ```
pub fn set_threads(threads: usize) -> usize {
    let previous = match THREADS.load(Ordering::Relaxed) {
        0 => first_threads(),
        previous => previous,
    };
    THREADS.store(threads.clamp(1, MOST_THREADS), Ordering::Relaxed);
    previous
}

/// Runs `body` with [`threads`] set to `threads` on this thread only.
pub fn with_threads<R>(threads: usize, body: impl FnOnce() -> R) -> R {
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            THREADS_HERE.set(self.0);
        }
    }
    let _restore = Restore(THREADS_HERE.replace(threads.clamp(1, MOST_THREADS)));
    body()
}

/// How many parts [`split`] makes of `work` units when fewer than `grain` a part are not worth a
/// wake-up.
#[inline]
pub fn parts(work: usize, grain: usize) -> usize {
    if work <= grain { work.min(1) } else { threads().min(work.div_ceil(grain.max(1))) }
}

/// The `part`-th of `parts` nearly equal ranges that make up `0..work`.
#[inline]
pub fn part_range(work: usize, parts: usize, part: usize) -> Range<usize> {
    // The first `work % parts` ranges are one longer; this form cannot overflow.
    let (each, longer) = (work / parts, work % parts);
    let start = part * each + part.min(longer);
    start..start + each + usize::from(part < longer)
}

/// Calls `body` on nearly equal ranges that make up `0..work`, at most [`threads`] of them, each of
/// at least about `grain` units; on the calling thread alone when `work <= grain`.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// let sum = AtomicUsize::new(0);
/// plimsoll_engine::parallel::split(1000, 10, |range| {
///     sum.fetch_add(range.sum::<usize>(), Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 499_500);
/// ```
#[inline]
pub fn split(work: usize, grain: usize, body: impl Fn(Range<usize>) + Sync) {
    match parts(work, grain) {
        0 => {}
        1 => body(0..work),
        parts => fork(parts, |part| body(part_range(work, parts, part))),
    }
}

/// Calls `body` on ranges of `grain` units (the last may be shorter) that make up `0..work`;
/// threads take the next range as they come free. For parts of uneven cost.
pub fn split_dynamic(work: usize, grain: usize, body: impl Fn(Range<usize>) + Sync) {
    let grain = grain.max(1);
    let ranges = work.div_ceil(grain);
    let next = AtomicUsize::new(0);
    fork(threads().min(ranges), |_| {
        loop {
            let range = next.fetch_add(1, Ordering::Relaxed);
            if range >= ranges {
                return;
            }
            body(range * grain..work.min((range + 1) * grain));
        }
    });
}

/// Calls `body(thread, chunk)` on chunks of `chunk` units (the last of a part may be shorter) that
/// make up `0..work`. Each of `parts` threads goes through its own part, every other call from the
/// end, and then takes chunks off the far ends of the parts of others:
/// - what the call before touched last is touched first, while that core's caches still hold it;
/// - a core that somebody else uses too does not make the others wait.
///
/// `thread` is below `parts`, and no two chunks of one `thread` run at once.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// let sum = AtomicUsize::new(0);
/// plimsoll_engine::parallel::split_there_and_back(2, 1000, 10, |_, chunk| {
///     sum.fetch_add(chunk.sum::<usize>(), Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 499_500);
/// ```
pub fn split_there_and_back(
    parts: usize,
    work: usize,
    chunk: usize,
    body: impl Fn(usize, Range<usize>) + Sync,
) {
    static BACK: AtomicBool = AtomicBool::new(false);
    let back = BACK.fetch_xor(true, Ordering::Relaxed);
    // Counts of chunks stay below half of their 32 bits.
    let chunk = chunk.max(1).max(work >> 31);
    match parts {
        0..=8 => sweep::<8>(parts, work, chunk, back, &body),
        _ => sweep::<MOST_THREADS>(parts.min(MOST_THREADS), work, chunk, back, &body),
    }
}

/// [`split_there_and_back`] with room for `N` parts.
fn sweep<const N: usize>(
    parts: usize,
    work: usize,
    chunk: usize,
    back: bool,
    body: &(dyn Fn(usize, Range<usize>) + Sync),
) {
    let shares = [const { Share::new() }; N];
    fork(parts, |thread| {
        for turn in 0..parts {
            let part = (thread + turn) % parts;
            let range = part_range(work, parts, part);
            let chunks = range.len().div_ceil(chunk);
            while let Some(at) = shares[part].take(chunks, turn > 0) {
                let start = range.start + chunk * if back { chunks - 1 - at } else { at };
                body(thread, start..range.end.min(start + chunk));
            }
        }
    });
}

/// How many chunks of a part are taken: from its near end in the lower half, from its far end in
/// the upper. On a cache line of its own.
#[repr(align(64))]
struct Share(AtomicU64);

impl Share {
    const fn new() -> Share {
        Share(AtomicU64::new(0))
    }

    /// The next chunk of `chunks`, counted from the near end.
    #[inline]
    fn take(&self, chunks: usize, from_far: bool) -> Option<usize> {
        let taken = self.0.fetch_add(if from_far { 1 << 32 } else { 1 }, Ordering::Relaxed);
        let (near, far) = ((taken & u64::from(u32::MAX)) as usize, (taken >> 32) as usize);
        (near + far < chunks).then(|| if from_far { chunks - 1 - far } else { near })
    }
}

/// Calls `body(0)`, ..., `body(parts - 1)`, each once, on up to [`threads`] threads, and returns
/// when all have returned. Parts must not wait for each other: one thread may run several, one
/// after another. A panic in a part reaches the caller once the others have finished.
pub fn fork(parts: usize, body: impl Fn(usize) + Sync) {
    fork_dyn(parts, &body);
}

/// [`fork`] with the closure's type forgotten: hundreds of kernels share this one copy of the
/// pool's code.
fn fork_dyn(parts: usize, body: &(dyn Fn(usize) + Sync)) {
    if parts <= 1 || threads() <= 1 || !pool::try_fork(parts, body) {
        (0..parts).for_each(body);
    }
}

#[cfg(test)]
mod tests;
