//! Devices as Python objects: `plimsoll.device("cpu")`, private arenas for counting bytes alone,
//! stand-ins for accelerators, and dry runs. A device object is a name until a tensor is to be made
//! there; which device stands behind the name is decided here. `defaults.rs` says where tensors
//! are made that name none.

use std::cell::Cell;
use std::hash::{Hash, Hasher};

use parking_lot::RwLock;
use plimsoll_core::{Device, Error};
use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, StandIn};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::defaults;
use crate::error::to_python;

/// Sorts of devices that have a name. Tensors can be made on the first three; PyTorch's `meta` is a
/// dry run of the CPU.
const SORTS: [&str; 7] = ["cpu", "cuda", "meta", "mps", "xpu", "xla", "mtia"];

/// Devices that answer in the place of others: a dry run where a program asks for `cuda`.
static IN_PLACE_OF: RwLock<Vec<(&'static str, Device)>> = RwLock::new(Vec::new());

thread_local! {
    /// The GPU that `cuda` without a number is, in this thread.
    static CURRENT_CUDA: Cell<usize> = const { Cell::new(0) };
}

/// Where a tensor lives.
#[pyclass(name = "device", module = "plimsoll", frozen, eq, hash)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PyDevice {
    sort: &'static str,
    index: Option<usize>,
    is_dry: bool,
    /// The device itself, where it is known; a name alone finds it when it is needed.
    open: Option<Device>,
}

impl PartialEq for PyDevice {
    fn eq(&self, other: &PyDevice) -> bool {
        match (self.open, other.open) {
            (Some(one), Some(another)) => one == another,
            _ => self.name() == other.name(),
        }
    }
}

impl Eq for PyDevice {}

impl Hash for PyDevice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl PyDevice {
    /// The object for a device that is open.
    pub(crate) fn of(device: Device) -> PyDevice {
        if device::is_meta(device) {
            return PyDevice { sort: "meta", index: None, is_dry: false, open: Some(device) };
        }
        let sort = match (device.answers_as_cuda(), device.is_cpu()) {
            (true, _) => "cuda",
            (_, true) => "cpu",
            _ => "standin",
        };
        let answers = answering(sort) == Some(device);
        let is_host = sort == "cpu" && (device.index() == 0 || answers);
        let index = (!is_host).then_some(if answers { 0 } else { device.index() });
        PyDevice { sort, index, is_dry: device.is_dry() && !answers, open: Some(device) }
    }

    fn name(&self) -> (&'static str, Option<usize>, bool) {
        (self.sort, self.index, self.is_dry)
    }

    /// The name as one text.
    pub(crate) fn text(&self) -> String {
        let name = match self.index {
            Some(index) => format!("{}:{index}", self.sort),
            None => self.sort.to_string(),
        };
        if self.is_dry { format!("dry({name})") } else { name }
    }

    /// The device behind the name.
    fn resolve(&self) -> plimsoll_core::Result<Device> {
        if let Some(device) = self.open {
            return Ok(device);
        }
        let current = if self.sort == "cuda" { CURRENT_CUDA.get() } else { 0 };
        let index = self.index.unwrap_or(current);
        if index == 0
            && let Some(device) = answering(self.sort)
        {
            return Ok(device);
        }
        match (self.sort, index) {
            ("cpu", 1..) => {
                let is_it = |device: &Device| {
                    device.is_cpu() && device.index() == index && !device.is_dry()
                };
                device::all().into_iter().find(is_it).ok_or_else(|| {
                    Error::device("device", format!("no private CPU number {index} is open"))
                })
            }
            (sort, index) => device::named(&format!("{sort}:{index}")),
        }
    }
}

fn answering(sort: &str) -> Option<Device> {
    IN_PLACE_OF.read().iter().find(|(of, _)| *of == sort).map(|(_, device)| *device)
}

#[pymethods]
impl PyDevice {
    /// The device of that name: `cpu`, `cuda` or `cuda:0`, or `dry:h200` for a dry run; the number
    /// may be an argument of its own, and alone it is a GPU's. A device is itself.
    #[new]
    #[pyo3(signature = (r#type, index = None))]
    fn new(r#type: &Bound<'_, PyAny>, index: Option<usize>) -> PyResult<PyDevice> {
        let device = r#type.extract::<PyDeviceArg>()?.0;
        match index {
            None => Ok(device),
            Some(index) if device.index.is_none() => {
                Ok(PyDevice { index: Some(index), open: None, ..device })
            }
            Some(index) => Err(PyRuntimeError::new_err(format!(
                "type (string) must not include an index because index was passed explicitly: {} and {index}",
                device.text()
            ))),
        }
    }

    /// What sort of device it is; a dry run is of the sort that it imitates.
    #[getter]
    fn r#type(&self) -> &'static str {
        self.sort
    }

    /// Its number among those of its sort, if it was named with one.
    #[getter]
    fn index(&self) -> Option<usize> {
        self.index
    }

    /// Whether operations there only account for memory, also where it answers in another's place.
    #[getter]
    fn _is_dry(&self) -> bool {
        self.is_dry || self.open.is_some_and(Device::is_dry)
    }

    /// Makes it the place of tensors that name none, until the block ends.
    fn __enter__<'py>(slf: Bound<'py, PyDevice>) -> PyResult<Bound<'py, PyDevice>> {
        let device = resolved(slf.py(), slf.get())?;
        defaults::push(device);
        Ok(slf)
    }

    #[pyo3(signature = (*_failure))]
    fn __exit__(&self, _failure: &Bound<'_, pyo3::types::PyTuple>) {
        defaults::pop();
    }

    /// A pickle makes it again by its name.
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String,)) {
        (PyDevice::type_object(py), (self.text(),))
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        if self.is_dry {
            return format!("device({:?})", self.text());
        }
        match self.index {
            Some(index) => format!("device(type='{}', index={index})", self.sort),
            None => format!("device(type='{}')", self.sort),
        }
    }
}

fn resolved(py: Python<'_>, device: &PyDevice) -> PyResult<Device> {
    if let Some(open) = device.open {
        return Ok(open);
    }
    py.detach(|| device.resolve()).map_err(|error| to_python(py, error))
}

/// What names a device, not yet opened: an object, a text, or a GPU's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PyDeviceArg(pub(crate) PyDevice);

impl<'py> FromPyObject<'_, 'py> for PyDeviceArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<PyDeviceArg> {
        if let Ok(device) = object.cast::<PyDevice>() {
            return Ok(PyDeviceArg(*device.get()));
        }
        if let Ok(index) = object.extract::<usize>()
            && !object.is_instance_of::<pyo3::types::PyBool>()
        {
            let (sort, index) = ("cuda", Some(index));
            return Ok(PyDeviceArg(PyDevice { sort, index, is_dry: false, open: None }));
        }
        match object.extract::<String>() {
            Ok(name) => parsed(object.py(), &name).map(PyDeviceArg),
            Err(_) => Err(PyTypeError::new_err(format!(
                "{} is not a device: use a name such as \"cpu\" or plimsoll.device(\"cpu\")",
                object.repr()?
            ))),
        }
    }
}

/// A name; one that says more than sort and number is looked up at once.
pub(crate) fn parsed(py: Python<'_>, text: &str) -> PyResult<PyDevice> {
    let (sort, index) = match text.split_once(':') {
        Some((sort, index)) => (sort, index.parse().ok()),
        None => (text, None),
    };
    let known = SORTS.into_iter().find(|known| *known == sort);
    match known {
        Some(sort) if index.is_some() || sort == text => {
            Ok(PyDevice { sort, index, is_dry: false, open: None })
        }
        _ => py
            .detach(|| device::named(text))
            .map(PyDevice::of)
            .map_err(|error| to_python(py, error)),
    }
}

/// A device argument, of a device that can be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceArg(pub(crate) Device);

impl<'py> FromPyObject<'_, 'py> for DeviceArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<DeviceArg> {
        let device = object.extract::<PyDeviceArg>()?.0;
        resolved(object.py(), &device).map(DeviceArg)
    }
}

pub(crate) fn named(py: Python<'_>, name: &str) -> PyResult<Device> {
    resolved(py, &parsed(py, name)?)
}

/// A host device with a memory arena of its own, configured as PLIMSOLL_CONF would be.
#[pyfunction]
#[pyo3(signature = (configuration = ""))]
fn private_cpu(py: Python<'_>, configuration: &str) -> PyResult<PyDevice> {
    // Nothing is the default.
    Configuration::parse(configuration)
        .and_then(|configuration| device::private_cpu(&configuration))
        .map(PyDevice::of)
        .map_err(|error| to_python(py, error))
}

/// Another accelerator that is not there: host memory with a device's manners. It has a capacity,
/// streams that run beside the program, and errors that come late. Without a configuration of its
/// own, the one in force holds. With `as_cuda` it answers where a program asks for `cuda`, and
/// calls itself so.
#[pyfunction]
#[pyo3(signature = (capacity_bytes = 1 << 30, configuration = "", *, as_cuda = false))]
fn stand_in(
    py: Python<'_>,
    capacity_bytes: usize,
    configuration: &str,
    as_cuda: bool,
) -> PyResult<PyDevice> {
    if as_cuda && device::cuda_count() > 0 {
        return Err(PyRuntimeError::new_err(
            "stand_in: this machine has a GPU that answers as cuda",
        ));
    }
    let own = (!configuration.is_empty()).then(|| Configuration::parse(configuration));
    own.transpose()
        .and_then(|configuration| {
            device::stand_in(StandIn { capacity_bytes, configuration, as_cuda })
        })
        .map(PyDevice::of)
        .map_err(|error| to_python(py, error))
}

/// A device that imitates another without memory: it accounts for every byte and computes nothing.
#[pyfunction]
fn dry(py: Python<'_>, of: DeviceArg) -> PyResult<PyDevice> {
    device::dry(of.0).map(PyDevice::of).map_err(|error| to_python(py, error))
}

/// Lets a device answer from now on where a program asks for `cpu` or `cuda` without a number, or
/// with 0.
#[pyfunction]
fn _answer_as(sort: &str, device: DeviceArg) -> PyResult<()> {
    let Some(sort) = ["cpu", "cuda"].into_iter().find(|known| *known == sort) else {
        return Err(PyRuntimeError::new_err(format!("{sort} is not cpu or cuda")));
    };
    let mut all = IN_PLACE_OF.write();
    all.retain(|(of, _)| *of != sort);
    all.push((sort, device.0));
    Ok(())
}

/// How many devices answer as `cuda`.
#[pyfunction]
fn _cuda_count() -> usize {
    let stand_ins = device::in_place_of_gpus().len().max(usize::from(answering("cuda").is_some()));
    if stand_ins > 0 { stand_ins } else { device::cuda_count() }
}

/// The number of the GPU that `cuda` is in this thread.
#[pyfunction]
fn _cuda_device() -> usize {
    CURRENT_CUDA.get()
}

/// Changes which GPU `cuda` is in this thread; returns the number before.
#[pyfunction]
fn _set_cuda_device(index: usize) -> usize {
    CURRENT_CUDA.replace(index)
}

/// Why there is no GPU to use; None if there is one.
#[pyfunction]
fn _cuda_unavailable() -> Option<&'static str> {
    device::cuda_unavailable()
}

/// Whether a device that answers as `cuda` is open.
#[pyfunction]
fn _cuda_is_initialized() -> bool {
    device::cuda_is_initialized() || device::all().into_iter().any(Device::answers_as_cuda)
}

/// Name, bytes of memory, compute capability (90 for 9.0), multiprocessors and bytes of the shared
/// cache of a GPU; what a stand-in has not is 0.
#[pyfunction]
fn _cuda_properties(
    py: Python<'_>,
    device: DeviceArg,
) -> PyResult<(String, usize, u32, u32, usize)> {
    if !device.0.is_cuda() {
        let total = plimsoll_tensor::memory::arena(device.0).source().room().total_bytes;
        return Ok(("Plimsoll stand-in".to_string(), total.unwrap_or(0), 0, 0, 0));
    }
    let facts = py.detach(|| device::properties(device.0)).map_err(|error| to_python(py, error))?;
    Ok((facts.name, facts.memory_bytes, facts.capability, facts.multiprocessors, facts.l2_bytes))
}

/// Free and total bytes of a device's memory, as its driver or system counts them.
#[pyfunction]
fn _memory_info(py: Python<'_>, device: DeviceArg) -> PyResult<(usize, usize)> {
    crate::call::call(py, || plimsoll_tensor::memory::memory_info(device.0))
}

/// Every device that this process has opened.
#[pyfunction]
fn _devices() -> Vec<PyDevice> {
    device::all().into_iter().map(PyDevice::of).collect()
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
    module.add_function(wrap_pyfunction!(_answer_as, module)?)?;
    module.add_function(wrap_pyfunction!(_cuda_count, module)?)?;
    module.add_function(wrap_pyfunction!(_cuda_device, module)?)?;
    module.add_function(wrap_pyfunction!(_set_cuda_device, module)?)?;
    module.add_function(wrap_pyfunction!(_cuda_unavailable, module)?)?;
    module.add_function(wrap_pyfunction!(_cuda_is_initialized, module)?)?;
    module.add_function(wrap_pyfunction!(_cuda_properties, module)?)?;
    module.add_function(wrap_pyfunction!(_memory_info, module)?)?;
    module.add_function(wrap_pyfunction!(_devices, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)
}
