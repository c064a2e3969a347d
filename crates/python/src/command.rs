//! The `plimsoll` command inside the module: `plimsoll.__main__` hands its arguments over. It is
//! the function that the executable runs, so the wheel needs no executable.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use pyo3::prelude::*;

use crate::call::call;

/// What a Rust program that panics exits with.
const PANICKED: u8 = 101;

/// Runs the command and gives back its exit status; the first argument is the program's name.
#[pyfunction]
fn _command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| {
        // The panic's message is printed by then, as the executable would.
        catch_unwind(AssertUnwindSafe(|| plimsoll_cli::run(arguments))).unwrap_or(PANICKED)
    })
}

/// Where the memory of a snapshot went, as `plimsoll report` says it: `text`, `json` or `html`.
#[pyfunction]
fn _report(py: Python<'_>, path: PathBuf, format: &str) -> PyResult<String> {
    let format = format.to_string();
    call(py, || plimsoll_cli::report(&path, &format))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_command, module)?)?;
    module.add_function(wrap_pyfunction!(_report, module)?)
}
