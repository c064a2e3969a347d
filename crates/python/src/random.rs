//! Random state from Python: generators, and the state of the default ones.

use std::hash::{BuildHasher, Hasher};

use plimsoll_core::Device;
use plimsoll_tensor::{Generator, RngState, manual_seed as seed_all, with_generator};
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::call::{call, fresh};
use crate::device::{DeviceArg, PyDevice};
use crate::error::to_python;
use crate::tensor::{PyTensor, TensorObject};

/// A source of random numbers for one device.
#[pyclass(name = "Generator", module = "plimsoll", frozen, weakref)]
#[derive(Debug)]
pub(crate) struct PyGenerator(Generator);

impl PyGenerator {
    pub(crate) fn generator(&self) -> Generator {
        self.0.clone()
    }
}

#[pymethods]
impl PyGenerator {
    #[new]
    #[pyo3(signature = (device = None))]
    fn new(device: Option<DeviceArg>) -> PyGenerator {
        let device = device.map_or(Device::cpu(), |device| device.0);
        PyGenerator(Generator::new(device, DEFAULT_SEED))
    }

    /// The device whose tensors it draws.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.0.device())
    }

    /// Starts it again from a seed.
    fn manual_seed(slf: Bound<'_, PyGenerator>, seed: Seed) -> Bound<'_, PyGenerator> {
        slf.get().0.manual_seed(seed.0);
        slf
    }

    /// Starts it again from a seed that nobody knows, and tells it.
    fn seed(&self) -> u64 {
        let seed = unforeseen();
        self.0.manual_seed(seed);
        seed
    }

    /// The seed that it was started from.
    fn initial_seed(&self) -> u64 {
        self.0.initial_seed()
    }

    /// What decides its next numbers, as a tensor of bytes.
    fn get_state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        let state = self.0.state();
        fresh(py, || state.to_tensor())
    }

    /// Goes on from a state that was kept.
    fn set_state<'py>(
        slf: Bound<'py, PyGenerator>,
        new_state: &Bound<'py, PyTensor>,
    ) -> PyResult<Bound<'py, PyGenerator>> {
        let bytes = new_state.tensor();
        let state = call(slf.py(), || RngState::from_tensor(&bytes))?;
        slf.get().0.set_state(state);
        Ok(slf)
    }

    /// Another generator that goes on from the same state.
    fn clone_state(&self) -> PyGenerator {
        let copy = Generator::new(self.0.device(), 0);
        copy.set_state(self.0.state());
        PyGenerator(copy)
    }

    /// A pickle, and a copy, is another generator that goes on from the same state.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let state = (self.initial_seed(), py.None(), self.get_state(py)?);
        Ok((PyGenerator::type_object(py), (self.device(),), state))
    }

    fn __setstate__(slf: Bound<'_, PyGenerator>, state: State<'_>) -> PyResult<()> {
        PyGenerator::set_state(slf, &state.2).map(drop)
    }

    fn __repr__(&self) -> String {
        format!("<plimsoll.Generator on {}>", self.0.device())
    }
}

/// Seed, offset (which is part of the state here, and None) and state, as PyTorch has them.
type State<'py> = (u64, Py<PyAny>, Bound<'py, PyTensor>);

type Reduced<'py> = (Bound<'py, PyType>, (PyDevice,), State<'py>);

/// PyTorch's default seed.
const DEFAULT_SEED: u64 = 67_280_421_310_721;

/// A seed; negative ones count from the end, as in PyTorch.
struct Seed(u64);

impl<'py> FromPyObject<'_, 'py> for Seed {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Seed> {
        match object.extract::<u64>() {
            Ok(seed) => Ok(Seed(seed)),
            Err(too_large) => match object.extract::<i64>() {
                Ok(seed) => Ok(Seed(seed as u64)),
                Err(_) => Err(too_large),
            },
        }
    }
}

/// 53 bits, as PyTorch's seeds have, from what the system starts its hash tables with.
fn unforeseen() -> u64 {
    std::hash::RandomState::new().build_hasher().finish() >> 11
}

/// A generator as an argument, for a tensor on `device`.
pub(crate) fn for_device<'a>(
    generator: Option<&'a Bound<'_, PyGenerator>>,
    device: Device,
) -> PyResult<Option<&'a Generator>> {
    let generator = generator.map(|generator| &generator.get().0);
    match generator {
        Some(other) if other.device() != device => Err(PyRuntimeError::new_err(format!(
            "the generator draws for {}, and the tensor is on {device}; make one with Generator({:?})",
            other.device(),
            device.to_string()
        ))),
        generator => Ok(generator),
    }
}

/// Runs `work` with draws from `generator`, or from the default one.
pub(crate) fn with<R>(generator: Option<&Generator>, work: impl FnOnce() -> R) -> R {
    match generator {
        Some(generator) => with_generator(generator, work),
        None => work(),
    }
}

/// What `body` returns, with this thread's draws on the generator's device coming from it.
#[pyfunction]
fn _with_generator<'py>(
    generator: &Bound<'py, PyGenerator>,
    body: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    with_generator(&generator.get().0, || body.call0())
}

/// The generator that a device draws from unless another is named.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn _default_generator(device: Option<DeviceArg>) -> PyGenerator {
    PyGenerator(Generator::default_of(device.map_or(Device::cpu(), |device| device.0)))
}

/// The CPU's generator, one object.
fn default_object(py: Python<'_>) -> PyResult<Py<PyGenerator>> {
    static DEFAULT: PyOnceLock<Py<PyGenerator>> = PyOnceLock::new();
    let make = || Py::new(py, _default_generator(None));
    DEFAULT.get_or_try_init(py, make).map(|object| object.clone_ref(py))
}

/// Starts the random numbers of every device again; gives the CPU's generator.
#[pyfunction]
fn manual_seed(py: Python<'_>, seed: Seed) -> PyResult<Py<PyGenerator>> {
    seed_all(seed.0);
    default_object(py)
}

/// Starts the random numbers of every device from a seed that nobody knows, and tells it.
#[pyfunction]
fn seed() -> u64 {
    let seed = unforeseen();
    seed_all(seed);
    seed
}

/// The seed that the CPU's random numbers were started from.
#[pyfunction]
fn initial_seed() -> u64 {
    Generator::default_of(Device::cpu()).initial_seed()
}

/// What decides the CPU's next random numbers, as a tensor of bytes.
#[pyfunction]
fn get_rng_state(py: Python<'_>) -> PyResult<Bound<'_, PyTensor>> {
    _default_generator(None).get_state(py)
}

/// Goes on with the CPU's random numbers from a state that was kept.
#[pyfunction]
fn set_rng_state(py: Python<'_>, new_state: &Bound<'_, PyTensor>) -> PyResult<()> {
    let state = RngState::from_tensor(&new_state.tensor());
    let state = state.map_err(|error| to_python(py, error))?;
    Generator::default_of(Device::cpu()).set_state(state);
    Ok(())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGenerator>()?;
    module.add("default_generator", default_object(module.py())?)?;
    module.add_function(wrap_pyfunction!(_with_generator, module)?)?;
    module.add_function(wrap_pyfunction!(_default_generator, module)?)?;
    module.add_function(wrap_pyfunction!(manual_seed, module)?)?;
    module.add_function(wrap_pyfunction!(seed, module)?)?;
    module.add_function(wrap_pyfunction!(initial_seed, module)?)?;
    module.add_function(wrap_pyfunction!(get_rng_state, module)?)?;
    module.add_function(wrap_pyfunction!(set_rng_state, module)?)
}
