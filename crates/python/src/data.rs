//! The memory behind a tensor object, and replacing it: the object stays the same to Python and to
//! autograd, and stands for another Rust tensor afterwards.

use pyo3::prelude::*;

use crate::companion::register;
use crate::error::to_python;
use crate::subclass;
use crate::tensor::{PyTensor, TensorObject};

#[pymethods]
impl PyTensor {
    /// The same memory outside the graph; graphs do not see writes through it. Assigning gives this
    /// tensor the memory, shape, dtype and device of another; it stays the same object, with its
    /// gradient and hooks.
    #[getter]
    fn data<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        let class = subclass::of_two(slf, None)?;
        subclass::wrap(slf.py(), slf.tensor().data(), &class)
    }

    #[setter]
    fn set_data(slf: Bound<'_, PyTensor>, data: &Bound<'_, PyTensor>) -> PyResult<()> {
        let (py, data) = (slf.py(), data.tensor());
        // The companion that old and new tensor share must know this object.
        register(slf.clone());
        slf.get().change(py, |tensor| tensor.set_data(&data)).map_err(|error| to_python(py, error))
    }

    /// Gives this tensor the memory and shape of `source`, which has its dtype and device.
    fn set_<'py>(
        slf: Bound<'py, PyTensor>,
        source: &Bound<'py, PyTensor>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let (py, source) = (slf.py(), source.tensor());
        register(slf.clone());
        slf.get()
            .change(py, |tensor| tensor.set_(&source))
            .map_err(|error| to_python(py, error))?;
        Ok(slf)
    }
}
