//! Python's operators on tensors, each the operation of the same meaning. What is neither a tensor
//! nor a number gets `NotImplemented`, so that Python can ask the other operand.

use plimsoll_core::Result;
use plimsoll_tensor::{DivOptions, Other, RoundingMode, Tensor};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use crate::arguments::{Given, Operand};
use crate::call::{fresh_as, fresh_of, write};
use crate::subclass;
use crate::tensor::PyTensor;

/// What an operator makes.
type Made<'py> = PyResult<Bound<'py, PyTensor>>;

#[pymethods]
impl PyTensor {
    fn __add__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.add(other))
    }

    fn __radd__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.add(other))
    }

    fn __sub__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.sub(other))
    }

    fn __rsub__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| match other {
            Other::Tensor(other) => other.sub(this),
            Other::Scalar(number) => this.rsub(number),
        })
    }

    fn __mul__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.mul(other))
    }

    fn __rmul__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.mul(other))
    }

    fn __truediv__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.div(other))
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| match other {
            Other::Tensor(other) => other.div(this),
            Other::Scalar(number) => this.rdiv(number),
        })
    }

    /// PyTorch's name for it, which its own tables of operators use.
    fn __rdiv__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        PyTensor::__rtruediv__(slf, other)
    }

    fn __floordiv__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.floor_divide(other))
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| match other {
            Other::Tensor(other) => other.floor_divide(this),
            Other::Scalar(number) => Tensor::full(&[], number, this.device())?.floor_divide(this),
        })
    }

    fn __mod__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.remainder(other))
    }

    fn __rmod__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| match other {
            Other::Tensor(other) => other.remainder(this),
            Other::Scalar(number) => this.rremainder(number),
        })
    }

    fn __and__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.bitwise_and(other))
    }

    fn __rand__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.bitwise_and(other))
    }

    fn __or__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.bitwise_or(other))
    }

    fn __ror__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.bitwise_or(other))
    }

    fn __xor__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.bitwise_xor(other))
    }

    fn __rxor__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.bitwise_xor(other))
    }

    fn __lshift__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.bitwise_left_shift(other))
    }

    fn __rshift__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.bitwise_right_shift(other))
    }

    fn __invert__<'py>(slf: &Bound<'py, PyTensor>) -> Made<'py> {
        fresh_of(slf, |this| this.bitwise_not())
    }

    fn __pos__<'py>(slf: &Bound<'py, PyTensor>) -> Made<'py> {
        fresh_of(slf, |this| this.positive())
    }

    fn __matmul__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyTensor>) -> Made<'py> {
        let class = subclass::of_two(slf, Some(other.as_any()))?;
        let (this, other) = (slf.get().tensor(), other.get().tensor());
        fresh_as(slf.py(), &class, || this.matmul(&other))
    }

    fn __pow__<'py>(
        slf: &Bound<'py, PyTensor>,
        exponent: Given<'py>,
        _modulo: Option<Bound<'py, PyAny>>,
    ) -> Made<'py> {
        binary(slf, &exponent, |this, exponent| this.pow(exponent))
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, PyTensor>,
        base: Given<'py>,
        _modulo: Option<Bound<'py, PyAny>>,
    ) -> Made<'py> {
        binary(slf, &base, |this, base| match base {
            Other::Tensor(base) => base.pow(this),
            Other::Scalar(number) => this.rpow(number),
        })
    }

    fn __neg__<'py>(slf: &Bound<'py, PyTensor>) -> Made<'py> {
        fresh_of(slf, |this| this.neg())
    }

    fn __abs__<'py>(slf: &Bound<'py, PyTensor>) -> Made<'py> {
        fresh_of(slf, |this| this.abs())
    }

    fn __iadd__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, |this| this.add_(other.other()).map(drop))
    }

    fn __isub__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, |this| this.sub_(other.other()).map(drop))
    }

    fn __imul__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, |this| this.mul_(other.other()).map(drop))
    }

    fn __itruediv__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, |this| this.div_(other.other()).map(drop))
    }

    fn __ifloordiv__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        let down = || DivOptions::new().rounding_mode(RoundingMode::Floor);
        update(slf, |this| this.div_with_(other.other(), down()).map(drop))
    }

    fn __imod__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, |this| this.remainder_(other.other()).map(drop))
    }

    fn __iand__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, |this| this.bitwise_and_(other.other()).map(drop))
    }

    fn __ior__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, |this| this.bitwise_or_(other.other()).map(drop))
    }

    fn __ixor__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, |this| this.bitwise_xor_(other.other()).map(drop))
    }

    fn __ilshift__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, |this| this.bitwise_left_shift_(other.other()).map(drop))
    }

    fn __irshift__(slf: &Bound<'_, PyTensor>, other: Operand) -> PyResult<()> {
        update(slf, |this| this.bitwise_right_shift_(other.other()).map(drop))
    }

    fn __ipow__(
        slf: &Bound<'_, PyTensor>,
        exponent: Operand,
        _modulo: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        update(slf, |this| this.pow_(exponent.other()).map(drop))
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, PyTensor>,
        other: Given<'py>,
        comparison: CompareOp,
    ) -> Made<'py> {
        binary(slf, &other, |this, other| match comparison {
            CompareOp::Lt => this.lt(other),
            CompareOp::Le => this.le(other),
            CompareOp::Eq => this.eq(other),
            CompareOp::Ne => this.ne(other),
            CompareOp::Gt => this.gt(other),
            CompareOp::Ge => this.ge(other),
        })
    }
}

fn binary<'py>(
    slf: &Bound<'py, PyTensor>,
    other: &Given<'py>,
    work: impl FnOnce(&Tensor, Other<'_>) -> Result<Tensor> + Send,
) -> Made<'py> {
    let class = subclass::of_two(slf, Some(&other.object))?;
    let (this, operand) = (slf.get().tensor(), &other.operand);
    fresh_as(slf.py(), &class, || work(&this, operand.other()))
}

fn update(
    slf: &Bound<'_, PyTensor>,
    work: impl FnOnce(&Tensor) -> Result<()> + Send,
) -> PyResult<()> {
    write(slf.clone(), work).map(drop)
}
