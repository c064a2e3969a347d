//! Recording on and off, and gradients of chosen tensors. The modes are guards of the calling thread; the package's context
//! managers hold them.

use plimsoll_tensor::{self as rust, GradOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::call;
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

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Mode>()?;
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_inference_mode_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(grad, module)?)
}
