//! Surviving `fork`. A child has only the thread that forked; a lock that another thread held at
//! that moment would stay held in it for ever. So the thread that forks takes every lock of this
//! crate first, and parent and child each let go of them: both go on with a consistent book.
//!
//! Loaders fork workers from programs full of threads, so this is not an exotic case. What a child
//! inherits is a copy: freeing there frees nothing in the parent. Threads of device streams do not
//! exist in a child; use devices other than the host in the parent only.
//!
//! The locks of the crates above are waited for first (`quiet.rs`): who holds one may need an
//! arena's.
//!
//! Note [Lock order]: what was registered last is locked first. The tables of origins, modules and
//! annotations are registered before the first arena, and a source may take memory from an arena
//! that was opened before its own: so arenas come from the newest to the oldest, in each
//! `releasing`, `state`, `reclaimer`, `observers`, and then the tables. Whoever adds a lock to this
//! crate registers it.

mod quiet;

use std::any::Any;
use std::cell::RefCell;
use std::sync::Once;

use crate::platform::lock::{Guard, Lock};
pub use quiet::Holding;
use quiet::{Quiet, quiet};

/// Locks that a fork takes.
pub(crate) trait HeldAtFork: Sync {
    /// Takes them; they are let go of when what this returns is dropped.
    fn hold(&'static self) -> Box<dyn Any>;
}

impl<T: Send + 'static> HeldAtFork for Lock<T> {
    fn hold(&'static self) -> Box<dyn Any> {
        Box::new(self.lock())
    }
}

type Registered = Vec<&'static dyn HeldAtFork>;

static REGISTERED: Lock<Registered> = Lock::new(Vec::new());

/// Adds locks to those that a fork takes, unless they are among them. See Note [Lock order].
pub(crate) fn hold_at_fork(locks: &[&'static dyn HeldAtFork]) {
    install_once();
    let mut registered = REGISTERED.lock();
    for &lock in locks {
        if !registered.iter().any(|known| std::ptr::addr_eq(*known, lock)) {
            registered.push(lock);
        }
    }
}

/// Makes forks of this process take the locks, from the first call on.
fn install_once() {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(install);
}

/// Every lock of the crate, held from just before a fork until just after it. Fields are let go of
/// in order of declaration, which does not matter.
struct Held {
    _locks: Vec<Box<dyn Any>>,
    _registered: Guard<'static, Registered>,
    quiet: Quiet,
}

thread_local! {
    /// What the forking thread holds. The child's only thread is a copy of it and finds the same.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

extern "C" fn before_fork() {
    let quiet = quiet();
    let registered = REGISTERED.lock();
    let locks = registered.iter().rev().map(|lock| lock.hold()).collect();
    let held = Held { _locks: locks, _registered: registered, quiet };
    // A thread that forks while it ends has no place to keep them: it forks without.
    let _ = HELD.try_with(|place| *place.borrow_mut() = Some(held));
}

extern "C" fn after_fork() {
    let _ = HELD.try_with(|place| drop(place.borrow_mut().take()));
}

extern "C" fn after_fork_in_child() {
    let _ = HELD.try_with(|place| {
        if let Some(held) = place.borrow_mut().take() {
            held.quiet.forget_others();
        }
    });
}

fn install() {
    // Miri has neither `fork` nor handlers for it.
    if cfg!(miri) {
        return;
    }
    quiet::prepare();
    // SAFETY: the handlers are functions of this crate, which is never unloaded while they are
    // registered, and they only take and release locks. They run on the thread that forks.
    let failed = unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork_in_child))
    };
    // It fails only without memory for three pointers; then forks are as unsafe as without it.
    debug_assert_eq!(failed, 0, "fork handlers could not be registered");
}
