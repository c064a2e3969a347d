//! Views in place: the object comes to stand for a view of its tensor. The memory stays where it
//! is, and other tensors over it keep their layouts. Whoever holds the tensor itself, as a base or
//! a gradient, gives Python the same object as before.

use plimsoll_core::Result;
use plimsoll_tensor::{Tensor, is_grad_enabled, is_inference_mode_enabled};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bind::sizes;
use crate::call::{Effort, call, write};
use crate::companion::register;
use crate::error::to_python;
use crate::memory_format::PyMemoryFormat;
use crate::tensor::{PyTensor, TensorObject};

/// Makes the object stand for a view of its tensor.
fn become_view<'py>(
    slf: Bound<'py, PyTensor>,
    name: &str,
    view: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    let this = slf.tensor();
    if this.is_inference() && !is_inference_mode_enabled() {
        return Err(PyRuntimeError::new_err(format!(
            "{name}: Inplace update to inference tensor outside InferenceMode is not allowed; clone it first"
        )));
    }
    if is_grad_enabled() && this.is_leaf() && this.requires_grad() {
        return Err(PyRuntimeError::new_err(format!(
            "{name}: a leaf Variable that requires grad is being used in an in-place operation; use the form without the \
             underscore, or no_grad()"
        )));
    }
    let seen = call(slf.py(), || view(&this))?;
    register(slf.clone());
    let changed = slf.get().change(slf.py(), |tensor| {
        *tensor = seen;
        Ok(())
    });
    changed.map_err(|error| to_python(slf.py(), error))?;
    Ok(slf)
}

#[pymethods]
impl PyTensor {
    /// Two dimensions swapped, in place.
    fn transpose_<'py>(
        slf: Bound<'py, PyTensor>,
        dim0: i64,
        dim1: i64,
    ) -> PyResult<Bound<'py, PyTensor>> {
        become_view(slf, "transpose_", |this| this.transpose(dim0, dim1))
    }

    /// Two dimensions swapped, in place.
    fn swapdims_<'py>(
        slf: Bound<'py, PyTensor>,
        dim0: i64,
        dim1: i64,
    ) -> PyResult<Bound<'py, PyTensor>> {
        become_view(slf, "swapdims_", |this| this.transpose(dim0, dim1))
    }

    /// Two dimensions swapped, in place.
    fn swapaxes_<'py>(
        slf: Bound<'py, PyTensor>,
        axis0: i64,
        axis1: i64,
    ) -> PyResult<Bound<'py, PyTensor>> {
        become_view(slf, "swapaxes_", |this| this.transpose(axis0, axis1))
    }

    /// A matrix with its dimensions swapped, in place.
    fn t_<'py>(slf: Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        become_view(slf, "t_", |this| this.t())
    }

    /// Dimensions of size 1 removed, in place.
    #[pyo3(signature = (*dim))]
    fn squeeze_<'py>(
        slf: Bound<'py, PyTensor>,
        dim: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        if dim.is_empty() {
            return become_view(slf, "squeeze_", |this| this.squeeze());
        }
        let dims = sizes(dim)?;
        become_view(slf, "squeeze_", |this| this.squeeze_with(&dims[..]))
    }

    /// A dimension of size 1 inserted, in place.
    fn unsqueeze_<'py>(slf: Bound<'py, PyTensor>, dim: i64) -> PyResult<Bound<'py, PyTensor>> {
        become_view(slf, "unsqueeze_", |this| this.unsqueeze(dim))
    }

    /// Any sizes and strides over the storage, in place.
    #[pyo3(signature = (size, stride, storage_offset = None))]
    fn as_strided_<'py>(
        slf: Bound<'py, PyTensor>,
        size: Vec<i64>,
        stride: Vec<i64>,
        storage_offset: Option<i64>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        become_view(slf, "as_strided_", |this| {
            let offset = storage_offset.unwrap_or(this.storage_offset() as i64);
            this.as_strided(&size, &stride, offset)
        })
    }

    /// Out of the graph, in place. A view stays in it: its base would not know.
    fn detach_<'py>(slf: Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        let (object, this) = (slf.get(), slf.tensor());
        if this.base().is_none() || object.viewed(slf.py()).is_some() {
            call(slf.py(), || this.detach_())?;
            return Ok(slf);
        }
        let changed = object.change(slf.py(), |tensor| {
            *tensor = this.detach();
            Ok(())
        });
        changed.map_err(|error| to_python(slf.py(), error))?;
        Ok(slf)
    }

    /// Other sizes, with more memory if they need it; elements stay as they lie in memory.
    #[pyo3(signature = (*size, memory_format = None))]
    fn resize_<'py>(
        slf: Bound<'py, PyTensor>,
        size: &Bound<'py, PyTuple>,
        memory_format: Option<&Bound<'py, PyMemoryFormat>>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let sizes = sizes(size)?;
        resized(slf, "resize_", &sizes, memory_format)
    }

    /// The sizes of another tensor, with more memory if they need it.
    #[pyo3(signature = (other, *, memory_format = None))]
    fn resize_as_<'py>(
        slf: Bound<'py, PyTensor>,
        other: &Bound<'py, PyTensor>,
        memory_format: Option<&Bound<'py, PyMemoryFormat>>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let sizes: Vec<i64> =
            other.with_tensor(|other| other.shape().iter().map(|&size| size as i64).collect());
        resized(slf, "resize_as_", &sizes, memory_format)
    }
}

/// Fills with zeros.
#[pyfunction]
fn zero_<'py>(input: Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
    write(input, Effort::Any, |this| this.zero_().map(drop))
}

/// The sizes of another tensor, with more memory if they need it.
#[pyfunction]
#[pyo3(signature = (input, the_template, *, memory_format = None))]
fn resize_as_<'py>(
    input: Bound<'py, PyTensor>,
    the_template: &Bound<'py, PyTensor>,
    memory_format: Option<&Bound<'py, PyMemoryFormat>>,
) -> PyResult<Bound<'py, PyTensor>> {
    PyTensor::resize_as_(input, the_template, memory_format)
}

pub(crate) fn register_functions(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(zero_, module)?)?;
    module.add_function(wrap_pyfunction!(resize_as_, module)?)
}

fn resized<'py>(
    slf: Bound<'py, PyTensor>,
    name: &str,
    sizes: &[i64],
    memory_format: Option<&Bound<'py, PyMemoryFormat>>,
) -> PyResult<Bound<'py, PyTensor>> {
    if slf.with_tensor(Tensor::requires_grad) {
        return Err(PyRuntimeError::new_err(format!(
            "{name}: cannot resize variables that require grad; detach it first"
        )));
    }
    let shape: Vec<usize> = sizes.iter().map(|&size| size.max(0) as usize).collect();
    let layout = memory_format.map(|format| format.get().0.layout(&shape)).transpose();
    let layout = layout.map_err(|error| to_python(slf.py(), error))?.flatten();
    register(slf.clone());
    let changed = slf.get().change(slf.py(), |tensor| tensor.resize_(sizes));
    changed.map_err(|error| to_python(slf.py(), error))?;
    match layout {
        None => Ok(slf),
        Some(layout) => become_view(slf, name, |this| {
            let strides: Vec<i64> = layout.strides().iter().map(|&stride| stride as i64).collect();
            this.as_strided(sizes, &strides, this.storage_offset() as i64)
        }),
    }
}
