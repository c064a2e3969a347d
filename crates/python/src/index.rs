//! `x[...]` and `x[...] = value`. Integers, slices, `None` and `...` make views, and so does a
//! tensor without dimensions that holds an integer; other tensors and lists of indices or bools
//! gather elements into new memory.

use plimsoll_core::DType;
use plimsoll_tensor::{At, Tensor};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyEllipsis, PyInt, PyIterator, PyList, PySequence, PySlice, PyString, PyTuple,
};
use smallvec::SmallVec;

use crate::arguments::{Given, Operand};
use crate::call::{Effort, call, call_of, fresh_with};
use crate::companion::wrap;
use crate::overrides;
use crate::subclass;
use crate::tensor::{PyTensor, TensorObject};
use crate::{create, numpy};

/// One part of an index, with the tensor that it holds.
enum Part {
    Plain(At<'static>),
    Tensor(Tensor),
}

impl Part {
    fn at(&self) -> At<'_> {
        match self {
            Part::Plain(at) => *at,
            Part::Tensor(tensor) => At::Tensor(tensor),
        }
    }

    fn tensor(&self) -> Option<&Tensor> {
        match self {
            Part::Plain(_) => None,
            Part::Tensor(tensor) => Some(tensor),
        }
    }
}

/// The parts of an index; most have few.
type Parts = SmallVec<[Part; 4]>;

#[pymethods]
impl PyTensor {
    fn __getitem__<'py>(
        slf: &Bound<'py, PyTensor>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(answer) =
            overrides::ask_method(slf, std::slice::from_ref(index), "__getitem__")?
        {
            return Ok(answer);
        }
        let parts = parts(slf, index)?;
        let class = subclass::of_two(slf, None)?;
        let at =
            |this: &Tensor| this.at(&parts.iter().map(Part::at).collect::<SmallVec<[_; 4]>>()[..]);
        let tensors: SmallVec<[&Tensor; 4]> = parts.iter().filter_map(Part::tensor).collect();
        Ok(fresh_with(slf, &class, &tensors, at)?.into_any())
    }

    /// The rows. Without this Python would ask for one after another until there is none, and find
    /// nothing in a tensor without dimensions.
    fn __iter__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyIterator>> {
        let Some(&rows) = slf.tensor().shape().first() else {
            return Err(PyTypeError::new_err("a tensor without dimensions has no rows"));
        };
        let rows = (0..rows).map(|row| slf.get_item(row)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(slf.py(), rows)?.try_iter()
    }

    /// Python would say that it is not implemented; it cannot be.
    fn __delitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("Tensor does not support deleting items"))
    }

    fn __setitem__<'py>(
        slf: &Bound<'py, PyTensor>,
        index: &Bound<'py, PyAny>,
        value: Given<'py>,
    ) -> PyResult<()> {
        let (py, tensor) = (slf.py(), slf.tensor());
        let given = [index.clone(), value.object().clone()];
        if overrides::ask_method(slf, &given, "__setitem__")?.is_some() {
            return Ok(());
        }
        let Some(value) = value.operand() else {
            return Err(PyTypeError::new_err("a tensor takes tensors and numbers"));
        };
        let parts = parts(slf, index)?;
        let others = parts.iter().filter_map(Part::tensor).chain(value.tensor());
        let effort = Effort::of([&tensor].into_iter().chain(others));
        call_of(py, effort, || {
            let parts: SmallVec<[At<'_>; 4]> = parts.iter().map(Part::at).collect();
            match &value {
                Operand::Tensor(value) => tensor.set_at_(&parts[..], value).map(drop),
                Operand::Number(value) => tensor.set_at_(&parts[..], *value).map(drop),
            }
        })
    }
}

/// The parts of an index as the user wrote it. As in PyTorch a list stands for a tuple if it has
/// anything in it that no tensor of indices has, and is not long.
fn items<'py>(index: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    const LONG: usize = 32;
    if let Ok(tuple) = index.cast::<PyTuple>() {
        return Ok(tuple.iter().collect());
    }
    if let Ok(list) = index.cast::<PyList>()
        && list.len() < LONG
        && list.iter().any(|item| {
            let tensor = item.is_instance_of::<PyTensor>() || is_sequence(&item);
            tensor
                || item.is_none()
                || item.is_instance_of::<PySlice>()
                || item.is_instance_of::<PyEllipsis>()
        })
    {
        warn_of_lists(index.py())?;
        return Ok(list.iter().collect());
    }
    Ok(vec![index.clone()])
}

fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.cast::<PySequence>().is_ok() || object.hasattr("__array_interface__").unwrap_or(false)
}

/// Whether an item is one part of an index by its class alone, as most are. Other objects are asked
/// whether they are sequences or arrays, and each no is an exception that is thrown away.
fn is_one_part(item: &Bound<'_, PyAny>) -> bool {
    item.is_exact_instance_of::<PyInt>()
        || item.is_exact_instance_of::<PySlice>()
        || item.is_instance_of::<PyTensor>()
        || item.is_exact_instance_of::<PyBool>()
        || item.is_none()
        || item.is_exact_instance_of::<PyEllipsis>()
}

/// Lists become tensors of indices or bools, so that what follows sees tensors only.
fn without_lists<'py>(
    x: &Bound<'_, PyTensor>,
    item: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if is_one_part(&item) || !is_sequence(&item) {
        return Ok(item);
    }
    let (py, device) = (item.py(), x.with_tensor(Tensor::device));
    let values = if item.hasattr("__array_interface__")? {
        numpy::copy_array(py, &item, device)?
    } else if item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>() {
        create::from_lists(py, &item, None, device)?
    } else if item.is_instance_of::<PyString>() {
        return Ok(item);
    } else {
        let list = item.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        create::from_lists(py, PyList::new(py, list)?.as_any(), None, device)?
    };
    let index = match values.dtype() {
        DType::Bool => values,
        _ => call(py, || values.to(DType::I64))?,
    };
    Ok(wrap(py, index)?.into_any())
}

/// The index in parts.
fn parts(x: &Bound<'_, PyTensor>, index: &Bound<'_, PyAny>) -> PyResult<Parts> {
    if is_one_part(index) {
        return Ok(smallvec::smallvec![part(index)?]);
    }
    items(index)?.into_iter().map(|item| part(&without_lists(x, item)?)).collect()
}

fn part<'py>(item: &Bound<'py, PyAny>) -> PyResult<Part> {
    if item.is_none() {
        return Ok(Part::Plain(At::NewAxis));
    }
    if item.is_instance_of::<PyEllipsis>() {
        return Ok(Part::Plain(At::Rest));
    }
    if let Ok(value) = item.cast::<PyBool>() {
        return Ok(Part::Plain(At::Truth(value.is_true())));
    }
    if let Ok(tensor) = item.cast::<PyTensor>() {
        let tensor = tensor.tensor();
        if tensor.dtype() == DType::U8 {
            warn_of_bytes(item.py())?;
        }
        return Ok(Part::Tensor(tensor));
    }
    if let Ok(slice) = item.cast::<PySlice>() {
        return Ok(Part::Plain(range(slice)?));
    }
    match whole(item) {
        Ok(index) => Ok(Part::Plain(At::Index(index))),
        _ => {
            let why = format!(
                "{} is not an index: use integers, slices, None, ..., bools and tensors or lists of integers or bools",
                item.get_type().name()?
            );
            Err(match item.is_instance_of::<PyString>() {
                true => PyTypeError::new_err(why),
                false => PyIndexError::new_err(why),
            })
        }
    }
}

/// A slice, with bounds that are too large for any dimension clamped, as Python's own are.
fn range(slice: &Bound<'_, PySlice>) -> PyResult<At<'static>> {
    let (mut start, mut end, mut step) = (0, 0, 0);
    // SAFETY: attached; a slice, and three numbers to write to.
    let read = unsafe { ffi::PySlice_Unpack(slice.as_ptr(), &mut start, &mut end, &mut step) };
    if read < 0 {
        let error = PyErr::fetch(slice.py());
        // Of a step of 0 Python has words of its own; other errors are those of an `__index__`.
        let is_zero = slice.getattr("step").and_then(|step| step.eq(0)).unwrap_or(false);
        if !(is_zero && error.is_instance_of::<PyValueError>(slice.py())) {
            return Err(error);
        }
    }
    if read < 0 || step < 1 {
        return Err(PyValueError::new_err("the step of a slice must be positive"));
    }
    // From the start and to the end, as where nothing is said.
    let start = (start != 0).then_some(start as i64);
    let end = (end != isize::MAX).then_some(end as i64);
    Ok(At::Range { start, end, step: step as i64 })
}

/// Lists in the place of tuples are PyTorch's of old, and it is going to read them otherwise.
fn warn_of_lists(py: Python<'_>) -> PyResult<()> {
    let what = c"Using a non-tuple sequence for multidimensional indexing is deprecated: use x[tuple(seq)] instead of x[seq]; PyTorch means to read it as x[torch.tensor(seq)]";
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), what, 1)
}

/// Masks of uint8 are PyTorch's of old, and its programs are told so.
fn warn_of_bytes(py: Python<'_>) -> PyResult<()> {
    let what = c"indexing with dtype uint8 is now deprecated, please use a dtype bool instead";
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), what, 1)
}

/// An integer, or something that stands for one (`__index__`). Those too large for any dimension
/// are clamped, as Python's slices do.
fn whole(item: &Bound<'_, PyAny>) -> PyResult<i64> {
    match item.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(item.py()) => {
            Ok(if item.lt(0)? { i64::MIN } else { i64::MAX })
        }
        found => found,
    }
}
