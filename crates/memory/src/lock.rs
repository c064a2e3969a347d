//! The mutex of this crate: the standard one, without poisoning, and with a patient start.
//!
//! The standard mutex is a futex and nothing else, so a child of `fork` may unlock what its parent
//! locked (see `fork.rs`). `parking_lot` was refused for that reason: it parks waiters in a
//! process-wide table with locks of its own, which a fork may catch held by a thread that the child
//! does not have.
//!
//! Poisoning is ignored because nothing here leaves a book half written: code under these locks does
//! not run the user's code.
//!
//! Note [Taking turns]: these locks are held for some 50 ns at a time, and what they guard is a dozen
//! cache lines; to fetch those from another processor takes longer than to use them. Two threads that
//! allocate all the time and go in one by one would spend most of it on moving lines. So on a busy lock
//! threads take turns of some 130 us: the one whose turn it is goes in at once, again and again, and the
//! others look only now and then (a look takes the lock's own line away). They come in when nobody was
//! in between two looks, or when they have waited for a turn's time: then it is theirs.
//! A lock is busy when somebody found it taken, and stops being so when whose turn it is stays away:
//! threads that seldom meet never wait for a turn.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Before the first look, in turns of the processor's own pause instruction: 15 to 45 ns each.
const FIRST_PAUSE: u32 = 48;
/// Pauses double up to this: some 15 us. Each look costs the one whose turn it is a cache line.
const LONGEST_PAUSE: u32 = 768;
/// Looks that a turn lasts while others wait: some 130 us.
const TURN: u32 = 12;
/// Tries of the one whose turn has come; the one before it is in for some 50 ns.
const TRIES: u32 = 64;
/// How many times the one whose turn it is must have stayed away for the lock to count as calm.
const BUSY: u32 = 8;

#[derive(Debug, Default)]
pub(crate) struct Lock<T> {
    /// The thread whose turn it is: the one that had it last, or one that waited long enough.
    turn: AtomicU32,
    /// How often it was taken; wraps around.
    taken: AtomicU32,
    /// 0 while calm. Counts down from [`BUSY`].
    busy: AtomicU32,
    value: Mutex<T>,
}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock {
            turn: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            busy: AtomicU32::new(0),
            value: Mutex::new(value),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
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
    fn try_lock(&self, own: u32) -> Option<MutexGuard<'_, T>> {
        let guard = match self.value.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.note(own);
        Some(guard)
    }

    /// Notes the new holder; called by it.
    #[inline]
    fn note(&self, own: u32) {
        self.turn.store(own, Ordering::Relaxed);
        self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// See Note [Taking turns].
    #[cold]
    fn wait(&self, own: u32) -> MutexGuard<'_, T> {
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
        for _ in 0..TRIES {
            std::hint::spin_loop();
            if let Some(guard) = self.try_lock(own) {
                return guard;
            }
        }
        let guard = self.value.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.note(own);
        guard
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
