//! The executable `plimsoll`; what it does is in `lib.rs`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(plimsoll_cli::run(std::env::args_os()))
}
