//! `cargo xtask bench train [PART OF A ROW'S NAME]`: steps of training beside PyTorch's, from Rust
//! and from Python, two threads each. Three workers (`crates/nn/examples/train_worker`, and
//! `bench/train_worker.py` with either library) hold the same models and take turns, as in
//! `bench.rs`; what counts is the median of the rounds' ratios. Peaks of memory are what processes
//! of their own grow by. `--times` and `--peaks` leave the other out.
//!
//! PyTorch comes from the interpreter that `PLIMSOLL_TORCH_PYTHON` names, else from an environment
//! made for it; Plimsoll's module runs in the same interpreter.

use std::path::PathBuf;
use std::process::Command;

use crate::bench::{Worker, median, sorted};
use crate::{bench_memory, python_env, run};

/// A model, and what of PyTorch's time and memory a step of it may take at most.
struct Row {
    name: &'static str,
    from_rust: f64,
    from_python: f64,
    peak: Option<f64>,
}

const ROWS: &[Row] = &[
    // 64 x 1000, three linear layers of 1000, Adam.
    Row { name: "mlp", from_rust: 0.80, from_python: 0.85, peak: Some(0.90) },
    // 4 x 8 -> 16 -> 1, Adam: nothing but overhead.
    Row { name: "tiny_mlp", from_rust: 0.15, from_python: 0.40, peak: None },
    // The same beside PyTorch's fused Adam, which it does not choose by itself.
    Row { name: "tiny_mlp_fused", from_rust: 0.15, from_python: 0.40, peak: None },
    // 4 layers, 256 wide, 4 heads, batch 8 x 256, vocabulary 8192, AdamW.
    Row { name: "gpt", from_rust: 0.85, from_python: 0.90, peak: Some(0.70) },
    // The same, blocks computed again in backward.
    Row { name: "gpt_checkpointed", from_rust: 0.85, from_python: 0.90, peak: Some(0.80) },
    // The same as `gpt`, with the scores of all tokens in a tensor on both sides.
    Row { name: "gpt_by_scores", from_rust: 0.85, from_python: 0.90, peak: Some(0.70) },
    // 3 convolutions of 3 x 3 (16, 32, 64 channels) on 64 x 3 x 32 x 32, SGD.
    Row { name: "cnn", from_rust: 1.00, from_python: 1.05, peak: Some(0.90) },
    // 2 layers, 256 wide, 64 steps, batch 32, Adam.
    Row { name: "lstm", from_rust: 1.00, from_python: 1.05, peak: Some(0.90) },
];

/// Rounds of each row; odd, so that the median is one of them.
const ROUNDS: usize = 15;
/// Ranks, from either end, of the interval around the median of 15 that holds with about 96 %.
const INTERVAL_RANK: usize = 3;
/// How long one side of a round should take, in microseconds; short steps are repeated.
const ROUND_US: f64 = 100_000.0;

/// The three sides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Torch,
    Rust,
    Python,
}

const SIDES: [Side; 3] = [Side::Torch, Side::Rust, Side::Python];

/// The programs that the sides run in.
struct Programs {
    rust: PathBuf,
    /// An interpreter with PyTorch, which Plimsoll's module runs in too.
    python: PathBuf,
}

/// Runs the rows that are asked for and prints them.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    const USAGE: &str = "usage: cargo xtask bench train [--times|--peaks] [PART OF A ROW'S NAME]";
    let (options, names): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|word| word.starts_with("--"));
    let (times, peaks) = match &options[..] {
        [] => (true, true),
        ["--times"] => (true, false),
        ["--peaks"] => (false, true),
        _ => return Err(USAGE.to_string()),
    };
    let filter = match &names[..] {
        [] => "",
        [one] => one,
        _ => return Err(USAGE.to_string()),
    };
    let rows: Vec<&Row> = ROWS.iter().filter(|row| row.name.contains(filter)).collect();
    let programs = Programs::build()?;
    let mut over = 0;
    if times {
        over += compare_times(&rows, &programs)?;
    }
    if peaks {
        over += compare_peaks(&rows, &programs)?;
    }
    println!("{} rows, {over} figures over their bound", rows.len());
    Ok(())
}

impl Programs {
    fn build() -> Result<Programs, String> {
        let example = ["build", "--release", "--package", "plimsoll-nn", "--example"];
        let mut build = run::command(env!("CARGO"), &example);
        // Beside the module, whose features it then has, so that the crates below are built once.
        build.args(["train_worker", "--package", "plimsoll-python"]);
        run::plain(&mut build)?;
        python_env::released_module()?;
        let rust = run::target().join("release/examples/train_worker");
        Ok(Programs { rust, python: python_env::torch()? })
    }

    fn command(&self, side: Side) -> Command {
        let library = match side {
            Side::Rust => return run::command(&self.rust, &[]),
            Side::Torch => "torch",
            Side::Python => "plimsoll",
        };
        let mut command = run::command(&self.python, &["xtask/bench/train_worker.py", library]);
        command.env("PYTHONPATH", run::root().join("crates").join("python").join("python"));
        command
    }
}

/// Prints the table of times; how many are over their bound.
fn compare_times(rows: &[&Row], programs: &Programs) -> Result<usize, String> {
    println!(
        "{:18} {:>12} {:>12}  {:19} at most {:>12}  {:19} at most",
        "step", "torch us", "rust us", "ratio", "python us", "ratio"
    );
    let mut over = 0;
    for row in rows {
        let [torch, rust, python] = rounds_of(row, programs)?;
        let ratio =
            |ours: &[f64]| sorted(ours.iter().zip(&torch).map(|(ours, torch)| ours / torch));
        let typical = |us: &[f64]| median(&sorted(us.iter().copied()));
        let (rust_ratio, rust_text) = told(&ratio(&rust), row.from_rust);
        let (python_ratio, python_text) = told(&ratio(&python), row.from_python);
        println!(
            "{:18} {:>12.1} {:>12.1}  {rust_text} {:>12.1}  {python_text}",
            row.name,
            typical(&torch),
            typical(&rust),
            typical(&python)
        );
        over += usize::from(rust_ratio > row.from_rust);
        over += usize::from(python_ratio > row.from_python);
    }
    Ok(over)
}

/// The median of sorted ratios, and how it is printed beside its bound.
fn told(ratios: &[f64], at_most: f64) -> (f64, String) {
    let (ratio, low, high) =
        (median(ratios), ratios[INTERVAL_RANK], ratios[ROUNDS - 1 - INTERVAL_RANK]);
    let verdict = if ratio <= at_most { "    " } else { "OVER" };
    (ratio, format!("{ratio:.2} [{low:.2}, {high:.2}]  {at_most:>5.2} {verdict}"))
}

/// Microseconds of a step in each round: PyTorch's, from Rust, from Python. Each has its turn at
/// going first.
fn rounds_of(row: &Row, programs: &Programs) -> Result<[Vec<f64>; 3], String> {
    let mut workers = Vec::new();
    for side in SIDES {
        workers.push(Worker::start(programs.command(side))?);
    }
    // The first makes the model, and the first step the optimizer's state.
    let mut longest = 0.0f64;
    for worker in &mut workers {
        worker.time(row.name, 2)?;
        longest = longest.max(worker.time(row.name, 2)? / 2.0);
    }
    let count = (ROUND_US / longest).clamp(1.0, 1e6) as u32;
    let mut rounds = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        for turn in 0..SIDES.len() {
            let side = (round + turn) % SIDES.len();
            rounds[side].push(workers[side].time(row.name, count)? / f64::from(count));
        }
    }
    Ok(rounds)
}

/// Prints the table of peaks; how many are over their bound.
fn compare_peaks(rows: &[&Row], programs: &Programs) -> Result<usize, String> {
    println!(
        "{:18} {:>10} {:>10} {:>6} {:>10} {:>6}  at most",
        "peak, MB", "torch", "rust", "ratio", "python", "ratio"
    );
    let mut over = 0;
    for row in rows {
        let Some(at_most) = row.peak else { continue };
        let peak = |side| -> Result<f64, String> {
            let numbers = bench_memory::told(programs.command(side).args(["peak", row.name]))?;
            numbers.first().copied().ok_or_else(|| format!("{}: no peak was told", row.name))
        };
        let (torch, rust, python) = (peak(Side::Torch)?, peak(Side::Rust)?, peak(Side::Python)?);
        let figures = [rust / torch, python / torch];
        let verdict = if figures.iter().all(|ratio| *ratio <= at_most) { "" } else { "  OVER" };
        println!(
            "{:18} {:>10.1} {:>10.1} {:>6.2} {:>10.1} {:>6.2}  {at_most:>5.2}{verdict}",
            row.name,
            torch / 1e6,
            rust / 1e6,
            figures[0],
            python / 1e6,
            figures[1]
        );
        over += figures.iter().filter(|ratio| **ratio > at_most).count();
    }
    Ok(over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_know_every_row() {
        let read = |path: &str| std::fs::read_to_string(run::root().join(path)).unwrap();
        let rust = read("crates/nn/examples/train_worker/main.rs");
        let python = read("xtask/bench/train_worker.py");
        for row in ROWS {
            assert!(rust.contains(&format!("\"{}\"", row.name)), "{}", row.name);
            assert!(python.contains(&format!("\"{}\":", row.name)), "{}", row.name);
        }
    }

    #[test]
    fn a_median_over_its_bound_is_told() {
        let ratios: Vec<f64> = (0..ROUNDS).map(|round| 0.5 + 0.0625 * round as f64).collect();
        assert_eq!(told(&ratios, 1.00), (0.9375, "0.94 [0.69, 1.19]   1.00     ".to_string()));
        assert_eq!(told(&ratios, 0.90), (0.9375, "0.94 [0.69, 1.19]   0.90 OVER".to_string()));
    }
}
