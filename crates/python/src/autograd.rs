//! Gradients: a tensor's own, those of chosen tensors, and recording on and off. The modes are
//! guards of the calling thread; the package's context managers hold them. Hooks are in `hooks.rs`,
//! custom functions in `custom.rs`, nodes in `node.rs`.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_tensor::{self as rust, BackwardOptions, GradFn, GradOptions, GradientPlace, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::call::call;
use crate::companion::{register as registered, wrap};
use crate::error::to_python;
use crate::node::{self, PyNode};
use crate::subclass;
use crate::tensor::{PyTensor, TensorObject};

#[pymethods]
impl PyTensor {
    /// Whether operations on this tensor are recorded.
    #[getter]
    fn requires_grad(&self, py: Python<'_>) -> bool {
        self.tensor(py).requires_grad()
    }

    #[setter]
    fn set_requires_grad(&self, py: Python<'_>, requires_grad: bool) -> PyResult<()> {
        let change = self.tensor(py).requires_grad_(requires_grad).map(drop);
        change.map_err(|error| to_python(py, error))
    }

    /// Asks for a gradient, or no longer does.
    #[pyo3(signature = (requires_grad = true))]
    fn requires_grad_<'py>(
        slf: Bound<'py, PyTensor>,
        requires_grad: bool,
    ) -> PyResult<Bound<'py, PyTensor>> {
        slf.get().set_requires_grad(slf.py(), requires_grad)?;
        Ok(slf)
    }

    /// Whether no recorded operation made this tensor.
    #[getter]
    fn is_leaf(&self, py: Python<'_>) -> bool {
        self.tensor(py).is_leaf()
    }

    /// Whether it was made in inference mode.
    fn is_inference(&self, py: Python<'_>) -> bool {
        self.with(py, Tensor::is_inference)
    }

    /// The recorded operation that made it, a node of the graph.
    #[getter]
    fn grad_fn<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyNode>>> {
        self.tensor(py).grad_fn().map(|grad_fn| node::object(py, grad_fn)).transpose()
    }

    /// The gradient that backward left here.
    #[getter]
    fn grad<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTensor>>> {
        let tensor = self.tensor(py);
        let grad = tensor.grad();
        if grad.is_none() && !tensor.is_leaf() && !tensor.retains_grad() {
            let told = c"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad \
                attribute won't be populated during autograd.backward(). If you want it to be, call \
                .retain_grad() on the Tensor; if you meant a leaf, access that instead";
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), told, 1)?;
        }
        grad.map(|grad| wrap(py, grad)).transpose()
    }

    #[setter]
    fn set_grad(&self, py: Python<'_>, grad: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let grad = match grad.map(|given| (given, given.cast::<PyTensor>())) {
            None => None,
            Some((_, Ok(tensor))) => Some(tensor),
            Some((given, Err(_))) => {
                let kind = given.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "assigned grad expected to be a Tensor or None but got grad of type {kind}"
                )));
            }
        };
        // From now on Rust holds it: this is the object that must come back.
        let grad = grad.map(|grad| registered(grad.clone()));
        let grad = grad.as_ref().map(|grad| grad.tensor());
        let grad = grad.as_ref();
        // The gradient before it, which this may drop, is the user's.
        let this = self.tensor(py);
        call(py, || this.set_grad(grad))
    }

    /// Whether backward keeps the gradient of this tensor, which is no leaf.
    #[getter]
    fn retains_grad(&self, py: Python<'_>) -> bool {
        self.tensor(py).retains_grad()
    }

    /// Which result of its `grad_fn` this tensor is; 0 for a leaf.
    #[getter]
    fn output_nr(&self, py: Python<'_>) -> u32 {
        self.tensor(py).gradient_edge().map_or(0, |(_, output)| output)
    }

    /// Keeps the gradient of a tensor that is not a leaf.
    fn retain_grad(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |this| this.retain_grad())
    }

    /// This tensor outside the graph; the memory is shared.
    fn detach<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        let class = subclass::of_two(slf, None)?;
        subclass::wrap(slf.py(), slf.tensor().detach(), &class)
    }

    /// Computes the gradients of everything that led to this tensor and adds them to the leaves.
    #[pyo3(signature = (gradient = None, retain_graph = None, create_graph = false, inputs = None))]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<&Bound<'_, PyTensor>>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let inputs = inputs.map(|inputs| one_or_several("backward", inputs)).transpose()?;
        warn_of_cycle(py, create_graph, 1)?;
        let options = BackwardOptions {
            gradient: gradient.map(|gradient| gradient.tensor()),
            retain_graph: retain_graph.unwrap_or(create_graph),
            create_graph,
            inputs: Vec::new(),
        };
        let own = self.tensor(py);
        let inputs = inputs.unwrap_or_default();
        let inputs: Vec<_> = inputs.iter().map(Place::as_rust).collect();
        call(py, || rust::backward_between(&[((&own).into(), None)], &inputs, options))
    }
}

/// Warns, once in a program and as PyTorch does, that gradients which are themselves recorded hold
/// the parameters that hold them.
fn warn_of_cycle(py: Python<'_>, create_graph: bool, stack_level: i32) -> PyResult<()> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !create_graph || TOLD.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let told = c"Using backward() with create_graph=True will create a reference cycle between the parameter and its \
                 gradient which can cause a memory leak: use autograd.grad instead, or set .grad to None after use";
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), told, stack_level)
}

/// A tensor, or the place in the graph where its gradient arrives (`GradientEdge`).
enum Place {
    Tensor(Tensor),
    Edge(GradFn, u32),
}

impl Place {
    fn as_rust(&self) -> GradientPlace<'_> {
        match self {
            Place::Tensor(tensor) => tensor.into(),
            Place::Edge(node, output) => GradientPlace::Edge(node, *output),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Place {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Place> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            return Ok(Place::Tensor(tensor.tensor()));
        }
        let parts = object.cast::<PyTuple>().ok().and_then(|parts| {
            let node = parts.get_item(0).ok()?.cast_into::<PyNode>().ok()?;
            Some((node, parts.get_item(1).ok()?.extract().ok()?))
        });
        let Some((node, output)) = parts else {
            let kind = object.get_type();
            return Err(PyTypeError::new_err(format!(
                "expected a Tensor or a GradientEdge, not {kind}"
            )));
        };
        Ok(Place::Edge(node.get().grad_fn().clone(), output))
    }
}

/// What gradients are asked for; a tensor or an edge alone is one, and not a list of its parts, and
/// of a dictionary it is the values.
fn one_or_several(function: &str, inputs: &Bound<'_, PyAny>) -> PyResult<Vec<Place>> {
    if let Ok(one) = inputs.extract::<Place>() {
        return Ok(vec![one]);
    }
    let several: Vec<Place> = match inputs.cast_exact::<PyDict>() {
        Ok(named) => named.values().extract()?,
        Err(_) => inputs.try_iter()?.map(|one| one?.extract()).collect::<PyResult<_>>()?,
    };
    if several.is_empty() {
        return Err(PyRuntimeError::new_err(format!(
            "`inputs` argument to `{function}()` cannot be empty: there is nothing to compute gradients for; leave it out \
             to reach every leaf"
        )));
    }
    Ok(several)
}

/// A mode that is in force until `leave`.
#[pyclass(name = "_Mode", unsendable)]
struct Mode {
    guard: Option<Guard>,
}

enum Guard {
    NoGrad(#[allow(dead_code, reason = "held for its drop")] rust::NoGrad),
    EnableGrad(#[allow(dead_code, reason = "held for its drop")] rust::EnableGrad),
    Inference(#[allow(dead_code, reason = "held for its drop")] rust::InferenceMode),
}

#[pymethods]
impl Mode {
    /// Enters the mode of that name on this thread.
    #[new]
    fn new(name: &str) -> PyResult<Mode> {
        let guard = match name {
            "no_grad" => Guard::NoGrad(rust::NoGrad::enter()),
            "enable_grad" => Guard::EnableGrad(rust::EnableGrad::enter()),
            "inference_mode" => Guard::Inference(rust::InferenceMode::enter()),
            "no_inference_mode" => Guard::Inference(rust::InferenceMode::enter_with(false)),
            _ => return Err(PyValueError::new_err(format!("`{name}` is not a mode"))),
        };
        Ok(Mode { guard: Some(guard) })
    }

    /// Puts back what was in force before.
    fn leave(&mut self) {
        self.guard = None;
    }
}

/// Whether operations on this thread are recorded.
#[pyfunction]
fn is_grad_enabled() -> bool {
    rust::is_grad_enabled()
}

/// Has operations on this thread recorded, or not.
#[pyfunction]
fn _set_grad_enabled(mode: bool) -> bool {
    rust::set_grad_enabled(mode)
}

/// Whether anomaly mode is on.
#[pyfunction]
fn is_anomaly_enabled() -> bool {
    rust::is_anomaly_enabled()
}

/// Whether anomaly mode looks for gradients that are not numbers.
#[pyfunction]
fn is_anomaly_check_nan_enabled() -> bool {
    rust::is_anomaly_check_nan_enabled()
}

/// Switches anomaly mode on or off.
#[pyfunction]
fn _set_detect_anomaly(mode: bool, check_nan: bool) {
    rust::set_detect_anomaly(mode, check_nan);
}

/// The graph behind a tensor as text, with the bytes that each operation holds.
#[pyfunction]
fn _graph_text(tensor: &Bound<'_, PyTensor>) -> String {
    rust::graph_text(&tensor.tensor())
}

/// The graph behind a tensor in Graphviz's language, with the bytes that each operation holds.
#[pyfunction]
fn _graph_dot(tensor: &Bound<'_, PyTensor>) -> String {
    rust::graph_dot(&tensor.tensor())
}

/// Whether this thread is in inference mode.
#[pyfunction]
fn is_inference_mode_enabled() -> bool {
    rust::is_inference_mode_enabled()
}

/// The gradients of `outputs` by `inputs`, without touching any `grad`.
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs = vec![], retain_graph = None, create_graph = false, allow_unused = false))]
fn grad<'py>(
    py: Python<'py>,
    outputs: Vec<Place>,
    inputs: &Bound<'_, PyAny>,
    grad_outputs: Vec<Option<Bound<'_, PyTensor>>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: bool,
) -> PyResult<Vec<Option<Bound<'py, PyTensor>>>> {
    let options = GradOptions {
        grad_outputs: grad_outputs
            .iter()
            .map(|grad| grad.as_ref().map(|grad| grad.tensor()))
            .collect(),
        retain_graph: retain_graph.unwrap_or(create_graph),
        create_graph,
        allow_unused,
    };
    let inputs = one_or_several("grad", inputs)?;
    let outputs: Vec<_> = outputs.iter().map(Place::as_rust).collect();
    let inputs: Vec<_> = inputs.iter().map(Place::as_rust).collect();
    let grads = call(py, || rust::grad_between(&outputs, &inputs, options))?;
    grads.into_iter().map(|grad| grad.map(|grad| wrap(py, grad)).transpose()).collect()
}

/// Computes the gradients of everything that led to these tensors and adds them to the leaves.
#[pyfunction]
#[pyo3(signature = (tensors, grad_tensors, retain_graph = None, create_graph = false, inputs = None))]
fn _backward(
    py: Python<'_>,
    tensors: Vec<Place>,
    grad_tensors: Vec<Option<Bound<'_, PyTensor>>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    inputs: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let inputs = inputs.map(|inputs| one_or_several("backward", inputs)).transpose()?;
    let tensor = |object: &Bound<'_, PyTensor>| object.tensor();
    let grads: Vec<Option<Tensor>> =
        grad_tensors.iter().map(|grad| grad.as_ref().map(tensor)).collect();
    if grads.len() != tensors.len() {
        return Err(PyRuntimeError::new_err(format!(
            "backward: {} tensors need as many grad_tensors, not {}",
            tensors.len(),
            grads.len()
        )));
    }
    let roots = tensors.iter().map(Place::as_rust);
    let roots: Vec<_> = roots.zip(grads.iter().map(Option::as_ref)).collect();
    let inputs = inputs.unwrap_or_default();
    let inputs: Vec<_> = inputs.iter().map(Place::as_rust).collect();
    warn_of_cycle(py, create_graph, 2)?;
    let options = BackwardOptions {
        gradient: None,
        retain_graph: retain_graph.unwrap_or(create_graph),
        create_graph,
        inputs: Vec::new(),
    };
    call(py, || rust::backward_between(&roots, &inputs, options))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Mode>()?;
    module.add_function(wrap_pyfunction!(_backward, module)?)?;
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_anomaly_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_anomaly_check_nan_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_detect_anomaly, module)?)?;
    module.add_function(wrap_pyfunction!(_graph_text, module)?)?;
    module.add_function(wrap_pyfunction!(_graph_dot, module)?)?;
    module.add_function(wrap_pyfunction!(is_inference_mode_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(grad, module)?)
}
