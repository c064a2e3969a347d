//! `plimsoll run`: becomes the Python that runs a program with `torch` resolved to Plimsoll. The
//! running is Python, in the installed package (`plimsoll/run`), and so are the options.

use std::ffi::OsString;

use super::python;
use crate::args::Run;

/// Runs the program; the status is its own.
pub(crate) fn run(options: &Run) -> u8 {
    let ours = std::iter::once(OsString::from("run"));
    python::start_package(&ours.chain(options.arguments.iter().cloned()).collect::<Vec<_>>())
}
