//! Settings of the GPU libraries and of kernel threads from Python. The modules with PyTorch's
//! names are in the package (`backends/`).

use plimsoll_tensor::backends::{DETERMINISTIC_ALGORITHMS, Switch, cudnn, matmul};
use plimsoll_tensor::parallel;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError};
use pyo3::prelude::*;

fn switch(name: &str) -> PyResult<&'static Switch> {
    match name {
        "deterministic_algorithms" => Ok(&DETERMINISTIC_ALGORITHMS),
        "cudnn.enabled" => Ok(&cudnn::ENABLED),
        "cudnn.allow_tf32" => Ok(&cudnn::ALLOW_TF32),
        "cudnn.deterministic" => Ok(&cudnn::DETERMINISTIC),
        "cudnn.benchmark" => Ok(&cudnn::BENCHMARK),
        "matmul.allow_tf32" => Ok(&matmul::ALLOW_TF32),
        _ => Err(PyAttributeError::new_err(format!("there is no setting `{name}`"))),
    }
}

/// Whether a setting is on.
#[pyfunction]
fn _backend_switch(name: &str) -> PyResult<bool> {
    Ok(switch(name)?.is_on())
}

/// Turns a setting on or off, and says what it was.
#[pyfunction]
fn _set_backend_switch(name: &str, on: bool) -> PyResult<bool> {
    Ok(switch(name)?.set(on))
}

/// How many threads kernels of the CPU use.
#[pyfunction]
fn get_num_threads() -> usize {
    parallel::threads()
}

/// Sets how many threads kernels of the CPU use.
#[pyfunction]
fn set_num_threads(threads: i64) -> PyResult<()> {
    match usize::try_from(threads) {
        Ok(threads) if threads > 0 => {
            parallel::set_threads(threads);
            Ok(())
        }
        _ => Err(PyRuntimeError::new_err(format!(
            "set_num_threads expects a positive integer, and {threads} is none"
        ))),
    }
}

/// The version of cuDNN, if it is found.
#[pyfunction]
fn _cudnn_version() -> Option<usize> {
    cudnn::version()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_backend_switch, module)?)?;
    module.add_function(wrap_pyfunction!(_set_backend_switch, module)?)?;
    module.add_function(wrap_pyfunction!(get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(_cudnn_version, module)?)
}
