//! Tensors of given values: from lists, from NumPy, from DLPack. What is made from sizes is in
//! `constructors.rs`.

use std::sync::atomic::AtomicBool;

use plimsoll_core::{DType, Device, Scalar, promote_dtypes};
use plimsoll_tensor::{Tensor, default_dtype, fits};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyRange, PySequence, PyString, PyTuple};

use crate::arguments::Number;
use crate::call::{call, fresh};
use crate::companion::wrap;
use crate::defaults;
use crate::device::DeviceArg;
use crate::dlpack;
use crate::dtype::DTypeArg;
use crate::numpy;
use crate::said_once;
use crate::tensor::{PyTensor, TensorObject};

/// Warns as PyTorch does where a tensor is made of a tensor.
fn warn_of_copy(py: Python<'_>) -> PyResult<()> {
    let told = c"To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or \
                 sourceTensor.detach().clone().requires_grad_(True), rather than tensor(sourceTensor).";
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), told, 1)
}

/// A tensor of given values: a number, nested lists of numbers, a NumPy array or another tensor;
/// always a copy.
#[pyfunction]
#[pyo3(signature = (data, *, dtype = None, device = None, requires_grad = false))]
fn tensor<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyTensor>> {
    let place = device.map_or_else(defaults::current, |device| device.0);
    let plain = if let Ok(other) = data.cast::<PyTensor>() {
        warn_of_copy(py)?;
        let other = other.tensor().detach();
        call(py, || other.clone_tensor()?.to(place))?
    } else if data.hasattr("__array_interface__")? {
        numpy::copy_array(py, data, place)?
    } else {
        from_lists(py, data, dtype, place)?
    };
    fresh(py, || {
        let converted = match dtype {
            Some(dtype) => plain.to(dtype.0)?,
            None => plain,
        };
        converted.requires_grad_(requires_grad)
    })
}

/// A tensor over the memory of a NumPy array, which is counted as external bytes. Writing to one
/// writes to both.
#[pyfunction]
fn from_numpy<'py>(py: Python<'py>, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTensor>> {
    // Numbers have an interface of arrays too, and no memory of their own.
    if numpy::dtype_of_number(array)?.is_some() {
        let given = crate::bind::type_name(array);
        return Err(PyTypeError::new_err(format!("expected np.ndarray (got {given})")));
    }
    if let Some(shared) = numpy::from_writable(py, array)? {
        return wrap(py, shared);
    }
    // Writing to it would be an error of memory, or change what others hold for constant.
    static SAID: AtomicBool = AtomicBool::new(false);
    let message = "The given NumPy array is not writable, and a tensor can be written to: the tensor has a copy of its \
                   values. Copy the array, or make it writable, to be without this warning.";
    said_once::warn(py, &SAID, message)?;
    wrap(py, numpy::copied_as_it_lies(py, array)?)
}

/// A tensor over the memory of an object that speaks DLPack (another framework's tensor, an array),
/// counted as external bytes.
#[pyfunction]
fn from_dlpack<'py>(py: Python<'py>, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTensor>> {
    wrap(py, dlpack::from_object(py, object)?)
}

pub(crate) fn from_lists(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
    device: Device,
) -> PyResult<Tensor> {
    let mut read = Read::default();
    read.collect(data, 0)?;
    let Read { shape, values, dtype: found } = read;
    let inferred = found.unwrap_or(default_dtype());
    if let Some(DTypeArg(dtype)) = dtype
        && let Some(value) = values.iter().find(|value| !fits(**value, dtype))
    {
        let why = format!("tensor: {value} does not fit {dtype}; choose a wider dtype");
        return Err(PyRuntimeError::new_err(why));
    }
    call(py, || {
        // 64 bits hold every value; the conversion is the tensor's own, with its rules. A whole
        // number that is to stay one never becomes a double, which holds 53 bits.
        let stays_whole = dtype.is_some_and(|dtype| !dtype.0.is_float() && dtype.0 != DType::Bool);
        let wide = if inferred.is_float() && !stays_whole {
            let values: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
            Tensor::from_slice(&values, &shape, device)?
        } else {
            let values: Vec<i64> = values.iter().map(|value| value.to_i64()).collect();
            Tensor::from_slice(&values, &shape, device)?
        };
        wide.to(dtype.map_or(inferred, |dtype| dtype.0))
    })
}

/// What nested lists hold, in row-major order.
#[derive(Default)]
struct Read {
    shape: Vec<i64>,
    values: Vec<Scalar>,
    /// The dtype that holds all of them: Python's numbers are the default float, int64 or bool,
    /// NumPy's and tensors have one of their own.
    dtype: Option<DType>,
}

impl Read {
    /// Every list of one depth must have the same length.
    fn collect(&mut self, data: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        let items = match items(data)? {
            Some(items) => items,
            // Most items are numbers, and asking whether something is a sequence takes longer.
            None => match self.number(data, depth) {
                Ok(()) => return Ok(()),
                Err(error) => sequence(data)?.ok_or(error)?,
            },
        };
        if items.first().is_some_and(numpy::is_array) && !numpy::is_array(data) {
            static SAID: AtomicBool = AtomicBool::new(false);
            let message = "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting \
                           the list to a single numpy.ndarray with numpy.array() before converting to a tensor.";
            said_once::warn(data.py(), &SAID, message)?;
        }
        if depth == 64 {
            return Err(PyValueError::new_err("lists nested 64 deep or more make no tensor"));
        }
        if depth == self.shape.len() {
            if !self.values.is_empty() {
                return Err(different_depths());
            }
            self.shape.push(items.len() as i64);
        }
        if self.shape[depth] != items.len() as i64 {
            return Err(PyValueError::new_err(format!(
                "expected sequence of length {} at dim {depth} (got {})",
                self.shape[depth],
                items.len()
            )));
        }
        items.iter().try_for_each(|item| self.collect(item, depth + 1))
    }

    fn number(&mut self, data: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if depth < self.shape.len() {
            return Err(different_depths());
        }
        let is_first = depth > 0 && self.values.is_empty();
        let (value, dtype) = if let Ok(tensor) = data.cast::<PyTensor>() {
            let tensor = tensor.tensor().detach();
            if tensor.numel() != 1 {
                return Err(PyValueError::new_err(format!(
                    "a tensor of shape {:?} among numbers: only one of one element is a number; use stack()",
                    tensor.shape()
                )));
            }
            (call(data.py(), || tensor.to_scalar())?, tensor.dtype())
        } else if let Some(dtype) = numpy::dtype_of_number(data)? {
            (data.call_method0("item")?.extract::<Number>()?.scalar(), dtype)
        } else {
            let value =
                data.extract::<Number>().map_err(|error| not_a_number(data, is_first, error))?;
            let value = value.scalar();
            let dtype = match value {
                Scalar::Bool(_) => DType::Bool,
                Scalar::Int(_) => DType::I64,
                Scalar::Float(_) => default_dtype(),
            };
            (value, dtype)
        };
        self.values.push(value);
        self.dtype = Some(self.dtype.map_or(dtype, |found| promote_dtypes(found, dtype)));
        Ok(())
    }
}

/// The items of a list, a tuple, an array or a range; none of a number.
fn items<'py>(data: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    if let Ok(list) = data.cast::<PyList>() {
        return Ok(Some(list.iter().collect()));
    }
    if let Ok(tuple) = data.cast::<PyTuple>() {
        return Ok(Some(tuple.iter().collect()));
    }
    let several = numpy::is_array(data) && data.getattr("ndim")?.extract::<usize>()? > 0;
    if several || data.is_instance_of::<PyRange>() {
        return data.try_iter()?.collect::<PyResult<_>>().map(Some);
    }
    Ok(None)
}

/// The items of a sequence of another class, such as a deque; none of a text.
fn sequence<'py>(data: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let has = |name| data.hasattr(name).unwrap_or(false);
    let is_one = data.cast::<PySequence>().is_ok() || (has("__len__") && has("__getitem__"));
    let is_other = data.is_instance_of::<PyString>()
        || data.is_instance_of::<PyDict>()
        || data.is_instance_of::<PyTensor>();
    if is_other || !is_one {
        return Ok(None);
    }
    data.try_iter()?.collect::<PyResult<_>>().map(Some)
}

/// PyTorch's words for what makes no tensor; a number that is too large has its own. A text that
/// comes first in a list is taken for a list itself.
fn not_a_number(data: &Bound<'_, PyAny>, is_first: bool, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(data.py()) {
        return error;
    }
    match data.get_type().name() {
        Ok(name) if data.is_instance_of::<PyString>() && !is_first => {
            PyTypeError::new_err(format!("new(): invalid data type '{name}'"))
        }
        Ok(name) if data.is_instance_of::<PyString>() => {
            PyValueError::new_err(format!("too many dimensions '{name}'"))
        }
        Ok(name) => PyRuntimeError::new_err(format!("Could not infer dtype of {name}")),
        Err(_) => error,
    }
}

fn different_depths() -> PyErr {
    PyValueError::new_err("the nested lists are not all of the same depth")
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(tensor, module)?)?;
    module.add_function(wrap_pyfunction!(from_numpy, module)?)?;
    module.add_function(wrap_pyfunction!(from_dlpack, module)?)
}
