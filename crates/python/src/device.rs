//! Devices as Python objects: `plimsoll.device("cpu")`, private arenas for counting bytes alone,
//! stand-ins for accelerators, and dry runs.

use plimsoll_core::Device;
use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, StandIn};
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::error::to_python;

/// Where a tensor lives.
#[pyclass(name = "device", module = "plimsoll", frozen, eq, hash)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyDevice(pub(crate) Device);

#[pymethods]
impl PyDevice {
    /// The device of that name: `cpu`, `cuda:0` where there is one, or `dry:h200` for a dry run. A
    /// device is itself.
    #[new]
    fn new(device: DeviceArg) -> PyDevice {
        PyDevice(device.0)
    }

    /// What sort of device it is.
    #[getter]
    fn r#type(&self) -> String {
        // A dry run is of the sort that it imitates.
        let name = self.0.to_string();
        let name = name.trim_start_matches("dry(");
        name.split([':', ')']).next().unwrap_or_default().to_string()
    }

    /// Its number among those of its sort.
    #[getter]
    fn index(&self) -> usize {
        self.0.index()
    }

    /// A pickle makes it again by its name.
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String,)) {
        (PyDevice::type_object(py), (self.0.to_string(),))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("device({:?})", self.0.to_string())
    }
}

/// A device argument: an object or a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceArg(pub(crate) Device);

impl<'py> FromPyObject<'_, 'py> for DeviceArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<DeviceArg> {
        if let Ok(device) = object.cast::<PyDevice>() {
            return Ok(DeviceArg(device.get().0));
        }
        match object.extract::<String>() {
            Ok(name) => named(object.py(), &name).map(DeviceArg),
            Err(_) => Err(PyTypeError::new_err(format!(
                "{} is not a device: use a name such as \"cpu\" or plimsoll.device(\"cpu\")",
                object.repr()?
            ))),
        }
    }
}

pub(crate) fn named(py: Python<'_>, name: &str) -> PyResult<Device> {
    py.detach(|| device::named(name)).map_err(|error| to_python(py, error))
}

/// A host device with a memory arena of its own, configured as PLIMSOLL_CONF would be.
#[pyfunction]
#[pyo3(signature = (configuration = ""))]
fn private_cpu(py: Python<'_>, configuration: &str) -> PyResult<PyDevice> {
    // Nothing is the default.
    Configuration::parse(configuration)
        .and_then(|configuration| device::private_cpu(&configuration))
        .map(PyDevice)
        .map_err(|error| to_python(py, error))
}

/// Another accelerator that is not there: host memory with a device's manners. It has a capacity,
/// streams that run beside the program, and errors that come late. Without a configuration of its
/// own, the one in force holds.
#[pyfunction]
#[pyo3(signature = (capacity_bytes = 1 << 30, configuration = ""))]
fn stand_in(py: Python<'_>, capacity_bytes: usize, configuration: &str) -> PyResult<PyDevice> {
    let own = (!configuration.is_empty()).then(|| Configuration::parse(configuration));
    own.transpose()
        .and_then(|configuration| device::stand_in(StandIn { capacity_bytes, configuration }))
        .map(PyDevice)
        .map_err(|error| to_python(py, error))
}

/// A device that imitates another without memory: it accounts for every byte and computes nothing.
#[pyfunction]
fn dry(py: Python<'_>, of: DeviceArg) -> PyResult<PyDevice> {
    device::dry(of.0).map(PyDevice).map_err(|error| to_python(py, error))
}

/// Every device that this process has opened.
#[pyfunction]
fn _devices() -> Vec<PyDevice> {
    device::all().into_iter().map(PyDevice).collect()
}

/// Waits for all work on a device.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn synchronize(py: Python<'_>, device: Option<DeviceArg>) -> PyResult<()> {
    let device = device.map_or(Device::cpu(), |device| device.0);
    crate::call::call(py, || device::synchronize(device))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDevice>()?;
    module.add_function(wrap_pyfunction!(private_cpu, module)?)?;
    module.add_function(wrap_pyfunction!(stand_in, module)?)?;
    module.add_function(wrap_pyfunction!(dry, module)?)?;
    module.add_function(wrap_pyfunction!(_devices, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)
}
