//! The `plimsoll` command as a function: reads arguments and hands them to one of `commands/`. It
//! computes nothing itself. `main.rs` is the executable; the Python package calls the same
//! function, so that its wheel carries the command without a second binary.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod gpt;
mod output;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use clap::{Parser, ValueEnum};
use plimsoll_core::Result;

use args::{Args, Command, ReportFormat};

const SUCCESS: u8 = 0;
const FAILURE: u8 = 1;
/// `train --watch --fail` found a leak; `watch --fail` says the same by it.
const LEAKS: u8 = 3;

/// Runs the command with its arguments, of which the first is the program's name, and gives back
/// the exit status. It prints to the standard streams and never ends the process; only `run`,
/// `watch` and `doctor --measure` do not come back, as they become the program that they run.
///
/// ```
/// assert_eq!(plimsoll_cli::run(["plimsoll", "ops", "--format", "json"].map(Into::into)), 0);
/// assert_eq!(plimsoll_cli::run(["plimsoll", "no-such-command"].map(Into::into)), 2);
/// ```
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let status = match Args::try_parse_from(arguments) {
        Ok(args) => execute(args.command),
        // Help and the version come this way too, with success. Nobody is left to tell of a
        // failure.
        Err(error) => {
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(FAILURE)
        }
    };
    // Rust flushes when its own `main` returns, which is not where this may have been called from.
    let _ = std::io::stdout().flush();
    status
}

/// Where the memory of a snapshot went, in one of the formats of `plimsoll report`: `text`, `json`
/// or `html`.
///
/// ```
/// assert!(plimsoll_cli::report("no-such-file.pickle".as_ref(), "json").is_err());
/// ```
pub fn report(file: &Path, format: &str) -> Result<String> {
    commands::report::rendered(
        file,
        ReportFormat::from_str(format, false).unwrap_or(ReportFormat::Text),
    )
}

fn execute(command: Command) -> u8 {
    let outcome = match command {
        Command::Diff(options) => commands::diff::run(&options),
        // It becomes the Python that measures.
        Command::Doctor(options) if options.measure => return commands::doctor::measure(),
        Command::Doctor(_) => commands::doctor::run(),
        Command::Flame(options) => commands::flame::run(&options),
        // Its exit status says more than success or failure.
        Command::Lint(options) => return commands::lint::run(options),
        Command::Ops(options) => commands::ops::run(&options),
        Command::Report(options) => commands::report::run(&options),
        // It becomes the program that it runs.
        Command::Run(options) => return commands::run::run(&options),
        Command::Top(options) => commands::top::run(&options),
        Command::Trace(options) => commands::trace::run(&options),
        Command::Train(options) => match commands::train::run(&options) {
            Ok(has_leaks) if has_leaks && options.fail => return LEAKS,
            outcome => outcome.map(drop),
        },
        Command::View(options) => commands::view::run(&options),
        // It becomes the program that it watches.
        Command::Watch(options) => return commands::watch::run(&options),
    };
    match outcome {
        Ok(()) => SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {error}");
            FAILURE
        }
    }
}
