//! Warnings that a process gives once, however often there is reason to, as PyTorch does.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

/// Warns, unless `said` tells that it was done.
pub(crate) fn warn(py: Python<'_>, said: &AtomicBool, message: &str) -> PyResult<()> {
    if said.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(message)?, 1)
}
