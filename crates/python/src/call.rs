//! How Python calls an operation: the caller's line is noted, the interpreter released while Rust works, and an error turned
//! into an exception. Everything that allocates or computes goes through here, so that no byte is without a line.

use plimsoll_core::Result;
use plimsoll_memory::with_site;
use plimsoll_tensor::Tensor;
use pyo3::prelude::*;

use crate::error::to_python;
use crate::frames;
use crate::tensor::PyTensor;

/// Runs `work` without the interpreter, under the caller's line.
pub(crate) fn call<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    let site = frames::here(py);
    py.detach(|| with_site(site, work)).map_err(|error| to_python(py, error))
}

/// A new tensor.
pub(crate) fn fresh<'py>(
    py: Python<'py>,
    work: impl FnOnce() -> Result<Tensor> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    wrap(py, call(py, work)?)
}

/// A tensor as a Python object.
pub(crate) fn wrap(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyTensor>> {
    Bound::new(py, PyTensor { inner: tensor })
}

/// Writes into the tensor itself, and gives the same object back.
pub(crate) fn write<'py>(
    slf: Bound<'py, PyTensor>,
    work: impl FnOnce(&Tensor) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    let this = &slf.get().inner;
    call(slf.py(), || work(this))?;
    Ok(slf)
}
