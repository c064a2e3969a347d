//! The `Tensor` class: what a tensor is and how it converts. Its operations are in `generated.rs`, operators in `operators.rs`,
//! indexing in `index.rs`.

use plimsoll_core::Scalar;
use plimsoll_tensor::{BackwardOptions, Tensor, To};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments::{Operand, sizes};
use crate::call::{call, fresh};
use crate::device::{DeviceArg, PyDevice};
use crate::dtype::{self, DTypeArg, PyDType};
use crate::error::to_python;

/// A tensor.
#[pyclass(name = "Tensor", module = "plimsoll", frozen, weakref)]
#[derive(Debug)]
pub(crate) struct PyTensor {
    pub(crate) inner: Tensor,
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
        let values = call(py, || self.inner.to_f64_vec())?;
        let dtype = self.inner.dtype();
        let one = |value: f64| match dtype {
            plimsoll_core::DType::Bool => number(py, Scalar::Bool(value != 0.0)),
            dtype if dtype.is_float() => number(py, Scalar::Float(value)),
            _ => number(py, Scalar::Int(value as i64)),
        };
        nested(py, &values, self.inner.shape(), &one)
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
    #[pyo3(signature = (*target, dtype = None, device = None))]
    fn to<'py>(
        &self,
        py: Python<'py>,
        target: &Bound<'py, PyTuple>,
        dtype: Option<DTypeArg>,
        device: Option<DeviceArg>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let mut to = To { dtype: dtype.map(|d| d.0), device: device.map(|d| d.0) };
        for argument in target.iter() {
            if let Ok(dtype) = argument.extract::<DTypeArg>() {
                to.dtype = Some(dtype.0);
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

    /// Whether operations on this tensor are recorded.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.inner.requires_grad()
    }

    #[setter]
    fn set_requires_grad(&self, py: Python<'_>, requires_grad: bool) -> PyResult<()> {
        let change = self.inner.requires_grad_(requires_grad).map(drop);
        change.map_err(|error| to_python(py, error))
    }

    /// Asks for a gradient, or no longer does.
    #[pyo3(signature = (requires_grad = true))]
    fn requires_grad_<'py>(
        slf: Bound<'py, PyTensor>,
        requires_grad: bool,
    ) -> PyResult<Bound<'py, PyTensor>> {
        slf.get().set_requires_grad(slf.py(), requires_grad)?;
        Ok(slf)
    }

    /// Whether no recorded operation made this tensor.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.inner.is_leaf()
    }

    /// The name of the operation that made it, if one was recorded.
    #[getter]
    fn grad_fn(&self) -> Option<&'static str> {
        self.inner.grad_fn_name()
    }

    /// The gradient that backward left here.
    #[getter]
    fn grad(&self) -> Option<PyTensor> {
        self.inner.grad().map(|inner| PyTensor { inner })
    }

    #[setter]
    fn set_grad(&self, py: Python<'_>, grad: Option<&Bound<'_, PyTensor>>) -> PyResult<()> {
        let grad = grad.map(|grad| &grad.get().inner);
        call(py, || self.inner.set_grad(grad))
    }

    /// Keeps the gradient of a tensor that is not a leaf.
    fn retain_grad(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || self.inner.retain_grad())
    }

    /// This tensor outside the graph; the memory is shared.
    fn detach(&self) -> PyTensor {
        PyTensor { inner: self.inner.detach() }
    }

    /// Computes the gradients of everything that led to this tensor and adds them to the leaves.
    #[pyo3(signature = (gradient = None, retain_graph = None, create_graph = false, inputs = vec![]))]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<&Bound<'_, PyTensor>>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Vec<Bound<'_, PyTensor>>,
    ) -> PyResult<()> {
        let options = BackwardOptions {
            gradient: gradient.map(|gradient| gradient.get().inner.clone()),
            retain_graph: retain_graph.unwrap_or(create_graph),
            create_graph,
            inputs: inputs.iter().map(|input| input.get().inner.clone()).collect(),
        };
        call(py, || self.inner.backward_with(options))
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

    /// A NumPy array over the same memory. With `force`, also of a tensor that requires gradients or is on another device.
    #[pyo3(signature = (*, force = false))]
    fn numpy<'py>(&self, py: Python<'py>, force: bool) -> PyResult<Bound<'py, PyAny>> {
        if force {
            let plain = call(py, || self.inner.detach().cpu())?;
            return crate::numpy::to_array(py, &plain);
        }
        if self.inner.requires_grad() {
            return Err(pyo3::exceptions::PyRuntimeError::new_err(
                "numpy: this tensor requires gradients, which NumPy would lose; use detach() first",
            ));
        }
        crate::numpy::to_array(py, &self.inner)
    }

    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shared = self.numpy(py, false)?;
        let dtype = match dtype {
            Some(dtype) => dtype,
            None => shared.getattr("dtype")?,
        };
        // `astype` copies only if it must, or if it was told to.
        let converts = !shared.getattr("dtype")?.eq(&dtype)?;
        if converts && copy == Some(false) {
            return Err(PyValueError::new_err(
                "another dtype takes a copy, and copy=False forbids it",
            ));
        }
        let copies = pyo3::types::PyDict::new(py);
        copies.set_item("copy", converts || copy == Some(true))?;
        shared.call_method("astype", (dtype,), Some(&copies))
    }

    /// The memory for another framework, as the DLPack standard hands it over.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = crate::dlpack::Asked { stream, max_version, device: dl_device, copy };
        crate::dlpack::export(py, &self.inner, &asked)
    }

    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        crate::dlpack::device_of(self.inner.device())
    }

    /// Calls `hook` with this tensor's gradient whenever backward computes it; a returned tensor replaces it.
    fn register_hook(&self, py: Python<'_>, hook: Py<PyAny>) -> PyResult<crate::autograd::PyHook> {
        crate::autograd::register_hook(py, &self.inner, hook)
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
        slf.as_ptr().addr() >> 4
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
fn nested<'py>(
    py: Python<'py>,
    values: &[f64],
    shape: &[usize],
    one: &dyn Fn(f64) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((&count, rest)) = shape.split_first() else {
        return one(values.first().copied().unwrap_or_default());
    };
    let size: usize = rest.iter().product();
    let rows = (0..count).map(|row| nested(py, &values[row * size..(row + 1) * size], rest, one));
    Ok(pyo3::types::PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?.into_any())
}
