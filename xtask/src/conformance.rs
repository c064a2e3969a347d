//! Behaviour beside PyTorch's. `cargo xtask conformance autograd [--count N] [--seed S] [--record]`
//! compares gradients on random programs; `cargo xtask conformance operations` runs every sample of
//! PyTorch's own operator database through the Python module and writes the table to
//! `target/conformance/operations.json`; `cargo xtask conformance training` does so with the
//! samples of its databases of modules and optimizers, and with schedulers, mixed precision and
//! files; `cargo xtask conformance documents FOLDER` runs the Python blocks of a folder of
//! documents with both; `cargo xtask conformance suites FOLDER` runs the bodies of PyTorch's own
//! test files, which the folder has, on Plimsoll; `cargo xtask conformance programs FOLDER` runs
//! other people's programs, of which the folder has clones, with both and compares their losses.
//! The comparisons are Python, in `crates/python/conformance`; this builds the module, finds
//! PyTorch and starts them.
//!
//! PyTorch comes from the interpreter that `PLIMSOLL_TORCH_PYTHON` names, else from an environment
//! made for it.

use std::path::Path;
use std::process::Command;

use crate::python_env;
use crate::run;

/// What PyTorch answered to the programs that CI replays without it.
const RECORDED: &str = "crates/python/conformance/autograd/golden.json.gz";

/// The same for samples of operations.
const GOLDEN: &str = "crates/python/conformance/operations/golden.json.gz";

/// The same for training.
const GOLDEN_TRAINING: &str = "crates/python/conformance/training/golden.json.gz";

/// The page that says which operations are whole, and why others are not.
const PAGE: &str = "docs/conformance.md";

/// Blocks of documents and PyTorch's answers, which CI replays.
const RECORDED_BLOCKS: &str = "crates/python/tests/documents/blocks.json";

/// The page that goes through the blocks.
const PAGE_OF_BLOCKS: &str = "docs/documents.md";

pub(crate) fn conformance(arguments: &[String]) -> Result<(), String> {
    let Some((what, options)) = arguments.split_first() else { return Err(usage()) };
    const WHAT: [&str; 6] =
        ["autograd", "operations", "training", "documents", "suites", "programs"];
    if !WHAT.contains(&what.as_str()) {
        return Err(usage());
    }
    let folder = python_env::released_module()?;
    let mut compare = match what.as_str() {
        "autograd" => autograd(&folder, options)?,
        "operations" => samples("operations", &with_files(options, PAGE, GOLDEN))?,
        "training" => samples("training", &with_files(options, PAGE, GOLDEN_TRAINING))?,
        "suites" => suites(&folder, options)?,
        "programs" => samples("programs", &with_files(options, PAGE, ""))?,
        _ => samples("documents", &with_files(options, PAGE_OF_BLOCKS, RECORDED_BLOCKS))?,
    };
    run::plain(&mut compare)
}

fn autograd(folder: &Path, options: &[String]) -> Result<Command, String> {
    let mut compare = python_env::program(folder, "python");
    compare.arg("crates/python/conformance/autograd").arg("--torch").arg(python_env::torch()?);
    for option in options {
        match option.as_str() {
            "--record" => compare.args(["--record", RECORDED]),
            other => compare.arg(other),
        };
    }
    Ok(compare)
}

/// The options, with the files that some of them write.
fn with_files(options: &[String], page: &str, golden: &str) -> Vec<String> {
    let mut named = Vec::new();
    for option in options {
        named.push(option.clone());
        match option.as_str() {
            "--write-docs" => named.push(page.to_string()),
            "--record" => named.push(golden.to_string()),
            _ => {}
        }
    }
    named
}

/// Runs a folder of comparisons with PyTorch's own interpreter, which finds the module that was
/// built by its folder.
fn samples(what: &str, options: &[String]) -> Result<Command, String> {
    let folder = format!("crates/python/conformance/{what}");
    let mut compare = run::command(python_env::torch()?, &[&folder]);
    compare.env("PYTHONPATH", run::root().join("crates").join("python").join("python"));
    compare.arg("--json").arg(run::target().join("conformance").join(format!("{what}.json")));
    compare.args(options);
    Ok(compare)
}

/// Runs PyTorch's test files without PyTorch, in the interpreter that the module was built for;
/// only `--pytorch`, which runs them on PyTorch itself, needs it.
fn suites(folder: &Path, options: &[String]) -> Result<Command, String> {
    if options.iter().any(|option| option == "--pytorch") {
        return samples("suites", options);
    }
    let mut tests = python_env::program(folder, "python");
    tests.arg("crates/python/conformance/suites");
    tests.arg("--json").arg(run::target().join("conformance").join("suites.json"));
    tests.args(with_files(options, PAGE, ""));
    Ok(tests)
}

fn usage() -> String {
    "cargo xtask conformance autograd [--count N] [--seed S] [--record]\n\
     cargo xtask conformance operations [--only NAME,NAME] [--dtype NAME,NAME] [--limit N] \
     [--verbose] [--write-docs] [--record] [--self-check]\n\
     cargo xtask conformance training [--part NAME,NAME] [--only NAME,NAME] [--dtype NAME,NAME] \
     [--verbose] [--write-docs] [--record]\n\
     cargo xtask conformance documents FOLDER [--only BLOCK,BLOCK] [--write-docs] [--record]\n\
     cargo xtask conformance suites FOLDER [--further] [--file NAME,NAME] [--only NAME,NAME] \
     [--verbose] [--write-docs] [--pytorch]\n\
     cargo xtask conformance programs FOLDER [--only TEXT,TEXT] [--seconds N] [--verbose] \
     [--write-docs]"
        .to_string()
}
