//! How Python calls an operation: the caller's line is noted, the interpreter released while Rust
//! works, and an error turned into an exception. Everything that allocates or computes goes through
//! here, so that no byte is without a line.

use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_core::Result;
use plimsoll_memory::with_site;
use plimsoll_tensor::Tensor;
use pyo3::prelude::*;

pub(crate) use crate::companion::wrap;
use crate::error::to_python;
use crate::frames;
use crate::subclass::{self, Class};
use crate::tensor::PyTensor;

/// How many calls run with the interpreter released. It changes only while attached, so a
/// collection sees one value throughout.
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

struct InFlight;

impl InFlight {
    fn enter() -> InFlight {
        // Attached threads take turns: no locked instruction is needed.
        IN_FLIGHT.store(IN_FLIGHT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        InFlight
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        IN_FLIGHT.store(IN_FLIGHT.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }
}

/// Whether some thread works on tensors with the interpreter released.
pub(crate) fn in_flight() -> bool {
    IN_FLIGHT.load(Ordering::Relaxed) > 0
}

/// Runs `work` without the interpreter, under the caller's line.
pub(crate) fn call<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    in_call(py, work).map_err(|error| to_python(py, error))
}

/// The same, with the error as Rust has it.
pub(crate) fn in_call<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R> + Send,
) -> Result<R> {
    let site = frames::here(py);
    let _flight = InFlight::enter();
    py.detach(|| with_site(site, work))
}

/// A new tensor.
pub(crate) fn fresh<'py>(
    py: Python<'py>,
    work: impl FnOnce() -> Result<Tensor> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    wrap(py, call(py, work)?)
}

/// A new tensor as an object of a class.
pub(crate) fn fresh_as<'py>(
    py: Python<'py>,
    class: &Class<'py>,
    work: impl FnOnce() -> Result<Tensor> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    subclass::wrap(py, call(py, work)?, class)
}

/// A new tensor from one, of its class.
pub(crate) fn fresh_of<'py>(
    slf: &Bound<'py, PyTensor>,
    work: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    let this = slf.get().tensor();
    fresh_as(slf.py(), &subclass::of_two(slf, None)?, || work(&this))
}

/// Writes into the tensor itself, and gives the same object back.
pub(crate) fn write<'py>(
    slf: Bound<'py, PyTensor>,
    work: impl FnOnce(&Tensor) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    let this = &slf.get().tensor();
    call(slf.py(), || work(this))?;
    Ok(slf)
}
