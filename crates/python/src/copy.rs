//! Copies of the object: `copy.copy`, `copy.deepcopy` and pickling. Class and attributes come
//! along; as in PyTorch a shallow copy shares memory and drops the gradient, a deep copy is for
//! leaves and keeps the gradient and which tensors share memory, and a pickle keeps values and
//! strides.

use plimsoll_core::{DType, Device};
use plimsoll_tensor::Tensor;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

use crate::call::call;
use crate::companion::{attributes, instance, wrap};
use crate::construct::check_class;
use crate::tensor::{PyTensor, TensorObject};

#[pymethods]
impl PyTensor {
    fn __copy__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        let this = &slf.tensor();
        let alias = call(slf.py(), || this.detach().requires_grad_(this.requires_grad()))?;
        let copy = instance(&slf.get_type(), alias)?;
        let own = attributes(slf)?;
        if own.len()? > 0 {
            copy.getattr("__dict__")?.call_method1("update", (own,))?;
        }
        Ok(copy)
    }

    fn __deepcopy__<'py>(
        slf: &Bound<'py, PyTensor>,
        memo: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), &slf.tensor());
        let key = slf.as_ptr().addr();
        if let Some(copy) = memo.get_item(key)? {
            return Ok(copy);
        }
        if !this.is_leaf() {
            return Err(PyRuntimeError::new_err(
                "deepcopy: this tensor came from a recorded operation, and only leaves of the \
                 graph can be copied deeply; use detach() first, or clone() to stay in the graph",
            ));
        }
        let memory = storage_copy(slf, memo)?;
        let memory = &memory.tensor();
        let copy = call(py, || {
            let offset = this.storage_offset() as i64;
            let view = memory.as_strided(&signed(this.shape()), &signed(this.strides()), offset)?;
            view.detach().requires_grad_(this.requires_grad())
        })?;
        let copy = instance(&slf.get_type(), copy)?;
        // Before the attributes: they may lead back here.
        memo.set_item(key, &copy)?;
        let deepcopy = py.import("copy")?.getattr("deepcopy")?;
        if let Some(grad) = this.grad() {
            copy.setattr("grad", deepcopy.call1((wrap(py, grad)?, memo))?)?;
        }
        let own = attributes(slf)?;
        if own.len()? > 0 {
            copy.setattr("__dict__", deepcopy.call1((own, memo))?)?;
        }
        Ok(copy.into_any())
    }

    /// How to make it again: a function of this module, values and strides, and the attributes.
    fn __reduce_ex__<'py>(
        slf: &Bound<'py, PyTensor>,
        _protocol: i64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), &slf.tensor());
        let rebuild = py.import("plimsoll._plimsoll")?.getattr("_rebuild_tensor")?;
        let device = this.device();
        let arguments = (
            slf.get_type(),
            bytes(py, this)?,
            this.dtype().name(),
            PyTuple::new(py, this.shape())?,
            PyTuple::new(py, this.strides())?,
            // An arena of this process's own is not there when the pickle is read.
            if device.is_cpu() { "cpu".to_string() } else { device.to_string() },
            this.requires_grad(),
        );
        let state = attributes(slf)?;
        if state.len()? == 0 {
            return (rebuild, arguments).into_pyobject(py);
        }
        (rebuild, arguments, state).into_pyobject(py)
    }
}

/// A copy of the whole memory behind `tensor`, one for all tensors that share it.
fn storage_copy<'py>(
    tensor: &Bound<'py, PyTensor>,
    memo: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyTensor>> {
    let (py, this) = (tensor.py(), &tensor.tensor());
    let key = ("plimsoll storage", this.storage_id(), this.dtype().name());
    if let Some(known) = memo.get_item(key)? {
        return Ok(known.get_item(1)?.cast_into()?);
    }
    let copy = call(py, || {
        let whole = (this.storage_nbytes() / this.element_size()) as i64;
        this.detach().as_strided(&[whole], &[1], 0)?.clone_tensor()
    })?;
    let copy = wrap(py, copy)?;
    // The source stays too: its identity must not become another's while the copying goes on.
    memo.set_item(key, (tensor, &copy))?;
    Ok(copy)
}

/// The elements that the tensor reaches, from the first to the last in memory.
fn bytes<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyBytes>> {
    let span = span(tensor.shape(), tensor.strides());
    let lent = call(py, || {
        let offset = tensor.storage_offset() as i64;
        let flat = tensor.detach().as_strided(&[span as i64], &[1], offset)?;
        // A copy of our own, which nobody can write to meanwhile.
        flat.clone_tensor()?.cpu()?.lend()
    })?;
    let length = span * tensor.element_size();
    if length == 0 {
        return Ok(PyBytes::new(py, &[]));
    }
    let first = std::ptr::with_exposed_provenance::<u8>(lent.address());
    // SAFETY: the tensor is contiguous host memory of `length` bytes, kept in place and alive by
    // `lent`; its elements were written by the copy, and no one else has a handle of it.
    let memory = unsafe { std::slice::from_raw_parts(first, length) };
    Ok(PyBytes::new(py, memory))
}

/// What a pickle calls; every argument may be wrong, as pickles come from anywhere.
#[pyfunction]
pub(crate) fn _rebuild_tensor<'py>(
    class: &Bound<'py, PyType>,
    data: &Bound<'py, PyBytes>,
    dtype: &str,
    shape: Vec<i64>,
    strides: Vec<i64>,
    device: &str,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyTensor>> {
    let py = class.py();
    check_class("_rebuild_tensor", class)?;
    let refuse = |why: String| PyValueError::new_err(format!("not a pickle of a tensor: {why}"));
    let dtype = DType::ALL
        .into_iter()
        .find(|known| known.name() == dtype)
        .ok_or_else(|| refuse(format!("there is no dtype {dtype:?}")))?;
    let device = crate::device::named(py, device)?;
    let data = data.as_bytes();
    if dtype == DType::Bool && data.iter().any(|byte| *byte > 1) {
        return Err(refuse("a bool is neither 0 nor 1".into()));
    }
    if !data.len().is_multiple_of(dtype.size_bytes()) {
        return Err(refuse(format!("{} bytes are no whole number of {dtype}", data.len())));
    }
    let tensor = call(py, || {
        let flat = from_bytes(data, dtype)?;
        // Sizes and strides are checked against the memory here.
        let tensor = flat.as_strided(&shape, &strides, 0)?.detach();
        tensor.to(device)?.requires_grad_(requires_grad)
    })?;
    instance(class, tensor)
}

/// A new tensor on the host with these bytes as its elements.
fn from_bytes(data: &[u8], dtype: DType) -> plimsoll_core::Result<Tensor> {
    let count = data.len() / dtype.size_bytes();
    let flat = Tensor::empty(&[count as i64], (dtype, Device::cpu()))?;
    if count > 0 {
        let lent = flat.lend()?;
        let first = std::ptr::with_exposed_provenance_mut::<u8>(lent.address());
        // SAFETY: `flat` is contiguous host memory of this many bytes, kept in place by `lent`, and
        // nobody else has a handle of it. Every pattern of bits is an element; bools were checked.
        unsafe { first.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
    }
    Ok(flat)
}

/// How many elements lie from a layout's first to its last.
fn span(shape: &[usize], strides: &[usize]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    let steps = shape.iter().zip(strides).map(|(size, stride)| (size - 1) * stride);
    steps.sum::<usize>() + 1
}

fn signed(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().map(|&size| size as i64).collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_rebuild_tensor, module)?)
}
