//! Element types as Python objects: `plimsoll.float32` and so on, one object each.

use plimsoll_core::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::namespace;

/// The type of a tensor's elements.
#[pyclass(name = "dtype", module = "plimsoll", frozen, eq, hash)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyDType(pub(crate) DType);

#[pymethods]
impl PyDType {
    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size_bytes()
    }

    /// Whether elements are floating point.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }

    /// A pickle names it.
    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("{}.{}", namespace::current(), self.0.name())
    }
}

/// A dtype argument: one of our objects, or Python's `float`, `int` or `bool`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DTypeArg(pub(crate) DType);

impl<'py> FromPyObject<'_, 'py> for DTypeArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<DTypeArg> {
        if let Ok(dtype) = object.cast::<PyDType>() {
            return Ok(DTypeArg(dtype.get().0));
        }
        let name = object.getattr("__name__").and_then(|name| name.extract::<String>());
        match name.as_deref() {
            Ok("float") => Ok(DTypeArg(DType::F64)),
            Ok("int") => Ok(DTypeArg(DType::I64)),
            Ok("bool") => Ok(DTypeArg(DType::Bool)),
            _ => Err(PyTypeError::new_err(format!(
                "{} is not a dtype: use plimsoll.float32, plimsoll.int64, ...",
                object.repr()?
            ))),
        }
    }
}

/// The module's one object for a dtype, so that `x.dtype is float32`.
pub(crate) fn object<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyDType>> {
    static OBJECTS: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();
    let objects = OBJECTS.get_or_try_init(py, || {
        DType::ALL.into_iter().map(|dtype| Py::new(py, PyDType(dtype))).collect::<PyResult<_>>()
    })?;
    match objects.iter().find(|object| object.get().0 == dtype) {
        Some(object) => Ok(object.bind(py).clone()),
        None => Bound::new(py, PyDType(dtype)),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDType>()?;
    for dtype in DType::ALL {
        module.add(dtype.name(), object(module.py(), dtype)?)?;
    }
    let short_names = [
        ("half", DType::F16),
        ("float", DType::F32),
        ("double", DType::F64),
        ("short", DType::I16),
        ("int", DType::I32),
        ("long", DType::I64),
    ];
    for (name, dtype) in short_names {
        module.add(name, object(module.py(), dtype)?)?;
    }
    Ok(())
}
