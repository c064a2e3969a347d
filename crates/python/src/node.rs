//! Nodes of the graph as Python sees them: what `grad_fn` gives. One object for one node as long as
//! somebody holds it. A custom function's node shows what its context has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::Mutex;
use plimsoll_tensor::GradFn;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};

use crate::call;
use crate::companion::wrap;
use crate::custom;
use crate::hooks::{self, PyHook};
use crate::tensor::PyTensor;

/// The objects of nodes, by the nodes' numbers. Changed while attached to the interpreter only.
static OBJECTS: Mutex<Option<HashMap<u64, Place>>> = Mutex::new(None);

/// Where an object is; its drop takes it away.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place(*mut ffi::PyObject);

// SAFETY: it is a number to compare and, while attached to the interpreter, a reference to follow.
unsafe impl Send for Place {}

/// A recorded operation, or the place where a leaf's gradients arrive.
#[pyclass(name = "Node", module = "plimsoll.autograd.graph", frozen, weakref)]
pub(crate) struct PyNode {
    grad_fn: GradFn,
    place: AtomicPtr<ffi::PyObject>,
}

/// The object of a node.
pub(crate) fn object(py: Python<'_>, grad_fn: GradFn) -> PyResult<Bound<'_, PyNode>> {
    let id = grad_fn.id();
    let known = OBJECTS.lock().as_ref().and_then(|objects| objects.get(&id).copied());
    if let Some(Place(place)) = known
        // SAFETY: the object's drop takes its place away before its memory is freed, while attached
        // as we are; without references it is being taken apart, and must not be handed out.
        && unsafe { ffi::Py_REFCNT(place) } > 0
    {
        // SAFETY: a live object, as above, and only nodes are put there.
        return Ok(unsafe { Bound::from_borrowed_ptr(py, place).cast_into_unchecked() });
    }
    let made = Bound::new(py, PyNode { grad_fn, place: AtomicPtr::default() })?;
    made.get().place.store(made.as_ptr(), Ordering::Relaxed);
    OBJECTS.lock().get_or_insert_default().insert(id, Place(made.as_ptr()));
    Ok(made)
}

impl Drop for PyNode {
    fn drop(&mut self) {
        let own = Place(*self.place.get_mut());
        let mut objects = OBJECTS.lock();
        if let Some(objects) = objects.as_mut()
            && objects.get(&self.grad_fn.id()) == Some(&own)
        {
            objects.remove(&self.grad_fn.id());
        }
    }
}

#[pymethods]
impl PyNode {
    /// The name of what it computes in backward, as PyTorch builds it: `MulBackward0`.
    fn name(&self) -> String {
        let name = self.grad_fn.name();
        // A custom function's is its class's, and no operation is called like a leaf's place.
        if self.grad_fn.function().is_some() || name == "AccumulateGrad" {
            return name.to_string();
        }
        let words = name.split('_').map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_uppercase() + rest
        });
        words.collect::<String>() + "Backward0"
    }

    /// For each tensor that it was computed from, the node that its gradient goes to and which
    /// output of that node it is; None in a node's place where no gradient is needed.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut found = Vec::new();
        for next in self.grad_fn.next_functions() {
            found.push(match next {
                Some((node, output)) => (Some(object(py, node)?), output),
                None => (None, 0),
            });
        }
        PyTuple::new(py, found)
    }

    /// The leaf whose gradients arrive here.
    #[getter]
    fn variable<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        let none = || PyAttributeError::new_err(format!("{} has no variable", self.name()));
        wrap(py, self.grad_fn.variable().ok_or_else(none)?)
    }

    /// Calls `hook` with the gradients of the inputs and of the outputs, two tuples, after the node
    /// ran in backward. A tuple that it returns takes the place of the former.
    fn register_hook(&self, hook: Py<PyAny>) -> PyHook {
        hooks::on_node(&self.grad_fn, hook)
    }

    /// Calls `hook` with a tuple of the gradients of the outputs before the node runs in backward.
    /// A tuple that it returns takes their place.
    fn register_prehook(&self, hook: Py<PyAny>) -> PyHook {
        hooks::before_node(&self.grad_fn, hook)
    }

    /// What the context of a custom function has.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match custom::context(py, &self.grad_fn) {
            Some(context) if !name.starts_with("__") => context.getattr(name),
            _ => Err(PyAttributeError::new_err(format!("{} has no attribute {name}", self.name()))),
        }
    }

    fn __repr__(slf: &Bound<'_, PyNode>) -> String {
        format!("<{} object at {:#x}>", slf.get().name(), slf.as_ptr().addr())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // As for tensors: see Note [Collecting tensors] in `object.rs`.
        if self.place.load(Ordering::Relaxed).is_null() || call::in_flight() {
            return Ok(());
        }
        let mut outcome = Ok(());
        self.grad_fn.each_foreign(&mut |owned| {
            if let (Ok(()), Some(callable)) = (&outcome, owned.downcast_ref::<Py<PyAny>>()) {
                outcome = visit.call(callable);
            }
        });
        outcome
    }

    fn __clear__(&self) {
        self.grad_fn.remove_own_hooks();
    }
}

#[pymethods]
impl PyTensor {
    /// Where its gradient goes: a node, and which output of it.
    fn _gradient_edge<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyNode>, u32)> {
        let none = || PyRuntimeError::new_err("this tensor does not require gradients");
        let (node, output) = self.tensor().gradient_edge().ok_or_else(none)?;
        Ok((object(py, node)?, output))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNode>()
}
