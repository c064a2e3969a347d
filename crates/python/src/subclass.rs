//! Which class a result has. As PyTorch's default `__torch_function__` has it, operations on
//! objects of a subclass of `Tensor` give that subclass, of several the most derived; classes that
//! have nothing to do with each other are refused. A class opts out, as parameters do, with
//! `__torch_function__ = _disabled_torch_function_impl`; one with a method of its own there is
//! asked before anything runs (`overrides.rs`).

use plimsoll_tensor::Tensor;
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

use crate::companion;
use crate::overrides;
use crate::tensor::PyTensor;

/// The class of results; none for `Tensor` itself.
pub(crate) type Class<'py> = Option<Bound<'py, PyType>>;

/// What a class has as its `__torch_function__` to opt out. It is never called.
#[pyfunction]
#[pyo3(signature = (*_args, **_kwargs))]
fn _disabled_torch_function_impl(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) {}

static DISABLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The class of one object as results take it over.
fn class_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Class<'py>> {
    let py = object.py();
    let class = object.get_type();
    let base = PyTensor::type_object(py);
    if class.is(&base) || !class.is_subclass(&base)? || overrides::are_disabled() {
        return Ok(None);
    }
    let own = class.getattr_opt(intern!(py, "__torch_function__"))?;
    let disabled = own.is_some_and(|own| is_disabled_impl(&own));
    Ok((!disabled).then_some(class))
}

/// Whether this is what a class has to opt out.
pub(crate) fn is_disabled_impl(method: &Bound<'_, PyAny>) -> bool {
    DISABLED.get(method.py()).is_some_and(|disabled| method.is(disabled))
}

/// The class of what an operation makes of `first` and `second`.
fn common<'py>(first: Class<'py>, second: Class<'py>) -> PyResult<Class<'py>> {
    let (Some(a), Some(b)) = (&first, &second) else { return Ok(first.or(second)) };
    if a.is_subclass(b)? {
        return Ok(first);
    }
    if b.is_subclass(a)? {
        return Ok(second);
    }
    Err(PyTypeError::new_err(format!(
        "an operation on {} and {}: neither class is derived from the other, so the result has none; convert one with \
         as_subclass()",
        a.name()?,
        b.name()?
    )))
}

/// The class of what an operation makes of these objects, lists of tensors among them.
pub(crate) fn of_all<'py>(
    objects: impl Iterator<Item = Bound<'py, PyAny>>,
) -> PyResult<Class<'py>> {
    let mut class = None;
    for object in objects {
        let own = if let Ok(list) = object.cast::<PyList>() {
            of_items(list.iter())?
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            of_items(tuple.iter())?
        } else {
            class_of(&object)?
        };
        class = common(class, own)?;
    }
    Ok(class)
}

fn of_items<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Class<'py>> {
    items.map(|item| class_of(&item)).try_fold(None, |class, own| common(class, own?))
}

/// The class of what an operation makes of one tensor and perhaps something else.
pub(crate) fn of_two<'py>(
    slf: &Bound<'py, PyTensor>,
    other: Option<&Bound<'py, PyAny>>,
) -> PyResult<Class<'py>> {
    let other = other.map(class_of).transpose()?.flatten();
    common(class_of(slf.as_any())?, other)
}

/// A result as an object of a class, or of the class that it has already.
pub(crate) fn wrap<'py>(
    py: Python<'py>,
    tensor: Tensor,
    class: &Class<'py>,
) -> PyResult<Bound<'py, PyTensor>> {
    match class {
        None => companion::wrap(py, tensor),
        Some(class) => as_class(companion::wrap_new(py, tensor, class)?, class),
    }
}

/// A result that is somebody's object already: that object if it is of the class, else another for
/// the same memory.
pub(crate) fn convert<'py>(
    object: Bound<'py, PyAny>,
    class: &Class<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    match (class, object.cast::<PyTensor>()) {
        (Some(class), Ok(tensor)) => Ok(as_class(tensor.clone(), class)?.into_any()),
        _ => Ok(object),
    }
}

fn as_class<'py>(
    object: Bound<'py, PyTensor>,
    class: &Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyTensor>> {
    if object.is_instance(class)? {
        return Ok(object);
    }
    Ok(object.call_method1(intern!(class.py(), "as_subclass"), (class,))?.cast_into()?)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let disabled = wrap_pyfunction!(_disabled_torch_function_impl, module)?;
    let _ = DISABLED.set(module.py(), disabled.clone().into_any().unbind());
    module.add_function(disabled)
}
