//! Private pools of a device's memory: PyTorch's `MemPool`, and the scope that `use_mem_pool` of
//! the package enters and leaves.

use plimsoll_core::Device;
use plimsoll_tensor::device::{MemPool, PoolScope};
use pyo3::prelude::*;

use crate::device::{DeviceArg, PyDevice};

/// A pool of its own in a device's memory. Its free blocks serve nobody else; its segments stay
/// until it goes.
#[pyclass(name = "MemPool", module = "plimsoll", frozen, weakref)]
pub(crate) struct PyMemPool(MemPool);

impl PyMemPool {
    pub(crate) fn pool(&self) -> &MemPool {
        &self.0
    }
}

#[pymethods]
impl PyMemPool {
    #[new]
    #[pyo3(signature = (device = None))]
    fn new(device: Option<DeviceArg>) -> PyMemPool {
        PyMemPool(MemPool::new(device.map_or(Device::cpu(), |device| device.0)))
    }

    /// A pool for captured graphs; snapshots tell both sorts apart.
    #[staticmethod]
    fn _for_graph(device: DeviceArg) -> PyMemPool {
        PyMemPool(MemPool::for_graph(device.0))
    }

    /// Its pair of numbers, as snapshots show it.
    #[getter]
    fn id(&self) -> (u64, u64) {
        self.0.id()
    }

    /// The device whose memory it is.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.0.device())
    }

    /// Bytes of its blocks in use.
    #[getter]
    fn active_bytes(&self) -> usize {
        self.0.usage().active_bytes
    }

    /// Bytes that it holds from the system, in use or not.
    #[getter]
    fn reserved_bytes(&self) -> usize {
        self.0.usage().reserved_bytes
    }
}

/// A pool that this thread's allocations come from until `leave`.
#[pyclass(name = "_PoolScope", unsendable)]
struct Scope(Option<PoolScope>);

#[pymethods]
impl Scope {
    #[new]
    fn new(pool: &Bound<'_, PyMemPool>) -> Scope {
        Scope(Some(PoolScope::enter(&pool.get().0)))
    }

    /// Puts back what was used before.
    fn leave(&mut self) {
        self.0 = None;
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMemPool>()?;
    module.add_class::<Scope>()
}
