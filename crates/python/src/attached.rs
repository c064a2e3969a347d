//! A value that is looked at and replaced only by threads that are attached to the interpreter,
//! which lets one of them run at a time: so it needs no lock. One that nobody waits for is two
//! locked instructions a look, and an operation looks three times.

use std::cell::{Cell, UnsafeCell};

use pyo3::prelude::*;

/// The value.
pub(crate) struct Attached<T> {
    value: UnsafeCell<T>,
    /// How many looks are under way: what they look at must stay.
    looks: Cell<u32>,
}

// SAFETY: every access takes a `Python`, which only an attached thread has, and attached threads
// take turns (the module refuses interpreters without a lock); so both cells are used by one thread
// at a time, which `T: Send` allows. A look may be interrupted by another thread's if its closure
// runs Python, so the value is shared too: `T: Sync`.
unsafe impl<T: Send + Sync> Sync for Attached<T> {}

/// Ends a look, by a panic too.
struct Look<'a>(&'a Cell<u32>);

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl<T> Attached<T> {
    pub(crate) const fn new(value: T) -> Attached<T> {
        Attached { value: UnsafeCell::new(value), looks: Cell::new(0) }
    }

    /// Looks at the value.
    #[inline]
    pub(crate) fn with<R>(&self, _py: Python<'_>, look: impl FnOnce(&T) -> R) -> R {
        self.looks.set(self.looks.get() + 1);
        let _look = Look(&self.looks);
        // SAFETY: only `replace` writes, which refuses while anybody looks.
        look(unsafe { &*self.value.get() })
    }

    /// Puts another value in its place, and gives the old one back. Nobody may be looking.
    pub(crate) fn replace(&self, _py: Python<'_>, new: T) -> T {
        assert_eq!(self.looks.get(), 0, "a value is not replaced while it is looked at");
        // SAFETY: nobody looks, as was just asked, and no other thread is attached.
        unsafe { std::mem::replace(&mut *self.value.get(), new) }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T> std::fmt::Debug for Attached<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").finish_non_exhaustive()
    }
}
