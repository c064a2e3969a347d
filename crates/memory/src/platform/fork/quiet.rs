//! Forking while other crates hold locks. Arenas' locks are taken by the thread that forks
//! (`mod.rs`); the locks of tensors are too many and come and go, so it waits until nobody holds
//! one, and keeps others from taking any until the fork is done.
//!
//! Note [Quiet at a fork]
//! Each thread counts the locks that it holds, in a word of its own: two plain stores and a load
//! for each lock. A fork raises a flag, makes every processor see it (`membarrier`, so that the
//! stores need no fence), and waits until all counts are 0. A thread that comes from 0 and finds
//! the flag waits; one that holds a lock already goes on, because others may wait for it. A kernel
//! that runs under a claim is waited for too, so a child never sees half of one. A thread that
//! never lets go would hold the fork for ever: after [`PATIENCE`] the fork goes on without.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};
use std::time::{Duration, Instant};

use crate::platform::lock::{Guard, Lock};

/// How long a fork waits for other threads at most.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a thread sleeps between two looks.
const NAP: Duration = Duration::from_micros(20);

/// One thread's count; lives for ever and goes to another thread when its own has ended.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Thread {
    held: AtomicU32,
    taken: AtomicBool,
}

static FORKING: AtomicBool = AtomicBool::new(false);
static THREADS: Lock<Vec<&'static Thread>> = Lock::new(Vec::new());

thread_local! {
    static OWN: Cell<Option<&'static Thread>> = const { Cell::new(None) };
    static ENDING: Ending = const { Ending };
}

/// Gives this thread's count away when the thread ends.
struct Ending;

impl Drop for Ending {
    fn drop(&mut self) {
        if let Ok(Some(own)) = OWN.try_with(Cell::take) {
            own.taken.store(false, Ordering::Release);
        }
    }
}

/// Says that this thread holds a lock that a fork must not catch held: made before the lock is
/// taken, dropped after it was let go.
///
/// ```
/// use plimsoll_memory::Holding;
/// static COUNT: std::sync::Mutex<u32> = std::sync::Mutex::new(0);
/// let holding = Holding::new();
/// *COUNT.lock().unwrap() += 1; // a fork on another thread waits meanwhile
/// drop(holding);
/// ```
#[derive(Debug)]
#[must_use = "a fork waits only while this lives"]
pub struct Holding {
    thread: Option<&'static Thread>,
    not_send: PhantomData<*const ()>,
}

impl Holding {
    /// Counts one more lock of this thread; waits if the process is forking and it holds none yet.
    #[inline]
    pub fn new() -> Holding {
        let thread = match OWN.try_with(Cell::get) {
            Ok(Some(thread)) => Some(thread),
            Ok(None) => register(),
            Err(_) => None,
        };
        if let Some(thread) = thread {
            let held = thread.held.load(Ordering::Relaxed);
            thread.held.store(held + 1, Ordering::Relaxed);
            // See Note [Quiet at a fork]: the processor's part of this fence is the forking
            // thread's.
            compiler_fence(Ordering::SeqCst);
            if FORKING.load(Ordering::Relaxed) && held == 0 {
                thread.wait_for_the_fork();
            }
        }
        Holding { thread, not_send: PhantomData }
    }
}

impl Default for Holding {
    fn default() -> Holding {
        Holding::new()
    }
}

impl Drop for Holding {
    #[inline]
    fn drop(&mut self) {
        if let Some(thread) = self.thread {
            let held = thread.held.load(Ordering::Relaxed);
            thread.held.store(held - 1, Ordering::Release);
        }
    }
}

impl Thread {
    #[cold]
    fn wait_for_the_fork(&self) {
        loop {
            self.held.store(0, Ordering::Release);
            while FORKING.load(Ordering::Acquire) {
                std::thread::sleep(NAP);
            }
            self.held.store(1, Ordering::SeqCst);
            if !FORKING.load(Ordering::SeqCst) {
                return;
            }
        }
    }
}

/// This thread's count from now on. A thread that is shutting down has no place for one: a fork
/// does not wait for it.
#[cold]
fn register() -> Option<&'static Thread> {
    ENDING.try_with(|_| ()).ok()?;
    // A fork's handlers are of no use before the first lock, and needed from then on.
    super::install_once();
    let mut threads = THREADS.lock();
    let free = threads.iter().copied().find(|thread| !thread.taken.swap(true, Ordering::Acquire));
    let own = free.unwrap_or_else(|| {
        let thread: &'static Thread = Box::leak(Box::default());
        thread.taken.store(true, Ordering::Relaxed);
        threads.push(thread);
        thread
    });
    own.held.store(0, Ordering::Relaxed);
    let _ = OWN.try_with(|place| place.set(Some(own)));
    Some(own)
}

/// No thread but this one holds a lock that was counted, as long as this lives.
pub(super) struct Quiet {
    threads: Guard<'static, Vec<&'static Thread>>,
}

impl Quiet {
    /// In a forked child: the other threads do not exist, and hold nothing.
    pub(super) fn forget_others(&self) {
        let own = OWN.try_with(Cell::get).ok().flatten();
        for thread in self.threads.iter() {
            if own.is_none_or(|own| !std::ptr::eq(own, *thread)) {
                thread.held.store(0, Ordering::Relaxed);
                thread.taken.store(false, Ordering::Relaxed);
            }
        }
    }
}

/// Waits until no other thread holds a counted lock, and keeps them from taking any.
pub(super) fn quiet() -> Quiet {
    // Held until the fork is done: one fork at a time, and no new threads in the list.
    let threads = THREADS.lock();
    FORKING.store(true, Ordering::SeqCst);
    reach_every_processor();
    let own = OWN.try_with(Cell::get).ok().flatten();
    let others =
        || threads.iter().filter(|thread| own.is_none_or(|own| !std::ptr::eq(own, **thread)));
    let start = Instant::now();
    while others().any(|thread| thread.held.load(Ordering::Acquire) > 0)
        && start.elapsed() < PATIENCE
    {
        std::thread::sleep(NAP);
    }
    Quiet { threads }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        FORKING.store(false, Ordering::Release);
    }
}

/// Whether the system said that it makes every processor of this process pass a full fence.
#[cfg(target_os = "linux")]
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call has no effect on memory other than ordering, and takes two integers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0) == 0 }
}

/// Asks the system for the fences of [`reach_every_processor`]; once, before the first fork.
pub(super) fn prepare() {
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    #[cfg(target_os = "linux")]
    if !cfg!(miri) {
        membarrier(REGISTER_PRIVATE_EXPEDITED);
    }
}

/// After this, every store that another thread made before it looked at the flag is seen here.
fn reach_every_processor() {
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    #[cfg(target_os = "linux")]
    if !cfg!(miri) && membarrier(PRIVATE_EXPEDITED) {
        return;
    }
    // Without it, time does the same: a store waits in its processor for microseconds at most.
    std::thread::sleep(Duration::from_millis(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_waits_for_holders_and_holds_newcomers_back() {
        let outer = Holding::new();
        let (entered, entering) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let holder = std::thread::spawn(move || {
            let holding = Holding::new();
            let nested = Holding::new();
            entered.send(()).unwrap();
            wait.recv().unwrap();
            // One that holds a lock already may take more, or both would wait for ever.
            drop(Holding::new());
            drop((holding, nested));
        });
        entering.recv().unwrap();
        let releaser = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            go.send(()).unwrap();
        });
        let quiet = quiet(); // waits for the holder, not for this thread itself
        holder.join().unwrap();
        let (told, heard) = std::sync::mpsc::channel();
        // The list of threads is locked, so a thread that is new to it waits there.
        let newcomer = std::thread::spawn(move || {
            drop(Holding::new());
            told.send(()).unwrap();
        });
        assert!(heard.recv_timeout(Duration::from_millis(50)).is_err());
        drop(quiet);
        heard.recv().unwrap();
        newcomer.join().unwrap();
        releaser.join().unwrap();
        drop(outer);
    }
}
