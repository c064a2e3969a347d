//! Python's operators on tensors, each the operation of the same meaning. What is neither a tensor
//! nor a number gets `NotImplemented`, so that Python can ask the other operand.

use plimsoll_core::{Device, Result};
use plimsoll_tensor::{DivOptions, Other, RoundingMode, Tensor};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use crate::arguments::{Given, Operand};
use crate::call::{Effort, fresh, fresh_as, fresh_of, fresh_with, in_call, in_small_call, write};
use crate::error::to_python;
use crate::numpy;
use crate::overrides;
use crate::subclass;
use crate::tensor::{PyTensor, TensorObject};

/// What an operator makes.
type Made<'py> = PyResult<Bound<'py, PyAny>>;

#[pymethods]
impl PyTensor {
    fn __add__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "add", |this, other| this.add(other))
    }

    fn __radd__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "add", |this, other| this.add(other))
    }

    fn __sub__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "sub", |this, other| this.sub(other))
    }

    fn __rsub__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__rsub__", |this, other| match other {
            Other::Tensor(other) => other.sub(this),
            Other::Scalar(number) => this.rsub(number),
        })
    }

    fn __mul__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "mul", |this, other| this.mul(other))
    }

    fn __rmul__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "mul", |this, other| this.mul(other))
    }

    fn __truediv__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "div", |this, other| this.div(other))
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> Made<'py> {
        if numpy::is_array(other) {
            // NumPy multiplies, as in PyTorch, where this is how one divides.
            let reciprocal = fresh_of(slf, |this| this.reciprocal())?;
            return reciprocal.as_any().mul(other);
        }
        let Ok(other) = other.extract::<Given<'py>>() else { return not_implemented(slf.py()) };
        binary(slf, &other, "__rtruediv__", |this, other| match other {
            Other::Tensor(other) => other.div(this),
            Other::Scalar(number) => this.rdiv(number),
        })
    }

    /// PyTorch's name for it, which its own tables of operators use.
    fn __rdiv__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> Made<'py> {
        PyTensor::__rtruediv__(slf, other)
    }

    fn __floordiv__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__floordiv__", |this, other| this.floor_divide(other))
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__rfloordiv__", |this, other| match other {
            Other::Tensor(other) => other.floor_divide(this),
            number => left_number(this, number)?.floor_divide(this),
        })
    }

    fn __mod__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__mod__", |this, other| this.remainder(other))
    }

    fn __rmod__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__rmod__", |this, other| match other {
            Other::Tensor(other) => other.remainder(this),
            Other::Scalar(number) => this.rremainder(number),
        })
    }

    fn __and__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__and__", |this, other| this.bitwise_and(other))
    }

    fn __rand__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__rand__", |this, other| this.bitwise_and(other))
    }

    fn __or__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__or__", |this, other| this.bitwise_or(other))
    }

    fn __ror__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__ror__", |this, other| this.bitwise_or(other))
    }

    fn __xor__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__xor__", |this, other| this.bitwise_xor(other))
    }

    fn __rxor__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__rxor__", |this, other| this.bitwise_xor(other))
    }

    fn __lshift__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__lshift__", |this, other| this.bitwise_left_shift(other))
    }

    fn __rshift__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__rshift__", |this, other| this.bitwise_right_shift(other))
    }

    fn __rlshift__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__rlshift__", |this, other| {
            left_number(this, other)?.bitwise_left_shift(this)
        })
    }

    fn __rrshift__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, "__rrshift__", |this, other| {
            left_number(this, other)?.bitwise_right_shift(this)
        })
    }

    fn __invert__<'py>(slf: &Bound<'py, PyTensor>) -> Made<'py> {
        unary(slf, "bitwise_not", |this| this.bitwise_not())
    }

    fn __pos__<'py>(slf: &Bound<'py, PyTensor>) -> Made<'py> {
        unary(slf, "positive", |this| this.positive())
    }

    fn __matmul__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> Made<'py> {
        product(slf, other, "matmul", |this, other| this.matmul(other))
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyAny>) -> Made<'py> {
        product(slf, other, "__rmatmul__", |this, other| other.matmul(this))
    }

    fn __pow__<'py>(
        slf: &Bound<'py, PyTensor>,
        exponent: Given<'py>,
        _modulo: Option<Bound<'py, PyAny>>,
    ) -> Made<'py> {
        binary(slf, &exponent, "pow", |this, exponent| this.pow(exponent))
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, PyTensor>,
        base: Given<'py>,
        _modulo: Option<Bound<'py, PyAny>>,
    ) -> Made<'py> {
        binary(slf, &base, "__rpow__", |this, base| match base {
            Other::Tensor(base) => base.pow(this),
            Other::Scalar(number) => this.rpow(number),
        })
    }

    fn __neg__<'py>(slf: &Bound<'py, PyTensor>) -> Made<'py> {
        unary(slf, "neg", |this| this.neg())
    }

    fn __abs__<'py>(slf: &Bound<'py, PyTensor>) -> Made<'py> {
        unary(slf, "abs", |this| this.abs())
    }

    fn __iadd__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, &other, |this| this.add_(other.other()).map(drop))
    }

    fn __isub__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, &other, |this| this.sub_(other.other()).map(drop))
    }

    fn __imul__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, &other, |this| this.mul_(other.other()).map(drop))
    }

    fn __itruediv__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, &other, |this| this.div_(other.other()).map(drop))
    }

    fn __ifloordiv__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        let down = || DivOptions::new().rounding_mode(RoundingMode::Floor);
        update(slf, &other, |this| this.div_with_(other.other(), down()).map(drop))
    }

    fn __imod__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, &other, |this| this.remainder_(other.other()).map(drop))
    }

    fn __iand__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, &other, |this| this.bitwise_and_(other.other()).map(drop))
    }

    fn __ior__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, &other, |this| this.bitwise_or_(other.other()).map(drop))
    }

    fn __ixor__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, &other, |this| this.bitwise_xor_(other.other()).map(drop))
    }

    fn __ilshift__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, &other, |this| this.bitwise_left_shift_(other.other()).map(drop))
    }

    fn __irshift__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, &other, |this| this.bitwise_right_shift_(other.other()).map(drop))
    }

    fn __ipow__(
        slf: &Bound<'_, PyTensor>,
        exponent: Operand,
        _modulo: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        update(slf, &exponent, |this| this.pow_(exponent.other()).map(drop))
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, PyTensor>,
        other: &Bound<'py, PyAny>,
        comparison: CompareOp,
    ) -> Made<'py> {
        let py = slf.py();
        // As in PyTorch, which compares with arrays by `==` alone.
        if matches!(comparison, CompareOp::Eq) && numpy::is_array(other) {
            let other = numpy::copy_array(py, other, Device::CPU)?;
            let this = slf.tensor();
            return Ok(fresh(py, || this.eq(&other))?.into_any());
        }
        let Ok(other) = other.extract::<Given<'py>>() else { return not_implemented(py) };
        let name = match comparison {
            CompareOp::Lt => "lt",
            CompareOp::Le => "le",
            CompareOp::Eq => "eq",
            CompareOp::Ne => "ne",
            CompareOp::Gt => "gt",
            CompareOp::Ge => "ge",
        };
        binary(slf, &other, name, |this, other| match comparison {
            CompareOp::Lt => this.lt(other),
            CompareOp::Le => this.le(other),
            CompareOp::Eq => this.eq(other),
            CompareOp::Ne => this.ne(other),
            CompareOp::Gt => this.gt(other),
            CompareOp::Ge => this.ge(other),
        })
    }
}

fn not_implemented(py: Python<'_>) -> Made<'_> {
    Ok(py.NotImplemented().into_bound(py))
}

/// What stands on the left of an operator, as a tensor beside `this`.
fn left_number(this: &Tensor, left: Other<'_>) -> Result<Tensor> {
    match left {
        Other::Tensor(left) => Ok(left.clone()),
        Other::Scalar(number) => Tensor::full(&[], number, this.device()),
    }
}

/// An operator of two operands, which a class knows by the name of a method if it takes it over.
fn binary<'py>(
    slf: &Bound<'py, PyTensor>,
    other: &Given<'py>,
    name: &'static str,
    work: impl FnOnce(&Tensor, Other<'_>) -> Result<Tensor> + Send,
) -> Made<'py> {
    let plain = !overrides::has_modes()
        && overrides::is_plain(slf.as_any())
        && overrides::is_plain(other.object());
    if !plain && let Some(answer) = overrides::ask_operator(slf, other.object(), name)? {
        return Ok(answer);
    }
    let py = slf.py();
    let class = || match plain {
        true => Ok(None),
        false => subclass::of_two(slf, Some(other.object())),
    };
    let second = match other {
        Given::Tensor(second) => second,
        Given::Number(number, _) => {
            let number = |this: &Tensor| work(this, Other::Scalar(*number));
            return Ok(fresh_with(slf, &class()?, &[], number)?.into_any());
        }
        Given::Other(_) => return not_implemented(py),
    };
    let class = class()?;
    let effort = slf.with_tensor(|a| second.with_tensor(|b| Effort::of([a, b])));
    let made = match effort {
        // The interpreter is kept, so that the operands need no handles of their own.
        Effort::Small => in_small_call(py, || {
            slf.with_tensor(|a| second.with_tensor(|b| work(a, Other::Tensor(b))))
        }),
        Effort::Any => {
            let (a, b) = (slf.tensor(), second.tensor());
            in_call(py, effort, || work(&a, Other::Tensor(&b)))
        }
    };
    Ok(subclass::wrap(py, made.map_err(|error| to_python(py, error))?, &class)?.into_any())
}

fn unary<'py>(
    slf: &Bound<'py, PyTensor>,
    name: &'static str,
    work: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
) -> Made<'py> {
    if let Some(answer) = overrides::ask_method(slf, &[], name)? {
        return Ok(answer);
    }
    let class = subclass::of_two(slf, None)?;
    Ok(fresh_with(slf, &class, &[], work)?.into_any())
}

/// A product of matrices, which numbers have none of.
fn product<'py>(
    slf: &Bound<'py, PyTensor>,
    other: &Bound<'py, PyAny>,
    name: &'static str,
    work: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor> + Send,
) -> Made<'py> {
    if let Some(answer) = overrides::ask_operator(slf, other, name)? {
        return Ok(answer);
    }
    let Ok(second) = other.cast::<PyTensor>() else { return not_implemented(slf.py()) };
    let class = subclass::of_two(slf, Some(other))?;
    let (this, second) = (slf.tensor(), second.tensor());
    let effort = Effort::of([&this, &second]);
    Ok(fresh_as(slf.py(), &class, effort, || work(&this, &second))?.into_any())
}

fn update(
    slf: &Bound<'_, PyTensor>,
    operand: &Operand,
    work: impl FnOnce(&Tensor) -> Result<()> + Send,
) -> PyResult<()> {
    let effort = slf.with_tensor(|this| Effort::of([this].into_iter().chain(operand.tensor())));
    write(slf.clone(), effort, work).map(drop)
}
