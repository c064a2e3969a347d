//! Arguments that Python gives in more than one form: numbers of any kind, and a tensor or a
//! number. Lists are in `bind.rs`.

use plimsoll_core::Scalar;
use plimsoll_tensor::{Other, Tensor};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::numpy;
use crate::overrides;
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
        // As in PyTorch an array is no number, of however few elements.
        if numpy::is_array(&object) {
            return Err(PyTypeError::new_err("an array is not a number; use its item()"));
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

/// What an operator is given beside its tensor.
#[derive(Debug)]
pub(crate) enum Given<'py> {
    /// An operand, and the object that it was given as.
    Operand(Operand, Bound<'py, PyAny>),
    /// An object whose class takes operations over.
    Other(Bound<'py, PyAny>),
}

impl<'py> Given<'py> {
    pub(crate) fn object(&self) -> &Bound<'py, PyAny> {
        match self {
            Given::Operand(_, object) | Given::Other(object) => object,
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Given<'py>> {
        match object.extract() {
            Ok(operand) => Ok(Given::Operand(operand, object.to_owned())),
            Err(_) if overrides::takes_over(&object)? => Ok(Given::Other(object.to_owned())),
            Err(error) => Err(error),
        }
    }
}
