//! Errors as exceptions: one table from kinds to classes. As in PyTorch, running out of memory is a
//! `RuntimeError` of its own; ours carries the report as a dictionary.

use plimsoll_core::{Error, ErrorKind};
use plimsoll_memory::OutOfMemory;
use pyo3::exceptions::{
    PyIndexError, PyNotImplementedError, PyOSError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pyo3::create_exception!(
    plimsoll,
    OutOfMemoryError,
    PyRuntimeError,
    "Memory ran out. `report` says what filled it; nothing is lost, and the same call works once memory is freed."
);

/// The exception for an error. `NotImplementedError` and `OutOfMemoryError` are `RuntimeError`s
/// too.
pub(crate) fn to_python(py: Python<'_>, error: Error) -> PyErr {
    // An exception that a hook raised comes back as it was.
    if let Some(raised) = error.detail::<PyErr>() {
        return raised.clone_ref(py);
    }
    let message = error.to_string();
    match error.kind() {
        ErrorKind::InvalidArgument | ErrorKind::Configuration => PyValueError::new_err(message),
        ErrorKind::DType => PyTypeError::new_err(message),
        ErrorKind::Index => PyIndexError::new_err(message),
        ErrorKind::Unsupported => PyNotImplementedError::new_err(message),
        ErrorKind::Io => PyOSError::new_err(message),
        ErrorKind::OutOfMemory => out_of_memory(py, &error, message),
        // Shape, device, autograd, driver, and whatever is added: what PyTorch raises for them.
        _ => PyRuntimeError::new_err(message),
    }
}

fn out_of_memory(py: Python<'_>, error: &Error, message: String) -> PyErr {
    let exception = OutOfMemoryError::new_err(message);
    let report = error.detail::<OutOfMemory>().map(|report| describe(py, report));
    let report = match report {
        Some(Ok(report)) => Some(report),
        Some(Err(failure)) => return failure,
        None => None,
    };
    match exception.value(py).setattr("report", report) {
        Ok(()) => exception,
        Err(failure) => failure,
    }
}

fn describe<'py>(py: Python<'py>, report: &OutOfMemory) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("device", report.device.to_string())?;
    dict.set_item("requested_bytes", report.requested_bytes)?;
    dict.set_item("rounded_bytes", report.rounded_bytes)?;
    dict.set_item("segment_bytes", report.segment_bytes)?;
    dict.set_item("allocated_bytes", report.allocated_bytes)?;
    dict.set_item("reserved_bytes", report.reserved_bytes)?;
    dict.set_item("cached_bytes", report.cached_bytes)?;
    dict.set_item("pending_bytes", report.pending_bytes)?;
    dict.set_item("external_bytes", report.external_bytes)?;
    dict.set_item("largest_free_bytes", report.largest_free_bytes)?;
    dict.set_item("fragmentation", report.fragmentation())?;
    dict.set_item("limit_bytes", report.limit.as_ref().map(|(bytes, _)| *bytes))?;
    dict.set_item("top_origins", crate::memory::rows(py, &report.top_origins)?)?;
    Ok(dict)
}
