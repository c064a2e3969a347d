//! Shapes as Python sees them: `Size`, a tuple with the package's few methods (`_size.py`). The
//! stable interface has no tuples of one's own in Rust, so the class is Python's.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

/// The class itself.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let class = py.import("plimsoll._size")?.getattr("Size")?;
        PyResult::Ok(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}

/// `tuple.__new__`, which takes sizes as they are: the class's own looks at each of them.
fn unchecked(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static NEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let new = NEW.get_or_try_init(py, || {
        PyResult::Ok(py.get_type::<PyTuple>().getattr("__new__")?.unbind())
    })?;
    Ok(new.bind(py))
}

/// A shape.
pub(crate) fn of<'py, T>(py: Python<'py>, shape: &[T]) -> PyResult<Bound<'py, PyTuple>>
where
    T: Copy + IntoPyObject<'py>,
{
    let sizes = PyTuple::new(py, shape.iter().copied())?;
    Ok(unchecked(py)?.call1((class(py)?, sizes))?.cast_into::<PyTuple>()?)
}
