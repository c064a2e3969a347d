//! `cargo xtask bench python [PART OF A ROW'S NAME]`: what Python programs feel besides the work
//! itself, beside PyTorch's: small operations, indexing, loaders, import time and installed size.
//! The rows, their bounds and the rounds are `bench/python_bench.py`; this builds the module and
//! finds PyTorch as `bench_train.rs` does.

use crate::{python_env, run};

/// Runs the rows that are asked for.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    if arguments.len() > 1 {
        return Err("usage: cargo xtask bench python [PART OF A ROW'S NAME]".to_string());
    }
    python_env::released_module()?;
    let python = python_env::torch()?;
    let mut bench = run::command(python, &["xtask/bench/python_bench.py"]);
    bench.args(arguments);
    bench.env("PYTHONPATH", run::root().join("crates").join("python").join("python"));
    run::plain(&mut bench)
}
