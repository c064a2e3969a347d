//! Mixed precision from Python: the state of this thread. `autocast` itself, a context manager and
//! decorator, is in the package (`amp.py`).

use plimsoll_core::DeviceKind;
use plimsoll_tensor as rust;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::dtype::{self, DTypeArg, PyDType};

/// The kind of devices that a name is of: `cuda`, `cpu`, with a number or without.
pub(crate) struct Kind(DeviceKind);

impl<'py> FromPyObject<'_, 'py> for Kind {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Kind> {
        let name: String = object.extract()?;
        match name.split(':').next() {
            Some("cpu") => Ok(Kind(DeviceKind::Cpu)),
            Some("cuda") => Ok(Kind(DeviceKind::Cuda)),
            _ => Err(PyRuntimeError::new_err(format!(
                "`{name}` is no kind of device that is cast for; use \"cpu\" or \"cuda\""
            ))),
        }
    }
}

/// Whether this thread casts for devices of that kind.
#[pyfunction]
#[pyo3(signature = (device_type = Kind(DeviceKind::Cuda)))]
fn is_autocast_enabled(device_type: Kind) -> bool {
    rust::is_autocast_enabled(device_type.0)
}

/// Has this thread cast for devices of that kind, or not.
#[pyfunction]
fn set_autocast_enabled(device_type: Kind, enabled: bool) {
    rust::set_autocast_enabled(device_type.0, enabled);
}

/// The lower precision of this thread for devices of that kind.
#[pyfunction]
fn get_autocast_dtype<'py>(py: Python<'py>, device_type: Kind) -> PyResult<Bound<'py, PyDType>> {
    dtype::object(py, rust::autocast_dtype(device_type.0))
}

/// Sets the lower precision of this thread for devices of that kind.
#[pyfunction]
fn set_autocast_dtype(device_type: Kind, dtype: DTypeArg) {
    rust::set_autocast_dtype(device_type.0, dtype.0);
}

/// Whether this thread remembers the casts of leaves until the outermost region ends.
#[pyfunction]
fn is_autocast_cache_enabled() -> bool {
    rust::is_autocast_cache_enabled()
}

/// Has this thread remember casts of leaves, or not.
#[pyfunction]
fn set_autocast_cache_enabled(enabled: bool) {
    rust::set_autocast_cache_enabled(enabled);
}

/// Forgets the casts of leaves that are remembered.
#[pyfunction]
fn clear_autocast_cache() {
    rust::clear_autocast_cache();
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_autocast_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(set_autocast_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(get_autocast_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(set_autocast_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(is_autocast_cache_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(set_autocast_cache_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(clear_autocast_cache, module)?)
}
