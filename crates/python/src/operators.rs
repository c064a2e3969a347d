//! Python's operators on tensors, each the operation of the same meaning. What is neither a tensor
//! nor a number gets `NotImplemented`, so that Python can ask the other operand.

use plimsoll_tensor::Tensor;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use crate::arguments::{Number, Operand};
use crate::call::{fresh, write};
use crate::tensor::PyTensor;

#[pymethods]
impl PyTensor {
    fn __add__<'py>(&self, py: Python<'py>, other: Operand) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().add(other.other()))
    }

    fn __radd__<'py>(&self, py: Python<'py>, other: Number) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().add(other.scalar()))
    }

    fn __sub__<'py>(&self, py: Python<'py>, other: Operand) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().sub(other.other()))
    }

    fn __rsub__<'py>(&self, py: Python<'py>, other: Number) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().rsub(other.scalar()))
    }

    fn __mul__<'py>(&self, py: Python<'py>, other: Operand) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().mul(other.other()))
    }

    fn __rmul__<'py>(&self, py: Python<'py>, other: Number) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().mul(other.scalar()))
    }

    fn __truediv__<'py>(&self, py: Python<'py>, other: Operand) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().div(other.other()))
    }

    fn __rtruediv__<'py>(&self, py: Python<'py>, other: Number) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().rdiv(other.scalar()))
    }

    fn __matmul__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyTensor>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let other = &other.get().tensor();
        fresh(py, || self.tensor().matmul(other))
    }

    fn __pow__<'py>(
        &self,
        py: Python<'py>,
        exponent: Number,
        _modulo: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().pow(exponent.scalar()))
    }

    fn __neg__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().neg())
    }

    fn __abs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || self.tensor().abs())
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
        &self,
        py: Python<'py>,
        other: Operand,
        comparison: CompareOp,
    ) -> PyResult<Bound<'py, PyTensor>> {
        fresh(py, || match comparison {
            CompareOp::Lt => self.tensor().lt(other.other()),
            CompareOp::Le => self.tensor().le(other.other()),
            CompareOp::Eq => self.tensor().eq(other.other()),
            CompareOp::Ne => self.tensor().ne(other.other()),
            CompareOp::Gt => self.tensor().gt(other.other()),
            CompareOp::Ge => self.tensor().ge(other.other()),
        })
    }
}

fn update(
    slf: &Bound<'_, PyTensor>,
    work: impl FnOnce(&Tensor) -> plimsoll_core::Result<()> + Send,
) -> PyResult<()> {
    write(slf.clone(), work).map(drop)
}
