//! `cargo xtask bench memory`: the most memory that some work takes, forward and backward, beside
//! PyTorch's. Each in a process of its own, by what the process grew; and, for Plimsoll, by its own
//! book and by a dry run, which must agree to the byte.

use std::process::Command;

use crate::python_env::{self, Purpose};
use crate::{bench, run};

/// Prints the table; an error if a dry run took other bytes or PyTorch fewer.
pub(crate) fn bench() -> Result<(), String> {
    let worker = bench::built_worker()?;
    let environment = python_env::prepare(Purpose::Bench)?;
    let mut over = Vec::new();
    println!("{:28} {:>14} {:>14} {:>14} {:>8}", "MB", "book", "resident", "torch", "ratio");
    let names = answer(Command::new(&worker).arg("peaks"))?;
    for name in names.split_whitespace() {
        let numbers = told(Command::new(&worker).args(["peak", name]))?;
        let &[book, dry, resident] = &numbers[..] else {
            return Err(format!("{name}: the worker answered {numbers:?}"));
        };
        let mut torch = python_env::program(&environment, "python");
        torch.arg(run::root().join("xtask/bench/torch_worker.py")).args(["peak", name]);
        let torch = told(&mut torch)?.first().copied().unwrap_or(f64::NAN);
        let [book_mb, resident_mb, torch_mb] = [book, resident, torch].map(|bytes| bytes / 1e6);
        let ratio = resident / torch;
        println!("{name:28} {book_mb:>14.1} {resident_mb:>14.1} {torch_mb:>14.1} {ratio:>8.2}");
        if book != dry {
            return Err(format!("{name}: {book} bytes, but {dry} in a dry run"));
        }
        if resident > torch {
            over.push(name);
        }
    }
    match &over[..] {
        [] => Ok(()),
        names => Err(format!("more than PyTorch: {}", names.join(", "))),
    }
}

/// The numbers that a program prints.
pub(crate) fn told(command: &mut Command) -> Result<Vec<f64>, String> {
    let text = answer(command)?;
    let numbers: Result<_, _> = text.split_whitespace().map(str::parse).collect();
    numbers.map_err(|e| format!("{command:?} answered {text:?}: {e}"))
}

/// What a program prints.
fn answer(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
