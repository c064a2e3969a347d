//! Becoming the Python that a command needs: `watch` for programs of PyTorch, `run` for programs on
//! Plimsoll. It is no command itself.

use std::ffi::OsString;
use std::process::Command;

use anstream::eprintln;

/// What a shell answers when a program cannot be started.
pub(super) const CANNOT_START: u8 = 127;

/// Names the interpreter; without it the one that `python` would start.
const PYTHON_VARIABLE: &str = "PLIMSOLL_PYTHON";

/// Becomes Python with these arguments; comes back only with the status of a failure, or where a
/// process cannot be replaced. `environment` says which one should be active.
pub(super) fn start(arguments: &[OsString], environment: &str) -> u8 {
    let named = std::env::var_os(PYTHON_VARIABLE);
    let pythons = named.map_or_else(|| vec!["python".into(), "python3".into()], |one| vec![one]);
    for python in &pythons {
        if let Some(status) = become_python(python, arguments) {
            return status;
        }
    }
    let tried: Vec<_> = pythons.iter().map(|python| python.to_string_lossy()).collect();
    eprintln!(
        "error: no Python was found ({}); activate {environment}, or name its interpreter in \
         {PYTHON_VARIABLE}",
        tried.join(", ")
    );
    CANNOT_START
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
