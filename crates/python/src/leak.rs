//! What the package's `LeakWatch` needs of Rust: which lines grow, by the books, and what lies
//! behind a tensor in its graph. Who holds a tensor in Python is found in Python
//! (`python/plimsoll/_leak_census.py`).

use std::time::Instant;

use plimsoll_tensor::memory::{self, GraphWalk, GrowthWatch, KeptLine};
use pyo3::prelude::*;

use crate::device::DeviceArg;
use crate::node::PyNode;
use crate::numpy::LentMemory;
use crate::storage::PyStorage;
use crate::tensor::{PyTensor, TensorObject};

/// What tells a tensor's memory apart (`memory::block_of`).
type Place = (usize, usize);
/// Place, bytes and step of a block that stays.
type Kept = (Place, usize, u64);

/// The lines that grow, by the books: `step()` at the end of each step.
#[pyclass(name = "_GrowthWatch", module = "plimsoll", frozen)]
struct PyGrowthWatch(parking_lot::Mutex<GrowthWatch>);

/// One line that grows.
#[pyclass(name = "_GrowingLine", module = "plimsoll", frozen, get_all)]
struct PyGrowingLine {
    file: Option<String>,
    line: u32,
    function: String,
    operation: &'static str,
    module: String,
    phase: String,
    judged_steps: u64,
    blocks: Vec<Kept>,
    /// Of memory that is made of itself in each step: the bytes and the objects that each adds, and
    /// whether a container is copied.
    rebuilt: Option<(u64, f64, bool)>,
}

impl From<KeptLine> for PyGrowingLine {
    fn from(kept: KeptLine) -> PyGrowingLine {
        let origin = kept.origin.get();
        let site = origin.site.resolve();
        PyGrowingLine {
            line: site.as_ref().map_or(0, |site| site.line),
            function: site.as_ref().map_or_else(String::new, |site| site.function.clone()),
            file: site.map(|site| site.file),
            operation: origin.operation,
            module: origin.module.to_string(),
            phase: origin.phase.to_string(),
            judged_steps: kept.judged_steps,
            rebuilt: kept.rebuilt.map(|by| (by.bytes_per_step, by.objects_per_step, by.is_copied)),
            blocks: kept.blocks.iter().map(|of| (of.place, of.bytes, of.step)).collect(),
        }
    }
}

#[pymethods]
impl PyGrowthWatch {
    #[new]
    #[pyo3(signature = (device = None))]
    fn new(device: Option<DeviceArg>) -> PyGrowthWatch {
        let watch = GrowthWatch::new(device.map(|device| device.0));
        PyGrowthWatch(parking_lot::Mutex::new(watch))
    }

    /// Has new tensors registered and operations heard, or not.
    fn attend(&self, on: bool) {
        self.0.lock().attend(on);
    }

    /// Whether a device is one of those that are watched.
    fn watches(&self, device: DeviceArg) -> bool {
        self.0.lock().watches(device.0)
    }

    /// Ends a step; whether it is time to ask who holds what grows.
    fn step(&self) -> bool {
        self.0.lock().step()
    }

    /// Begins anew with the step that runs: another loop has begun.
    fn begin_anew(&self) {
        self.0.lock().begin_anew();
    }

    /// Reads the books now.
    fn look(&self) {
        self.0.lock().look();
    }

    /// Says how many seconds it took to name holders, which is done as rarely as that asks for.
    fn named(&self, seconds: f64) {
        let took = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.0.lock().named_since(Instant::now().checked_sub(took).unwrap_or_else(Instant::now));
    }

    /// Steps that have ended.
    #[getter]
    fn steps(&self) -> u64 {
        self.0.lock().steps()
    }

    /// The lines that grow, with what stays of each.
    fn kept(&self) -> Vec<PyGrowingLine> {
        self.0.lock().kept().into_iter().map(PyGrowingLine::from).collect()
    }
}

/// Follows graphs, each node once.
#[pyclass(name = "_GraphWalk", module = "plimsoll", frozen)]
struct PyGraphWalk(parking_lot::Mutex<GraphWalk>);

#[pymethods]
impl PyGraphWalk {
    #[new]
    fn new() -> PyGraphWalk {
        PyGraphWalk(parking_lot::Mutex::default())
    }

    /// The blocks that the graph behind a tensor saved, and how many of its nodes are old; without
    /// what was met before.
    fn behind(&self, tensor: &Bound<'_, PyTensor>, watch: &PyGrowthWatch) -> (Vec<Place>, u64) {
        let behind = self.0.lock().behind(&tensor.tensor(), &watch.0.lock());
        (behind.saved, behind.old_nodes)
    }

    /// The same behind a node that is kept by itself, and of the node.
    fn behind_node(&self, node: &PyNode, watch: &PyGrowthWatch) -> (Vec<Place>, u64) {
        let behind = self.0.lock().behind_node(node.grad_fn(), &watch.0.lock());
        (behind.saved, behind.old_nodes)
    }
}

/// What tells the memory of a tensor apart, of a storage, or of what an array has of a tensor; None
/// if it is not the runtime's own.
#[pyfunction]
fn _block_of(holder: &Bound<'_, PyAny>) -> PyResult<Option<Place>> {
    if let Ok(lent) = holder.cast::<LentMemory>() {
        return Ok(memory::block_of(lent.get().tensor()));
    }
    if let Ok(storage) = holder.cast::<PyStorage>() {
        return Ok(memory::block_of(storage.get().tensor()));
    }
    Ok(memory::block_of(&holder.cast::<PyTensor>()?.tensor()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGrowthWatch>()?;
    module.add_class::<PyGrowingLine>()?;
    module.add_class::<PyGraphWalk>()?;
    module.add_class::<LentMemory>()?;
    module.add_function(wrap_pyfunction!(_block_of, module)?)
}
