//! Behaviour beside PyTorch's on random programs: `cargo xtask conformance autograd [--count N]
//! [--seed S] [--record]`. The programs and the comparison are Python, in
//! `crates/python/conformance`; this builds the module, finds PyTorch and starts them.
//!
//! PyTorch comes from the interpreter that `PLIMSOLL_TORCH_PYTHON` names, else from an environment
//! made for it.

use std::path::PathBuf;

use crate::python_env::{self, Purpose};
use crate::run;

/// What PyTorch answered to the programs that CI replays without it.
const RECORDED: &str = "crates/python/conformance/autograd.json.gz";

pub(crate) fn conformance(arguments: &[String]) -> Result<(), String> {
    let Some((what, options)) = arguments.split_first() else { return Err(usage()) };
    if what != "autograd" {
        return Err(usage());
    }
    let folder = python_env::prepare(Purpose::Tests)?;
    let mut build = python_env::program(&folder, "maturin");
    run::plain(build.args(["develop", "--manifest-path", "crates/python/Cargo.toml"]))?;
    let mut compare = python_env::program(&folder, "python");
    compare.arg("crates/python/conformance/autograd.py").arg("--torch").arg(torch()?);
    for option in options {
        match option.as_str() {
            "--record" => compare.args(["--record", RECORDED]),
            other => compare.arg(other),
        };
    }
    run::plain(&mut compare)
}

/// A Python that has PyTorch.
fn torch() -> Result<PathBuf, String> {
    match std::env::var_os("PLIMSOLL_TORCH_PYTHON") {
        Some(python) => Ok(PathBuf::from(python)),
        None => Ok(python_env::prepare(Purpose::Bench)?.join("bin").join("python")),
    }
}

fn usage() -> String {
    "cargo xtask conformance autograd [--count N] [--seed S] [--record]".to_string()
}
