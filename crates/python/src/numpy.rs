//! NumPy arrays and tensors over the same memory, without a copy. NumPy is found at run time,
//! through Python: the limited interface of Python 3.10 has no buffers, and arrays tell their
//! address themselves (`__array_interface__`).

use plimsoll_core::{DType, Device};
use plimsoll_tensor::{Lent, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PySlice, PyTuple};

use crate::call::call;

/// A class of NumPy's, if the program uses NumPy.
fn class<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
    let modules = py.import(intern!(py, "sys")).ok()?.getattr(intern!(py, "modules")).ok()?;
    modules.get_item(intern!(py, "numpy")).ok()?.getattr(name).ok()
}

/// Whether the object is a NumPy array.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    let class = class(object.py(), "ndarray");
    class.is_some_and(|class| object.is_instance(&class).unwrap_or(false))
}

/// The dtype of one of NumPy's numbers; none for any other object.
pub(crate) fn dtype_of_number(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    match class(object.py(), "generic") {
        Some(class) if object.is_instance(&class)? => Ok(Some(dtype_of(object)?.0)),
        _ => Ok(None),
    }
}

/// The dtype of an array.
pub(crate) fn dtype_of_array(array: &Bound<'_, PyAny>) -> PyResult<DType> {
    dtype_of(array).map(|(dtype, _)| dtype)
}

/// A tensor's memory as NumPy wants to see it. The array keeps this object, and with it the memory.
#[pyclass(name = "_LentMemory", module = "plimsoll", frozen)]
pub(crate) struct LentMemory {
    lent: Lent,
    dtype: &'static str,
}

#[pymethods]
impl LentMemory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tensor = self.lent.tensor();
        let bytes = tensor.element_size();
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", self.dtype)?;
        interface.set_item("data", (self.lent.address(), false))?;
        interface.set_item("shape", PyTuple::new(py, tensor.shape())?)?;
        let strides = tensor.strides().iter().map(|stride| stride * bytes);
        interface.set_item("strides", PyTuple::new(py, strides.collect::<Vec<_>>())?)?;
        Ok(interface)
    }
}

impl LentMemory {
    /// The tensor whose memory it is.
    pub(crate) fn tensor(&self) -> &Tensor {
        self.lent.tensor()
    }
}

/// An array over the memory of a tensor of the CPU.
pub(crate) fn to_array<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let refuse = |why: &str| Err(PyTypeError::new_err(format!("numpy: {why}")));
    let dtype = match tensor.dtype() {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::BF16 => return refuse("NumPy has no bfloat16; use float() first"),
    };
    if !tensor.device().is_cpu() {
        let device = tensor.device();
        return refuse(&format!(
            "the memory is on {device}, where NumPy cannot go; use cpu() first"
        ));
    }
    let lent = call(py, || tensor.lend())?;
    // As in PyTorch, for good: nobody says when the last array over it goes.
    tensor.fix_storage_size();
    let numpy = py.import("numpy")?;
    if tensor.numel() == 0 {
        // An array without elements has no memory to share, and NumPy wants an address.
        return numpy.call_method1("empty", (tensor.shape().to_vec(), dtype));
    }
    numpy.call_method1("asarray", (Bound::new(py, LentMemory { lent, dtype })?,))
}

/// A tensor over the memory of a NumPy array, which must be writable.
pub(crate) fn from_array(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    from_writable(py, array)?.ok_or_else(|| {
        PyValueError::new_err(
            "from_numpy: the array is read-only, and a tensor can be written to; use tensor() for a copy",
        )
    })
}

/// The same; none if the array's memory may not be written to.
pub(crate) fn from_writable(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let array = &as_array(array)?;
    let interface = array.getattr(intern!(py, "__array_interface__"))?;
    let (dtype, name) = dtype_of(array)?;
    let bytes = dtype.size_bytes() as i64;
    let (address, read_only): (usize, bool) = interface.get_item("data")?.extract()?;
    if read_only {
        return Ok(None);
    }
    let sizes: Vec<i64> = array.getattr("shape")?.extract()?;
    let strides: Vec<i64> = array.getattr("strides")?.extract()?;
    check_strides(&strides, bytes, &name)?;
    let strides: Vec<i64> = strides.iter().map(|stride| stride / bytes).collect();
    let owner = array.clone().unbind();
    // SAFETY: the array, which the tensor keeps alive, has these elements of this dtype at these
    // strides from `address`, of which NumPy has initialized every one (its bools are 0 or 1), and
    // they are writable. That Python programs do not write to an array while an operation on
    // another thread uses it is their part, as it is between threads that share one array.
    call(py, || unsafe { Tensor::from_foreign(owner, address, &sizes, &strides, dtype) }).map(Some)
}

/// The object as an array of NumPy's, which keeps the object where it is over its memory. Only an
/// array's own attributes are what its memory is: another object's say what they like. A number's
/// interface is that of a temporary array, whose memory is gone before anybody reads it.
fn as_array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if is_array(object) {
        return Ok(object.clone());
    }
    if !object.hasattr(intern!(object.py(), "__array_interface__"))? {
        let given = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("expected np.ndarray (got {given})")));
    }
    object.py().import("numpy")?.call_method1(intern!(object.py(), "asarray"), (object,))
}

/// Refuses strides that no tensor has.
fn check_strides(strides: &[i64], bytes: i64, name: &str) -> PyResult<()> {
    match strides.iter().find(|stride| **stride < 0 || **stride % bytes != 0) {
        None => Ok(()),
        Some(stride) => Err(PyValueError::new_err(format!(
            "from_numpy: a stride of {stride} bytes between elements of {name} fits no tensor; use array.copy()"
        ))),
    }
}

/// A tensor with a copy of the elements of an array that may not be written to. Its dimensions are
/// in the order of the array's, without gaps; where the array repeats itself (`np.broadcast_to`)
/// each element is copied once.
pub(crate) fn copied_as_it_lies(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let array = &as_array(array)?;
    let sizes: Vec<i64> = array.getattr("shape")?.extract()?;
    let strides: Vec<i64> = array.getattr("strides")?.extract()?;
    let (dtype, name) = dtype_of(array)?;
    check_strides(&strides, dtype.size_bytes() as i64, &name)?;
    let stop = |(&size, &stride): (&i64, &i64)| if stride == 0 { size.min(1) } else { size };
    let stops = sizes.iter().zip(&strides).map(stop);
    let once = PyTuple::new(py, stops.map(|stop| PySlice::new(py, 0, stop as isize, 1)))?;
    let once = from_array(py, &array.get_item(once)?.call_method1("copy", ("K",))?)?;
    call(py, || once.expand(&sizes))
}

/// A new tensor on `device` with a copy of the array's elements.
pub(crate) fn copy_array(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    device: Device,
) -> PyResult<Tensor> {
    // What cannot be shared (read-only, negative strides) NumPy copies first; all else is copied
    // once, into the arena.
    let shared = from_array(py, array).or_else(|_| {
        let order = [("order", "C")].into_py_dict(py)?;
        from_array(py, &py.import("numpy")?.call_method("array", (array,), Some(&order))?)
    })?;
    call(py, || {
        let dense = shared.contiguous()?;
        let ours = !dense.shares_storage_with(&shared);
        if ours || device != Device::CPU { dense.to(device) } else { dense.clone_tensor() }
    })
}

fn dtype_of(array: &Bound<'_, PyAny>) -> PyResult<(DType, String)> {
    let dtype = array.getattr("dtype")?;
    let name: String = dtype.getattr("name")?.extract()?;
    let native: bool = dtype.getattr("isnative")?.extract()?;
    let known = match name.as_str() {
        "bool" => Some(DType::Bool),
        "uint8" => Some(DType::U8),
        "int8" => Some(DType::I8),
        "int16" => Some(DType::I16),
        "int32" => Some(DType::I32),
        "int64" => Some(DType::I64),
        "float16" => Some(DType::F16),
        "float32" => Some(DType::F32),
        "float64" => Some(DType::F64),
        _ => None,
    };
    match known {
        Some(dtype) if native => Ok((dtype, name)),
        Some(_) => Err(PyValueError::new_err(format!(
            "from_numpy: the bytes of these {name} elements are in foreign order; use astype(\"{name}\") first"
        ))),
        None => Err(PyTypeError::new_err(format!(
            "from_numpy: {name} is not a dtype that Plimsoll has; use astype() first"
        ))),
    }
}
