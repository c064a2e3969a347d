//! `x[...]` and `x[...] = value`. Integers, slices, `None` and `...` make views, and so does a
//! tensor without dimensions that holds an integer; other tensors and lists of indices or bools
//! gather elements into new memory.

use plimsoll_core::DType;
use plimsoll_tensor::{At, Tensor};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyEllipsis, PyInt, PyIterator, PyList, PySequence, PySlice, PyString, PyTuple,
};

use crate::arguments::{Given, Operand};
use crate::call::{call, fresh_of};
use crate::companion::wrap;
use crate::overrides;
use crate::tensor::PyTensor;
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
}

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
        let parts = parts(&slf.get().tensor(), index)?;
        let at = |this: &Tensor| this.at(&parts.iter().map(Part::at).collect::<Vec<_>>()[..]);
        Ok(fresh_of(slf, at)?.into_any())
    }

    /// The rows. Without this Python would ask for one after another until there is none, and find
    /// nothing in a tensor without dimensions.
    fn __iter__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyIterator>> {
        let Some(&rows) = slf.get().tensor().shape().first() else {
            return Err(PyTypeError::new_err("a tensor without dimensions has no rows"));
        };
        let rows = (0..rows).map(|row| slf.get_item(row)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(slf.py(), rows)?.try_iter()
    }

    fn __setitem__<'py>(
        slf: &Bound<'py, PyTensor>,
        index: &Bound<'py, PyAny>,
        value: Given<'py>,
    ) -> PyResult<()> {
        let (py, tensor) = (slf.py(), slf.get().tensor());
        let given = [index.clone(), value.object().clone()];
        if overrides::ask_method(slf, &given, "__setitem__")?.is_some() {
            return Ok(());
        }
        let Given::Operand(value, _) = value else {
            return Err(PyTypeError::new_err("a tensor takes tensors and numbers"));
        };
        let parts = parts(&tensor, index)?;
        call(py, || {
            let parts: Vec<At<'_>> = parts.iter().map(Part::at).collect();
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
fn without_lists<'py>(x: &Tensor, item: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if is_one_part(&item) || !is_sequence(&item) {
        return Ok(item);
    }
    let (py, device) = (item.py(), x.device());
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
fn parts(x: &Tensor, index: &Bound<'_, PyAny>) -> PyResult<Vec<Part>> {
    if is_one_part(index) {
        return Ok(vec![part(index)?]);
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
        let tensor = tensor.get().tensor();
        if tensor.dtype() == DType::U8 {
            warn_of_bytes(item.py())?;
        }
        return Ok(Part::Tensor(tensor));
    }
    if let Ok(slice) = item.cast::<PySlice>() {
        let py = item.py();
        let bound = |name: &Bound<'py, PyString>| -> PyResult<Option<i64>> {
            let value = slice.getattr(name)?;
            if value.is_none() {
                return Ok(None);
            }
            let why = "slice indices must be integers or None or have an __index__ method";
            whole(&value).map(Some).map_err(|_| PyTypeError::new_err(why))
        };
        let (start, end) = (bound(intern!(py, "start"))?, bound(intern!(py, "stop"))?);
        let step = bound(intern!(py, "step"))?.unwrap_or(1);
        if step < 1 {
            return Err(PyValueError::new_err("the step of a slice must be positive"));
        }
        return Ok(Part::Plain(At::Range { start, end, step }));
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
