//! `where` and `nonzero`, whose forms the generator cannot write: `where` as a method has its
//! arguments in another order, and both may give a tuple.

use plimsoll_tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::function::{Function, New, Out, Overload};
use crate::tensor::PyTensor;

static WHERE: Function = Function::new(
    "where",
    &[
        Overload {
            signature: "where(Tensor condition, Tensor|Scalar input, Tensor|Scalar other) -> Tensor",
            new: New::Tensors(|a| {
                Ok(smallvec::smallvec![Tensor::where_(a.tensor(0)?, a.other(1)?, a.other(2)?)?])
            }),
            in_place: None,
            out: Out::Written(|a, out| {
                Tensor::where_out(a.tensor(0)?, a.other(1)?, a.other(2)?, &out[0])
            }),
        },
        Overload {
            signature: "where(Tensor condition) -> Tensor[]",
            new: New::Tensors(|a| Ok(a.tensor(0)?.nonzero_tuple()?.into())),
            in_place: None,
            out: Out::None,
        },
    ],
);

static WHERE_METHOD: Function = Function::new(
    "where",
    &[Overload {
        signature: "where(Tensor self, Tensor condition, Tensor|Scalar other) -> Tensor",
        new: New::Tensors(|a| {
            Ok(smallvec::smallvec![Tensor::where_(a.tensor(1)?, a.tensor(0)?, a.other(2)?)?])
        }),
        in_place: None,
        out: Out::None,
    }],
);

static NONZERO: Function = Function::new(
    "nonzero",
    &[Overload {
        signature: "nonzero(Tensor self, *, bool as_tuple=False) -> Tensor",
        new: New::Tensors(|a| Ok(smallvec::smallvec![a.tensor(0)?.nonzero()?])),
        in_place: None,
        out: Out::CopiedExact,
    }],
);

static NONZERO_TUPLE: Function = Function::new(
    "nonzero",
    &[Overload {
        signature: "nonzero(Tensor self, *, bool as_tuple=False) -> Tensor[]",
        new: New::Tensors(|a| Ok(a.tensor(0)?.nonzero_tuple()?.into())),
        in_place: None,
        out: Out::None,
    }],
);

/// Which of the two forms of `nonzero` is asked for.
fn nonzero_form(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<&'static Function> {
    let asked = kwargs.map(|kwargs| kwargs.get_item("as_tuple")).transpose()?.flatten();
    let tuple = asked.is_some_and(|asked| asked.extract::<bool>().unwrap_or(false));
    Ok(if tuple { &NONZERO_TUPLE } else { &NONZERO })
}

#[pymethods]
impl PyTensor {
    /// The positions of the elements that are not zero: one row each, or one tensor for each
    /// dimension.
    #[pyo3(signature = (*args, **kwargs))]
    fn nonzero<'py>(
        slf: &Bound<'py, PyTensor>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        nonzero_form(kwargs)?.method(slf, args, kwargs)
    }

    /// Elements of this tensor where `condition` holds, of `other` elsewhere.
    #[pyo3(signature = (*args, **kwargs))]
    fn r#where<'py>(
        slf: &Bound<'py, PyTensor>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        WHERE_METHOD.method(slf, args, kwargs)
    }
}

/// Elements of `input` where `condition` holds, of `other` elsewhere; of a condition alone, where
/// it holds.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn r#where<'py>(
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    WHERE.function(args, kwargs)
}

/// The positions of the elements that are not zero: one row each, or one tensor for each dimension.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn nonzero<'py>(
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    nonzero_form(kwargs)?.function(args, kwargs)
}

/// The sizes that shapes broadcast to.
#[pyfunction]
#[pyo3(signature = (*shapes))]
fn broadcast_shapes<'py>(
    py: Python<'py>,
    shapes: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut all: Vec<Vec<usize>> = Vec::new();
    for shape in shapes.iter() {
        let sizes = match shape.extract::<i64>() {
            Ok(size) => vec![size],
            Err(_) => shape.extract::<Vec<i64>>()?,
        };
        let sizes = plimsoll_core::sizes_from_i64("broadcast_shapes", &sizes);
        all.push(sizes.map_err(|error| crate::error::to_python(py, error))?.to_vec());
    }
    let lists: Vec<&[usize]> = all.iter().map(Vec::as_slice).collect();
    let shape = plimsoll_core::broadcast_shapes("broadcast_shapes", &lists);
    PyTuple::new(py, shape.map_err(|error| crate::error::to_python(py, error))?)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(nonzero, module)?)?;
    module.add_function(wrap_pyfunction!(broadcast_shapes, module)?)?;
    module.add_function(wrap_pyfunction!(r#where, module)?)
}
