//! The `Tensor` class: what a tensor is and how it converts. Its operations are in `generated.rs`, operators in `operators.rs`,
//! indexing in `index.rs`, gradients in `autograd.rs`, sharing memory in `exchange.rs`, being an object in `object.rs`.

use std::sync::atomic::AtomicPtr;

use plimsoll_core::{DType, Scalar};
use plimsoll_tensor::{Tensor, To};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments::{Operand, sizes};
use crate::call::{call, fresh};
use crate::companion;
use crate::device::{DeviceArg, PyDevice};
use crate::dtype::{self, DTypeArg, PyDType};
use crate::error::to_python;

/// A tensor.
#[pyclass(name = "Tensor", module = "plimsoll", frozen, weakref, dict, subclass)]
#[derive(Debug)]
pub(crate) struct PyTensor {
    pub(crate) inner: Tensor,
    /// This very object, once it is known as the one object of its tensor; see `companion.rs`.
    pub(crate) place: AtomicPtr<ffi::PyObject>,
}

impl PyTensor {
    pub(crate) fn new(inner: Tensor) -> PyTensor {
        PyTensor { inner, place: AtomicPtr::default() }
    }
}

impl Drop for PyTensor {
    fn drop(&mut self) {
        let place = *self.place.get_mut();
        if !place.is_null() {
            // SAFETY: only an object of Python's has a place, and Python frees objects while attached.
            companion::depart(unsafe { Python::assume_attached() }, &self.inner, place);
        }
    }
}

#[pymethods]
impl PyTensor {
    /// The sizes.
    #[getter]
    pub(crate) fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.shape())
    }

    /// The size of one dimension, or all of them.
    #[pyo3(signature = (dim = None))]
    fn size<'py>(&self, py: Python<'py>, dim: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        match dim {
            None => Ok(self.shape(py)?.into_any()),
            Some(dim) => {
                let size = self.inner.size(dim).map_err(|error| to_python(py, error))?;
                Ok(size.into_pyobject(py)?.into_any())
            }
        }
    }

    /// The strides, in elements.
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.strides())
    }

    /// Where the first element lies in the storage, in elements.
    fn storage_offset(&self) -> usize {
        self.inner.storage_offset()
    }

    /// The number of dimensions.
    fn dim(&self) -> usize {
        self.inner.rank()
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.inner.rank()
    }

    /// The number of elements.
    fn numel(&self) -> usize {
        self.inner.numel()
    }

    /// Bytes of one element.
    fn element_size(&self) -> usize {
        self.inner.element_size()
    }

    /// Bytes of the elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.inner.nbytes()
    }

    /// The type of the elements.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDType>> {
        dtype::object(py, self.inner.dtype())
    }

    /// The device that holds it.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.inner.device())
    }

    /// Row-major without holes.
    fn is_contiguous(&self) -> bool {
        self.inner.is_contiguous()
    }

    /// What this is a view of.
    #[getter]
    fn _base<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTensor>>> {
        self.inner.base().map(|base| companion::wrap(py, base)).transpose()
    }

    /// The address of the first element; the memory stays there as long as the tensor lives.
    fn data_ptr(&self, py: Python<'_>) -> PyResult<usize> {
        self.inner.data_ptr().map_err(|error| to_python(py, error))
    }

    /// How many in-place writes its storage has seen.
    #[getter]
    fn _version(&self) -> u32 {
        self.inner.version()
    }

    /// The one element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = call(py, || self.inner.to_scalar())?;
        number(py, value)
    }

    /// The elements as nested lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (dtype, shape) = (self.inner.dtype(), self.inner.shape());
        if dtype.is_float() {
            let values = call(py, || self.inner.to_f64_vec())?;
            return nested(py, &values, shape, &|value| number(py, Scalar::Float(value)));
        }
        // A double holds 53 bits, so whole numbers go their own way.
        let values = call(py, || self.inner.to(DType::I64)?.to_vec::<i64>())?;
        let one = |value| match dtype {
            DType::Bool => number(py, Scalar::Bool(value != 0)),
            _ => number(py, Scalar::Int(value)),
        };
        nested(py, &values, shape, &one)
    }

    /// The same elements under other sizes, copied only if they must be.
    #[pyo3(signature = (*shape))]
    fn reshape<'py>(
        &self,
        py: Python<'py>,
        shape: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let shape = sizes(shape)?;
        fresh(py, || self.inner.reshape(shape.as_slice()))
    }

    /// The dimensions from `start_dim` to `end_dim` as one.
    #[pyo3(signature = (start_dim = 0, end_dim = -1))]
    fn flatten<'py>(
        &self,
        py: Python<'py>,
        start_dim: i64,
        end_dim: i64,
    ) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.inner.flatten(start_dim, end_dim))
    }

    /// A matrix with its dimensions swapped.
    fn t<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.inner.t())
    }

    /// A matrix with its dimensions swapped.
    #[getter(T)]
    fn transposed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.inner.t())
    }

    /// This tensor if it is row-major without holes, else a copy that is.
    fn contiguous<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.inner.contiguous())
    }

    /// Another dtype or device.
    #[pyo3(signature = (*target, dtype = None, device = None, non_blocking = false, copy = false))]
    fn to<'py>(
        &self,
        py: Python<'py>,
        target: &Bound<'py, PyTuple>,
        dtype: Option<DTypeArg>,
        device: Option<DeviceArg>,
        non_blocking: bool,
        copy: bool,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let mut to =
            To { dtype: dtype.map(|d| d.0), device: device.map(|d| d.0), non_blocking, copy };
        for (place, argument) in target.iter().enumerate() {
            if let Ok(dtype) = argument.extract::<DTypeArg>() {
                to.dtype = Some(dtype.0);
            } else if let Ok(other) = argument.cast::<PyTensor>() {
                let other = &other.get().inner;
                (to.dtype, to.device) = (Some(other.dtype()), Some(other.device()));
            } else if place > 0
                && let Ok(flag) = argument.extract::<bool>()
            {
                // `to(target, non_blocking, copy)`, by place.
                if place == target.len() - 1 && target.len() > 2 {
                    to.copy = flag;
                } else {
                    to.non_blocking = flag;
                }
            } else {
                to.device = Some(argument.extract::<DeviceArg>()?.0);
            }
        }
        fresh(py, || self.inner.to(to))
    }

    /// On the CPU.
    fn cpu<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.inner.cpu())
    }

    /// As float32.
    fn float<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.inner.float())
    }

    /// As float64.
    fn double<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.inner.double())
    }

    /// As int64.
    fn long<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.inner.long())
    }

    /// As bool: whether each element is not zero.
    fn bool<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.inner.bool())
    }

    /// Elements of this tensor where `condition` holds, of `other` elsewhere.
    fn r#where<'py>(
        &self,
        py: Python<'py>,
        condition: &Bound<'py, PyTensor>,
        other: Operand,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let condition = &condition.get().inner;
        fresh(py, || Tensor::where_(condition, &self.inner, other.other()))
    }

    /// Fills with zeros.
    fn zero_<'py>(slf: Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        crate::call::write(slf, |this| this.zero_().map(drop))
    }

    /// Counts this tensor's memory as a parameter.
    fn mark_parameter(slf: Bound<'_, PyTensor>) -> Bound<'_, PyTensor> {
        slf.get().inner.mark_parameter();
        slf
    }

    /// Counts this tensor's memory as an input.
    fn mark_input(slf: Bound<'_, PyTensor>) -> Bound<'_, PyTensor> {
        slf.get().inner.mark_input();
        slf
    }

    /// Counts this tensor's memory as what an optimizer keeps.
    fn mark_optimizer_state(slf: Bound<'_, PyTensor>) -> Bound<'_, PyTensor> {
        slf.get().inner.mark_optimizer_state();
        slf
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.inner.shape().first() {
            Some(size) => Ok(*size),
            None => Err(PyTypeError::new_err("a zero-dimensional tensor has no length")),
        }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(match call(py, || self.inner.to_scalar())? {
            Scalar::Bool(value) => value,
            Scalar::Int(value) => value != 0,
            Scalar::Float(value) => value != 0.0,
        })
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(call(py, || self.inner.to_scalar())?.to_f64())
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(call(py, || self.inner.to_scalar())?.to_i64())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        call(py, || Ok(self.inner.to_string()))
    }

    fn __hash__(slf: &Bound<'_, PyTensor>) -> usize {
        slf.as_ptr().addr()
    }
}

/// A host number as Python's.
fn number<'py>(py: Python<'py>, value: Scalar) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Scalar::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Scalar::Int(value) => value.into_pyobject(py)?.into_any(),
        Scalar::Float(value) => value.into_pyobject(py)?.into_any(),
    })
}

/// Row-major values as nested lists; dimensions are few, so this may recurse.
fn nested<'py, T: Copy + Default>(
    py: Python<'py>,
    values: &[T],
    shape: &[usize],
    one: &dyn Fn(T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((&count, rest)) = shape.split_first() else {
        return one(values.first().copied().unwrap_or_default());
    };
    let size: usize = rest.iter().product();
    let rows = (0..count).map(|row| nested(py, &values[row * size..(row + 1) * size], rest, one));
    Ok(pyo3::types::PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?.into_any())
}
