//! Nodes of the graph as Python sees them: what `grad_fn` gives. One object for one node as long as
//! somebody holds it. A custom function's node shows what its context has.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::Mutex;
use plimsoll_tensor::signature::{Kind, Signature};
use plimsoll_tensor::{GradFn, ops};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

use crate::call::{call, in_flight};
use crate::companion::wrap;
use crate::custom;
use crate::error::to_python;
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
#[pyclass(name = "Node", module = "plimsoll.autograd.graph", frozen, weakref, subclass)]
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
    let class = class_of(py, &grad_fn)?;
    let handle = Bound::new(py, NodeHandle(grad_fn))?;
    let made = PyNode::type_object(py).call_method1("__new__", (class, handle))?;
    let made = made.cast_into::<PyNode>()?;
    made.get().place.store(made.as_ptr(), Ordering::Relaxed);
    OBJECTS.lock().get_or_insert_default().insert(id, Place(made.as_ptr()));
    Ok(made)
}

/// A node on its way to become an object of the class of its name. Python cannot make one.
#[pyclass(name = "_NodeHandle", frozen)]
struct NodeHandle(GradFn);

/// The class of nodes of this name, as PyTorch has one for each: `MulBackward0`. They differ in
/// nothing else.
fn class_of<'py>(py: Python<'py>, grad_fn: &GradFn) -> PyResult<Bound<'py, PyAny>> {
    static CLASSES: Mutex<Option<HashMap<String, Py<PyAny>>>> = Mutex::new(None);
    let name = grad_fn.backward_name();
    let known = CLASSES.lock().as_ref().and_then(|classes| Some(classes.get(&name)?.clone_ref(py)));
    if let Some(class) = known {
        return Ok(class.into_bound(py));
    }
    let space = PyDict::new(py);
    // No dictionary of its own, which nothing would keep when the object goes.
    space.set_item("__slots__", PyTuple::empty(py))?;
    space.set_item("__module__", "plimsoll.autograd.graph")?;
    let last = name.rsplit("::").next().unwrap_or(&name).to_string();
    let class = py.get_type::<PyType>().call1((last, (PyNode::type_object(py),), space))?;
    CLASSES.lock().get_or_insert_default().insert(name, class.clone().unbind());
    Ok(class)
}

impl PyNode {
    /// The node itself.
    pub(crate) fn grad_fn(&self) -> &GradFn {
        &self.grad_fn
    }
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
    #[new]
    fn new(handle: &Bound<'_, NodeHandle>) -> PyNode {
        PyNode { grad_fn: handle.get().0.clone(), place: AtomicPtr::default() }
    }

    /// The name of what it computes in backward, as PyTorch builds it: `MulBackward0`.
    fn name(&self) -> String {
        self.grad_fn.backward_name()
    }

    /// Its place in the order in which nodes are made; the highest number for a leaf's.
    fn _sequence_nr(&self) -> u64 {
        self.grad_fn.sequence()
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

    /// For each of its outputs, whose gradients are its inputs in backward, a tensor of their shape
    /// and dtype.
    #[getter]
    fn _input_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let outputs = 0..self.grad_fn.outputs() as u32;
        let like = |output| wrap(py, call(py, || self.grad_fn.output_like(output))?);
        PyTuple::new(py, outputs.map(like).collect::<PyResult<Vec<_>>>()?)
    }

    /// A dictionary for notes of the program's, which the node keeps.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        if let Some(known) = self.grad_fn.kept::<Metadata>() {
            return known.0.bind(py).clone();
        }
        let made = PyDict::new(py);
        self.grad_fn.keep(Arc::new(Metadata(made.clone().unbind())));
        made
    }

    /// What the context of a custom function has, or what an operation saved: `_saved_self`,
    /// `_saved_result`, by the names of its arguments; `_raw_saved_self` is that in a box.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let raw = name.strip_prefix("_raw_saved_");
        let argument = raw.or_else(|| name.strip_prefix("_saved_"));
        let found = match (custom::context(py, &self.grad_fn), argument) {
            (Some(context), _) if !name.starts_with("__") => Some(context.getattr(name)?),
            (None, Some(argument)) => match (self.saved(py, argument)?, raw) {
                (Some(saved), Some(_)) => Some(
                    py.import("plimsoll.autograd.graph")?
                        .getattr("SavedTensor")?
                        .call1((saved,))?,
                ),
                (saved, _) => saved,
            },
            _ => None,
        };
        let none = || {
            // Python drops the error of the getter `variable` to ask here: its words are these.
            let is_leaf = name == "variable" && self.grad_fn.name() == "AccumulateGrad";
            PyAttributeError::new_err(match is_leaf {
                true => {
                    "AccumulateGrad has no variable: nobody holds the leaf any more".to_string()
                }
                false => format!("{} has no attribute {name}", self.name()),
            })
        };
        found.ok_or_else(none)
    }

    fn __repr__(slf: &Bound<'_, PyNode>) -> String {
        let name = slf.get().name();
        let last = name.rsplit("::").next().unwrap_or(&name);
        format!("<{last} object at {:#x}>", slf.as_ptr().addr())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // As for tensors: see Note [Collecting tensors] in `object.rs`.
        if self.place.load(Ordering::Relaxed).is_null() || in_flight() {
            return Ok(());
        }
        let mut outcome = Ok(());
        self.grad_fn.each_foreign(&mut |owned| {
            if outcome.is_ok() {
                outcome = self::visit(owned, &visit);
            }
        });
        outcome
    }

    fn __clear__(&self) {
        self.grad_fn.remove_own_hooks();
    }
}

/// The notes of a node.
struct Metadata(Py<PyDict>);

/// Shows the collector one thing that a node or a tensor owns.
pub(crate) fn visit(owned: &dyn Any, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    if let Some(object) = owned.downcast_ref::<Py<PyAny>>() {
        return visit.call(object);
    }
    owned.downcast_ref::<Metadata>().map_or(Ok(()), |notes| visit.call(&notes.0))
}

impl PyNode {
    /// What the operation saved of the argument or the result of that name: a tensor, or None. No
    /// answer if it saves nothing of that name.
    fn saved<'py>(&self, py: Python<'py>, argument: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let operation = ops().find(|info| info.name == self.grad_fn.name());
        let Some(text) = operation.and_then(|info| info.signatures.first()) else {
            return Ok(None);
        };
        let signature = Signature::parse(text).map_err(|error| to_python(py, error))?;
        let is_tensor =
            |kind| matches!(kind, Kind::Tensor | Kind::OptionalTensor | Kind::TensorOrNumber);
        let tensors = signature.parameters.iter().filter(|parameter| is_tensor(parameter.kind));
        let input = tensors.enumerate().find(|(_, parameter)| parameter.name == argument);
        let output = match argument.strip_prefix("result") {
            Some("") if signature.results.len() == 1 => Some(0),
            Some(number) => number.parse().ok(),
            None => signature.results.iter().position(|name| name == argument),
        };
        let [inputs, outputs] = call(py, || self.grad_fn.saved_by_place())?;
        let (list, index) = match (input, output) {
            (Some((index, _)), _) => (inputs, index),
            (None, Some(index)) => (outputs, index),
            (None, None) => return Ok(None),
        };
        match list.into_iter().nth(index) {
            None => Ok(None),
            Some(None) => Ok(Some(py.None().into_bound(py))),
            Some(Some(tensor)) => Ok(Some(wrap(py, tensor)?.into_any())),
        }
    }
}

#[pymethods]
impl PyTensor {
    /// Where its gradient goes: a node, and which output of it.
    fn _gradient_edge<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyNode>, u32)> {
        let none = || {
            PyRuntimeError::new_err(
                "It is not possible to get the gradient edge for a Tensor that does not require gradients",
            )
        };
        let (node, output) = self.tensor(py).gradient_edge().ok_or_else(none)?;
        Ok((object(py, node)?, output))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNode>()
}
