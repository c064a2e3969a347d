//! Shapes as Python sees them: `Size`, a tuple with the package's few methods (`_size.py`). The
//! stable interface has no tuples of one's own in Rust, so the class is Python's.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

/// A shape.
pub(crate) fn of<'py>(py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyTuple>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        py.import("plimsoll._size")?
            .getattr("Size")?
            .cast_into::<PyType>()
            .map(Bound::unbind)
            .map_err(PyErr::from)
    })?;
    let sizes = PyTuple::new(py, shape)?;
    Ok(class.bind(py).call1((sizes,))?.cast_into::<PyTuple>()?)
}
