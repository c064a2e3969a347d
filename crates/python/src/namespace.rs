//! By which name programs know the package: `plimsoll`, or `torch` where it answers in PyTorch's
//! place (`plimsoll run`). It is what printed objects begin with.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

static IS_TORCH: AtomicBool = AtomicBool::new(false);

/// The name that printed objects begin with.
#[pyfunction]
#[pyo3(name = "_namespace")]
pub(crate) fn current() -> &'static str {
    if IS_TORCH.load(Ordering::Relaxed) { "torch" } else { "plimsoll" }
}

/// Lets objects print as PyTorch's do, or as our own.
#[pyfunction]
fn _print_as_torch(on: bool) {
    IS_TORCH.store(on, Ordering::Relaxed);
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(current, module)?)?;
    module.add_function(wrap_pyfunction!(_print_as_torch, module)?)
}
