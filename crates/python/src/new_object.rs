//! How a `Tensor` object is made. `Bound::new` asks `object.__new__`, which on CPython 3.11 and
//! 3.12 makes a dictionary for every object at once, and few tensors ever get an attribute. So the
//! memory is taken as `object.__new__` takes it, all zeros, and the tensor written into it: no
//! dictionary and no weak references yet, as a class has them that is written in C.
//!
//! That is right as long as an object is its header, the value, and the pointers to those two;
//! which is looked at once, and `Bound::new` used if there is anything else.

use plimsoll_tensor::Tensor;
use pyo3::PyTypeInfo;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::tensor::PyTensor;

/// Bytes of an object's header.
const HEADER: usize = size_of::<ffi::PyObject>();

/// A new object for a tensor, of the class `Tensor` itself. It is not yet the tensor's one object:
/// see `companion.rs`.
pub(crate) fn new_object(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyTensor>> {
    static IS_PLAIN: PyOnceLock<bool> = PyOnceLock::new();
    match IS_PLAIN.get(py) {
        Some(true) => in_zeros(py, PyTensor::new(tensor)),
        Some(false) => Bound::new(py, PyTensor::new(tensor)),
        None => {
            let object = Bound::new(py, PyTensor::new(tensor))?;
            let _ = IS_PLAIN.set(py, is_plain(&object)?);
            Ok(object)
        }
    }
}

/// Whether an object is its header, the value, and the pointers to its dictionary and its weak
/// references.
fn is_plain(object: &Bound<'_, PyTensor>) -> PyResult<bool> {
    let value = std::ptr::from_ref(object.get()).addr() - object.as_ptr().addr();
    let bytes: usize = object.get_type().getattr("__basicsize__")?.extract()?;
    Ok(value == HEADER
        && bytes == HEADER + size_of::<PyTensor>() + 2 * size_of::<*mut ffi::PyObject>())
}

fn in_zeros(py: Python<'_>, value: PyTensor) -> PyResult<Bound<'_, PyTensor>> {
    let class = PyTensor::type_object_raw(py);
    // SAFETY: attached; the class is alive as long as the module. The result is a new reference to
    // zeroed memory of the class's size, or null with an exception. A collection may see it before
    // the value is there: `__traverse__` looks whether it has its place.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(class, 0))? };
    // SAFETY: `is_plain` found the value behind the header, and room for it; nothing has looked at
    // the memory, so that nothing is overwritten that would have to be dropped.
    unsafe { object.as_ptr().cast::<u8>().add(HEADER).cast::<PyTensor>().write(value) };
    // SAFETY: an object of this class, whole from here on.
    Ok(unsafe { object.cast_into_unchecked() })
}
