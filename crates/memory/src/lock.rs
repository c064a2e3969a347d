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
//! Note [Waiting apart]: these locks are held for some 50 ns at a time, and what they guard is a dozen
//! cache lines; to fetch those from another processor takes longer than to use them. So a thread that
//! finds a lock taken does not watch it, which would take the lock's own line from the holder, but
//! looks again after a pause. Meanwhile the holder can come back several times, with all lines at
//! hand: two threads that allocate all the time move the lines once in several allocations instead
//! of at each. The price is that a thread may wait a microsecond or two where taking turns
//! would have let it in earlier.

use std::sync::{Mutex, MutexGuard, TryLockError};

/// The first pause, in turns of the processor's own pause instruction: 15 to 45 ns each.
const FIRST_PAUSE: u32 = 16;
/// Pauses double up to this.
const LONGEST_PAUSE: u32 = 128;
/// How often to look before the system is asked to wake us: some 10 us or more, about what sleeping costs.
const LOOKS: u32 = 8;

#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// See Note [Waiting apart].
    #[cold]
    fn wait(&self) -> MutexGuard<'_, T> {
        let mut pause = FIRST_PAUSE;
        for _ in 0..LOOKS {
            (0..pause).for_each(|_| std::hint::spin_loop());
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
