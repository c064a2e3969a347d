//! Arguments that Python gives in more than one form: numbers of any kind, and a tensor or a
//! number. Lists are in `bind.rs`.

use plimsoll_core::Scalar;
use plimsoll_tensor::{Other, Tensor};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::numpy;
use crate::overrides;
use crate::tensor::{PyTensor, TensorObject};

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
    /// The tensor, if it is one.
    pub(crate) fn tensor(&self) -> Option<&Tensor> {
        match self {
            Operand::Tensor(tensor) => Some(tensor),
            Operand::Number(_) => None,
        }
    }

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
        match object.cast::<PyTensor>() {
            Ok(tensor) => Ok(Operand::Tensor(tensor.tensor())),
            Err(_) => second_number(&object).map(Operand::Number),
        }
    }
}

/// A second operand that is no tensor.
fn second_number(object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    match object.extract::<Number>() {
        Ok(number) => Ok(number.scalar()),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Err(error),
        Err(_) => Err(PyTypeError::new_err(format!(
            "expected a tensor or a number, not {}",
            object.get_type().name()?
        ))),
    }
}

/// What an operator is given beside its tensor.
#[derive(Debug)]
pub(crate) enum Given<'py> {
    Tensor(Bound<'py, PyTensor>),
    /// A number, and the object that it was given as.
    Number(Scalar, Bound<'py, PyAny>),
    /// An object whose class takes operations over.
    Other(Bound<'py, PyAny>),
}

impl<'py> Given<'py> {
    pub(crate) fn object(&self) -> &Bound<'py, PyAny> {
        match self {
            Given::Tensor(tensor) => tensor.as_any(),
            Given::Number(_, object) | Given::Other(object) => object,
        }
    }

    /// It as an operand, unless its class takes operations over.
    pub(crate) fn operand(&self) -> Option<Operand> {
        match self {
            Given::Tensor(tensor) => Some(Operand::Tensor(tensor.tensor())),
            Given::Number(number, _) => Some(Operand::Number(*number)),
            Given::Other(_) => None,
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Given<'py>> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            return Ok(Given::Tensor(tensor.to_owned()));
        }
        match second_number(&object) {
            Ok(number) => Ok(Given::Number(number, object.to_owned())),
            Err(_) if overrides::takes_over(&object)? => Ok(Given::Other(object.to_owned())),
            Err(error) => Err(error),
        }
    }
}
