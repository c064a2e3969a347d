//! Hooks on what graphs save, from Python: `saved_tensors_hooks` of the package enters and leaves
//! the scope that is here.

use std::cell::RefCell;
use std::sync::Arc;

use plimsoll_tensor::{self as rust, Packed, SavedTensorsHooks, SavedTensorsScope, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::companion::wrap;
use crate::tensor::{PyTensor, TensorObject};

/// A pair of Python functions.
struct PythonHooks {
    pack: Py<PyAny>,
    unpack: Py<PyAny>,
}

fn raised(which: &str, error: PyErr) -> rust::Error {
    let why = format!("the {which} hook raised an exception");
    rust::Error::autograd("saved_tensors_hooks", why).because(error)
}

impl SavedTensorsHooks for PythonHooks {
    fn pack(&self, tensor: &Tensor) -> rust::Result<Packed> {
        Python::attach(|py| {
            let packed = wrap(py, tensor.clone()).and_then(|tensor| self.pack.call1(py, (tensor,)));
            packed.map(|packed| Box::new(packed) as Packed).map_err(|error| raised("pack", error))
        })
    }

    fn unpack(&self, packed: &Packed) -> rust::Result<Tensor> {
        let Some(packed) = packed.downcast_ref::<Py<PyAny>>() else {
            let why = "unpack was handed what another hook packed";
            return Err(rust::Error::autograd("saved_tensors_hooks", why));
        };
        Python::attach(|py| {
            let tensor = self.unpack.bind(py).call1((packed,)).and_then(|answer| {
                match answer.cast::<PyTensor>() {
                    Ok(tensor) => Ok(tensor.tensor()),
                    Err(_) => Err(PyTypeError::new_err(format!(
                        "an unpack hook returns a tensor, and this one returned {}",
                        answer.get_type().name()?
                    ))),
                }
            });
            tensor.map_err(|error| raised("unpack", error))
        })
    }
}

/// What this thread's hooks are up to.
#[derive(Default)]
struct Hooks {
    /// Scopes that are open.
    open: usize,
    /// What using hooks raises, if it is forbidden.
    forbidden: Option<String>,
}

thread_local! {
    static HOOKS: RefCell<Hooks> = RefCell::default();
}

/// Refuses hooks on this thread if they are forbidden.
pub(crate) fn check_allowed() -> PyResult<()> {
    match HOOKS.with_borrow(|hooks| hooks.forbidden.clone()) {
        Some(message) => Err(PyRuntimeError::new_err(message)),
        None => Ok(()),
    }
}

/// Hooks that are in force until `leave`.
#[pyclass(name = "_SavedTensorsScope", unsendable)]
struct Scope(Option<SavedTensorsScope>);

#[pymethods]
impl Scope {
    #[new]
    fn new(pack_hook: Py<PyAny>, unpack_hook: Py<PyAny>) -> PyResult<Scope> {
        check_allowed()?;
        HOOKS.with_borrow_mut(|hooks| hooks.open += 1);
        let hooks = Arc::new(PythonHooks { pack: pack_hook, unpack: unpack_hook });
        Ok(Scope(Some(SavedTensorsScope::enter(hooks))))
    }

    /// Puts back what was in force before.
    fn leave(&mut self) {
        if let Some(scope) = self.0.take() {
            HOOKS.with_borrow_mut(|hooks| hooks.open -= 1);
            drop(scope);
        }
    }
}

/// Has this thread raise `message` where hooks are to be used, or no longer; returns what was
/// raised before.
#[pyfunction]
fn _forbid_saved_tensors_hooks(message: Option<String>) -> PyResult<Option<String>> {
    HOOKS.with_borrow_mut(|hooks| match message {
        Some(message) if hooks.open > 0 => Err(PyRuntimeError::new_err(message)),
        message => Ok(std::mem::replace(&mut hooks.forbidden, message)),
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Scope>()?;
    module.add_function(wrap_pyfunction!(_forbid_saved_tensors_hooks, module)?)
}
