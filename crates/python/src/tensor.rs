//! The `Tensor` class: what a tensor is. Conversions are in `convert.rs`, its operations in
//! `generated/`, operators in `operators.rs`, indexing in `index.rs`, gradients in `autograd.rs`,
//! sharing memory in `exchange.rs`, being an object in `object.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr};

use plimsoll_core::{DType, Scalar, normalize_dim};
use plimsoll_tensor::Tensor;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyTuple};

use crate::attached::Attached;
use crate::call::{Effort, call_of, fresh_of, write};
use crate::companion;
use crate::device::PyDevice;
use crate::dtype::{self, PyDType};
use crate::error::to_python;
use crate::overrides;
use crate::said_once;
use crate::size;

/// A tensor.
#[pyclass(name = "Tensor", module = "plimsoll", frozen, weakref, dict, subclass)]
#[derive(Debug)]
pub(crate) struct PyTensor {
    /// The tensor that this object stands for now; `data = ...` replaces it.
    handle: Attached<Tensor>,
    /// This very object, once it is known as the one object of its tensor; see `companion.rs`.
    pub(crate) place: AtomicPtr<ffi::PyObject>,
}

impl PyTensor {
    pub(crate) fn new(tensor: Tensor) -> PyTensor {
        PyTensor { handle: Attached::new(tensor), place: AtomicPtr::default() }
    }

    /// The tensor that this object stands for.
    pub(crate) fn tensor(&self, py: Python<'_>) -> Tensor {
        self.with(py, Tensor::clone)
    }

    /// Looks at the tensor without a handle of one's own, which would count as another holder.
    #[inline]
    pub(crate) fn with<R>(&self, py: Python<'_>, look: impl FnOnce(&Tensor) -> R) -> R {
        self.handle.with(py, look)
    }

    /// Runs work on the tensor that takes as long as there are elements.
    pub(crate) fn run<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Tensor) -> plimsoll_core::Result<R> + Send,
    ) -> PyResult<R> {
        let this = self.tensor(py);
        call_of(py, Effort::of([&this]), || work(&this))
    }

    /// The one element, for `float` and `int`, which refuse other values than numbers by ValueError
    /// as Python's own do; `item` refuses by another class.
    fn one_number(&self, py: Python<'_>) -> PyResult<Scalar> {
        if self.with(py, Tensor::numel) != 1 {
            let shape = self.with(py, |tensor| tensor.shape().to_vec());
            return Err(PyValueError::new_err(format!(
                "only one element tensors can be converted to Python scalars, and this one has shape {shape:?}"
            )));
        }
        self.run(py, |this| this.to_scalar())
    }

    /// What this object's tensor is a view of. A view in place of the tensor that the object stood
    /// for before is none to Python.
    pub(crate) fn viewed(&self, py: Python<'_>) -> Option<Tensor> {
        let tensor = self.tensor(py);
        let base = tensor.base()?;
        let is_own = match (base.companion(), tensor.companion()) {
            (Some(its), Some(own)) => Arc::ptr_eq(its, own),
            _ => false,
        };
        (!is_own).then_some(base)
    }

    /// Changes which tensor this object stands for, to one that Python has not seen yet. Both have
    /// one companion from then on: the old tensor may live on, and must know when the object goes.
    pub(crate) fn change(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut Tensor) -> plimsoll_core::Result<()>,
    ) -> plimsoll_core::Result<()> {
        let before = self.tensor(py);
        let companion = companion::to_share(&before);
        let mut tensor = before.clone();
        change(&mut tensor)?;
        if let Some(companion) = companion {
            companion::share(&companion, &tensor);
        }
        drop(self.handle.replace(py, tensor));
        Ok(())
    }
}

/// The tensor of an object, as one asks most often.
pub(crate) trait TensorObject {
    /// The tensor that this object stands for.
    fn tensor(&self) -> Tensor;

    /// Looks at the tensor without a handle of one's own.
    fn with_tensor<R>(&self, look: impl FnOnce(&Tensor) -> R) -> R;
}

impl TensorObject for Bound<'_, PyTensor> {
    #[inline]
    fn tensor(&self) -> Tensor {
        self.get().tensor(self.py())
    }

    #[inline]
    fn with_tensor<R>(&self, look: impl FnOnce(&Tensor) -> R) -> R {
        self.get().with(self.py(), look)
    }
}

impl Drop for PyTensor {
    fn drop(&mut self) {
        let place = *self.place.get_mut();
        if !place.is_null() {
            // SAFETY: only an object of Python's has a place, and Python frees objects while
            // attached.
            let py = unsafe { Python::assume_attached() };
            companion::depart(py, self.handle.get_mut(), place);
        }
    }
}

#[pymethods]
impl PyTensor {
    /// The sizes.
    #[getter]
    pub(crate) fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        size::of(py, self.tensor(py).shape())
    }

    /// The size of one dimension, or all of them.
    #[pyo3(signature = (dim = None))]
    fn size<'py>(&self, py: Python<'py>, dim: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        match dim {
            None => Ok(self.shape(py)?.into_any()),
            Some(dim) => {
                let size = self.tensor(py).size(dim).map_err(|error| to_python(py, error))?;
                Ok(size.into_pyobject(py)?.into_any())
            }
        }
    }

    /// The stride of one dimension, in elements, or all of them.
    #[pyo3(signature = (dim = None))]
    fn stride<'py>(&self, py: Python<'py>, dim: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let tensor = self.tensor(py);
        match dim {
            None => Ok(PyTuple::new(py, tensor.strides())?.into_any()),
            Some(dim) => {
                let dim = normalize_dim("stride", dim, tensor.rank());
                let dim = dim.map_err(|error| to_python(py, error))?;
                Ok(tensor.strides()[dim].into_pyobject(py)?.into_any())
            }
        }
    }

    /// Whether it is on a GPU, or on a stand-in that answers as one.
    #[getter]
    fn is_cuda(&self, py: Python<'_>) -> bool {
        self.tensor(py).device().answers_as_cuda()
    }

    /// Whether it is in the host's memory, or in a dry run of it other than `meta`.
    #[getter]
    fn is_cpu(&self, py: Python<'_>) -> bool {
        let device = self.tensor(py).device();
        device.is_cpu() && !plimsoll_tensor::device::is_meta(device)
    }

    /// Whether its dtype holds fractions.
    fn is_floating_point(&self, py: Python<'_>) -> bool {
        self.tensor(py).dtype().is_float()
    }

    /// Where the first element lies in the storage, in elements.
    fn storage_offset(&self, py: Python<'_>) -> usize {
        self.tensor(py).storage_offset()
    }

    /// The number of dimensions.
    fn dim(&self, py: Python<'_>) -> usize {
        self.tensor(py).rank()
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> usize {
        self.tensor(py).rank()
    }

    /// The number of elements.
    fn numel(&self, py: Python<'_>) -> usize {
        self.tensor(py).numel()
    }

    /// Bytes of one element.
    fn element_size(&self, py: Python<'_>) -> usize {
        self.tensor(py).element_size()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self, py: Python<'_>) -> usize {
        self.tensor(py).element_size()
    }

    /// Bytes of the elements.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.tensor(py).nbytes()
    }

    /// The type of the elements.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDType>> {
        dtype::object(py, self.tensor(py).dtype())
    }

    /// The device that holds it.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyDevice {
        PyDevice::of(self.tensor(py).device())
    }

    /// What this is a view of.
    #[getter]
    fn _base<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTensor>>> {
        self.viewed(py).map(|base| companion::wrap(py, base)).transpose()
    }

    /// The address of the first element; the memory stays there as long as the tensor lives.
    fn data_ptr(&self, py: Python<'_>) -> PyResult<usize> {
        let tensor = self.tensor(py);
        // Of no elements PyTorch gives none.
        if tensor.numel() == 0 {
            return Ok(0);
        }
        tensor.data_ptr().map_err(|error| to_python(py, error))
    }

    /// How many in-place writes its storage has seen.
    #[getter]
    fn _version(&self, py: Python<'_>) -> PyResult<u32> {
        let tensor = self.tensor(py);
        if tensor.is_inference() {
            return Err(PyRuntimeError::new_err("Inference tensors do not track version counter."));
        }
        Ok(tensor.version())
    }

    /// The one element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.run(py, |this| this.to_scalar())?;
        number(py, value)
    }

    /// The elements as nested lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let this = self.tensor(py);
        let (dtype, shape) = (this.dtype(), this.shape());
        if dtype.is_float() {
            let values = self.run(py, |this| this.to_f64_vec())?;
            return nested(py, &values, shape, &|value| number(py, Scalar::Float(value)));
        }
        // A double holds 53 bits, so whole numbers go their own way.
        let values = self.run(py, |this| this.to(DType::I64)?.to_vec::<i64>())?;
        let one = |value| match dtype {
            DType::Bool => number(py, Scalar::Bool(value != 0)),
            _ => number(py, Scalar::Int(value)),
        };
        nested(py, &values, shape, &one)
    }

    /// Every dimension in reverse order.
    #[getter(T)]
    fn reversed<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        let warned = match slf.with_tensor(Tensor::rank) {
            2 => None,
            0 => Some(
                c"Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.",
            ),
            _ => Some(
                c"The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
            ),
        };
        if let Some(told) = warned {
            PyErr::warn(slf.py(), &slf.py().get_type::<PyUserWarning>(), told, 1)?;
        }
        fresh_of(slf, |this| this.reversed())
    }

    /// A matrix with its dimensions swapped.
    #[getter(H)]
    fn matrix_h<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        fresh_of(slf, |this| this.matrix_h())
    }

    /// Matrices with their dimensions swapped.
    #[getter(mT)]
    fn matrices_t<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        fresh_of(slf, |this| match this.rank() {
            0 | 1 => Err(plimsoll_core::Error::shape(
                "mT",
                "it is only supported on matrices or batches of them, which have two dimensions or more",
            )),
            _ => this.adjoint(),
        })
    }

    /// Matrices with their dimensions swapped.
    #[getter(mH)]
    fn matrices_h<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        fresh_of(slf, |this| match this.rank() {
            0 | 1 => Err(plimsoll_core::Error::shape(
                "mH",
                "it is only supported on matrices or batches of them, which have two dimensions or more",
            )),
            _ => this.adjoint(),
        })
    }

    /// A copy in memory that GPUs read and write by themselves; this tensor if it is there already.
    fn pin_memory<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        fresh_of(slf, |this| this.pin_memory())
    }

    /// Whether its memory is such that GPUs read and write it by themselves.
    fn is_pinned(&self, py: Python<'_>) -> bool {
        self.tensor(py).is_pinned()
    }

    /// Fills with zeros.
    fn zero_<'py>(slf: Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        match overrides::ask_method(&slf, &[], "zero_")? {
            Some(answer) => Ok(answer),
            None => {
                let effort = slf.with_tensor(|this| Effort::of([this]));
                write(slf, effort, |this| this.zero_().map(drop)).map(Bound::into_any)
            }
        }
    }

    /// Counts this tensor's memory as a parameter.
    fn mark_parameter(slf: Bound<'_, PyTensor>) -> Bound<'_, PyTensor> {
        slf.tensor().mark_parameter();
        slf
    }

    /// Counts this tensor's memory as an input.
    fn mark_input(slf: Bound<'_, PyTensor>) -> Bound<'_, PyTensor> {
        slf.tensor().mark_input();
        slf
    }

    /// Counts this tensor's memory as what an optimizer keeps.
    fn mark_optimizer_state(slf: Bound<'_, PyTensor>) -> Bound<'_, PyTensor> {
        slf.tensor().mark_optimizer_state();
        slf
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.tensor(py).shape().first() {
            Some(size) => Ok(*size),
            None => Err(PyTypeError::new_err("a zero-dimensional tensor has no length")),
        }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let how_many = match self.with(py, |tensor| tensor.numel()) {
            0 => Some("no values"),
            1 => None,
            _ => Some("more than one value"),
        };
        if let Some(how_many) = how_many {
            let what = format!("Boolean value of Tensor with {how_many} is ambiguous");
            return Err(PyRuntimeError::new_err(what));
        }
        Ok(match self.run(py, |this| this.to_scalar())? {
            Scalar::Bool(value) => value,
            Scalar::Int(value) => value != 0,
            Scalar::Float(value) => value != 0.0,
        })
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        static SAID: AtomicBool = AtomicBool::new(false);
        if plimsoll_tensor::is_grad_enabled() && self.tensor(py).requires_grad() {
            let message = "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n\
                           Consider using tensor.detach() first.";
            said_once::warn(py, &SAID, message)?;
        }
        Ok(self.one_number(py)?.to_f64())
    }

    /// As Python's own numbers: infinity and NaN raise, and a large float is a large integer.
    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.one_number(py)? {
            Scalar::Float(value) => PyFloat::new(py, value).call_method0("__int__"),
            whole => Ok(whole.to_i64().into_pyobject(py)?.into_any()),
        }
    }

    /// A whole number where Python needs one: a position, a size.
    fn __index__(&self, py: Python<'_>) -> PyResult<i64> {
        let whole = self.with(py, |tensor| tensor.numel() == 1 && !tensor.dtype().is_float());
        if !whole {
            return Err(PyTypeError::new_err(
                "only a tensor of integers with one element can be an index",
            ));
        }
        Ok(self.run(py, |this| this.to_scalar())?.to_i64())
    }

    /// As in PyTorch, a class of the program's stands there by its name.
    fn __repr__(slf: &Bound<'_, PyTensor>) -> PyResult<String> {
        let class = slf.get_type();
        let module = class.module()?.to_string();
        let ours = module == "plimsoll" || module.starts_with("plimsoll.");
        let name = if ours { "tensor".to_string() } else { class.name()?.to_string() };
        slf.get().run(slf.py(), |this| Ok(this.to_string_as(&name)))
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
