//! A tensor's storage: the memory that all of its views share.

use plimsoll_tensor::Tensor;
use pyo3::prelude::*;

use crate::call::call;
use crate::device::PyDevice;
use crate::tensor::PyTensor;

/// What `untyped_storage` gives: how many bytes the storage has, and where. It keeps the memory
/// alive, as a tensor does.
#[pyclass(frozen, name = "UntypedStorage", module = "plimsoll")]
pub(crate) struct PyStorage(Tensor);

#[pymethods]
impl PyStorage {
    /// Its size.
    fn nbytes(&self) -> usize {
        self.0.storage_nbytes()
    }

    /// Its size: an element of an untyped storage is a byte.
    fn size(&self) -> usize {
        self.0.storage_nbytes()
    }

    fn __len__(&self) -> usize {
        self.0.storage_nbytes()
    }

    /// The address of its first byte.
    fn data_ptr(&self, py: Python<'_>) -> PyResult<usize> {
        let offset = self.0.storage_offset() * self.0.dtype().size_bytes();
        Ok(call(py, || self.0.data_ptr())? - offset)
    }

    /// A number that is this storage's as long as somebody holds it, also where no memory is behind
    /// it.
    #[getter]
    fn _cdata(&self) -> usize {
        self.0.storage_id()
    }

    /// Where it is.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.0.device())
    }

    fn __repr__(&self) -> String {
        format!("UntypedStorage of {} bytes on {}", self.0.storage_nbytes(), self.0.device())
    }
}

#[pymethods]
impl PyTensor {
    /// The memory that this tensor and all of its views share.
    fn untyped_storage(&self) -> PyStorage {
        PyStorage(self.tensor().detach())
    }
}
