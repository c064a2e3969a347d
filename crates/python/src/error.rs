//! Errors as exceptions: one table from kinds to classes. As in PyTorch, running out of memory is a
//! `RuntimeError` of its own; ours carries the report as a dictionary.
//!
//! PyTorch raises `RuntimeError` for nearly everything that goes wrong in an operation, and a class
//! that says more where its Python code checks. Here the classes of dtypes, arguments and indices
//! are both, so that a handler written for PyTorch catches them whichever it names. A dtype that an
//! operation lacks is `NotImplementedError` there, which is a `RuntimeError`: ours is that too.

use plimsoll_core::{Error, ErrorKind};
use plimsoll_memory::OutOfMemory;
use plimsoll_tensor::{CheckpointFailure, RecomputationStopped};
use pyo3::exceptions::{
    PyIndexError, PyNotImplementedError, PyOSError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict, PyType};

use crate::checkpoint::{_StopRecomputationError, CheckpointError};

pyo3::create_exception!(
    plimsoll,
    OutOfMemoryError,
    PyRuntimeError,
    "Memory ran out. `report` says what filled it; nothing is lost, and the same call works once memory is freed."
);

pyo3::create_exception!(
    plimsoll,
    LinAlgError,
    PyRuntimeError,
    "A matrix has no such inverse or factors: it is singular, not positive-definite, or not finite."
);

/// The exception for an error. `NotImplementedError` and `OutOfMemoryError` are `RuntimeError`s
/// too.
pub(crate) fn to_python(py: Python<'_>, error: Error) -> PyErr {
    // An exception that a hook raised comes back as it was.
    if let Some(raised) = error.detail::<PyErr>() {
        return raised.clone_ref(py);
    }
    let message = error.to_string();
    if error.detail::<RecomputationStopped>().is_some() {
        return _StopRecomputationError::new_err(message);
    }
    if error.detail::<CheckpointFailure>().is_some() {
        return CheckpointError::new_err(message);
    }
    match error.kind() {
        ErrorKind::Configuration => PyValueError::new_err(message),
        ErrorKind::InvalidArgument => both(py, &INVALID_ARGUMENT, message),
        ErrorKind::DType => both(py, &DTYPE, message),
        ErrorKind::Index => both(py, &INDEX, message),
        ErrorKind::Unsupported => PyNotImplementedError::new_err(message),
        ErrorKind::LinAlg => LinAlgError::new_err(message),
        ErrorKind::Io => PyOSError::new_err(message),
        ErrorKind::OutOfMemory => out_of_memory(py, &error, message),
        // Shape, device, autograd, driver, and whatever is added: what PyTorch raises for them.
        _ => PyRuntimeError::new_err(message),
    }
}

/// A class that is a `RuntimeError` and something more exact.
struct Both {
    name: &'static str,
    exact: fn(Python<'_>) -> Bound<'_, PyType>,
    runtime: fn(Python<'_>) -> Bound<'_, PyType>,
    class: PyOnceLock<Py<PyType>>,
}

static INVALID_ARGUMENT: Both = Both {
    name: "InvalidArgumentError",
    exact: |py| py.get_type::<PyValueError>(),
    runtime: |py| py.get_type::<PyRuntimeError>(),
    class: PyOnceLock::new(),
};
static DTYPE: Both = Both {
    name: "DTypeError",
    exact: |py| py.get_type::<PyTypeError>(),
    runtime: |py| py.get_type::<PyNotImplementedError>(),
    class: PyOnceLock::new(),
};
static INDEX: Both = Both {
    name: "IndexRangeError",
    exact: |py| py.get_type::<PyIndexError>(),
    runtime: |py| py.get_type::<PyRuntimeError>(),
    class: PyOnceLock::new(),
};

fn class<'py>(py: Python<'py>, both: &'static Both) -> PyResult<&'static Py<PyType>> {
    both.class.get_or_try_init(py, || {
        let bases = ((both.exact)(py), (both.runtime)(py));
        let own = [("__module__", "plimsoll")].into_py_dict(py)?;
        let made = py.get_type::<PyType>().call1((both.name, bases, own))?;
        Ok(made.cast_into::<PyType>()?.unbind())
    })
}

fn both(py: Python<'_>, both: &'static Both, message: String) -> PyErr {
    match class(py, both) {
        Ok(class) => PyErr::from_type(class.bind(py).clone(), message),
        Err(failure) => failure,
    }
}

/// Adds the classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("OutOfMemoryError", py.get_type::<OutOfMemoryError>())?;
    module.add("LinAlgError", py.get_type::<LinAlgError>())?;
    for both in [&INVALID_ARGUMENT, &DTYPE, &INDEX] {
        module.add(both.name, class(py, both)?)?;
    }
    Ok(())
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
