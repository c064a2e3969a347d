//! Memory shared with others, by method: NumPy arrays and DLPack capsules. What they are made of is
//! in `numpy.rs` and `dlpack.rs`.

use plimsoll_core::DType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::companion::wrap;
use crate::tensor::PyTensor;

#[pymethods]
impl PyTensor {
    /// A NumPy array over the same memory. With `force`, also of a tensor that requires gradients
    /// or is on another device.
    #[pyo3(signature = (*, force = false))]
    fn numpy<'py>(&self, py: Python<'py>, force: bool) -> PyResult<Bound<'py, PyAny>> {
        if force {
            let plain = self.run(py, |this| this.detach().cpu())?;
            return crate::numpy::to_array(py, &plain);
        }
        if self.tensor(py).requires_grad() && plimsoll_tensor::is_grad_enabled() {
            return Err(pyo3::exceptions::PyRuntimeError::new_err(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
            ));
        }
        crate::numpy::to_array(py, &self.tensor(py))
    }

    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shared = self.numpy(py, false)?;
        let dtype = match dtype {
            Some(dtype) => dtype,
            None => shared.getattr("dtype")?,
        };
        // `astype` copies only if it must, or if it was told to.
        let converts = !shared.getattr("dtype")?.eq(&dtype)?;
        if converts && copy == Some(false) {
            return Err(PyValueError::new_err(
                "another dtype takes a copy, and copy=False forbids it",
            ));
        }
        let copies = pyo3::types::PyDict::new(py);
        copies.set_item("copy", converts || copy == Some(true))?;
        shared.call_method("astype", (dtype,), Some(&copies))
    }

    /// NumPy leaves operators to whoever ranks higher.
    #[classattr]
    fn __array_priority__() -> u32 {
        1000
    }

    /// What a function of NumPy's computed from tensors, as a tensor; truths as bytes, as in
    /// PyTorch.
    #[pyo3(signature = (array, _context = None, _return_scalar = false))]
    fn __array_wrap__<'py>(
        &self,
        array: &Bound<'py, PyAny>,
        _context: Option<&Bound<'py, PyAny>>,
        _return_scalar: bool,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let py = array.py();
        let array = match crate::numpy::dtype_of_array(array) {
            Ok(DType::Bool) => array.call_method1("astype", ("uint8",))?,
            _ => array.clone(),
        };
        wrap(py, crate::numpy::from_array(py, &array)?)
    }

    /// The memory for another framework, as the DLPack standard hands it over.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = crate::dlpack::Asked { stream, max_version, device: dl_device, copy };
        crate::dlpack::export(py, &self.tensor(py), &asked)
    }

    fn __dlpack_device__(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        crate::dlpack::device_of(self.tensor(py).device())
    }
}
