//! New tensors: from values, from NumPy, filled or random. These take `dtype`, `device` and
//! `requires_grad` like PyTorch's.

use plimsoll_core::{DType, Device, Scalar};
use plimsoll_tensor::{Tensor, TensorOptions, fits};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::arguments::{Given, Number};
use crate::bind::sizes;
use crate::call::{call, fresh, fresh_as, fresh_of};
use crate::companion::wrap;
use crate::device::DeviceArg;
use crate::dlpack;
use crate::dtype::DTypeArg;
use crate::numpy;
use crate::random::{self, PyGenerator};
use crate::subclass;
use crate::tensor::PyTensor;

fn options(
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> TensorOptions {
    TensorOptions {
        dtype: dtype.map(|dtype| dtype.0),
        device: device.map(|device| device.0),
        requires_grad,
    }
}

/// Constructors that take sizes and nothing else.
macro_rules! sized {
    ($($name:ident: $doc:literal),*) => {$(
        #[doc = $doc]
        #[pyfunction]
        #[pyo3(signature = (*size, dtype = None, device = None, requires_grad = false))]
        fn $name<'py>(
            py: Python<'py>,
            size: &Bound<'py, PyTuple>,
            dtype: Option<DTypeArg>,
            device: Option<DeviceArg>,
            requires_grad: bool,
        ) -> PyResult<Bound<'py, PyTensor>> {
            let size = sizes(size)?;
            fresh(py, || Tensor::$name(&size, options(dtype, device, requires_grad)))
        }
    )*};
}

sized!(
    empty: "Memory that nothing was written to yet.",
    zeros: "Zeros.",
    ones: "Ones."
);

/// Random tensors of given sizes.
macro_rules! drawn {
    ($($name:ident: $doc:literal),*) => {$(
        #[doc = $doc]
        #[pyfunction]
        #[pyo3(signature = (*size, generator = None, dtype = None, device = None, requires_grad = false))]
        fn $name<'py>(
            py: Python<'py>,
            size: &Bound<'py, PyTuple>,
            generator: Option<&Bound<'py, PyGenerator>>,
            dtype: Option<DTypeArg>,
            device: Option<DeviceArg>,
            requires_grad: bool,
        ) -> PyResult<Bound<'py, PyTensor>> {
            let size = sizes(size)?;
            let options = options(dtype, device, requires_grad);
            let place = options.device.unwrap_or(Device::cpu());
            let generator = random::for_device(generator, place)?;
            fresh(py, || random::with(generator, || Tensor::$name(&size, options)))
        }
    )*};
}

drawn!(
    rand: "Random numbers, evenly spread from 0 to 1.",
    randn: "Random numbers from the normal distribution."
);

/// Constructors in the shape, dtype and place of another tensor.
macro_rules! like {
    ($($name:ident, $with:ident: $doc:literal),*) => {$(
        #[doc = $doc]
        #[pyfunction]
        #[pyo3(signature = (input, *, dtype = None, device = None, requires_grad = false))]
        fn $name<'py>(
            input: &Bound<'py, PyTensor>,
            dtype: Option<DTypeArg>,
            device: Option<DeviceArg>,
            requires_grad: bool,
        ) -> PyResult<Bound<'py, PyTensor>> {
            fresh_of(input, |input| input.$with(options(dtype, device, requires_grad)))
        }
    )*};
}

like!(
    empty_like, empty_like_with: "Memory like another tensor's that nothing was written to yet.",
    zeros_like, zeros_like_with: "Zeros like another tensor.",
    ones_like, ones_like_with: "Ones like another tensor."
);

/// Random tensors in the shape, dtype and place of another.
macro_rules! drawn_like {
    ($($name:ident, $with:ident: $doc:literal),*) => {$(
        #[doc = $doc]
        #[pyfunction]
        #[pyo3(signature = (input, *, generator = None, dtype = None, device = None, requires_grad = false))]
        fn $name<'py>(
            input: &Bound<'py, PyTensor>,
            generator: Option<&Bound<'py, PyGenerator>>,
            dtype: Option<DTypeArg>,
            device: Option<DeviceArg>,
            requires_grad: bool,
        ) -> PyResult<Bound<'py, PyTensor>> {
            let options = options(dtype, device, requires_grad);
            let place = options.device.unwrap_or(input.get().tensor().device());
            let generator = random::for_device(generator, place)?;
            fresh_of(input, |input| random::with(generator, || input.$with(options)))
        }
    )*};
}

drawn_like!(
    rand_like, rand_like_with: "Random numbers from 0 to 1 like another tensor.",
    randn_like, randn_like_with: "Random numbers from the normal distribution like another tensor."
);

/// One number everywhere.
#[pyfunction]
#[pyo3(signature = (size, fill_value, *, dtype = None, device = None, requires_grad = false))]
fn full<'py>(
    py: Python<'py>,
    size: Vec<i64>,
    fill_value: Number,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyTensor>> {
    let options = options(dtype, device, requires_grad);
    fresh(py, || Tensor::full(&size, fill_value.scalar(), options))
}

/// Numbers from `start` up to but not including `end`.
#[pyfunction]
#[pyo3(signature = (*bounds, start = None, end = None, step = None, dtype = None, device = None, requires_grad = false))]
#[expect(clippy::too_many_arguments, reason = "PyTorch's")]
fn arange<'py>(
    py: Python<'py>,
    bounds: Vec<Number>,
    start: Option<Number>,
    end: Option<Number>,
    step: Option<Number>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyTensor>> {
    // By place or by name; the one bound that is given alone by place is the end.
    let (start, end, step) = match (bounds.as_slice(), start, end, step) {
        (&[end], start, None, step) => (start, end, step),
        (&[start], None, Some(end), step) | (&[start, end], None, None, step) => {
            (Some(start), end, step)
        }
        (&[start, end, step], None, None, None) => (Some(start), end, Some(step)),
        (&[], start, Some(end), step) => (start, end, step),
        _ => return Err(PyTypeError::new_err("arange takes an end, or start, end and step")),
    };
    let number = |given: Option<Number>, otherwise: i64| {
        given.map_or(Scalar::Int(otherwise), Number::scalar)
    };
    let (start, end, step) = (number(start, 0), end.scalar(), number(step, 1));
    let mut options = options(dtype, device, requires_grad);
    // As in PyTorch: whole numbers give int64, and one fraction among them float32.
    let fraction = [start, end, step].iter().any(|bound| matches!(bound, Scalar::Float(_)));
    options.dtype = options.dtype.or(Some(if fraction { DType::F32 } else { DType::I64 }));
    fresh(py, || Tensor::arange(start, end, step, options))
}

/// The identity matrix.
#[pyfunction]
#[pyo3(signature = (n, m = None, *, dtype = None, device = None, requires_grad = false))]
fn eye<'py>(
    py: Python<'py>,
    n: i64,
    m: Option<i64>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyTensor>> {
    fresh(py, || Tensor::eye([n, m.unwrap_or(n)], options(dtype, device, requires_grad)))
}

/// Random whole numbers from `low` (0 if it is left out) up to but not including `high`:
/// `randint(high, size)` or `randint(low, high, size)`.
#[pyfunction]
#[pyo3(signature = (*bounds, low = None, high = None, size = None, generator = None, dtype = None, device = None, requires_grad = false))]
#[expect(clippy::too_many_arguments, reason = "PyTorch's")]
fn randint<'py>(
    py: Python<'py>,
    bounds: &Bound<'py, PyTuple>,
    low: Option<i64>,
    high: Option<i64>,
    size: Option<Vec<i64>>,
    generator: Option<&Bound<'py, PyGenerator>>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyTensor>> {
    let wrong = || PyTypeError::new_err("randint takes a high and a size, or low, high and size");
    let mut given: Vec<Bound<'py, PyAny>> = bounds.iter().collect();
    let size = match size {
        Some(size) => size,
        None => given.pop().ok_or_else(wrong)?.extract()?,
    };
    let numbers: Vec<i64> = given.iter().map(|number| number.extract()).collect::<PyResult<_>>()?;
    let (low, high) = match (numbers.as_slice(), low, high) {
        (&[high], low, None) => (low.unwrap_or(0), high),
        (&[low], None, Some(high)) | (&[low, high], None, None) => (low, high),
        (&[], low, Some(high)) => (low.unwrap_or(0), high),
        _ => return Err(wrong()),
    };
    let options = options(dtype, device, requires_grad);
    let generator = random::for_device(generator, options.device.unwrap_or(Device::cpu()))?;
    fresh(py, || random::with(generator, || Tensor::randint(low, high, &size, options)))
}

/// Elements of `input` where `condition` holds, of `other` elsewhere.
#[pyfunction]
fn r#where<'py>(
    condition: &Bound<'py, PyTensor>,
    input: Given<'py>,
    other: Given<'py>,
) -> PyResult<Bound<'py, PyTensor>> {
    let objects = [condition.as_any(), &input.object, &other.object];
    let class = subclass::of_all(objects.into_iter().cloned())?;
    let (py, condition) = (condition.py(), condition.get().tensor());
    let (input, other) = (&input.operand, &other.operand);
    fresh_as(py, &class, || Tensor::where_(&condition, input.other(), other.other()))
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
    let place = device.map_or(Device::cpu(), |device| device.0);
    let plain = if let Ok(other) = data.cast::<PyTensor>() {
        let other = other.get().tensor().detach();
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
    wrap(py, numpy::from_array(py, array)?)
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
    let (mut values, mut shape) = (Vec::new(), Vec::new());
    collect(data, 0, &mut shape, &mut values)?;
    let class = values.iter().map(|value| value.class()).max();
    let inferred = match class {
        Some(plimsoll_core::DTypeClass::Bool) => DType::Bool,
        Some(plimsoll_core::DTypeClass::Integer) => DType::I64,
        _ => DType::F32,
    };
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
        let wide = match inferred {
            DType::F32 if !stays_whole => {
                let values: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
                Tensor::from_slice(&values, &shape, device)?
            }
            _ => {
                let values: Vec<i64> = values.iter().map(|value| value.to_i64()).collect();
                Tensor::from_slice(&values, &shape, device)?
            }
        };
        wide.to(dtype.map_or(inferred, |dtype| dtype.0))
    })
}

/// Values in row-major order; every list of one depth must have the same length.
fn collect(
    data: &Bound<'_, PyAny>,
    depth: usize,
    shape: &mut Vec<i64>,
    values: &mut Vec<Scalar>,
) -> PyResult<()> {
    let items: Vec<Bound<'_, PyAny>> = if let Ok(list) = data.cast::<PyList>() {
        list.iter().collect()
    } else if let Ok(tuple) = data.cast::<PyTuple>() {
        tuple.iter().collect()
    } else {
        if depth < shape.len() {
            return Err(PyValueError::new_err("the nested lists are not all of the same depth"));
        }
        values.push(data.extract::<Number>()?.scalar());
        return Ok(());
    };
    if depth == 64 {
        return Err(PyValueError::new_err("lists nested 64 deep or more make no tensor"));
    }
    if depth == shape.len() {
        if !values.is_empty() {
            return Err(PyValueError::new_err("the nested lists are not all of the same depth"));
        }
        shape.push(items.len() as i64);
    }
    if shape[depth] != items.len() as i64 {
        return Err(PyValueError::new_err(format!(
            "the lists at depth {depth} differ in length: {} and {}",
            shape[depth],
            items.len()
        )));
    }
    items.iter().try_for_each(|item| collect(item, depth + 1, shape, values))
}

/// The positions of the elements that are not zero: one row each, or one tensor for each dimension.
#[pyfunction]
#[pyo3(signature = (input, *, as_tuple = false))]
fn nonzero<'py>(input: &Bound<'py, PyTensor>, as_tuple: bool) -> PyResult<Bound<'py, PyAny>> {
    let named = pyo3::types::PyDict::new(input.py());
    named.set_item("as_tuple", as_tuple)?;
    input.call_method("nonzero", (), Some(&named))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(empty, module)?)?;
    module.add_function(wrap_pyfunction!(zeros, module)?)?;
    module.add_function(wrap_pyfunction!(ones, module)?)?;
    module.add_function(wrap_pyfunction!(rand, module)?)?;
    module.add_function(wrap_pyfunction!(randn, module)?)?;
    module.add_function(wrap_pyfunction!(empty_like, module)?)?;
    module.add_function(wrap_pyfunction!(zeros_like, module)?)?;
    module.add_function(wrap_pyfunction!(ones_like, module)?)?;
    module.add_function(wrap_pyfunction!(rand_like, module)?)?;
    module.add_function(wrap_pyfunction!(randn_like, module)?)?;
    module.add_function(wrap_pyfunction!(full, module)?)?;
    module.add_function(wrap_pyfunction!(arange, module)?)?;
    module.add_function(wrap_pyfunction!(eye, module)?)?;
    module.add_function(wrap_pyfunction!(randint, module)?)?;
    module.add_function(wrap_pyfunction!(nonzero, module)?)?;
    module.add_function(wrap_pyfunction!(r#where, module)?)?;
    module.add_function(wrap_pyfunction!(tensor, module)?)?;
    module.add_function(wrap_pyfunction!(from_numpy, module)?)?;
    module.add_function(wrap_pyfunction!(from_dlpack, module)?)
}
