//! The `plimsoll` command: reads its arguments and hands them to one of `commands/`. It computes nothing itself.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod network;
mod output;
mod spirals;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Diff(options) => commands::diff::run(&options),
        Command::Doctor => commands::doctor::run(),
        Command::Flame(options) => commands::flame::run(&options),
        // Its exit status says more than success or failure.
        Command::Lint(options) => return commands::lint::run(options),
        Command::Ops(options) => commands::ops::run(&options),
        Command::Report(options) => commands::report::run(&options),
        Command::Trace(options) => commands::trace::run(&options),
        Command::Train(options) => commands::train::run(&options),
        Command::View(options) => commands::view::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
