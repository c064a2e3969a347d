//! `x[...]` and `x[...] = value`. Integers, slices, `None` and `...` make views; tensors of indices
//! or bools gather elements into new memory.

use plimsoll_tensor::Tensor;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};

use crate::arguments::Operand;
use crate::call::{call, fresh};
use crate::companion::wrap;
use crate::tensor::PyTensor;

/// What one part of an index does to one dimension.
enum Part {
    Select(i64),
    Slice { start: i64, end: i64, step: i64 },
    NewAxis,
    Gather(Tensor),
}

#[pymethods]
impl PyTensor {
    /// The positions of the elements that are not zero: one row each, or one tensor for each
    /// dimension.
    #[pyo3(signature = (*, as_tuple = false))]
    fn nonzero<'py>(&self, py: Python<'py>, as_tuple: bool) -> PyResult<Bound<'py, PyAny>> {
        let tensor = self.tensor();
        if !as_tuple {
            return Ok(fresh(py, || tensor.nonzero())?.into_any());
        }
        let places = call(py, || tensor.nonzero_tuple())?;
        let places =
            places.into_iter().map(|place| wrap(py, place)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyTuple::new(py, places)?.into_any())
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let parts = parts(&self.tensor(), index)?;
        fresh(py, || {
            let (view, gathers) = view(&self.tensor(), &parts)?;
            match gathers {
                Some(gathers) => view.index(&gathers),
                None => Ok(view),
            }
        })
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
                (None, Operand::Tensor(value)) => view.copy_(value).map(drop),
                (None, Operand::Number(value)) => view.fill_(*value).map(drop),
                (Some(gathers), Operand::Tensor(value)) => {
                    view.index_put_(&gathers, value, false).map(drop)
                }
                (Some(gathers), Operand::Number(value)) => {
                    let value = Tensor::scalar(*value, (view.dtype(), view.device()))?;
                    view.index_put_(&gathers, &value, false).map(drop)
                }
            }
        })
    }
}

/// The index in parts, with `...` spelled out as whole slices.
fn parts(x: &Tensor, index: &Bound<'_, PyAny>) -> PyResult<Vec<Part>> {
    let items: Vec<Bound<'_, PyAny>> = match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![index.clone()],
    };
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
        parts.push(part(item, x.shape().get(dim).copied().unwrap_or(0))?);
        dim += dimensions(item);
    }
    Ok(parts)
}

/// How many dimensions one item of an index takes.
fn dimensions(item: &Bound<'_, PyAny>) -> usize {
    if item.is_none() || item.is_instance_of::<PyEllipsis>() {
        return 0;
    }
    match item.cast::<PyTensor>() {
        Ok(tensor) if tensor.get().tensor().dtype() == plimsoll_core::DType::Bool => {
            tensor.get().tensor().rank()
        }
        _ => 1,
    }
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
        Ok(index) if !item.is_instance_of::<PyBool>() => Ok(Part::Select(index)),
        _ => Err(PyTypeError::new_err(format!(
            "{} is not an index: use integers, slices, None, ... and tensors of integers or bools",
            item.get_type().name()?
        ))),
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
            Part::Slice { start: 0, end: i64::MAX, step: 1 } => gathers.push(None),
            Part::Slice { start, end, step } => {
                view = view.slice(dim, *start, *end, *step)?;
                gathers.push(None);
            }
            Part::Gather(index) => {
                gathers.push(Some(index));
                if index.dtype() == plimsoll_core::DType::Bool {
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
