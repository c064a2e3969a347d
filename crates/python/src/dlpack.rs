//! DLPack: tensors of the CPU and of GPUs to and from other frameworks without a copy. The
//! structures are the standard's, versions 0 and 1 (<https://dmlc.github.io/dlpack>); a capsule
//! named `dltensor` holds one until somebody takes it and renames the capsule.
//!
//! Note [Streams of two libraries]
//! Whoever asks for memory of a GPU names the stream that it will use it on, and the owner makes
//! that stream wait for its own work. So an export waits on the device, never on the host; an
//! import names our current stream. Memory that we imported goes back when our streams have passed
//! it.

use std::ffi::{CStr, c_void};
use std::sync::atomic::AtomicBool;

use plimsoll_core::{DType, Device};
use plimsoll_tensor::{Lent, Stream, Tensor, device};
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::call;
use crate::said_once;

const CPU: i32 = 1;
const CUDA: i32 = 2;
/// Host memory that a GPU's driver knows: the CPU's, to us.
const CUDA_HOST: i32 = 3;
/// In the standard, the stream that work goes to by default; 0 would be ambiguous.
const DEFAULT_STREAM: i64 = 1;
/// In the standard: do not wait for anything.
const NO_ORDER: i64 = -1;
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

/// What we hand over, with what must stay alive meanwhile. The structure comes first, so its
/// address is the box's.
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
        // SAFETY: `handed` is the first field of a box that `boxed` leaked, and deleters are called
        // once.
        drop(unsafe { Box::from_raw(handed.cast::<Export<H>>()) });
    }

    fn boxed(lent: Lent, device: DLDevice, make: impl FnOnce(DLTensor) -> H) -> *mut H {
        let tensor = lent.tensor();
        let data = lent.address() as *mut c_void;
        let mut shape: Vec<i64> = tensor.shape().iter().map(|&size| size as i64).collect();
        let mut strides: Vec<i64> = tensor.strides().iter().map(|&step| step as i64).collect();
        let described = DLTensor {
            data,
            device,
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

/// What `__dlpack__` is asked for.
pub(crate) struct Asked {
    /// The stream that the memory will be used on.
    pub(crate) stream: Option<i64>,
    /// The newest version that the receiver knows.
    pub(crate) max_version: Option<(u32, u32)>,
    /// The device that the receiver wants the memory on.
    pub(crate) device: Option<(i32, i32)>,
    /// Whether it must be a copy.
    pub(crate) copy: Option<bool>,
}

/// A capsule over a tensor's memory or a copy of it; of version 1 if the receiver knows it.
pub(crate) fn export<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    asked: &Asked,
) -> PyResult<Bound<'py, PyAny>> {
    if asked.device.is_some_and(|device| device_of(tensor.device()).ok() != Some(device)) {
        return Err(PyBufferError::new_err(
            "__dlpack__: memory is shared only where it is; copy it to the other device instead",
        ));
    }
    let copied;
    let tensor = if asked.copy == Some(true) {
        copied = call(py, || tensor.clone_tensor())?;
        &copied
    } else {
        tensor
    };
    let versioned = asked.max_version.is_some_and(|(major, _)| major >= 1);
    to_capsule(py, tensor, asked.stream, versioned)
}

/// Makes the receiver's stream wait for the work that writes the memory.
/// See Note [Streams of two libraries].
fn order(py: Python<'_>, lent: &Lent, stream: Option<i64>) -> PyResult<()> {
    if !lent.tensor().device().is_cuda() {
        return match stream {
            None | Some(NO_ORDER) => Ok(()),
            Some(_) => Err(PyBufferError::new_err(
                "__dlpack__: memory of the CPU has no streams; leave `stream` out",
            )),
        };
    }
    match stream.unwrap_or(DEFAULT_STREAM) {
        NO_ORDER => Ok(()),
        raw @ 1.. => {
            // SAFETY: the standard says that the number is a stream of this GPU that is alive.
            call(py, || unsafe { lent.ready_on_raw_stream(raw as usize) })
        }
        other => Err(PyBufferError::new_err(format!(
            "__dlpack__: {other} is no stream of CUDA: use 1 for the default stream, 2 for the \
             thread's, a handle, or -1 not to wait"
        ))),
    }
}

fn to_capsule<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    stream: Option<i64>,
    versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if tensor.requires_grad() {
        return Err(PyBufferError::new_err(
            "__dlpack__: this tensor requires gradients, which others would lose; use detach() first",
        ));
    }
    let (device_type, device_id) = device_of(tensor.device())?;
    let device = DLDevice { device_type, device_id };
    let lent = call(py, || tensor.lend())?;
    order(py, &lent, stream)?;
    if versioned {
        let handed = Export::<ManagedVersioned>::boxed(lent, device, |tensor| ManagedVersioned {
            major: 1,
            minor: 0,
            context: std::ptr::null_mut(),
            deleter: Some(Export::<ManagedVersioned>::free),
            flags: 0,
            tensor,
        });
        capsule(py, handed)
    } else {
        let handed = Export::<Managed>::boxed(lent, device, |tensor| Managed {
            tensor,
            context: std::ptr::null_mut(),
            deleter: Some(Export::<Managed>::free),
        });
        capsule(py, handed)
    }
}

fn capsule<H: Handed>(py: Python<'_>, handed: *mut H) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: `handed` is alive until a deleter runs: the capsule's, if nobody takes it, or the
    // taker's.
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
    // SAFETY: Python calls this once with a capsule of ours; the name says whether the structure is
    // still ours.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, H::NAME.as_ptr()) != 0 {
            H::delete(ffi::PyCapsule_GetPointer(capsule, H::NAME.as_ptr()).cast());
        }
    }
}

/// A structure that was taken out of a capsule; given back when the tensors on it are gone.
struct Taken<H: Handed>(*mut H);

// SAFETY: the standard lets any thread call a deleter, and nothing else of the structure is used
// after construction.
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
        let device: (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        let device = device_named(py, device.0, device.1)?;
        let newest = PyDict::new(py);
        newest.set_item("max_version", (1, 0))?;
        if device.is_cuda() {
            let raw = call(py, || Stream::current(device).raw())?;
            newest.set_item("stream", (raw as i64).max(DEFAULT_STREAM))?;
        }
        // Older objects do not know the version.
        match object.call_method("__dlpack__", (), Some(&newest)) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                newest.del_item("max_version")?;
                object.call_method("__dlpack__", (), Some(&newest))?
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
    Err(PyRuntimeError::new_err(
        "from_dlpack: this is neither an object with __dlpack__ nor an unused capsule of one",
    ))
}

fn take<H: Handed>(capsule: &Bound<'_, PyAny>) -> PyResult<Option<Taken<H>>> {
    // SAFETY: the capsule is alive; its name says that it holds an `H` that nobody has taken, and
    // the new name that we have.
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
    let (tensor, read_only) = (handed.tensor(), handed.read_only());
    let device = device_named(py, tensor.device.device_type, tensor.device.device_id)?;
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
    // SAFETY: whoever made the structure promises these elements at these strides until its deleter
    // is called, which `taken` does when the last tensor goes; what may not be written to leaves
    // this function only as a copy. Python programs keep threads apart as with any shared array. A
    // GPU's memory is ordered before our current stream; see Note [Streams of two libraries].
    let shared = call(py, || unsafe {
        Tensor::from_foreign_on(device, taken, address, &sizes, &strides, dtype)
    })?;
    if !read_only {
        return Ok(shared);
    }
    // As of NumPy's arrays.
    static SAID: AtomicBool = AtomicBool::new(false);
    let message = "The memory given by DLPack is read-only, and a tensor can be written to: the tensor has a copy of its \
                   values. Hand over a copy to be without this warning.";
    said_once::warn(py, &SAID, message)?;
    call(py, || shared.clone_tensor())
}

/// The device that DLPack's type and number name.
fn device_named(py: Python<'_>, kind: i32, number: i32) -> PyResult<Device> {
    match (kind, usize::try_from(number)) {
        (CPU | CUDA_HOST, _) => Ok(Device::cpu()),
        (CUDA, Ok(number)) => call(py, || device::cuda(number)),
        _ => Err(PyBufferError::new_err(format!(
            "from_dlpack: the memory is on a device of DLPack's type {kind}, and only that of the CPU (1) and of CUDA (2) is shared; copy it to the CPU first"
        ))),
    }
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
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
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
        (0, 8) => Some(DType::I8),
        (0, 16) => Some(DType::I16),
        (0, 32) => Some(DType::I32),
        (0, 64) => Some(DType::I64),
        (2, 16) => Some(DType::F16),
        (2, 32) => Some(DType::F32),
        (2, 64) => Some(DType::F64),
        (4, 16) => Some(DType::BF16),
        _ => None,
    }
}

/// DLPack's name for a device.
pub(crate) fn device_of(device: Device) -> PyResult<(i32, i32)> {
    if device.is_cpu() {
        return Ok((CPU, 0));
    }
    match device::cuda_ordinal(device) {
        Ok(ordinal) => Ok((CUDA, ordinal as i32)),
        Err(_) => Err(PyBufferError::new_err(format!(
            "__dlpack_device__: only the memory of the CPU and of GPUs is shared, and this is on \
             {device}; use cpu() first"
        ))),
    }
}
