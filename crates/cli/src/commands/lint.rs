//! `plimsoll lint`: hands the options to the checker and prints what comes back. Exit status 0 is
//! clean, 1 findings, 2 a failure.

use anstream::{eprint, eprintln, print, println};
use plimsoll_lint::{Format, Options, RULES};

use crate::args::{Lint, LintFormat};

const FAILURE: u8 = 2;

pub(crate) fn run(options: Lint) -> u8 {
    if let Some(name) = &options.explain {
        return explain(name);
    }
    let options = Options {
        paths: options.paths,
        select: options.select,
        ignore: options.ignore,
        pedantic: options.pedantic,
        format: match options.format {
            LintFormat::Text => Format::Text,
            LintFormat::Json => Format::Json,
            LintFormat::Github => Format::Github,
            LintFormat::Sarif => Format::Sarif,
        },
        statistics: options.statistics,
        fix: options.fix,
        diff: options.diff,
    };
    match plimsoll_lint::run(&options) {
        Ok(outcome) => {
            print!("{}", outcome.output);
            eprint!("{}", outcome.errors);
            outcome.status
        }
        Err(message) => {
            eprintln!("error: {message}");
            FAILURE
        }
    }
}

fn explain(name: &str) -> u8 {
    match plimsoll_lint::find(name) {
        Some(rule) => {
            print!("{}", rule.page);
            0
        }
        None => {
            eprintln!("error: there is no rule `{name}`; these are:");
            for rule in RULES {
                println!("{}  {}", rule.code, rule.name);
            }
            FAILURE
        }
    }
}
