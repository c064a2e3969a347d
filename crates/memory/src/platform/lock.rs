//! The mutex of this crate: one word, a patient start, and no system call on the way out.
//!
//! It is locked and unlocked twice for every small operation, so its own cost counts. To unlock is
//! to store a 0. The standard mutex exchanges the word instead, to see whether somebody sleeps on
//! it; that waits until everything written under the lock has left the processor's store buffer,
//! and took a sixth of an allocation and its free. The price is that nobody is woken: who waits
//! longer than a turn naps ([`NAP`]) and looks again. What the lock guards takes 50 ns, or a call
//! of the source at most.
//!
//! A word is also all that `fork` needs: a child may unlock what its parent locked (see `fork.rs`).
//! `parking_lot` was refused for that reason: it parks waiters in a process-wide table with locks
//! of its own, which a fork may catch held by a thread that the child does not have.
//!
//! There is no poisoning, because nothing here leaves a book half written: code under these locks
//! does not run the user's code.
//!
//! Note [Taking turns]: these locks are held for some 50 ns at a time, and what they guard is a
//! dozen cache lines; to fetch those from another processor takes longer than to use them. Two
//! threads that allocate all the time and go in one by one would spend most of it on moving lines.
//! So on a busy lock threads take turns of some 130 us: the one whose turn it is goes in at once,
//! again and again, and the others look only now and then (a look takes the lock's own line away).
//! They come in when nobody was in between two looks, or when they have waited for a turn's time:
//! then it is theirs. A lock is busy when somebody found it taken, and stops being so when whose
//! turn it is stays away: threads that seldom meet never wait for a turn.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Before the first look, in turns of the processor's own pause instruction: 15 to 45 ns each.
const FIRST_PAUSE: u32 = 48;
/// Pauses double up to this: some 15 us. Each look costs the one whose turn it is a cache line.
const LONGEST_PAUSE: u32 = 768;
/// Looks that a turn lasts while others wait: some 130 us.
const TURN: u32 = 12;
/// Tries of the one whose turn has come; the one before it is in for some 50 ns.
const TRIES: u32 = 64;
/// How long it sleeps between two tries after that: the holder has no processor, or is with the
/// source.
const NAP: Duration = Duration::from_micros(20);
/// How many times the one whose turn it is must have stayed away for the lock to count as calm.
const BUSY: u32 = 8;

#[derive(Default)]
pub(crate) struct Lock<T> {
    locked: AtomicBool,
    /// The thread whose turn it is: the one that had it last, or one that waited long enough.
    turn: AtomicU32,
    /// How often it was taken; wraps around.
    taken: AtomicU32,
    /// 0 while calm. Counts down from [`BUSY`].
    busy: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a `Guard` only, and there is one at a time (`try_lock`), so
// a shared lock hands the value from thread to thread, which `T: Send` allows.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value of a lock, locked until this is dropped, on the thread that locked it (a forked
/// child's only thread counts as that).
#[must_use = "the lock is released when this is dropped"]
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// Not `Send`.
    _thread: PhantomData<*const ()>,
}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock {
            locked: AtomicBool::new(false),
            turn: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            busy: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let own = own_number();
        if self.busy.load(Ordering::Relaxed) == 0 || self.turn.load(Ordering::Relaxed) == own {
            if let Some(guard) = self.try_lock(own) {
                return guard;
            }
            self.busy.store(BUSY, Ordering::Relaxed);
        }
        self.wait(own)
    }

    #[inline]
    fn try_lock(&self, own: u32) -> Option<Guard<'_, T>> {
        if self.locked.swap(true, Ordering::Acquire) {
            return None;
        }
        self.turn.store(own, Ordering::Relaxed);
        self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        Some(Guard { lock: self, _thread: PhantomData })
    }

    /// See Note [Taking turns].
    #[cold]
    fn wait(&self, own: u32) -> Guard<'_, T> {
        let mut before = self.taken.load(Ordering::Relaxed);
        let mut pause = FIRST_PAUSE;
        for _ in 0..TURN {
            (0..pause).for_each(|_| std::hint::spin_loop());
            pause = (2 * pause).min(LONGEST_PAUSE);
            let now = self.taken.load(Ordering::Relaxed);
            if now == before
                && let Some(guard) = self.try_lock(own)
            {
                let busy = self.busy.load(Ordering::Relaxed);
                self.busy.store(busy.saturating_sub(1), Ordering::Relaxed);
                return guard;
            }
            before = now;
        }
        self.busy.store(BUSY, Ordering::Relaxed);
        self.turn.store(own, Ordering::Relaxed);
        let mut tries = 0;
        loop {
            if tries < TRIES {
                tries += 1;
                std::hint::spin_loop();
            } else {
                std::thread::sleep(NAP);
            }
            if !self.locked.load(Ordering::Relaxed)
                && let Some(guard) = self.try_lock(own)
            {
                return guard;
            }
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one of its lock, and lends the value no longer than it
        // lives.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`; the guard is borrowed for writing, so nothing else has the value.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.locked.store(false, Ordering::Release);
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("locked", &self.locked.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

/// The number of this thread, from 1; 0 for one that is shutting down.
#[inline]
fn own_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static OWN: Cell<u32> = const { Cell::new(0) };
    }
    OWN.try_with(|own| match own.get() {
        0 => {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed));
            own.get()
        }
        number => number,
    })
    .unwrap_or(0)
}
