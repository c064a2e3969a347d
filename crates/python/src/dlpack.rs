//! DLPack: tensors of the CPU to and from other frameworks without a copy. The structures are the standard's, versions 0 and 1
//! (<https://dmlc.github.io/dlpack>); a capsule named `dltensor` holds one until somebody takes it and renames the capsule.

use std::ffi::{CStr, c_void};

use plimsoll_core::{DType, Device};
use plimsoll_tensor::{Lent, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::call;

const CPU: i32 = 1;
/// Bit of `flags` that forbids writing.
const READ_ONLY: u64 = 1;

#[repr(C)]
struct DLDevice {
    device_type: i32,
    device_id: i32,
}

#[repr(C)]
struct DLDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device: DLDevice,
    ndim: i32,
    dtype: DLDataType,
    shape: *mut i64,
    /// In elements; null is row-major.
    strides: *mut i64,
    byte_offset: u64,
}

/// What version 0 hands over.
#[repr(C)]
struct Managed {
    tensor: DLTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// What version 1 hands over.
#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DLTensor,
}

/// A layout of [`Managed`] or [`ManagedVersioned`] that a capsule can carry.
trait Handed: Sized + 'static {
    /// The capsule's name before and after it was taken.
    const NAME: &'static CStr;
    const USED: &'static CStr;
    fn tensor(&self) -> &DLTensor;
    fn read_only(&self) -> bool;
    /// Gives the structure back to whoever made it.
    ///
    /// # Safety
    /// `this` was taken out of a capsule of this type and is not used afterwards.
    unsafe fn delete(this: *mut Self);
}

impl Handed for Managed {
    const NAME: &'static CStr = c"dltensor";
    const USED: &'static CStr = c"used_dltensor";

    fn tensor(&self) -> &DLTensor {
        &self.tensor
    }

    fn read_only(&self) -> bool {
        false
    }

    unsafe fn delete(this: *mut Managed) {
        // SAFETY: the caller owns the structure; its maker's deleter frees it once.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

impl Handed for ManagedVersioned {
    const NAME: &'static CStr = c"dltensor_versioned";
    const USED: &'static CStr = c"used_dltensor_versioned";

    fn tensor(&self) -> &DLTensor {
        &self.tensor
    }

    fn read_only(&self) -> bool {
        self.flags & READ_ONLY != 0
    }

    unsafe fn delete(this: *mut ManagedVersioned) {
        // SAFETY: as for `Managed`.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

/// What we hand over, with what must stay alive meanwhile. The structure comes first, so its address is the box's.
#[repr(C)]
struct Export<H> {
    handed: H,
    #[allow(dead_code, reason = "held for its drop")]
    lent: Lent,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl<H> Export<H> {
    /// Frees an export. The type is `H`'s for `deleter`.
    unsafe extern "C" fn free(handed: *mut H) {
        // SAFETY: `handed` is the first field of a box that `boxed` leaked, and deleters are called once.
        drop(unsafe { Box::from_raw(handed.cast::<Export<H>>()) });
    }

    fn boxed(lent: Lent, make: impl FnOnce(DLTensor) -> H) -> *mut H {
        let tensor = lent.tensor();
        let data = lent.address() as *mut c_void;
        let mut shape: Vec<i64> = tensor.shape().iter().map(|&size| size as i64).collect();
        let mut strides: Vec<i64> = tensor.strides().iter().map(|&step| step as i64).collect();
        let described = DLTensor {
            data,
            device: DLDevice { device_type: CPU, device_id: 0 },
            ndim: shape.len() as i32,
            dtype: described(tensor.dtype()),
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut_ptr(),
            byte_offset: 0,
        };
        // Moving a vector into the box does not move its elements.
        let export = Export { handed: make(described), lent, shape, strides };
        debug_assert_eq!(export.shape.len(), export.strides.len());
        Box::into_raw(Box::new(export)).cast()
    }
}

/// A capsule over a tensor's memory; of version 1 if the receiver knows it.
pub(crate) fn to_capsule<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if tensor.requires_grad() {
        return Err(PyBufferError::new_err(
            "__dlpack__: this tensor requires gradients, which others would lose; use detach() first",
        ));
    }
    if !tensor.device().is_cpu() {
        return Err(PyBufferError::new_err(format!(
            "__dlpack__: the memory is on {}, and only that of the CPU is shared; use cpu() first",
            tensor.device()
        )));
    }
    let lent = call(py, || tensor.lend())?;
    if versioned {
        let handed = Export::<ManagedVersioned>::boxed(lent, |tensor| ManagedVersioned {
            major: 1,
            minor: 0,
            context: std::ptr::null_mut(),
            deleter: Some(Export::<ManagedVersioned>::free),
            flags: 0,
            tensor,
        });
        capsule(py, handed)
    } else {
        let handed = Export::<Managed>::boxed(lent, |tensor| Managed {
            tensor,
            context: std::ptr::null_mut(),
            deleter: Some(Export::<Managed>::free),
        });
        capsule(py, handed)
    }
}

fn capsule<H: Handed>(py: Python<'_>, handed: *mut H) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: `handed` is alive until a deleter runs: the capsule's, if nobody takes it, or the taker's.
    unsafe {
        let capsule = ffi::PyCapsule_New(handed.cast(), H::NAME.as_ptr(), Some(unclaimed::<H>));
        if capsule.is_null() {
            H::delete(handed);
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// Destructor of a capsule: frees what nobody took. A taken one has another name.
unsafe extern "C" fn unclaimed<H: Handed>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this once with a capsule of ours; the name says whether the structure is still ours.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, H::NAME.as_ptr()) != 0 {
            H::delete(ffi::PyCapsule_GetPointer(capsule, H::NAME.as_ptr()).cast());
        }
    }
}

/// A structure that was taken out of a capsule; given back when the tensors on it are gone.
struct Taken<H: Handed>(*mut H);

// SAFETY: the standard lets any thread call a deleter, and nothing else of the structure is used after construction.
unsafe impl<H: Handed> Send for Taken<H> {}
// SAFETY: as for Send; a shared `Taken` offers nothing.
unsafe impl<H: Handed> Sync for Taken<H> {}

impl<H: Handed> Drop for Taken<H> {
    fn drop(&mut self) {
        // A deleter of Python's side may touch reference counts.
        Python::attach(|_| {
            // SAFETY: taken once, in `take`, and given back once, here.
            unsafe { H::delete(self.0) }
        });
    }
}

/// A tensor over the memory of an object that speaks DLPack.
pub(crate) fn from_object(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let capsule = if object.hasattr("__dlpack__")? {
        let (kind, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        if kind != CPU {
            return Err(PyBufferError::new_err(format!(
                "from_dlpack: the memory is on a device of DLPack's type {kind}, and only that of the CPU (1) is shared; copy it to the CPU first"
            )));
        }
        let newest = PyDict::new(py);
        newest.set_item("max_version", (1, 0))?;
        // Older objects do not know the argument.
        match object.call_method("__dlpack__", (), Some(&newest)) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                object.call_method0("__dlpack__")?
            }
            answer => answer?,
        }
    } else {
        object.clone()
    };
    if let Some(taken) = take::<ManagedVersioned>(&capsule)? {
        return over(py, taken);
    }
    if let Some(taken) = take::<Managed>(&capsule)? {
        return over(py, taken);
    }
    Err(PyTypeError::new_err(
        "from_dlpack: this is neither an object with __dlpack__ nor an unused capsule of one",
    ))
}

fn take<H: Handed>(capsule: &Bound<'_, PyAny>) -> PyResult<Option<Taken<H>>> {
    // SAFETY: the capsule is alive; its name says that it holds an `H` that nobody has taken, and the new name that we have.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), H::NAME.as_ptr()) == 0 {
            return Ok(None);
        }
        let handed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), H::NAME.as_ptr());
        if ffi::PyCapsule_SetName(capsule.as_ptr(), H::USED.as_ptr()) != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok(Some(Taken(handed.cast())))
    }
}

fn over<H: Handed>(py: Python<'_>, taken: Taken<H>) -> PyResult<Tensor> {
    let refuse = |why: &str| Err(PyBufferError::new_err(format!("from_dlpack: {why}")));
    // SAFETY: the structure is alive until `taken` drops.
    let handed = unsafe { &*taken.0 };
    let tensor = handed.tensor();
    if handed.read_only() {
        return refuse("the memory is read-only, and a tensor can be written to; copy it first");
    }
    if tensor.device.device_type != CPU {
        return refuse("only the memory of the CPU is shared; copy it to the CPU first");
    }
    let Some(dtype) = dtype_of(&tensor.dtype) else {
        return refuse("it has a dtype that Plimsoll does not have; convert it first");
    };
    let Ok(rank) = usize::try_from(tensor.ndim) else { return refuse("it has a negative rank") };
    // SAFETY: the standard says that `shape` and `strides`, where not null, have `ndim` entries.
    let list = |entries: *mut i64| unsafe {
        (!entries.is_null()).then(|| std::slice::from_raw_parts(entries, rank).to_vec())
    };
    let sizes = list(tensor.shape).unwrap_or_default();
    if sizes.len() != rank {
        return refuse("it has no shape");
    }
    let strides = list(tensor.strides).unwrap_or_else(|| row_major(&sizes));
    let address = tensor.data.addr().wrapping_add(tensor.byte_offset as usize);
    // SAFETY: whoever made the structure promises these elements at these strides until its deleter is called, which `taken` does when
    // the last tensor goes; writing was allowed above. Python programs keep threads apart as with any shared array.
    call(py, || unsafe { Tensor::from_foreign(taken, address, &sizes, &strides, dtype) })
}

fn row_major(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = sizes[dim].max(1).saturating_mul(strides[dim]);
    }
    strides
}

/// Codes: 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool.
fn described(dtype: DType) -> DLDataType {
    let code = match dtype {
        DType::Bool => 6,
        DType::U8 => 1,
        DType::I32 | DType::I64 => 0,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::BF16 => 4,
    };
    DLDataType { code, bits: 8 * dtype.size_bytes() as u8, lanes: 1 }
}

fn dtype_of(dtype: &DLDataType) -> Option<DType> {
    if dtype.lanes != 1 {
        return None;
    }
    match (dtype.code, dtype.bits) {
        (6, 8) => Some(DType::Bool),
        (1, 8) => Some(DType::U8),
        (0, 32) => Some(DType::I32),
        (0, 64) => Some(DType::I64),
        (2, 16) => Some(DType::F16),
        (2, 32) => Some(DType::F32),
        (2, 64) => Some(DType::F64),
        (4, 16) => Some(DType::BF16),
        _ => None,
    }
}

/// DLPack's name for a device of the CPU.
pub(crate) fn device_of(device: Device) -> PyResult<(i32, i32)> {
    if device.is_cpu() {
        return Ok((CPU, 0));
    }
    Err(PyBufferError::new_err(format!(
        "__dlpack_device__: only the memory of the CPU is shared, and this is on {device}"
    )))
}
