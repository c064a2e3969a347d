//! Python's operators on tensors, each the operation of the same meaning. What is neither a tensor
//! nor a number gets `NotImplemented`, so that Python can ask the other operand.

use plimsoll_core::Result;
use plimsoll_tensor::{Other, Tensor};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use crate::arguments::{Given, Number, Operand};
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

    fn __radd__<'py>(slf: &Bound<'py, PyTensor>, other: Number) -> Made<'py> {
        fresh_of(slf, |this| this.add(other.scalar()))
    }

    fn __sub__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.sub(other))
    }

    fn __rsub__<'py>(slf: &Bound<'py, PyTensor>, other: Number) -> Made<'py> {
        fresh_of(slf, |this| this.rsub(other.scalar()))
    }

    fn __mul__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.mul(other))
    }

    fn __rmul__<'py>(slf: &Bound<'py, PyTensor>, other: Number) -> Made<'py> {
        fresh_of(slf, |this| this.mul(other.scalar()))
    }

    fn __truediv__<'py>(slf: &Bound<'py, PyTensor>, other: Given<'py>) -> Made<'py> {
        binary(slf, &other, |this, other| this.div(other))
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, PyTensor>, other: Number) -> Made<'py> {
        fresh_of(slf, |this| this.rdiv(other.scalar()))
    }

    fn __matmul__<'py>(slf: &Bound<'py, PyTensor>, other: &Bound<'py, PyTensor>) -> Made<'py> {
        let class = subclass::of_two(slf, Some(other.as_any()))?;
        let (this, other) = (slf.get().tensor(), other.get().tensor());
        fresh_as(slf.py(), &class, || this.matmul(&other))
    }

    fn __pow__<'py>(
        slf: &Bound<'py, PyTensor>,
        exponent: Number,
        _modulo: Option<Bound<'py, PyAny>>,
    ) -> Made<'py> {
        fresh_of(slf, |this| this.pow(exponent.scalar()))
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
