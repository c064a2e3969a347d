//! The registry of live tensors: off unless somebody asks who holds memory (`memory/holders.rs`);
//! it then costs each new tensor one load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::Error;

use super::{Tensor, WeakTensor};
use crate::lock::Mutex;

static ON: AtomicBool = AtomicBool::new(false);
static TENSORS: Mutex<List> = Mutex::new(List { tensors: Vec::new(), sweep_at: 64 });

/// How an error of running out of memory comes to name holders: `memory/` knows them, which comes
/// after storages.
static NAMING: OnceLock<fn(Error) -> Error> = OnceLock::new();

struct List {
    tensors: Vec<WeakTensor>,
    /// Dead ones are swept out when the list is this long.
    sweep_at: usize,
}

/// Whether new tensors are registered.
#[inline]
pub(super) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Registers every tensor that is made from now on, or stops; returns whether it did before.
pub(crate) fn switch(on: bool) -> bool {
    ON.swap(on, Ordering::Relaxed)
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
    if list.tensors.len() >= list.sweep_at {
        list.tensors.retain(WeakTensor::is_alive);
        list.sweep_at = (2 * list.tensors.len()).max(64);
    }
    list.tensors.push(tensor.downgrade());
}

/// Every registered tensor that lives.
pub(crate) fn living() -> Vec<Tensor> {
    TENSORS.lock().tensors.iter().filter_map(WeakTensor::upgrade).collect()
}
