//! Python functions as hooks: on a tensor's gradient, on a leaf whose gradient was written, on a
//! node before and after it runs. Python's collector sees the functions through whoever holds the
//! hooks (`object.rs`, `node.rs`).

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_tensor::{
    self as rust, GradFn, Hook, MultiGradHook, Tensor, register_multi_grad_hook,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::companion::wrap;
use crate::error::to_python;
use crate::tensor::{PyTensor, TensorObject};

/// What registering a hook gives back. As a context manager it removes the hook at the end.
#[pyclass(name = "RemovableHandle", module = "plimsoll")]
pub(crate) struct PyHook {
    handle: Option<Handle>,
    /// A number that no other hook has.
    #[pyo3(get)]
    id: u64,
}

/// A hook of one tensor or node, or of several tensors.
enum Handle {
    One(rust::HookHandle),
    Several(rust::MultiGradHandle),
}

#[pymethods]
impl PyHook {
    /// The hook is not called any more. Once is enough; twice does no harm.
    fn remove(&mut self) {
        match self.handle.take() {
            Some(Handle::One(handle)) => handle.remove(),
            Some(Handle::Several(handle)) => handle.remove(),
            None => {}
        }
    }

    fn __enter__(slf: Bound<'_, PyHook>) -> Bound<'_, PyHook> {
        slf
    }

    #[pyo3(signature = (*_failure))]
    fn __exit__(&mut self, _failure: &Bound<'_, PyTuple>) {
        self.remove();
    }
}

#[pymethods]
impl PyTensor {
    /// Calls `hook` with this tensor's gradient whenever backward computes it; a returned tensor
    /// replaces it.
    fn register_hook(&self, py: Python<'_>, hook: Py<PyAny>) -> PyResult<PyHook> {
        let hook = Arc::new(PythonHook(hook));
        let handle = self.tensor(py).register_hook_object(hook);
        handle.map(PyHook::one).map_err(|error| to_python(py, error))
    }

    /// Calls `hook` with this leaf after each time that backward wrote its gradient.
    fn register_post_accumulate_grad_hook(
        &self,
        py: Python<'_>,
        hook: Py<PyAny>,
    ) -> PyResult<PyHook> {
        let hook = Arc::new(hook);
        let owned: Arc<dyn Any + Send + Sync> = hook.clone();
        let run = move |leaf: &Tensor| {
            attached(|py| {
                let answer = hook.bind(py).call1((wrap(py, leaf.clone())?,))?;
                if answer.is_none() {
                    return Ok(());
                }
                if !answer.is_instance_of::<PyTensor>() {
                    let class = answer.get_type().name()?;
                    let why = format!("expected Variable, but hook returned '{class}'");
                    return Err(PyTypeError::new_err(why));
                }
                let why = "Tensor post accumulate grad hooks should return None.";
                Err(PyRuntimeError::new_err(why))
            })
        };
        let handle = self.tensor(py).register_post_accumulate_grad_hook_owning(run, Some(owned));
        handle.map(PyHook::one).map_err(|error| to_python(py, error))
    }
}

impl PyHook {
    fn one(handle: rust::HookHandle) -> PyHook {
        PyHook::over(Handle::One(handle))
    }

    fn over(handle: Handle) -> PyHook {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        PyHook { handle: Some(handle), id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

/// Calls `function` with the gradients of the tensors when all that come have come, or with the
/// first of them.
#[pyfunction]
fn _register_multi_grad_hook(
    py: Python<'_>,
    tensors: Vec<Bound<'_, PyTensor>>,
    function: Py<PyAny>,
    first_only: bool,
) -> PyResult<PyHook> {
    let hook = if first_only {
        MultiGradHook::Any(Box::new(move |grad| {
            attached(|py| function.bind(py).call1((wrap(py, grad.clone())?,)).map(drop))
        }))
    } else {
        MultiGradHook::All(Box::new(move |grads| {
            attached(|py| function.bind(py).call1((objects(py, grads)?.to_list(),)).map(drop))
        }))
    };
    let tensors: Vec<Tensor> = tensors.iter().map(|tensor| tensor.tensor()).collect();
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let handle = register_multi_grad_hook(&tensors, hook);
    handle.map(|handle| PyHook::over(Handle::Several(handle))).map_err(|error| to_python(py, error))
}

/// A Python function as a hook of a tensor.
struct PythonHook(Py<PyAny>);

impl Hook for PythonHook {
    fn run(&self, grad: &Tensor) -> rust::Result<Option<Tensor>> {
        attached(|py| {
            let answer = self.0.bind(py).call1((wrap(py, grad.clone())?,))?;
            if answer.is_none() {
                return Ok(None);
            }
            match answer.cast::<PyTensor>() {
                Ok(tensor) => Ok(Some(tensor.tensor())),
                Err(_) => Err(wrong("a tensor, or None to change nothing", &answer)),
            }
        })
    }

    fn pass(&self) -> rust::Result<()> {
        attached(|py| {
            let answer = self.0.bind(py).call1((py.None(),))?;
            if answer.is_none() {
                return Ok(());
            }
            Err(PyRuntimeError::new_err("a hook cannot put a gradient where there is none"))
        })
    }

    fn foreign(&self) -> Option<&dyn Any> {
        Some(&self.0)
    }
}

/// Registers a hook that runs after the node.
pub(crate) fn on_node(node: &GradFn, hook: Py<PyAny>) -> PyHook {
    let hook = Arc::new(hook);
    let owned: Arc<dyn Any + Send + Sync> = hook.clone();
    let run = move |inputs: &[Option<Tensor>], outputs: &[Option<Tensor>]| {
        attached(|py| {
            let arguments = (objects(py, inputs)?, objects(py, outputs)?);
            replacements(&hook.bind(py).call1(arguments)?)
        })
    };
    PyHook::one(node.register_hook_owning(run, owned))
}

/// Calls `work` when the backward that is going on has computed its gradients.
#[pyfunction]
fn _queue_callback(py: Python<'_>, work: Py<PyAny>) -> PyResult<()> {
    let run = move || attached(|py| work.bind(py).call0().map(drop));
    rust::queue_callback(run).map_err(|error| to_python(py, error))
}

/// Registers a hook that runs before the node.
pub(crate) fn before_node(node: &GradFn, hook: Py<PyAny>) -> PyHook {
    let hook = Arc::new(hook);
    let owned: Arc<dyn Any + Send + Sync> = hook.clone();
    let run = move |outputs: &[Option<Tensor>]| {
        attached(|py| replacements(&hook.bind(py).call1((objects(py, outputs)?,))?))
    };
    PyHook::one(node.register_prehook_owning(run, owned))
}

/// Runs Python; an exception becomes an error that carries it.
fn attached<R>(work: impl FnOnce(Python<'_>) -> PyResult<R>) -> rust::Result<R> {
    Python::attach(|py| {
        let raised = "the hook raised an exception";
        work(py).map_err(|error| rust::Error::autograd("hook", raised).because(error))
    })
}

fn objects<'py>(py: Python<'py>, tensors: &[Option<Tensor>]) -> PyResult<Bound<'py, PyTuple>> {
    let object = |tensor: &Option<Tensor>| tensor.clone().map(|t| wrap(py, t)).transpose();
    PyTuple::new(py, tensors.iter().map(object).collect::<PyResult<Vec<_>>>()?)
}

/// The gradients that a node's hook returned.
fn replacements(answer: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Option<Tensor>>>> {
    const EXPECTED: &str = "a tuple of tensors, or None to change nothing";
    if answer.is_none() {
        return Ok(None);
    }
    let tuple = answer.cast::<PyTuple>().map_err(|_| wrong(EXPECTED, answer))?;
    let one = |item: Bound<'_, PyAny>| match item.cast::<PyTensor>() {
        _ if item.is_none() => Ok(None),
        Ok(tensor) => Ok(Some(tensor.tensor())),
        Err(_) => Err(wrong(EXPECTED, &item)),
    };
    tuple.iter().map(one).collect::<PyResult<_>>().map(Some)
}

fn wrong(expected: &str, answer: &Bound<'_, PyAny>) -> PyErr {
    let class = answer.get_type().name().map_or_else(|_| "?".to_string(), |name| name.to_string());
    PyTypeError::new_err(format!("a hook returns {expected}, and this one returned {class}"))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyHook>()?;
    module.add_function(wrap_pyfunction!(_queue_callback, module)?)?;
    module.add_function(wrap_pyfunction!(_register_multi_grad_hook, module)?)
}
