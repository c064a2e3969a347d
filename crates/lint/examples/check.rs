//! The checker without the rest of the command: `cargo run -p plimsoll-lint --example check --
//! PATH...` builds in seconds and prints what `plimsoll lint PATH...` would. `--pedantic`,
//! `--json`, `--statistics`, `--diff` and `--fix` are understood.

// A program for a terminal, not a library.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use plimsoll_lint::{Format, Options, run};

fn main() -> ExitCode {
    let mut options = Options::default();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--pedantic" => options.pedantic = true,
            "--json" => options.format = Format::Json,
            "--statistics" => options.statistics = true,
            "--diff" => options.diff = true,
            "--fix" => options.fix = true,
            _ => options.paths.push(argument.into()),
        }
    }
    match run(&options) {
        Ok(outcome) => {
            print!("{}", outcome.output);
            eprint!("{}", outcome.errors);
            ExitCode::from(outcome.status)
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
