//! The locks of this crate: `parking_lot`'s, counted while they are held, so that a fork never
//! catches one held by a thread that the child does not have (`memory/src/platform/fork/quiet.rs`).
//! The queues of the stand-in's streams keep plain ones: their threads do not exist in a child
//! anyway.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use plimsoll_memory::Holding;

/// A mutex that a fork waits for.
#[derive(Default)]
pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex(parking_lot::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let holding = Holding::new();
        Held { guard: self.0.lock(), _holding: holding }
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let holding = Holding::new();
        self.0.try_lock().map(|guard| Held { guard, _holding: holding })
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// A read-write lock that a fork waits for.
pub(crate) struct RwLock<T>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> RwLock<T> {
        RwLock(parking_lot::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> Held<parking_lot::RwLockReadGuard<'_, T>> {
        let holding = Holding::new();
        Held { guard: self.0.read(), _holding: holding }
    }

    pub(crate) fn write(&self) -> Held<parking_lot::RwLockWriteGuard<'_, T>> {
        let holding = Holding::new();
        Held { guard: self.0.write(), _holding: holding }
    }
}

/// A lock that its own thread may take again, and that a fork waits for.
pub(crate) struct ReentrantLock(parking_lot::ReentrantMutex<()>);

impl ReentrantLock {
    pub(crate) const fn new() -> ReentrantLock {
        ReentrantLock(parking_lot::ReentrantMutex::new(()))
    }

    pub(crate) fn lock(&self) -> ReentrantGuard<'_> {
        let holding = Holding::new();
        Held { guard: self.0.lock(), _holding: holding }
    }

    /// `None` if others have had it for so long.
    pub(crate) fn try_lock_for(&self, time: Duration) -> Option<ReentrantGuard<'_>> {
        let holding = Holding::new();
        self.0.try_lock_for(time).map(|guard| Held { guard, _holding: holding })
    }
}

/// A reentrant lock, locked.
pub(crate) type ReentrantGuard<'a> = Held<parking_lot::ReentrantMutexGuard<'a, ()>>;

/// The value of a mutex.
pub(crate) type MutexGuard<'a, T> = Held<parking_lot::MutexGuard<'a, T>>;

/// The value of a lock, locked and counted until this is dropped: fields go in order, the lock
/// first.
#[must_use = "the lock is released when this is dropped"]
pub(crate) struct Held<G> {
    guard: G,
    _holding: Holding,
}

impl<G: Deref> Deref for Held<G> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Held<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}
