//! `__torch_function__`: a class of the user's that takes over operations on its objects, whether
//! it is a subclass of `Tensor` or only looks like one. As in PyTorch, subclasses are asked before
//! their bases and otherwise from left to right; who returns `NotImplemented` passes. Results of
//! plain subclasses need no call: `subclass.rs` gives them their class.
//!
//! A mode (`TorchFunctionMode`), while it is entered, is asked before any class, the last one
//! entered first, and of operations on plain tensors too.
//!
//! Operations of the tables (`function.rs`), operators and indexing ask here. Attributes and the
//! methods that are written by hand (`to`, `backward`, ...) do not.

use std::cell::{Cell, RefCell};

use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDict, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple, PyType,
};

use crate::subclass;
use crate::tensor::PyTensor;

thread_local! {
    /// How many guards are open that switch this off.
    static DISABLED: Cell<usize> = const { Cell::new(0) };
    /// Modes that are entered, and how many: what every call looks at.
    static MODES: RefCell<Vec<Py<PyAny>>> = const { RefCell::new(Vec::new()) };
    static MODE_COUNT: Cell<usize> = const { Cell::new(0) };
}

/// Whether a mode sees every operation of this thread.
#[inline]
pub(crate) fn has_modes() -> bool {
    MODE_COUNT.get() > 0
}

/// Enters a mode on this thread.
#[pyfunction]
fn _push_function_mode(mode: Py<PyAny>) {
    MODES.with_borrow_mut(|modes| modes.push(mode));
    MODE_COUNT.set(MODE_COUNT.get() + 1);
}

/// Leaves the mode that was entered last, and gives it back.
#[pyfunction]
fn _pop_function_mode() -> Option<Py<PyAny>> {
    let mode = MODES.with_borrow_mut(Vec::pop);
    MODE_COUNT.set(MODES.with_borrow(Vec::len));
    mode
}

/// Takes a mode off while it runs, so that it does not see its own operations.
struct Off(Option<Py<PyAny>>);

impl Drop for Off {
    fn drop(&mut self) {
        if let Some(mode) = self.0.take() {
            _push_function_mode(mode);
        }
    }
}

/// Whether classes take nothing over on this thread, and results are plain tensors.
pub(crate) fn are_disabled() -> bool {
    DISABLED.get() > 0
}

/// While it is entered, no class takes an operation over on this thread, and results are plain
/// tensors.
#[pyclass(name = "DisableTorchFunctionSubclass", module = "plimsoll", frozen)]
struct Disable;

#[pymethods]
impl Disable {
    #[new]
    fn new() -> Disable {
        Disable
    }

    fn __enter__(&self) {
        DISABLED.set(DISABLED.get() + 1);
    }

    #[pyo3(signature = (*_failure))]
    fn __exit__(&self, _failure: &Bound<'_, PyTuple>) {
        DISABLED.set(DISABLED.get().saturating_sub(1));
    }
}

/// Switches it off until dropped.
struct Guard;

impl Guard {
    fn enter() -> Guard {
        DISABLED.set(DISABLED.get() + 1);
        Guard
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        DISABLED.set(DISABLED.get().saturating_sub(1));
    }
}

/// Whether nothing among the arguments has a class of its own to say what becomes of the operation
/// and its results: what nearly every call finds out before anything else.
pub(crate) fn are_plain(
    slf: Option<&Bound<'_, PyTensor>>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> bool {
    !has_modes()
        && slf.is_none_or(|slf| is_plain(slf.as_any()))
        && args.iter_borrowed().all(|argument| is_plain(&argument))
        && kwargs.is_none_or(|kwargs| kwargs.iter().all(|(_, argument)| is_plain(&argument)))
}

/// Whether the object is of a class that every call sees, and that takes nothing over.
#[inline]
pub(crate) fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyTensor>()
        || object.is_none()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PySlice>()
        || object.is_exact_instance_of::<PyEllipsis>()
}

/// What a class has to say of operations on its objects.
enum Says {
    /// Nothing.
    Nothing,
    /// What `Tensor` itself says: results have the class.
    AsTensor,
    /// Something of its own.
    Own,
}

fn says(object: &Bound<'_, PyAny>) -> PyResult<Says> {
    let py = object.py();
    let name = intern!(py, "__torch_function__");
    let class = object.get_type();
    let Some(method) = class.getattr_opt(name)? else { return Ok(Says::Nothing) };
    if subclass::is_disabled_impl(&method) {
        return Ok(Says::Nothing);
    }
    let tensor = PyTensor::type_object(py);
    if !class.is_subclass(&tensor)? {
        return Ok(Says::Own);
    }
    // The class in whose body it stands.
    for base in class.mro().iter() {
        if base.getattr(intern!(py, "__dict__"))?.contains(name)? {
            return Ok(if base.is(&tensor) { Says::AsTensor } else { Says::Own });
        }
    }
    Ok(Says::AsTensor)
}

/// Whether the object's class takes operations over.
pub(crate) fn takes_over(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!is_plain(object) && !are_disabled() && matches!(says(object)?, Says::Own))
}

/// Objects to ask, in order; each class once.
#[derive(Default)]
struct Asked<'py> {
    objects: Vec<Bound<'py, PyAny>>,
    own: bool,
}

impl<'py> Asked<'py> {
    fn add(&mut self, object: &Bound<'py, PyAny>) -> PyResult<()> {
        if is_plain(object) {
            return Ok(());
        }
        match says(object)? {
            Says::Nothing => return Ok(()),
            Says::AsTensor => {}
            Says::Own => self.own = true,
        }
        let class = object.get_type();
        if self.objects.iter().any(|other| other.get_type().is(&class)) {
            return Ok(());
        }
        let mut place = self.objects.len();
        for (index, other) in self.objects.iter().enumerate() {
            if class.is_subclass(&other.get_type())? {
                place = index;
                break;
            }
        }
        self.objects.insert(place, object.clone());
        Ok(())
    }

    /// The object, or what a list of tensors has in it.
    fn add_all(&mut self, object: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(list) = object.cast_exact::<PyList>() {
            list.iter().try_for_each(|item| self.add(&item))
        } else if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            tuple.iter().try_for_each(|item| self.add(&item))
        } else {
            self.add(object)
        }
    }
}

/// Asks the classes of the arguments, if any takes operations over: what one of them answered. Of
/// `function` the arguments are `args` and `kwargs`; a method's object is the first of `args`.
pub(crate) fn ask<'py>(
    arguments: impl Iterator<Item = Bound<'py, PyAny>>,
    call: impl FnOnce() -> PyResult<Call<'py>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut asked = Asked::default();
    for argument in arguments {
        asked.add_all(&argument)?;
    }
    let asks = asked.own && !are_disabled();
    if !asks && !has_modes() {
        return Ok(None);
    }
    let Call { name, function, args, kwargs } = call()?;
    let py = function.py();
    let classes = asked.objects.iter().map(|object| object.get_type());
    let classes = PyTuple::new(py, classes.collect::<Vec<_>>())?;
    let mode = Off(_pop_function_mode());
    if let Some(mode) = &mode.0 {
        let method = mode.bind(py).getattr(intern!(py, "__torch_function__"))?;
        let named = kwargs.clone().unwrap_or_else(|| PyDict::new(py));
        let answer = method.call1((&function, &classes, &args, named))?;
        if !answer.is(py.NotImplemented()) {
            return Ok(Some(answer));
        }
    }
    drop(mode);
    if !asks {
        return Err(PyTypeError::new_err(format!(
            "{name}(): the mode that sees operations returned NotImplemented"
        )));
    }
    for object in &asked.objects {
        let method = object.getattr(intern!(py, "__torch_function__"))?;
        let answer = match &kwargs {
            Some(kwargs) if !kwargs.is_empty() => {
                method.call1((&function, &classes, &args, kwargs))?
            }
            _ => method.call1((&function, &classes, &args))?,
        };
        if !answer.is(py.NotImplemented()) {
            return Ok(Some(answer));
        }
    }
    Err(PyTypeError::new_err(format!(
        "{name}(): every class that takes operations over with __torch_function__ returned NotImplemented: {}",
        classes.repr()?
    )))
}

/// A call that a class may take over.
pub(crate) struct Call<'py> {
    pub(crate) name: &'static str,
    pub(crate) function: Bound<'py, PyAny>,
    pub(crate) args: Bound<'py, PyTuple>,
    pub(crate) kwargs: Option<Bound<'py, PyDict>>,
}

/// An attribute of the class `Tensor`, by which operators and methods are known.
pub(crate) fn method<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    PyTensor::type_object(py).getattr(name)
}

/// Asks the classes of a method's arguments.
pub(crate) fn ask_method<'py>(
    slf: &Bound<'py, PyTensor>,
    arguments: &[Bound<'py, PyAny>],
    name: &'static str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !has_modes() && is_plain(slf.as_any()) && arguments.iter().all(is_plain) {
        return Ok(None);
    }
    let py = slf.py();
    let all = || std::iter::once(slf.as_any()).chain(arguments);
    let call = || {
        let args = PyTuple::new(py, all().collect::<Vec<_>>())?;
        Ok(Call { name, function: method(py, name)?, args, kwargs: None })
    };
    ask(all().cloned(), call)
}

/// Asks the classes of an operator's operands; `NotImplemented` if all of them pass.
pub(crate) fn ask_operator<'py>(
    slf: &Bound<'py, PyTensor>,
    other: &Bound<'py, PyAny>,
    name: &'static str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = slf.py();
    match ask_method(slf, std::slice::from_ref(other), name) {
        Err(error) if !has_modes() && error.is_instance_of::<PyTypeError>(py) => {
            Ok(Some(py.NotImplemented().into_bound(py)))
        }
        answer => answer,
    }
}

#[pymethods]
impl PyTensor {
    /// What happens where a class has none of its own: the operation runs, and its results have the
    /// class.
    #[classmethod]
    #[pyo3(signature = (func, types, args = None, kwargs = None))]
    fn __torch_function__<'py>(
        cls: &Bound<'py, PyType>,
        func: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
        args: Option<&Bound<'py, PyTuple>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        for class in types.try_iter()? {
            if !cls.is_subclass(&class?)? {
                return Ok(py.NotImplemented().into_bound(py));
            }
        }
        let none = PyTuple::empty(py);
        let result = {
            let _guard = Guard::enter();
            func.call(args.unwrap_or(&none), kwargs)?
        };
        if cls.is(PyTensor::type_object(py)) { Ok(result) } else { as_class(result, cls) }
    }
}

/// Tensors of a result as objects of a class, in lists and tuples too.
fn as_class<'py>(
    result: Bound<'py, PyAny>,
    class: &Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyAny>> {
    let each = |items: Vec<Bound<'py, PyAny>>| {
        items.into_iter().map(|item| as_class(item, class)).collect::<PyResult<Vec<_>>>()
    };
    if let Ok(tuple) = result.cast::<PyTuple>() {
        let items = each(tuple.iter().collect())?;
        let py = result.py();
        let kind = tuple.get_type();
        // A named tuple takes its parts one by one.
        return match kind.is(PyTuple::type_object(py)) {
            true => Ok(PyTuple::new(py, items)?.into_any()),
            false => kind.call1(PyTuple::new(py, items)?),
        };
    }
    if let Ok(list) = result.cast_exact::<PyList>() {
        return Ok(PyList::new(result.py(), each(list.iter().collect())?)?.into_any());
    }
    subclass::convert(result, &Some(class.clone()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_push_function_mode, module)?)?;
    module.add_function(wrap_pyfunction!(_pop_function_mode, module)?)?;
    module.add_class::<Disable>()
}
