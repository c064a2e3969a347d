//! The `Tensor` object as Python sees objects: attributes and the garbage collector. Which object
//! stands for which tensor is in `companion.rs`, how one is made in `construct.rs`.
//!
//! Note [Collecting tensors]
//! Python's collector finds cycles by visiting what each object owns. Attributes and hooks belong
//! to the Rust tensor, which others than this object may hold: a `.grad`, a base of views, a graph.
//! So they are shown only if this object is the tensor's only holder; otherwise what they refer to
//! must stay. Then they are shown too of the tensors that this tensor alone keeps: its gradient,
//! and what it is a view of. The collector visits twice and must be told the same both times.
//! Holders appear and vanish only in work that Python started (`call.rs` counts it), so while such
//! work runs nothing is shown.

use std::sync::atomic::Ordering;

use plimsoll_tensor::Tensor;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{PyTraverseError, PyVisit};

use crate::call;
use crate::companion;
use crate::node;
use crate::tensor::{PyTensor, TensorObject};

#[pymethods]
impl PyTensor {
    fn __setattr__(
        slf: &Bound<'_, PyTensor>,
        name: &Bound<'_, PyString>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        generic_set(slf, name, Some(value))?;
        // From now on there may be cycles, which the collector finds for objects in their place.
        companion::register(slf.clone());
        if !companion::has_attributes(&slf.tensor()) {
            companion::note_attributes(slf)?;
        }
        Ok(())
    }

    fn __delattr__(slf: &Bound<'_, PyTensor>, name: &Bound<'_, PyString>) -> PyResult<()> {
        // As in PyTorch: the attribute stays, without a value.
        if name == "grad" {
            return slf.setattr(name, slf.py().None());
        }
        generic_set(slf, name, None)
    }

    /// The attributes that were set on this object.
    #[getter(__dict__)]
    fn attributes<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let dict = companion::attributes(slf)?;
        companion::note_attributes(slf)?;
        Ok(dict)
    }

    #[setter(__dict__)]
    fn set_attributes(slf: &Bound<'_, PyTensor>, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        set_dict(slf, dict)?;
        companion::note_attributes(slf)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // See Note [Collecting tensors]. Python 3.11 and 3.12 may collect while an object is made,
        // when its memory is all zeros and there is no tensor yet. An object gets its place after
        // that.
        let unfinished = self.place.load(Ordering::Relaxed).is_null();
        if unfinished || call::in_flight() {
            return Ok(());
        }
        // SAFETY: only an attached thread collects. Nothing below calls Python.
        let py = unsafe { Python::assume_attached() };
        self.with(py, |tensor| {
            if !companion::is_held_by_python_alone(tensor) {
                return Ok(());
            }
            traverse(tensor, &visit)
        })
    }

    fn __clear__(slf: &Bound<'_, PyTensor>) -> PyResult<()> {
        let alone = slf.with_tensor(companion::is_held_by_python_alone);
        let tensor = &slf.tensor();
        if alone {
            let mut own = Vec::new();
            slf.with_tensor(|tensor| {
                each_own(tensor, &mut |own_tensor| own.push(own_tensor.clone()))
            });
            for tensor in std::iter::once(tensor).chain(&own) {
                companion::forget_attributes(tensor);
                tensor.remove_own_hooks();
            }
        } else if companion::has_attributes(tensor) {
            // This object is garbage, its tensor is not. The dictionary in the object is emptied
            // next; the attributes wait in the companion for the tensor's next object.
            set_dict(slf, &PyDict::new(slf.py()))?;
        }
        Ok(())
    }
}

/// Shows the collector what belongs to a tensor that one object alone holds, and to the gradient
/// and the base that only this tensor keeps.
fn traverse(tensor: &Tensor, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    let mut outcome = traverse_one(tensor, visit);
    each_own(tensor, &mut |own| {
        if outcome.is_ok() {
            outcome = traverse_one(own, visit);
        }
    });
    outcome
}

/// The gradient and the base that only `tensor` keeps and that no object stands for.
fn each_own(tensor: &Tensor, look: &mut dyn FnMut(&Tensor)) {
    tensor.each_own_tensor(&mut |own| {
        if companion::is_held_by_python_alone(own) {
            look(own);
        }
    });
}

fn traverse_one(tensor: &Tensor, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    companion::traverse(tensor, visit)?;
    let mut outcome = Ok(());
    tensor.each_foreign_hook(&mut |owned| {
        if outcome.is_ok() {
            outcome = node::visit(owned, visit);
        }
    });
    outcome
}

/// What Python does where a class has no `__setattr__`: descriptors first, then the object's
/// dictionary.
fn generic_set(
    object: &Bound<'_, PyTensor>,
    name: &Bound<'_, PyString>,
    value: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let value = value.map_or(std::ptr::null_mut(), |value| value.as_ptr());
    // SAFETY: attached; the object, the name and the value (null deletes) are alive for the call.
    let outcome = unsafe { ffi::PyObject_GenericSetAttr(object.as_ptr(), name.as_ptr(), value) };
    if outcome < 0 { Err(PyErr::fetch(object.py())) } else { Ok(()) }
}

fn set_dict(object: &Bound<'_, PyTensor>, dict: &Bound<'_, PyDict>) -> PyResult<()> {
    // SAFETY: attached; the object and the dictionary are alive for the call, and the class has a
    // dictionary.
    let outcome = unsafe {
        ffi::PyObject_GenericSetDict(object.as_ptr(), dict.as_ptr(), std::ptr::null_mut())
    };
    if outcome < 0 { Err(PyErr::fetch(object.py())) } else { Ok(()) }
}
