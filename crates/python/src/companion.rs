//! One Python object for one tensor. Each Rust tensor that Python has seen carries a [`Companion`]:
//! which Python object stands for it while that lives, and the object's class and attributes, which
//! outlive the object as long as Rust holds the tensor (as a `.grad`, a base of views, ...). Every
//! tensor goes to Python through [`wrap`].
//!
//! Everything here happens while attached to the interpreter, which orders it; the locks only
//! satisfy the compiler, are never waited for, and no Python code runs while one is held. A
//! companion may be dropped on any thread: PyO3 defers what must wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::Mutex;
use plimsoll_tensor::Tensor;
use pyo3::PyTypeInfo;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::tensor::PyTensor;

/// What Python keeps beside a tensor.
#[derive(Debug, Default)]
pub(crate) struct Companion {
    /// The object that stands for the tensor; null if there is none. It does not keep the object
    /// alive: the object's drop takes it away.
    object: AtomicPtr<ffi::PyObject>,
    /// The object's class, if it is not `Tensor` itself.
    class: Mutex<Option<Py<PyType>>>,
    /// The object's attributes, once there are any; the same dictionary as the object's own.
    attributes: Mutex<Option<Py<PyDict>>>,
}

/// The companion of a tensor, made if need be; none if another language was there first.
fn of(tensor: &Tensor) -> Option<&Companion> {
    tensor.companion_or_init(|| Arc::new(Companion::default())).downcast_ref()
}

/// The companion of a tensor that may have none.
fn known(tensor: &Tensor) -> Option<&Companion> {
    tensor.companion()?.downcast_ref()
}

impl Companion {
    fn object<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyTensor>> {
        let object = self.object.load(Ordering::Relaxed);
        if object.is_null() {
            return None;
        }
        // SAFETY: the pointer was taken away before the object's memory was freed (`PyTensor`'s
        // drop), so it is an object still. An object whose last reference went is being taken
        // apart, and must not be handed out again.
        let alive = unsafe { ffi::Py_REFCNT(object) } > 0;
        if !alive {
            return None;
        }
        // SAFETY: a live object, as above, and only objects of this class or a subclass are
        // registered.
        Some(unsafe { Bound::from_borrowed_ptr(py, object).cast_into_unchecked() })
    }
}

/// Python's object for a tensor: the one that it has, or a new one of the class and with the
/// attributes that the last one had.
pub(crate) fn wrap(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyTensor>> {
    if tensor.companion().is_none() {
        return Ok(register_first(Bound::new(py, PyTensor::new(tensor))?));
    }
    let (living, class) = match of(&tensor) {
        Some(companion) => (companion.object(py), cloned(py, &companion.class)),
        None => (None, None),
    };
    match (living, class) {
        (Some(object), _) => Ok(object),
        (None, Some(class)) => instance(class.bind(py), tensor),
        (None, None) => Ok(register(Bound::new(py, PyTensor::new(tensor))?)),
    }
}

/// As [`wrap`], but a tensor that never had an object gets one of `class`.
pub(crate) fn wrap_new<'py>(
    py: Python<'py>,
    tensor: Tensor,
    class: &Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyTensor>> {
    if tensor.companion().is_some() { wrap(py, tensor) } else { instance(class, tensor) }
}

/// A tensor on its way to become an object of a class: what `Tensor.__new__` gets from
/// [`instance`]. Python cannot make one.
#[pyclass(name = "_Handle", frozen)]
pub(crate) struct Handle(pub(crate) Tensor);

/// A new object of `class` for a tensor that has no object yet.
pub(crate) fn instance<'py>(
    class: &Bound<'py, PyType>,
    tensor: Tensor,
) -> PyResult<Bound<'py, PyTensor>> {
    let py = class.py();
    let handle = Bound::new(py, Handle(tensor))?;
    let object = PyTensor::type_object(py).call_method1("__new__", (class, handle))?;
    Ok(register(object.cast_into()?))
}

/// Makes `object` the one object of its tensor, unless there is one already, which is given back
/// then.
pub(crate) fn register(object: Bound<'_, PyTensor>) -> Bound<'_, PyTensor> {
    let py = object.py();
    let tensor = object.get().tensor();
    let Some(companion) = of(&tensor) else { return object };
    // Making the object may have run a collection, and with it code that asked for the same tensor.
    if let Some(first) = companion.object(py) {
        return first;
    }
    object.get().place.store(object.as_ptr(), Ordering::Relaxed);
    companion.object.store(object.as_ptr(), Ordering::Relaxed);
    let class = object.get_type();
    if !class.is(PyTensor::type_object(py)) {
        replace(&companion.class, Some(class.unbind()));
    }
    if let Some(attributes) = cloned(py, &companion.attributes) {
        // SAFETY: attached, and both are live objects; the class has a dictionary.
        unsafe {
            let set = ffi::PyObject_GenericSetDict(
                object.as_ptr(),
                attributes.as_ptr(),
                std::ptr::null_mut(),
            );
            debug_assert_eq!(set, 0, "a tensor takes a dictionary of attributes");
        }
    }
    object
}

/// As [`register`], for the object of a tensor that had none before, and so neither class nor
/// attributes: what most operations make. It takes none of the companion's locks.
fn register_first(object: Bound<'_, PyTensor>) -> Bound<'_, PyTensor> {
    let place = object.as_ptr();
    let is_first = object.get().with(|tensor| {
        // Making the object may have run a collection, and with it code that asked for the tensor.
        if tensor.companion().is_some() {
            return false;
        }
        let companion = Companion { object: AtomicPtr::new(place), ..Companion::default() };
        tensor.companion_or_init(|| Arc::new(companion));
        true
    });
    if !is_first {
        return register(object);
    }
    object.get().place.store(place, Ordering::Relaxed);
    object
}

/// Notes the dictionary of an object's attributes, so that it outlives the object. Called whenever
/// one may have been made.
pub(crate) fn note_attributes(object: &Bound<'_, PyTensor>) -> PyResult<()> {
    let tensor = object.get().tensor();
    let Some(companion) = of(&tensor) else { return Ok(()) };
    let dict = attributes(object)?;
    replace(&companion.attributes, Some(dict.cast_into()?.unbind()));
    Ok(())
}

/// The dictionary of an object's attributes, made if need be.
pub(crate) fn attributes<'py>(object: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: attached; the object is alive; the result is a new reference or null with an
    // exception.
    unsafe {
        let dict = ffi::PyObject_GenericGetDict(object.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(object.py(), dict)
    }
}

/// Whether the attributes of a tensor's object are noted already.
pub(crate) fn has_attributes(tensor: &Tensor) -> bool {
    known(tensor).is_some_and(|companion| companion.attributes.lock().is_some())
}

/// Whether one Python object alone holds the tensor, and with it what the companion holds.
pub(crate) fn is_held_by_python_alone(tensor: &Tensor) -> bool {
    // The companion is shared with the tensor that this object stood for before its data was set.
    let companion = tensor.companion();
    tensor.is_sole_handle() && companion.is_none_or(|shared| Arc::strong_count(shared) == 1)
}

/// Shows the collector what the companion holds.
pub(crate) fn traverse(
    tensor: &Tensor,
    visit: &pyo3::PyVisit<'_>,
) -> Result<(), pyo3::PyTraverseError> {
    let Some(companion) = known(tensor) else { return Ok(()) };
    if let Some(class) = companion.class.try_lock() {
        visit.call(&*class)?;
    }
    if let Some(attributes) = companion.attributes.try_lock() {
        visit.call(&*attributes)?;
    }
    Ok(())
}

/// Lets go of the attributes; the object that had them is garbage and nobody else holds the tensor.
pub(crate) fn forget_attributes(tensor: &Tensor) {
    if let Some(companion) = known(tensor) {
        replace(&companion.attributes, None);
    }
}

/// The object at `place` is being freed; its tensor may live on.
pub(crate) fn depart(py: Python<'_>, tensor: &Tensor, place: *mut ffi::PyObject) {
    let Some(companion) = known(tensor) else { return };
    let own = companion.object.compare_exchange(
        place,
        std::ptr::null_mut(),
        Ordering::Relaxed,
        Ordering::Relaxed,
    );
    if own.is_err() || is_held_by_python_alone(tensor) {
        return;
    }
    // The class may have been changed by an assignment to `__class__`. SAFETY: `place` is an object
    // whose memory is not freed before the drop that calls this ends; so its type is alive.
    let class = unsafe { PyType::from_borrowed_type_ptr(py, ffi::Py_TYPE(place)) };
    let own_class = class.is(PyTensor::type_object(py));
    replace(&companion.class, (!own_class).then(|| class.unbind()));
}

/// Replaces what a lock guards; the old value is dropped outside of it.
fn replace<T>(guarded: &Mutex<Option<Py<T>>>, new: Option<Py<T>>) {
    let old = std::mem::replace(&mut *guarded.lock(), new);
    drop(old);
}

fn cloned<T>(py: Python<'_>, guarded: &Mutex<Option<Py<T>>>) -> Option<Py<T>> {
    guarded.lock().as_ref().map(|object| object.clone_ref(py))
}
