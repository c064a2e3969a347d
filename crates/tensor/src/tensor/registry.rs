//! The registry of live tensors: off unless somebody asks who holds memory (`memory/holders.rs`);
//! it then costs each new tensor one load.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Tensor, WeakTensor};
use crate::lock::Mutex;

static ON: AtomicBool = AtomicBool::new(false);
static TENSORS: Mutex<List> = Mutex::new(List { tensors: Vec::new(), sweep_at: 64 });

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
