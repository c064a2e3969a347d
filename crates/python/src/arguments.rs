//! Arguments that Python gives in more than one form: a tensor or a number, one dimension or
//! several, sizes one by one or as a list.

use plimsoll_core::Scalar;
use plimsoll_tensor::{Other, Tensor};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};

use crate::tensor::PyTensor;

/// A host number; it keeps its class, because promotion looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number(Scalar);

impl Number {
    pub(crate) const fn scalar(self) -> Scalar {
        self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Number {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Number> {
        // A bool is an int to Python, so it is asked for first.
        if let Ok(value) = object.cast::<PyBool>() {
            return Ok(Number(Scalar::Bool(value.is_true())));
        }
        if object.is_instance_of::<PyFloat>() {
            return Ok(Number(Scalar::Float(object.extract()?)));
        }
        if object.is_instance_of::<PyInt>() {
            // Past 64 bits Python's own OverflowError: a float in its place would lose digits.
            return Ok(Number(Scalar::Int(object.extract()?)));
        }
        if let Ok(value) = object.extract::<i64>() {
            return Ok(Number(Scalar::Int(value)));
        }
        // NumPy's numbers, which Python converts.
        object.extract::<f64>().map(|value| Number(Scalar::Float(value)))
    }
}

/// A second operand.
#[derive(Debug)]
pub(crate) enum Operand {
    Tensor(Tensor),
    Number(Scalar),
}

impl Operand {
    pub(crate) fn other(&self) -> Other<'_> {
        match self {
            Operand::Tensor(tensor) => Other::Tensor(tensor),
            Operand::Number(number) => Other::Scalar(*number),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Operand {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Operand> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            return Ok(Operand::Tensor(tensor.get().tensor()));
        }
        match object.extract::<Number>() {
            Ok(number) => Ok(Operand::Number(number.scalar())),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Err(error),
            Err(_) => Err(PyTypeError::new_err(format!(
                "expected a tensor or a number, not {}",
                object.get_type().name()?
            ))),
        }
    }
}

/// One dimension or several.
#[derive(Clone, Debug)]
pub(crate) struct Dims(Vec<i64>);

impl Dims {
    pub(crate) fn as_slice(&self) -> &[i64] {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Dims {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Dims> {
        if let Ok(dim) = object.extract::<i64>() {
            return Ok(Dims(vec![dim]));
        }
        object.extract::<Vec<i64>>().map(Dims)
    }
}

/// Sizes given one by one (`view(2, 3)`) or as one sequence (`view([2, 3])`).
pub(crate) fn sizes(arguments: &Bound<'_, PyTuple>) -> PyResult<Dims> {
    if let Ok(only) = arguments.get_item(0)
        && arguments.len() == 1
    {
        return only.extract();
    }
    arguments.extract::<Vec<i64>>().map(Dims)
}
