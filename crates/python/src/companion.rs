//! One Python object for one tensor. Each Rust tensor that Python has seen knows which Python
//! object stands for it while that lives, and the object's class and attributes, which outlive the
//! object as long as Rust holds the tensor (as a `.grad`, a base of views, ...). Every tensor goes
//! to Python through [`wrap`].
//!
//! Of most tensors there is only the object to know, of the class `Tensor` itself: it is the
//! tensor's word ([`Tensor::companion_word`]). What more there is has a [`Companion`], which has
//! the object from then on, and the word is of no meaning.
//!
//! Everything here happens while attached to the interpreter, which orders it; the locks only
//! satisfy the compiler, are never waited for, and no Python code runs while one is held. A
//! companion may be dropped on any thread: PyO3 defers what must wait.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::Mutex;
use plimsoll_tensor::Tensor;
use pyo3::PyTypeInfo;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::new_object::new_object;
use crate::tensor::{PyTensor, TensorObject};

/// In a tensor's word: its object, of the class `Tensor` itself, has gone. An address that no
/// object has.
const GONE: *mut ffi::PyObject = std::ptr::dangling_mut();

/// What Python keeps beside a tensor that needs more than a word.
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
    let make = || -> Arc<dyn Any + Send + Sync> {
        let word = word(tensor);
        let object = if word == GONE { std::ptr::null_mut() } else { word };
        Arc::new(Companion { object: AtomicPtr::new(object), ..Companion::default() })
    };
    tensor.companion_or_init(make).downcast_ref()
}

/// Null for a tensor that never had an object; [`GONE`], or its object. Of no meaning if there is a
/// companion.
#[inline]
fn word(tensor: &Tensor) -> *mut ffi::PyObject {
    tensor.companion_word().load(Ordering::Relaxed).cast()
}

#[inline]
fn set_word(tensor: &Tensor, object: *mut ffi::PyObject) {
    tensor.companion_word().store(object.cast(), Ordering::Relaxed);
}

/// Whether the tensor ever had an object.
fn is_known(tensor: &Tensor) -> bool {
    !word(tensor).is_null() || tensor.companion().is_some()
}

/// The companion that another tensor shares from now on; none of a tensor that never had an object.
pub(crate) fn to_share(tensor: &Tensor) -> Option<Arc<dyn Any + Send + Sync>> {
    if !is_known(tensor) {
        return None;
    }
    of(tensor);
    tensor.companion().cloned()
}

/// Has a tensor that Python has not seen share a companion that [`to_share`] gave.
pub(crate) fn share(companion: &Arc<dyn Any + Send + Sync>, tensor: &Tensor) {
    let unseen = tensor.companion().is_some() || word(tensor).is_null();
    let own = tensor.companion_or_init(|| companion.clone());
    assert!(unseen && Arc::ptr_eq(own, companion), "a tensor has one object");
}

/// The companion of a tensor that may have none.
fn known(tensor: &Tensor) -> Option<&Companion> {
    tensor.companion()?.downcast_ref()
}

impl Companion {
    fn object<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyTensor>> {
        living(py, self.object.load(Ordering::Relaxed))
    }
}

/// The object that a tensor's word or companion has, if it is alive.
fn living(py: Python<'_>, object: *mut ffi::PyObject) -> Option<Bound<'_, PyTensor>> {
    if object.is_null() || object == GONE {
        return None;
    }
    // SAFETY: the pointer was taken away before the object's memory was freed (`PyTensor`'s drop),
    // so it is an object still. An object whose last reference went is being taken apart, and must
    // not be handed out again.
    let alive = unsafe { ffi::Py_REFCNT(object) } > 0;
    if !alive {
        return None;
    }
    // SAFETY: a live object, as above, and only objects of this class or a subclass are registered.
    Some(unsafe { Bound::from_borrowed_ptr(py, object).cast_into_unchecked() })
}

/// Python's object for a tensor: the one that it has, or a new one of the class and with the
/// attributes that the last one had.
pub(crate) fn wrap(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyTensor>> {
    if tensor.companion().is_none() {
        return match living(py, word(&tensor)) {
            Some(object) => Ok(object),
            None => Ok(register_plain(new_object(py, tensor)?)),
        };
    }
    let (living, class) = match of(&tensor) {
        Some(companion) => (companion.object(py), cloned(py, &companion.class)),
        None => (None, None),
    };
    match (living, class) {
        (Some(object), _) => Ok(object),
        (None, Some(class)) => instance(class.bind(py), tensor),
        (None, None) => Ok(register(new_object(py, tensor)?)),
    }
}

/// As [`wrap`], but a tensor that never had an object gets one of `class`.
pub(crate) fn wrap_new<'py>(
    py: Python<'py>,
    tensor: Tensor,
    class: &Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyTensor>> {
    if is_known(&tensor) { wrap(py, tensor) } else { instance(class, tensor) }
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
    let tensor = object.tensor();
    let class = object.get_type();
    if tensor.companion().is_none() && class.is(PyTensor::type_object(py)) {
        return register_plain(object);
    }
    let Some(companion) = of(&tensor) else { return object };
    // Making the object may have run a collection, and with it code that asked for the same tensor.
    if let Some(first) = companion.object(py) {
        return first;
    }
    object.get().place.store(object.as_ptr(), Ordering::Relaxed);
    companion.object.store(object.as_ptr(), Ordering::Relaxed);
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

/// As [`register`], for an object of the class `Tensor` itself and a tensor without a companion:
/// what most operations make.
fn register_plain(object: Bound<'_, PyTensor>) -> Bound<'_, PyTensor> {
    let (py, place) = (object.py(), object.as_ptr());
    // Making the object may have run a collection, and with it code that asked for the same tensor.
    let first = object.get().with(py, |tensor| match tensor.companion() {
        Some(_) => Err(()),
        None => match living(py, word(tensor)) {
            Some(first) => Ok(Some(first)),
            None => {
                set_word(tensor, place);
                Ok(None)
            }
        },
    });
    match first {
        Ok(Some(first)) => first,
        Ok(None) => {
            object.get().place.store(place, Ordering::Relaxed);
            object
        }
        Err(()) => register(object),
    }
}

/// Notes the dictionary of an object's attributes, so that it outlives the object. Called whenever
/// one may have been made.
pub(crate) fn note_attributes(object: &Bound<'_, PyTensor>) -> PyResult<()> {
    let tensor = object.tensor();
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
    let companion = known(tensor);
    let object = match companion {
        Some(companion) => companion.object.load(Ordering::Relaxed),
        None => word(tensor),
    };
    if object != place {
        return;
    }
    match companion {
        Some(companion) => companion.object.store(std::ptr::null_mut(), Ordering::Relaxed),
        None => set_word(tensor, GONE),
    }
    if is_held_by_python_alone(tensor) {
        return;
    }
    // The class may have been changed by an assignment to `__class__`. SAFETY: `place` is an object
    // whose memory is not freed before the drop that calls this ends; so its type is alive.
    let class = unsafe { PyType::from_borrowed_type_ptr(py, ffi::Py_TYPE(place)) };
    let class = (!class.is(PyTensor::type_object(py))).then(|| class.unbind());
    if let Some(companion) = companion.or_else(|| class.as_ref().and_then(|_| of(tensor))) {
        replace(&companion.class, class);
    }
}

/// Replaces what a lock guards; the old value is dropped outside of it.
fn replace<T>(guarded: &Mutex<Option<Py<T>>>, new: Option<Py<T>>) {
    let old = std::mem::replace(&mut *guarded.lock(), new);
    drop(old);
}

fn cloned<T>(py: Python<'_>, guarded: &Mutex<Option<Py<T>>>) -> Option<Py<T>> {
    guarded.lock().as_ref().map(|object| object.clone_ref(py))
}
