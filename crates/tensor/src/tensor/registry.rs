//! The registry of live tensors: off unless somebody asks who holds memory (`memory/holders.rs`);
//! it then costs each new tensor one load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_core::Error;

use super::{Tensor, WeakTensor};
use crate::lock::{Mutex, ReentrantGuard, ReentrantLock};

/// Who wants tensors to be registered: [`SWITCH`] for the program, and [`USER`] for each [`User`].
static WANTED: AtomicUsize = AtomicUsize::new(0);
const SWITCH: usize = 1;
const USER: usize = 2;
static TENSORS: Mutex<List> =
    Mutex::new(List { newest: Vec::new(), tensors: Vec::new(), sweep_at: 64 });

/// Who looks at the registered tensors has handles of its own of all of them, and counts those of
/// others: one thread at a time.
static LOOKING: ReentrantLock = ReentrantLock::new();
/// A look that waits for longer goes on: where another hangs, or takes as long, it is better to
/// take that one's handles for the program's than to wait.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// How an error of running out of memory comes to name holders: `memory/` knows them, which comes
/// after storages.
static NAMING: OnceLock<fn(Error) -> Error> = OnceLock::new();

/// Most tensors die young, and their memory stays taken until they leave the list.
struct List {
    newest: Vec<WeakTensor>,
    /// Those that have outlived [`YOUNG`] newer ones.
    tensors: Vec<WeakTensor>,
    /// Dead ones are swept out when the list is this long.
    sweep_at: usize,
}

/// The newest tensors, which are swept by themselves.
const YOUNG: usize = 16;

/// Whether new tensors are registered.
#[inline]
pub(super) fn is_on() -> bool {
    WANTED.load(Ordering::Relaxed) != 0
}

/// Registers every tensor that is made from now on, or stops unless a [`User`] wants it; returns
/// whether it was switched on before.
pub(crate) fn switch(on: bool) -> bool {
    let before = match on {
        true => WANTED.fetch_or(SWITCH, Ordering::Relaxed),
        false => WANTED.fetch_and(!SWITCH, Ordering::Relaxed),
    };
    before & SWITCH != 0
}

/// Wants tensors to be registered as long as it lives, whatever others switch off.
#[derive(Debug)]
pub(crate) struct User;

impl User {
    pub(crate) fn new() -> User {
        WANTED.fetch_add(USER, Ordering::Relaxed);
        User
    }
}

impl Drop for User {
    fn drop(&mut self) {
        WANTED.fetch_sub(USER, Ordering::Relaxed);
    }
}

/// Says how errors come to name holders; the first stays.
pub(crate) fn name_holders_by(name: fn(Error) -> Error) {
    NAMING.get_or_init(|| name);
}

/// The error of an allocation, with holders while they are tracked.
#[cold]
pub(crate) fn with_holders(error: Error) -> Error {
    match NAMING.get() {
        Some(name) if is_on() => name(error),
        _ => error,
    }
}

/// Registers a new tensor.
#[cold]
pub(super) fn add(tensor: &Tensor) {
    let mut list = TENSORS.lock();
    let List { newest, tensors, sweep_at } = &mut *list;
    if newest.len() >= YOUNG {
        tensors.extend(newest.drain(..).filter(WeakTensor::is_alive));
    }
    if tensors.len() >= *sweep_at {
        tensors.retain(WeakTensor::is_alive);
        *sweep_at = (2 * tensors.len()).max(64);
    }
    newest.push(tensor.downgrade());
}

/// Keeps other threads from looking until it is dropped, unless they have waited for long.
#[must_use = "others look again when this is dropped"]
pub(crate) fn look_alone() -> Option<ReentrantGuard<'static>> {
    LOOKING.try_lock_for(LONGEST_WAIT)
}

/// Every registered tensor that lives. What is told by how many handles it has is asked alone
/// ([`look_alone`]).
pub(crate) fn living() -> Vec<Tensor> {
    let list = TENSORS.lock();
    list.tensors.iter().chain(&list.newest).filter_map(WeakTensor::upgrade).collect()
}
