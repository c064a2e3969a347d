//! Becoming the Python that a command needs: `watch` for programs of PyTorch, `run` for programs on
//! Plimsoll. It is no command itself.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anstream::eprintln;

/// What a shell answers when a program cannot be started.
pub(super) const CANNOT_START: u8 = 127;

/// Names the interpreter; without it the one that `python` would start.
const PYTHON_VARIABLE: &str = "PLIMSOLL_PYTHON";

/// Becomes Python with these arguments; comes back only with the status of a failure, or where a
/// process cannot be replaced. `environment` says which one should be active.
pub(super) fn start(arguments: &[OsString], environment: &str) -> u8 {
    first_that_starts(environment, |python| become_python(python, arguments))
}

/// The same for what the installed package does: `python -m plimsoll` with these arguments.
pub(super) fn start_package(arguments: &[OsString]) -> u8 {
    let module = ["-m", "plimsoll"].map(OsString::from);
    let all: Vec<OsString> = module.into_iter().chain(arguments.iter().cloned()).collect();
    first_that_starts("the environment that has Plimsoll", |python| {
        if has_package(python)? {
            return become_python(python, &all);
        }
        eprintln!(
            "error: the Python that `{}` starts has no package `plimsoll`; install it there (`pip install .` in a \
             clone), or name the interpreter of an environment that has it in {PYTHON_VARIABLE}",
            python.to_string_lossy()
        );
        Some(CANNOT_START)
    })
}

/// The status of the first Python that `start` finds.
fn first_that_starts(environment: &str, start: impl Fn(&OsString) -> Option<u8>) -> u8 {
    let named = std::env::var_os(PYTHON_VARIABLE);
    let pythons = named.map_or_else(|| vec!["python".into(), "python3".into()], |one| vec![one]);
    if let Some(status) = pythons.iter().find_map(start) {
        return status;
    }
    let tried: Vec<_> = pythons.iter().map(|python| python.to_string_lossy()).collect();
    eprintln!(
        "error: no Python was found ({}); activate {environment}, or name its interpreter in \
         {PYTHON_VARIABLE}",
        tried.join(", ")
    );
    CANNOT_START
}

/// Whether this Python finds the package; `None` if there is no such interpreter.
fn has_package(python: &OsString) -> Option<bool> {
    let ask = "import importlib.util, sys; sys.exit(importlib.util.find_spec('plimsoll') is None)";
    match Command::new(python).args(["-c", ask]).stdin(Stdio::null()).status() {
        Ok(status) => Some(status.success()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        // Starting it says what is wrong.
        Err(_) => Some(true),
    }
}

/// Replaces this process, so that signals, streams and the exit status are the program's own. Comes
/// back only if there is no such interpreter.
#[cfg(unix)]
fn become_python(python: &OsString, arguments: &[OsString]) -> Option<u8> {
    use std::os::unix::process::CommandExt;

    let error = Command::new(python).args(arguments).exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        return None;
    }
    eprintln!("error: {}: {error}", python.to_string_lossy());
    Some(CANNOT_START)
}

#[cfg(not(unix))]
fn become_python(python: &OsString, arguments: &[OsString]) -> Option<u8> {
    let status = Command::new(python).args(arguments).status().ok()?;
    Some(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
