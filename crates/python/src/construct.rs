//! Making `Tensor` objects by their class: `Tensor(...)` and its subclasses, as PyTorch's old
//! constructor takes its arguments, and `_make_subclass`, which parameters are made with.

use plimsoll_core::Device;
use plimsoll_tensor::{Tensor, default_dtype};
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::bind::sizes;
use crate::call::call;
use crate::companion::{Handle, instance, register};
use crate::create::from_lists;
use crate::device::DeviceArg;
use crate::dtype::DTypeArg;
use crate::tensor::{PyTensor, TensorObject};

#[pymethods]
impl PyTensor {
    /// `Tensor(2, 3)` is memory of that shape, `Tensor([1, 2])` has these values as floats,
    /// `Tensor(x)` shares the memory of `x`.
    #[new]
    #[pyo3(signature = (*data, device = None))]
    fn construct(
        py: Python<'_>,
        data: &Bound<'_, PyTuple>,
        device: Option<DeviceArg>,
    ) -> PyResult<PyTensor> {
        let first = data.get_item(0).ok();
        if let Some(Ok(handle)) = first.as_ref().map(|first| first.cast::<Handle>()) {
            return Ok(PyTensor::new(handle.get().0.clone()));
        }
        let place = device.map_or(Device::cpu(), |device| device.0);
        let options = (default_dtype(), place);
        let made = match &first {
            None => call(py, || Tensor::empty(&[0], options))?,
            Some(only)
                if data.len() == 1
                    && (only.is_instance_of::<PyTensor>() || only.extract::<i64>().is_err()) =>
            {
                of_values(py, only, place)?
            }
            Some(_) => {
                let sizes = sizes(data)?;
                call(py, || Tensor::empty(&sizes, options))?
            }
        };
        Ok(PyTensor::new(made))
    }

    /// Nothing is left to do, but here the object is known.
    #[pyo3(signature = (*_data, **_options))]
    fn __init__(
        slf: Bound<'_, PyTensor>,
        _data: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyDict>>,
    ) {
        register(slf);
    }

    /// A new object of the class `cls` over the memory of `data`, outside its graph.
    #[staticmethod]
    #[pyo3(signature = (cls, data, require_grad = false))]
    fn _make_subclass<'py>(
        cls: &Bound<'py, PyType>,
        data: &Bound<'py, PyTensor>,
        require_grad: bool,
    ) -> PyResult<Bound<'py, PyTensor>> {
        check_class("_make_subclass", cls)?;
        let alias = data.tensor().detach();
        let alias = call(cls.py(), || alias.requires_grad_(require_grad))?;
        instance(cls, alias)
    }

    /// This tensor as an object of the class `cls`: a view, within the graph.
    fn as_subclass<'py>(&self, cls: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyTensor>> {
        check_class("as_subclass", cls)?;
        let this = &self.tensor(cls.py());
        let view = call(cls.py(), || {
            let as_i64 =
                |sizes: &[usize]| sizes.iter().map(|&size| size as i64).collect::<Vec<_>>();
            let offset = this.storage_offset() as i64;
            this.as_strided(&as_i64(this.shape()), &as_i64(this.strides()), offset)
        })?;
        instance(cls, view)
    }
}

/// Another tensor's memory, or the values of lists.
fn of_values(py: Python<'_>, data: &Bound<'_, PyAny>, device: Device) -> PyResult<Tensor> {
    if let Ok(tensor) = data.cast::<PyTensor>() {
        return Ok(tensor.tensor().detach());
    }
    if data.try_iter().is_err() {
        return Err(PyTypeError::new_err(format!(
            "Tensor(): expected sizes, a sequence of values or a tensor, not {}; use tensor() for a number",
            data.get_type().name()?
        )));
    }
    from_lists(py, data, Some(DTypeArg(default_dtype())), device)
}

/// Refuses what is no class of tensors.
pub(crate) fn check_class(op: &str, class: &Bound<'_, PyType>) -> PyResult<()> {
    if class.is_subclass(&PyTensor::type_object(class.py()))? {
        return Ok(());
    }
    let name = class.name()?;
    Err(PyTypeError::new_err(format!("{op}: {name} is not a subclass of plimsoll.Tensor")))
}
