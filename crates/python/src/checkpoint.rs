//! Checkpointing from Python: `utils/checkpoint.py` of the package has PyTorch's functions, this
//! file runs theirs for Rust's.

use plimsoll_memory::with_site;
use plimsoll_tensor::{
    self as rust, CheckpointOptions, CheckpointPolicy, CheckpointedOperation, GraphExecGroup,
    SelectiveCheckpoint, SelectiveScope, Surroundings, Tensor,
};
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::companion::wrap;
use crate::error::to_python;
use crate::frames;
use crate::saved_hooks;
use crate::tensor::{PyTensor, TensorObject};

pyo3::create_exception!(
    plimsoll.utils.checkpoint,
    CheckpointError,
    PyRuntimeError,
    "A checkpointed function did not do the same when it was run again."
);

pyo3::create_exception!(
    plimsoll.utils.checkpoint,
    _StopRecomputationError,
    PyException,
    "Everything that backward needs is made: the recomputation ends. Let it pass."
);

fn raised(error: PyErr) -> rust::Error {
    rust::Error::autograd("checkpoint", "the function raised an exception").because(error)
}

/// Runs `forward()` and keeps `tensors` alone; backward calls `again(*tensors)` for what it saved.
#[pyfunction]
fn _checkpoint(
    py: Python<'_>,
    forward: &Bound<'_, PyAny>,
    again: Py<PyAny>,
    tensors: Vec<Bound<'_, PyTensor>>,
    options: Options,
) -> PyResult<Py<PyAny>> {
    saved_hooks::check_allowed()?;
    let inputs: Vec<Tensor> = tensors.iter().map(|tensor| tensor.tensor()).collect();
    drop(tensors);
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let again = move |inputs: &[Tensor]| {
        Python::attach(|py| {
            let objects = inputs.iter().map(|input| wrap(py, input.clone()));
            let arguments = PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)?;
            again.bind(py).call1(arguments).map(drop)
        })
        .map_err(raised)
    };
    let first = |_: &[Tensor]| forward.call0().map(Bound::unbind).map_err(raised);
    let result = with_site(frames::here(py), || {
        rust::checkpoint_apart(&inputs, options.into(), first, again)
    });
    result.map_err(|error| to_python(py, error))
}

/// The arguments of PyTorch's `checkpoint` that are switches.
#[derive(FromPyObject)]
struct Options(bool, bool, bool, bool);

impl From<Options> for CheckpointOptions {
    fn from(options: Options) -> CheckpointOptions {
        let Options(preserve_rng_state, early_stop, determinism_check, debug) = options;
        // Contexts of the package bring selections.
        let selective = None;
        CheckpointOptions { preserve_rng_state, early_stop, determinism_check, debug, selective }
    }
}

/// What is in force on a thread, to be put in force again.
#[pyclass(name = "_Surroundings", frozen)]
struct PySurroundings(Surroundings);

#[pymethods]
impl PySurroundings {
    #[new]
    fn new(preserve_rng_state: bool) -> PySurroundings {
        PySurroundings(Surroundings::current(preserve_rng_state))
    }

    /// Calls `body()` with it in force.
    fn resume<'py>(&self, body: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.0.resume(|| body.call0())
    }
}

/// Whether a backward inside the one that is going on would do no harm.
#[pyfunction]
fn _is_checkpoint_valid() -> bool {
    rust::is_checkpoint_valid()
}

/// Every backward of this thread counts as one until `leave`.
#[pyclass(name = "_GraphExecGroup", unsendable)]
struct PyGroup(Option<GraphExecGroup>);

#[pymethods]
impl PyGroup {
    #[new]
    fn new(py: Python<'_>) -> PyResult<PyGroup> {
        let group = GraphExecGroup::enter().map_err(|error| to_python(py, error))?;
        Ok(PyGroup(Some(group)))
    }

    fn leave(&mut self) {
        self.0 = None;
    }
}

/// Which results a checkpointed function keeps; `policy(name, inputs, outputs)` says "save",
/// "recompute" or "offload".
#[pyclass(name = "_SelectiveCheckpoint", unsendable)]
struct PySelective {
    selective: SelectiveCheckpoint,
    scopes: Vec<SelectiveScope>,
}

#[pymethods]
impl PySelective {
    #[new]
    fn new(policy: Py<PyAny>, allows_writes: bool) -> PySelective {
        let ask = move |operation: &CheckpointedOperation<'_>| {
            Python::attach(|py| ask(policy.bind(py), operation)).map_err(raised)
        };
        let selective = SelectiveCheckpoint::with_writes(ask, allows_writes);
        PySelective { selective, scopes: Vec::new() }
    }

    /// The function runs for the first time, until `leave`.
    fn record(&mut self) {
        self.scopes.push(self.selective.record());
    }

    /// The function runs again, until `leave`.
    fn replay(&mut self) {
        self.scopes.push(self.selective.replay());
    }

    fn leave(&mut self) {
        self.scopes.pop();
    }
}

fn policy_of(word: &str) -> PyResult<CheckpointPolicy> {
    match word {
        "save" => Ok(CheckpointPolicy::Save),
        "recompute" => Ok(CheckpointPolicy::Recompute),
        "offload" => Ok(CheckpointPolicy::OffloadToHost),
        _ => Err(PyValueError::new_err(format!("`{word}` is no policy of a checkpoint"))),
    }
}

fn ask(
    policy: &Bound<'_, PyAny>,
    operation: &CheckpointedOperation<'_>,
) -> PyResult<CheckpointPolicy> {
    let py = policy.py();
    let inputs = operation.inputs.iter().map(|&input| wrap(py, input.clone()));
    let outputs = operation.outputs.iter().map(|output| wrap(py, output.clone()));
    let inputs = PyTuple::new(py, inputs.collect::<PyResult<Vec<_>>>()?)?;
    let outputs = PyTuple::new(py, outputs.collect::<PyResult<Vec<_>>>()?)?;
    let word: String = policy.call1((operation.name, inputs, outputs))?.extract()?;
    policy_of(&word)
}

/// Calls `body()`, a part of a checkpointed function, under one policy.
#[pyfunction]
fn _checkpoint_region<'py>(policy: &str, body: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    rust::checkpoint_region(policy_of(policy)?, || body.call0())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("_CheckpointError", py.get_type::<CheckpointError>())?;
    module.add("_StopRecomputationError", py.get_type::<_StopRecomputationError>())?;
    module.add_class::<PySurroundings>()?;
    module.add_class::<PyGroup>()?;
    module.add_class::<PySelective>()?;
    module.add_function(wrap_pyfunction!(_checkpoint_region, module)?)?;
    module.add_function(wrap_pyfunction!(_is_checkpoint_valid, module)?)?;
    module.add_function(wrap_pyfunction!(_checkpoint, module)?)
}
