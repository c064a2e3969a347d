//! `out=`: the tensors that results are written into. As in PyTorch, one of another shape is
//! resized, with a warning if it had elements. That can only be done here, where an object can come
//! to stand for other memory.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{Tensor, no_grad};
use pyo3::exceptions::{PyRuntimeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;

use crate::call::{Effort, call, in_call};
use crate::companion::register;
use crate::error::to_python;
use crate::tensor::{PyTensor, TensorObject};

/// The tensors to write into, and what the caller gave them as.
pub(crate) struct Targets<'py> {
    pub(crate) tensors: Vec<Bound<'py, PyTensor>>,
    pub(crate) object: Bound<'py, PyAny>,
}

/// The value of `out=`.
pub(crate) fn targets(value: Bound<'_, PyAny>) -> std::result::Result<Targets<'_>, String> {
    if let Ok(tensor) = value.cast::<PyTensor>() {
        return Ok(Targets { tensors: vec![tensor.clone()], object: value });
    }
    let several: Option<Vec<Bound<'_, PyTensor>>> = value
        .try_iter()
        .ok()
        .and_then(|items| items.map(|item| item.ok()?.cast_into::<PyTensor>().ok()).collect());
    match several {
        Some(tensors) => Ok(Targets { tensors, object: value }),
        None => {
            Err(format!("argument 'out' must be Tensor, not {}", crate::bind::type_name(&value)))
        }
    }
}

impl Targets<'_> {
    /// The dtype of a single target.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self.tensors.as_slice() {
            [only] => Some(only.with_tensor(Tensor::dtype)),
            _ => None,
        }
    }

    /// Refuses a target in which several elements are one place in memory.
    pub(crate) fn check_each(&self, name: &str) -> PyResult<()> {
        match self.tensors.iter().any(|t| t.with_tensor(|t| t.layout().may_overlap_itself())) {
            true => Err(PyRuntimeError::new_err(format!(
                "{name}: several elements of out= are one place in memory; give a tensor of its own"
            ))),
            false => Ok(()),
        }
    }

    /// Refuses targets that share memory with each other.
    pub(crate) fn check_separate(&self, name: &str) -> PyResult<()> {
        let handles: Vec<Tensor> = self.tensors.iter().map(|t| t.tensor()).collect();
        let shared = |a: &Tensor, b: &Tensor| {
            a.shares_storage_with(b)
                && a.layout().overlaps_as(a.element_size(), b.layout(), b.element_size())
        };
        for (index, one) in handles.iter().enumerate() {
            if handles[..index].iter().any(|other| shared(one, other)) {
                return Err(PyValueError::new_err(format!(
                    "{name}: tensors of out= share memory; give each result one of its own"
                )));
            }
        }
        Ok(())
    }

    /// Runs a form that writes into the targets. One of another shape takes the shape that it
    /// should have, and the call is made again: shapes are checked before anything is written.
    pub(crate) fn write(
        &self,
        py: Python<'_>,
        run: impl Fn(&[Tensor]) -> Result<()> + Sync,
    ) -> PyResult<()> {
        for _ in 0..=self.tensors.len() {
            let handles: Vec<Tensor> = self.tensors.iter().map(|t| t.tensor()).collect();
            let error = match in_call(py, Effort::Any, || run(&handles)) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let Some(expected) = error.expected_shape() else { return Err(to_python(py, error)) };
            let sizes: Vec<i64> = expected.iter().map(|&size| size as i64).collect();
            // The error names no target: it is the first that is not of the right shape.
            let Some(wrong) =
                self.tensors.iter().find(|t| t.with_tensor(|t| t.shape() != expected))
            else {
                return Err(to_python(py, error));
            };
            resize(wrong, &sizes)?;
        }
        Err(PyRuntimeError::new_err("the targets of out= do not take the shapes of the results"))
    }

    /// Copies results that were made apart into the targets.
    pub(crate) fn copy(
        &self,
        py: Python<'_>,
        results: &[Tensor],
        exact: bool,
        keeps_shape: bool,
    ) -> PyResult<()> {
        if self.tensors.len() != results.len() {
            return Err(PyRuntimeError::new_err(format!(
                "out= has {} tensors for {} results; give as many",
                self.tensors.len(),
                results.len()
            )));
        }
        // All are looked at before one is written.
        for (target, result) in self.tensors.iter().zip(results) {
            let handle = target.tensor();
            let fits = match exact {
                true => result.dtype() == handle.dtype(),
                false => result.dtype().class() <= handle.dtype().class(),
            };
            if !fits {
                return Err(PyRuntimeError::new_err(format!(
                    "the result is {} and cannot be stored in an out= of {}; give one of the result's class",
                    result.dtype(),
                    handle.dtype()
                )));
            }
            if result.device() != handle.device() {
                return Err(PyRuntimeError::new_err(format!(
                    "the result is on {} and out= on {}; move one of them",
                    result.device(),
                    handle.device()
                )));
            }
        }
        for (target, result) in self.tensors.iter().zip(results) {
            let sizes: Vec<i64> = result.shape().iter().map(|&size| size as i64).collect();
            let handle = target.tensor();
            let same_count = keeps_shape && handle.numel() == result.numel();
            if handle.shape() != result.shape() && !same_count {
                resize(target, &sizes)?;
            }
            let handle = target.tensor();
            call(py, || no_grad(|| handle.copy_(&result.reshape_as(&handle)?).map(drop)))?;
        }
        Ok(())
    }
}

/// Gives a target other sizes, and says so if it had elements, as PyTorch does.
fn resize(target: &Bound<'_, PyTensor>, sizes: &[i64]) -> PyResult<()> {
    let py = target.py();
    let had = target.with_tensor(|tensor| tensor.shape().to_vec());
    if !had.contains(&0) {
        let message = format!(
            "An output with one or more elements was resized since it had shape {had:?}, which does not match the \
             required output shape {sizes:?}. Resize it to zero elements with t.resize_(0) before it is used again."
        );
        let message = std::ffi::CString::new(message)?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 1)?;
    }
    register(target.clone());
    target.get().change(py, |tensor| tensor.resize_(sizes)).map_err(|error| to_python(py, error))
}
