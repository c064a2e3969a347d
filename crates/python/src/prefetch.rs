//! Batches of Python's on a device before they are needed: `utils/data/_prefetch.py` of the package
//! takes the tensors out of a batch and puts them back, Rust's prefetcher copies them. Also what
//! the configuration says of evaluations, for `utils/data/_chunks.py`.

use parking_lot::Mutex;
use plimsoll_core::{Error, Result};
use plimsoll_data::{Batch, PrefetchOptions, Prefetcher};
use plimsoll_memory::Configuration;
use plimsoll_tensor::Tensor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::call::{call, wrap};
use crate::device::DeviceArg;
use crate::error::to_python;
use crate::tensor::{PyTensor, TensorObject};

/// The tensors of a batch, and what is left of it without them.
struct Taken {
    tensors: Vec<Tensor>,
    rest: Py<PyAny>,
}

impl Batch for Taken {
    fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
        self.tensors.iter().for_each(visit);
    }

    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Taken> {
        let tensors = self.tensors.into_iter().map(map).collect::<Result<_>>()?;
        Ok(Taken { tensors, rest: self.rest })
    }
}

/// An iterator of Python's over pairs of tensors and rest.
struct Batches(Py<PyIterator>);

impl Iterator for Batches {
    type Item = Result<Taken>;

    fn next(&mut self) -> Option<Result<Taken>> {
        let taken = |pair: PyResult<Bound<'_, PyAny>>| -> PyResult<Taken> {
            let (tensors, rest) = pair?.extract::<(Vec<Bound<'_, PyTensor>>, Py<PyAny>)>()?;
            let tensors = tensors.iter().map(|tensor| tensor.tensor()).collect();
            Ok(Taken { tensors, rest })
        };
        let next = Python::attach(|py| self.0.bind(py).clone().next().map(taken))?;
        Some(next.map_err(|error| {
            Error::invalid_argument("the batches raised an exception").because(error)
        }))
    }
}

/// Rust's prefetcher over such batches.
#[pyclass(name = "_Prefetcher", frozen)]
struct PyPrefetcher(Mutex<Prefetcher<Batches>>);

#[pymethods]
impl PyPrefetcher {
    #[new]
    fn new(
        py: Python<'_>,
        batches: Bound<'_, PyIterator>,
        device: DeviceArg,
        buffers: Option<usize>,
    ) -> PyResult<PyPrefetcher> {
        let batches = Batches(batches.unbind());
        let options = PrefetchOptions { buffers };
        let made = call(py, || Prefetcher::with_options(batches, device.0, options))?;
        Ok(PyPrefetcher(Mutex::new(made)))
    }

    fn __iter__(slf: Bound<'_, PyPrefetcher>) -> Bound<'_, PyPrefetcher> {
        slf
    }

    #[allow(clippy::type_complexity, reason = "tensors and rest, as `Batches` reads them")]
    fn __next__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Vec<Bound<'py, PyTensor>>, Py<PyAny>)>> {
        // Whoever holds the lock may wait for this thread to let the interpreter go.
        let Some(mut own) = self.0.try_lock() else {
            let why = "a batch of this prefetcher is being fetched already, by its own batches or by another thread";
            return Err(PyRuntimeError::new_err(why));
        };
        let own = &mut *own;
        let Some(Taken { tensors, rest }) = call(py, || own.next().transpose())? else {
            return Ok(None);
        };
        let tensors = tensors.into_iter().map(|tensor| wrap(py, tensor));
        Ok(Some((tensors.collect::<PyResult<_>>()?, rest)))
    }
}

/// What the configuration says of evaluations: rows of a chunk or None for all, how often cached
/// memory is given back or None for never, and whether it is at the end.
#[pyfunction]
fn _evaluation_settings(py: Python<'_>) -> PyResult<(Option<usize>, Option<usize>, bool)> {
    let own = Configuration::process().map_err(|error| to_python(py, error))?;
    let number = |given: Option<std::num::NonZeroUsize>| given.map(|number| number.get());
    Ok((number(own.chunk_size()), number(own.cleanup_every()), own.final_cleanup()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPrefetcher>()?;
    module.add_function(wrap_pyfunction!(_evaluation_settings, module)?)
}
