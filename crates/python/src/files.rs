//! Reading and writing files of tensors: the functions beneath `plimsoll.save`, `plimsoll.load` and
//! `plimsoll.safetensors`. Objects become values and back in `file_values.rs`.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use plimsoll_core::{Error, Result};
use plimsoll_files::{self as files, LoadOptions, Source, Unpickling, safetensors};
use plimsoll_nn::StateDict;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::call::{Effort, in_call};
use crate::companion;
use crate::device::DeviceArg;
use crate::error::to_python;
use crate::file_values::Classes;
use crate::tensor::{PyTensor, TensorObject};

/// Saves an object as `torch.save` does: to a file, which is replaced as a whole, or as bytes.
#[pyfunction]
fn _save<'py>(
    object: &Bound<'py, PyAny>,
    path: Option<PathBuf>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = object.py();
    let value = Classes::new(py)?.tree(object)?;
    run(py, || to_path_or_bytes(path, |out| files::write(out, &value)))
        .map(|bytes| bytes.map(|bytes| PyBytes::new(py, &bytes)))
}

/// Reads what `torch.save` wrote, from a file or from bytes. `place` is asked for the device of
/// each location.
#[pyfunction]
fn _load<'py>(
    py: Python<'py>,
    from: &Bound<'py, PyAny>,
    mmap: bool,
    place: Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let from = Given::of(from)?;
    let mut place = |location: &str| {
        Python::attach(|py| place.bind(py).call1((location,))?.extract::<DeviceArg>())
            .map(|device| device.0)
            // Comes back as it was (`error.rs`).
            .map_err(|raised| Error::invalid_argument("map_location").because(raised))
    };
    let value = run(py, || {
        let (source, name) = from.open()?;
        files::load_from(source, mmap, &mut place).map_err(|error| named(&name, error))
    })?;
    Classes::new(py)?.object(py, value)
}

/// Saves tensors by name in a safetensors file, or as bytes.
#[pyfunction]
fn _save_safetensors<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyDict>,
    path: Option<PathBuf>,
    metadata: Option<BTreeMap<String, String>>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let mut state = StateDict::new();
    for (name, tensor) in tensors.iter() {
        let tensor = tensor.cast::<PyTensor>()?.tensor();
        state.insert(name.extract::<String>()?, tensor);
    }
    let metadata = metadata.unwrap_or_default();
    let metadata = metadata.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    run(py, || to_path_or_bytes(path, |out| safetensors::save(&state, out, &metadata)))
        .map(|bytes| bytes.map(|bytes| PyBytes::new(py, &bytes)))
}

/// Reads a safetensors file, or its bytes: tensors by name, and the texts beside them. With `mmap`,
/// tensors in host memory lie on the mapped file.
#[pyfunction]
#[pyo3(signature = (from, device, mmap=false))]
fn _load_safetensors<'py>(
    py: Python<'py>,
    from: &Bound<'py, PyAny>,
    device: DeviceArg,
    mmap: bool,
) -> PyResult<(Bound<'py, PyDict>, BTreeMap<String, String>)> {
    let from = Given::of(from)?;
    let (state, metadata) = run(py, || {
        let (source, name) = from.open()?;
        let options = LoadOptions::new().device(device.0).mmap(mmap);
        safetensors::load(source, options).map_err(|error| named(&name, error))
    })?;
    let tensors = PyDict::new(py);
    for (name, tensor) in state {
        tensors.set_item(name, companion::wrap(py, tensor)?)?;
    }
    Ok((tensors, metadata))
}

/// What is read: a file, or bytes that were read already.
enum Given {
    Path(PathBuf),
    Bytes(Vec<u8>),
}

impl Given {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Given> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(Given::Bytes(bytes.as_bytes().to_vec())),
            Err(_) => Ok(Given::Path(object.extract()?)),
        }
    }

    /// The source, and what to call it.
    fn open(self) -> Result<(Source, String)> {
        match self {
            Given::Path(path) => Ok((Source::open(&path)?, format!("`{}`: ", path.display()))),
            Given::Bytes(bytes) => Ok((Source::from(bytes), String::new())),
        }
    }
}

/// Puts the file's name before what is said of a pickle or an archive.
fn named(name: &str, error: Error) -> Error {
    if error.is_out_of_memory() || error.detail::<PyErr>().is_some() {
        return error;
    }
    let said = format!("{name}{error}");
    match error.detail::<Unpickling>().cloned() {
        // The cause is printed after the message, so it must not be in the message already.
        Some(cause) => {
            let printed = format!("\n{cause}");
            let said = said.strip_suffix(&printed).unwrap_or(&said).to_string();
            Error::new(error.kind(), said).because(cause)
        }
        None => Error::new(error.kind(), said),
    }
}

/// Writes to a file, which is replaced as a whole, or into memory.
fn to_path_or_bytes(
    path: Option<PathBuf>,
    write: impl FnOnce(&mut dyn io::Write) -> Result<()>,
) -> Result<Option<Vec<u8>>> {
    match path {
        Some(path) => files::replace(path, write).map(|()| None),
        None => {
            let mut bytes = Vec::new();
            write(&mut bytes).map(|()| Some(bytes))
        }
    }
}

/// Runs without the interpreter, and raises what Python's own functions for files would.
fn run<R: Send>(py: Python<'_>, work: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    in_call(py, Effort::Any, work).map_err(|error| raised(py, error))
}

fn raised(py: Python<'_>, error: Error) -> PyErr {
    if error.detail::<Unpickling>().is_some() {
        let class = py.import("pickle").and_then(|pickle| pickle.getattr("UnpicklingError"));
        return match class {
            Ok(class) => PyErr::from_value(match class.call1((error.to_string(),)) {
                Ok(raised) => raised,
                Err(failure) => return failure,
            }),
            Err(failure) => failure,
        };
    }
    let mut cause = error.source();
    while let Some(behind) = cause {
        if let Some(io) = behind.downcast_ref::<io::Error>() {
            return PyErr::from(io::Error::new(io.kind(), error.to_string()));
        }
        cause = behind.source();
    }
    to_python(py, error)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_save, module)?)?;
    module.add_function(wrap_pyfunction!(_load, module)?)?;
    module.add_function(wrap_pyfunction!(_save_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(_load_safetensors, module)?)
}
