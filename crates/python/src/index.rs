//! `x[...]` and `x[...] = value`. Integers, slices, `None` and `...` make views; tensors and lists
//! of indices or bools gather elements into new memory.

use plimsoll_core::DType;
use plimsoll_tensor::Tensor;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyIterator, PyList, PySequence, PySlice, PyString, PyTuple};

use crate::arguments::Operand;
use crate::call::{call, fresh_of};
use crate::companion::wrap;
use crate::tensor::PyTensor;
use crate::{create, numpy, subclass};

/// What one part of an index does to one dimension.
enum Part {
    Select(i64),
    Slice {
        start: i64,
        end: i64,
        step: i64,
    },
    NewAxis,
    /// A new dimension of size 1, and the mask of one element that keeps it or does not.
    Truth(Tensor),
    Gather(Tensor),
}

#[pymethods]
impl PyTensor {
    /// The positions of the elements that are not zero: one row each, or one tensor for each
    /// dimension.
    #[pyo3(signature = (*, as_tuple = false))]
    fn nonzero<'py>(slf: &Bound<'py, PyTensor>, as_tuple: bool) -> PyResult<Bound<'py, PyAny>> {
        if !as_tuple {
            return Ok(fresh_of(slf, |this| this.nonzero())?.into_any());
        }
        let (py, tensor) = (slf.py(), slf.get().tensor());
        let class = subclass::of_two(slf, None)?;
        let places = call(py, || tensor.nonzero_tuple())?.into_iter();
        let places = places.map(|place| subclass::wrap(py, place, &class));
        Ok(PyTuple::new(py, places.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, PyTensor>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let parts = parts(&slf.get().tensor(), index)?;
        fresh_of(slf, |this| {
            let (view, gathers) = view(this, &parts)?;
            match gathers {
                Some(gathers) => view.index(&gathers),
                None => Ok(view),
            }
        })
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

    fn __setitem__(
        &self,
        py: Python<'_>,
        index: &Bound<'_, PyAny>,
        value: Operand,
    ) -> PyResult<()> {
        let parts = parts(&self.tensor(), index)?;
        call(py, || {
            let (view, gathers) = view(&self.tensor(), &parts)?;
            match (gathers, &value) {
                (None, Operand::Tensor(value)) => {
                    view.copy_(&without_leading_ones(value)?).map(drop)
                }
                (None, Operand::Number(value)) => view.fill_(*value).map(drop),
                (Some(gathers), Operand::Tensor(value)) => {
                    view.index_put_(&gathers, &without_leading_ones(value)?, false).map(drop)
                }
                (Some(gathers), Operand::Number(value)) => {
                    let value = Tensor::scalar(*value, (view.dtype(), view.device()))?;
                    view.index_put_(&gathers, &value, false).map(drop)
                }
            }
        })
    }
}

/// `value` as an assignment takes it: as in PyTorch it may have more dimensions than the place that
/// it goes to, if those have one element.
fn without_leading_ones(value: &Tensor) -> plimsoll_core::Result<Tensor> {
    let mut value = value.clone();
    while value.shape().first() == Some(&1) {
        value = value.select(0, 0)?;
    }
    Ok(value)
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

/// Lists become tensors of indices or bools, so that what follows sees tensors only.
fn without_lists<'py>(x: &Tensor, item: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if item.is_instance_of::<PyTensor>() || !is_sequence(&item) {
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

/// The index in parts, with `...` spelled out as whole slices.
fn parts(x: &Tensor, index: &Bound<'_, PyAny>) -> PyResult<Vec<Part>> {
    let items = items(index)?.into_iter().map(|item| without_lists(x, item));
    let items = items.collect::<PyResult<Vec<_>>>()?;
    let taken: usize = items.iter().map(dimensions).sum();
    if taken > x.rank() {
        return Err(PyIndexError::new_err(format!(
            "{taken} indices for a tensor of {} dimensions",
            x.rank()
        )));
    }
    let mut parts = Vec::new();
    let mut dim = 0;
    let mut dots = false;
    for item in &items {
        if item.is_instance_of::<PyEllipsis>() {
            if std::mem::replace(&mut dots, true) {
                return Err(PyIndexError::new_err("an index can have one `...` only"));
            }
            for _ in 0..x.rank() - taken {
                parts.push(Part::Slice { start: 0, end: i64::MAX, step: 1 });
                dim += 1;
            }
            continue;
        }
        if let Some(keeps) = truth(item)? {
            // A dimension of size 1 that is kept, or of which nothing is.
            let mask = call(item.py(), || Tensor::full(&[1], keeps, (DType::Bool, x.device())))?;
            parts.push(Part::Truth(mask));
            continue;
        }
        parts.push(part(item, x.shape().get(dim).copied().unwrap_or(0))?);
        dim += dimensions(item);
    }
    Ok(parts)
}

/// How many dimensions one item of an index takes.
fn dimensions(item: &Bound<'_, PyAny>) -> usize {
    if item.is_none() || item.is_instance_of::<PyEllipsis>() || item.is_instance_of::<PyBool>() {
        return 0;
    }
    match item.cast::<PyTensor>() {
        Ok(tensor) if tensor.get().tensor().dtype() == DType::Bool => tensor.get().tensor().rank(),
        _ => 1,
    }
}

/// True and False, and tensors of one of them without dimensions.
fn truth(item: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
    if let Ok(value) = item.cast::<PyBool>() {
        return Ok(Some(value.is_true()));
    }
    let Ok(tensor) = item.cast::<PyTensor>() else { return Ok(None) };
    let tensor = tensor.get().tensor();
    if tensor.dtype() != DType::Bool || tensor.rank() > 0 {
        return Ok(None);
    }
    Ok(Some(call(item.py(), || tensor.to_scalar())?.to_f64() != 0.0))
}

fn part(item: &Bound<'_, PyAny>, size: usize) -> PyResult<Part> {
    if item.is_none() {
        return Ok(Part::NewAxis);
    }
    if let Ok(tensor) = item.cast::<PyTensor>() {
        return Ok(Part::Gather(tensor.get().tensor()));
    }
    if let Ok(slice) = item.cast::<PySlice>() {
        let found = slice.indices(size as isize)?;
        if found.step < 1 {
            return Err(PyValueError::new_err("the step of a slice must be positive"));
        }
        let (start, end) = (found.start as i64, (found.stop.max(found.start)) as i64);
        return Ok(Part::Slice { start, end, step: found.step as i64 });
    }
    match item.extract::<i64>() {
        Ok(index) => Ok(Part::Select(index)),
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

/// The view that the plain parts make, and the index tensors for its dimensions if there are any.
type Indexed<'a> = (Tensor, Option<Vec<Option<&'a Tensor>>>);

fn view<'a>(x: &Tensor, parts: &'a [Part]) -> plimsoll_core::Result<Indexed<'a>> {
    let mut view = x.clone();
    let mut gathers: Vec<Option<&Tensor>> = Vec::new();
    let mut dim = 0;
    for part in parts {
        match part {
            Part::Select(index) => {
                view = view.select(dim, *index)?;
                continue;
            }
            Part::NewAxis => {
                view = view.unsqueeze(dim)?;
                gathers.push(None);
            }
            Part::Truth(mask) => {
                view = view.unsqueeze(dim)?;
                gathers.push(Some(mask));
            }
            Part::Slice { start: 0, end: i64::MAX, step: 1 } => gathers.push(None),
            Part::Slice { start, end, step } => {
                view = view.slice(dim, *start, *end, *step)?;
                gathers.push(None);
            }
            Part::Gather(index) => {
                gathers.push(Some(index));
                if index.dtype() == DType::Bool {
                    dim += index.rank() as i64 - 1;
                }
            }
        }
        dim += 1;
    }
    let gathers = gathers.iter().any(Option::is_some).then_some(gathers);
    if gathers.is_none() && parts.is_empty() {
        // `x[...]` of nothing: still a tensor object of its own, like every other view.
        view =
            view.as_strided(&as_i64(x.shape()), &as_i64(x.strides()), x.storage_offset() as i64)?;
    }
    Ok((view, gathers))
}

fn as_i64(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().map(|&size| size as i64).collect()
}
