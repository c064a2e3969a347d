//! The project's chores, run as `cargo xtask NAME`. Each is one file, but for `generate`, which
//! links the operations and is a package beside this one; this file only chooses. What they start
//! is ordinary commands (cargo, Python), printed before they run, so that each can be repeated by
//! hand.

// These are programs for a terminal, not libraries.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod bench_lint;
mod bench_memory;
mod bench_python;
mod bench_report;
mod bench_train;
mod conformance;
mod fuzz;
mod gpu_bundle;
mod import_order;
mod licences;
mod named_in_docs;
mod nvrtc;
mod origin_rules;
mod python_env;
mod ratchet;
mod rules;
mod run;
mod test;
mod text;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test [STEP...]     everything that must pass, or only the named steps; with --strict a step
                     that cannot run because something is missing here fails
  rules              the house rules that a program can check
  bench cpu [NAME]   times beside PyTorch's, in paired runs
  bench operations [NAME]
                     the same for convolutions, norms, losses, attention and searches
  bench memory       peaks of memory beside PyTorch's, and a dry run's
  bench train [--times|--peaks] [NAME]
                     steps of training beside PyTorch's, from Rust and from Python: times, and
                     peaks of memory
  bench python [NAME]
                     small operations, indexing, loaders, import time and installed size of the
                     Python package beside PyTorch's
  bench lint [PATH]  the source checker beside TorchFix, on the same files
  bench report       a snapshot's report beside CPython's pickle.loads
  bench large-report memory and zooms of a snapshot with 12 million events
  conformance autograd [--count N] [--seed S] [--record]
                     gradients beside PyTorch's on random programs
  conformance operations [--only NAME,NAME] [--dtype NAME,NAME] [--limit N] [--verbose]
                     [--write-docs] [--record] [--self-check]
                     every sample of PyTorch's operator database, through the Python module;
                     --self-check breaks operations on purpose and looks whether that is seen
  conformance training [--part NAME,NAME] [--only NAME,NAME] [--dtype NAME,NAME] [--verbose]
                     PyTorch's databases of modules and optimizers, and every scheduler, through
                     `plimsoll.nn` and `plimsoll.optim`
  conformance suites FOLDER [--further] [--file NAME,NAME] [--only NAME,NAME] [--verbose]
                     [--write-docs] [--pytorch]
                     PyTorch's own test files of autograd, indexing and views, in its folder `test`,
                     run on Plimsoll; --further: of modules, tensors, optimizers and so on
  conformance programs FOLDER [--only TEXT,TEXT] [--seconds N] [--verbose] [--write-docs]
                     other people's programs, of which the folder has clones, on PyTorch and on
                     Plimsoll, loss by loss
  fuzz [SECONDS]     each fuzz target for a while
  generate           the Python methods and stubs, from the registry of operations
  text               the text that `plimsoll train` learns by default, anew
  gpu-bundle [dev]   a folder that tests and measures CUDA on a machine without Rust; `dev` builds
                     it quickly and unoptimised, for the checks alone
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let outcome = match arguments.first().map(String::as_str) {
        Some("test") => test::test(rest),
        Some("rules") => rules::print(),
        Some("bench") if rest.first().is_some_and(|what| what == "lint") => {
            bench_lint::bench(&rest[1..])
        }
        Some("bench") if rest.first().is_some_and(|what| what == "train") => {
            bench_train::bench(&rest[1..])
        }
        Some("bench") if rest.first().is_some_and(|what| what == "python") => {
            bench_python::bench(&rest[1..])
        }
        Some("bench") if rest == ["memory"] => bench_memory::bench(),
        Some("bench") if rest == ["report"] => bench_report::bench(),
        Some("bench") if rest == ["large-report"] => bench_report::bench_large(),
        Some("bench") => bench::bench(rest),
        Some("conformance") => conformance::conformance(rest),
        Some("fuzz") => fuzz::fuzz(rest),
        Some("generate") => run::plain(&mut run::command(
            env!("CARGO"),
            &["run", "--quiet", "--package", "xtask-generate"],
        )),
        Some("text") => text::write(),
        Some("gpu-bundle") => gpu_bundle::build(rest),
        _ => Err(HELP.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
