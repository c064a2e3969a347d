//! The mutex of this crate: the standard one, without poisoning.
//!
//! The standard mutex is a futex and nothing else, so a child of `fork` may unlock what its parent
//! locked (see `fork.rs`). `parking_lot` was refused for that reason: it parks waiters in a
//! process-wide table with locks of its own, which a fork may catch held by a thread that the child
//! does not have.
//!
//! Poisoning is ignored because nothing here leaves a book half written: code under these locks does
//! not run the user's code.

use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
