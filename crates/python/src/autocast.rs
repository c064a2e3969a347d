//! Mixed precision from Python: the state of this thread, and the casts of a call's arguments by
//! PyTorch's lists, of operations and of functions written in Python. `autocast` itself, a context
//! manager and decorator, is in the package (`amp/autocast_mode.py`).

use plimsoll_core::{DeviceKind, Result};
use plimsoll_tensor::{self as rust, ListedCall, Tensor};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::bound_arguments::{Arguments, Value};
use crate::call::{call, wrap};
use crate::dtype::{self, DTypeArg, PyDType};
use crate::tensor::{PyTensor, TensorObject};

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

fn is_on() -> bool {
    rust::is_autocast_enabled(DeviceKind::Cpu) || rust::is_autocast_enabled(DeviceKind::Cuda)
}

/// The kind of device that a call runs on: a number on the CPU goes along with any.
fn kind_of(tensors: &[&Tensor]) -> Option<DeviceKind> {
    let kinds = || tensors.iter().map(|tensor| tensor.device().kind());
    kinds().find(|kind| *kind != DeviceKind::Cpu).or_else(|| kinds().next())
}

/// Runs an operation with its arguments cast as the lists of mixed precision say.
#[inline]
pub(crate) fn with_casts<R>(
    name: &'static str,
    arguments: &Arguments,
    run: impl FnOnce(&Arguments) -> Result<R>,
) -> Result<R> {
    if !is_on() {
        return run(arguments);
    }
    let tensors = arguments.all_tensors();
    let listed = match kind_of(&tensors) {
        Some(kind) => ListedCall::enter(name, kind, tensors)?,
        None => None,
    };
    let Some(listed) = listed else { return run(arguments) };
    let cast = arguments.0.iter().map(|value| match value {
        Value::Tensor(tensor) => listed.cast(tensor).map(Value::Tensor),
        Value::Tensors(list) => {
            let cast = list.iter().map(|one| one.as_ref().map(|one| listed.cast(one)).transpose());
            cast.collect::<Result<Vec<_>>>().map(Value::Tensors)
        }
        other => Ok(other.clone()),
    });
    let cast = Arguments(cast.collect::<Result<_>>()?);
    run(&cast)
}

/// Arguments in place, and by name.
type Given<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>);

/// Begins a call of a function of that name that is written in Python: its arguments cast as the
/// lists say, or nothing if they are to be taken as they are. Who gets some ends the call.
#[pyfunction]
fn _enter_listed<'py>(
    name: &str,
    args: Bound<'py, PyTuple>,
    kwargs: Bound<'py, PyDict>,
) -> PyResult<Option<Given<'py>>> {
    if !is_on() {
        return Ok(None);
    }
    let py = args.py();
    let objects: Vec<Bound<'py, PyAny>> = args.iter().chain(kwargs.values().iter()).collect();
    let given: Vec<Option<Tensor>> = objects
        .iter()
        .map(|object| object.cast::<PyTensor>().ok().map(|tensor| tensor.tensor()))
        .collect();
    let tensors: Vec<&Tensor> = given.iter().flatten().collect();
    let Some(kind) = kind_of(&tensors) else { return Ok(None) };
    let cast = call(py, || {
        let Some(listed) = ListedCall::enter(name, kind, tensors)? else { return Ok(None) };
        let one = |tensor: &Option<Tensor>| tensor.as_ref().map(|t| listed.cast(t)).transpose();
        let cast = given.iter().map(one).collect::<Result<Vec<_>>>()?;
        listed.go_on();
        Ok(Some(cast))
    })?;
    let Some(cast) = cast else { return Ok(None) };
    let made = (|| {
        let mut all = Vec::with_capacity(objects.len());
        for (object, tensor) in objects.into_iter().zip(cast) {
            all.push(match tensor {
                Some(tensor) => wrap(py, tensor)?.into_any(),
                None => object,
            });
        }
        let named = PyDict::new(py);
        for (key, value) in kwargs.keys().iter().zip(&all[args.len()..]) {
            named.set_item(key, value)?;
        }
        Ok((PyTuple::new(py, &all[..args.len()])?, named))
    })();
    if made.is_err() {
        ListedCall::end();
    }
    made.map(Some)
}

/// Ends a call that `_enter_listed` began.
#[pyfunction]
fn _leave_listed() {
    ListedCall::end();
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_autocast_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(set_autocast_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(get_autocast_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(set_autocast_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(is_autocast_cache_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(set_autocast_cache_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(clear_autocast_cache, module)?)?;
    module.add_function(wrap_pyfunction!(_enter_listed, module)?)?;
    module.add_function(wrap_pyfunction!(_leave_listed, module)?)
}
