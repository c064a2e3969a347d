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

/// A shape.
pub(crate) fn of<'py, T>(py: Python<'py>, shape: &[T]) -> PyResult<Bound<'py, PyTuple>>
where
    T: Copy + IntoPyObject<'py>,
{
    let sizes = PyTuple::new(py, shape.iter().copied())?;
    Ok(class(py)?.call1((sizes,))?.cast_into::<PyTuple>()?)
}
