//! To and from NumPy, by a copy. NumPy is found at run time, through Python: the limited interface of Python 3.10 has no
//! buffers, and its arrays tell their address themselves.

use half::f16;
use plimsoll_core::{DType, Device};
use plimsoll_kernels::{Element, Truth};
use plimsoll_tensor::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::call::call;

/// A new array with the tensor's elements.
pub(crate) fn to_array<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let name = match tensor.dtype() {
        DType::BF16 => {
            return Err(PyTypeError::new_err("numpy: NumPy has no bfloat16; use float() first"));
        }
        dtype => dtype.name(),
    };
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("empty", (tensor.shape().to_vec(), name))?;
    let address = address(&array)?;
    match tensor.dtype() {
        DType::Bool => fill::<Truth>(py, tensor, address)?,
        DType::U8 => fill::<u8>(py, tensor, address)?,
        DType::I32 => fill::<i32>(py, tensor, address)?,
        DType::I64 => fill::<i64>(py, tensor, address)?,
        DType::F16 => fill::<f16>(py, tensor, address)?,
        DType::F64 => fill::<f64>(py, tensor, address)?,
        _ => fill::<f32>(py, tensor, address)?,
    }
    Ok(array)
}

fn fill<T: Element>(py: Python<'_>, tensor: &Tensor, address: usize) -> PyResult<()> {
    let values = call(py, || tensor.to_vec::<T>())?;
    // SAFETY: `address` is the start of a fresh contiguous array of `numel` elements of this type, which nobody else has seen.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), address as *mut T, values.len()) };
    Ok(())
}

/// A new tensor with the array's elements.
pub(crate) fn from_array(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    device: Device,
) -> PyResult<Tensor> {
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("ascontiguousarray", (array,))?;
    // `ascontiguousarray` gives a zero-dimensional array one dimension; the shape that counts is the original's.
    let shape: Vec<i64> = array.getattr("shape")?.extract()?;
    let name: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    let address = address(&array)?;
    match name.as_str() {
        "bool" => read::<Truth>(py, address, &shape, device),
        "uint8" => read::<u8>(py, address, &shape, device),
        "int32" => read::<i32>(py, address, &shape, device),
        "int64" => read::<i64>(py, address, &shape, device),
        "float16" => read::<f16>(py, address, &shape, device),
        "float32" => read::<f32>(py, address, &shape, device),
        "float64" => read::<f64>(py, address, &shape, device),
        _ => Err(PyTypeError::new_err(format!(
            "from_numpy: {name} is not a dtype that Plimsoll has; use astype() first"
        ))),
    }
}

fn read<T: Element>(
    py: Python<'_>,
    address: usize,
    shape: &[i64],
    device: Device,
) -> PyResult<Tensor> {
    let count = shape.iter().product::<i64>() as usize;
    if count == 0 {
        return call(py, || Tensor::from_slice::<T>(&[], shape, device));
    }
    // SAFETY: the caller holds the contiguous array of `count` elements of this type at `address`, and NumPy's bools are 0 or 1.
    let values = unsafe { std::slice::from_raw_parts(address as *const T, count) };
    // Copied before the interpreter is released: other threads may write to the array then.
    let values = values.to_vec();
    call(py, || Tensor::from_slice(&values, shape, device))
}

fn address(array: &Bound<'_, PyAny>) -> PyResult<usize> {
    let interface = array.getattr("__array_interface__")?;
    interface.get_item("data")?.get_item(0)?.extract()
}
