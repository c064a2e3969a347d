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
//! Note [Lock order]: arenas from the newest to the oldest (a source may take memory from an arena that
//! was opened before its own), in each `releasing`, `state`, `reclaimer`, `observers`; then the
//! annotations and the tables of modules and of origins. Whoever adds a lock to this crate adds it
//! here.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Once;

use crate::annotations::{ANNOTATIONS, Annotation};
use crate::arena::{Arena, ArenaLocks};
use crate::context::{MODULES, ModuleTable};
use crate::lock::{Guard, Lock};
use crate::origin::{ORIGINS, OriginTable};
use crate::quiet::{self, Quiet, quiet};

/// Every arena of the process, in order of opening.
static ARENAS: Lock<Vec<&'static Arena>> = Lock::new(Vec::new());

/// Adds an arena to those whose locks a fork takes.
pub(crate) fn register(arena: &'static Arena) {
    install_once();
    ARENAS.lock().push(arena);
}

/// Makes forks of this process take the locks, from the first call on.
pub(crate) fn install_once() {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(install);
}

/// Every lock of the crate, held from just before a fork until just after it. Fields are let go of
/// in order of declaration, which does not matter.
struct Held {
    _origins: Guard<'static, Option<OriginTable>>,
    _modules: Guard<'static, Option<ModuleTable>>,
    _annotations: Guard<'static, VecDeque<Annotation>>,
    _locks: Vec<ArenaLocks>,
    _arenas: Guard<'static, Vec<&'static Arena>>,
    quiet: Quiet,
}

thread_local! {
    /// What the forking thread holds. The child's only thread is a copy of it and finds the same.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

extern "C" fn before_fork() {
    let quiet = quiet();
    // See Note [Lock order].
    let arenas = ARENAS.lock();
    let locks = arenas.iter().rev().map(|arena| arena.lock_all()).collect();
    let annotations = ANNOTATIONS.lock();
    let modules = MODULES.lock();
    let origins = ORIGINS.lock();
    let held = Held {
        _origins: origins,
        _modules: modules,
        _annotations: annotations,
        _locks: locks,
        _arenas: arenas,
        quiet,
    };
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
