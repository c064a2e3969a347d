//! Recording on and off, hooks, and gradients of chosen tensors. The modes are guards of the calling thread; the package's context
//! managers hold them.

use plimsoll_tensor::{self as rust, GradOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::call::call;
use crate::error::to_python;
use crate::tensor::PyTensor;

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

/// Whether this thread is in inference mode.
#[pyfunction]
fn is_inference_mode_enabled() -> bool {
    rust::is_inference_mode_enabled()
}

/// The gradients of `outputs` by `inputs`, without touching any `grad`.
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs = vec![], retain_graph = None, create_graph = false, allow_unused = false))]
fn grad(
    py: Python<'_>,
    outputs: Vec<Bound<'_, PyTensor>>,
    inputs: Vec<Bound<'_, PyTensor>>,
    grad_outputs: Vec<Option<Bound<'_, PyTensor>>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: bool,
) -> PyResult<Vec<Option<PyTensor>>> {
    let options = GradOptions {
        grad_outputs: grad_outputs
            .iter()
            .map(|grad| grad.as_ref().map(|grad| grad.get().inner.clone()))
            .collect(),
        retain_graph: retain_graph.unwrap_or(create_graph),
        create_graph,
        allow_unused,
    };
    let outputs: Vec<_> = outputs.iter().map(|tensor| &tensor.get().inner).collect();
    let inputs: Vec<_> = inputs.iter().map(|tensor| &tensor.get().inner).collect();
    let grads = call(py, || rust::grad(&outputs, &inputs, options))?;
    Ok(grads.into_iter().map(|grad| grad.map(|inner| PyTensor { inner })).collect())
}

/// What `register_hook` gives back.
#[pyclass(name = "_Hook", module = "plimsoll")]
pub(crate) struct PyHook(Option<rust::HookHandle>);

#[pymethods]
impl PyHook {
    /// The hook is not called any more. Once is enough; twice does no harm.
    fn remove(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.remove();
        }
    }
}

pub(crate) fn register_hook(
    py: Python<'_>,
    tensor: &rust::Tensor,
    hook: Py<PyAny>,
) -> PyResult<PyHook> {
    let run = move |grad: &rust::Tensor| {
        Python::attach(|py| {
            let answer = hook.call1(py, (PyTensor { inner: grad.clone() },));
            answer.and_then(|answer| replacement(py, &answer)).map_err(|error| {
                let why = "the hook raised an exception";
                rust::Error::autograd("hook", why).because(error)
            })
        })
    };
    let handle = tensor.register_hook(run).map_err(|error| to_python(py, error))?;
    Ok(PyHook(Some(handle)))
}

fn replacement(py: Python<'_>, answer: &Py<PyAny>) -> PyResult<Option<rust::Tensor>> {
    if answer.is_none(py) {
        return Ok(None);
    }
    match answer.bind(py).cast::<PyTensor>() {
        Ok(tensor) => Ok(Some(tensor.get().inner.clone())),
        Err(_) => Err(PyTypeError::new_err("a hook returns a tensor, or None to change nothing")),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Mode>()?;
    module.add_class::<PyHook>()?;
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_inference_mode_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(grad, module)?)
}
