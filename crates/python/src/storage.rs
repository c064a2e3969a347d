//! A tensor's storage: the memory that all of its views share.

use plimsoll_tensor::Tensor;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::call;
use crate::companion::wrap;
use crate::device::PyDevice;
use crate::dtype::DTypeArg;
use crate::error::to_python;
use crate::tensor::PyTensor;

/// What `untyped_storage` gives: how many bytes the storage has, and where. It keeps the memory
/// alive, as a tensor does.
#[pyclass(frozen, name = "UntypedStorage", module = "plimsoll")]
pub(crate) struct PyStorage(Tensor);

impl PyStorage {
    /// A tensor on it.
    pub(crate) fn tensor(&self) -> &Tensor {
        &self.0
    }
}

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

    /// The address of its first byte if the memory is not Plimsoll's own. Asking does not keep the
    /// memory where it is, as `data_ptr` does.
    fn _foreign_address(&self) -> Option<usize> {
        self.0.foreign_address()
    }

    /// Moves it, with every tensor on it, into the shared memory of a region of the package's
    /// `multiprocessing/_regions.py`.
    fn _move_to_region(&self, py: Python<'_>, region: &Bound<'_, PyAny>) -> PyResult<()> {
        let address: usize = region.getattr("address")?.extract()?;
        let bytes: usize = region.getattr("nbytes")?.extract()?;
        if bytes < self.0.storage_nbytes() {
            let needed = self.0.storage_nbytes();
            return Err(PyValueError::new_err(format!(
                "share_memory_: a region of {bytes} bytes does not hold {needed}"
            )));
        }
        let owner = region.clone().unbind();
        // SAFETY: the region, which the storage keeps alive, has mapped as many bytes at its
        // address, for reading and writing, and gives them to nobody else of this process. Whoever
        // asks for a tensor's address to use it (arrays, DLPack) holds the interpreter while it
        // reads it, and so does this from beginning to end. What other processes do with the bytes
        // is the program's part, as it is between threads that share an array.
        unsafe { self.0.move_storage(owner, address) }.map_err(|error| to_python(py, error))
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
    fn untyped_storage(&self, py: Python<'_>) -> PyStorage {
        PyStorage(self.tensor(py).detach())
    }
}

/// A tensor over elements at an address: of memory that `multiprocessing/_regions.py` has mapped,
/// and of messages between workers, neither of which needs NumPy. Strides count elements.
#[pyfunction]
fn _tensor_at<'py>(
    py: Python<'py>,
    owner: Py<PyAny>,
    address: usize,
    dtype: DTypeArg,
    sizes: Vec<i64>,
    strides: Vec<i64>,
) -> PyResult<Bound<'py, PyTensor>> {
    // SAFETY: only the package calls this, with an owner that keeps the elements mapped, for
    // reading and writing, as long as the tensor keeps the owner. What other processes do with them
    // is the program's part, as it is between threads that share an array.
    let over =
        call(py, || unsafe { Tensor::from_foreign(owner, address, &sizes, &strides, dtype.0) })?;
    wrap(py, over)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStorage>()?;
    module.add_function(wrap_pyfunction!(_tensor_at, module)?)
}
