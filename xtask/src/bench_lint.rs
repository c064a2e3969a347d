//! `cargo xtask bench lint [FOLDER]`: the checker beside TorchFix on the same thousand files of
//! real code, both as commands with everything that starting them costs and on all cores. TorchFix
//! takes minutes, so it runs once, between runs of the checker, of which the slowest counts.
//! Without a folder the files are those of the PyTorch package itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::python_env::{self, Purpose};
use crate::run;

const FILES: usize = 1000;
/// Runs of the checker before TorchFix's, and again after it.
const ROUNDS: usize = 3;
const LEAST_RATIO: f64 = 20.0;
const MOST_MS_PER_FILE: f64 = 1.0;

/// Prints times and their ratio; an error if a bound is broken.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    let folder = match arguments {
        [] => torch_sources()?,
        [folder] => PathBuf::from(folder),
        _ => return Err("usage: cargo xtask bench lint [FOLDER]".to_string()),
    };
    let torchfix = python_env::prepare(Purpose::TorchFix)?;
    // The checker alone: the whole command holds the kernels too, which take minutes to build and
    // change nothing here.
    let build = ["build", "--release", "--package", "plimsoll-lint", "--example", "check"];
    run::plain(&mut run::command(env!("CARGO"), &build))?;
    let corpus = copy(&folder)?;
    let mut ours = Vec::new();
    let mut check = || {
        let mut lint = Command::new(run::target().join("release/examples/check"));
        let seconds = time(lint.args(["--pedantic", "--json"]).arg(&corpus))?;
        println!("plimsoll {seconds:.3} s");
        ours.push(seconds);
        Ok::<(), String>(())
    };
    (0..ROUNDS).try_for_each(|_| check())?;
    let mut fix = python_env::program(&torchfix, "torchfix");
    let theirs = time(fix.args(["--select", "ALL"]).arg(&corpus))?;
    println!("torchfix {theirs:.3} s");
    (0..ROUNDS).try_for_each(|_| check())?;
    let slowest = ours.iter().copied().fold(0.0, f64::max);
    let (ratio, ms_per_file) = (theirs / slowest, slowest * 1e3 / FILES as f64);
    println!("{FILES} files: plimsoll at most {slowest:.3} s, {ms_per_file:.3} ms a file");
    println!("torchfix / plimsoll = {ratio:.0} (at least {LEAST_RATIO})");
    match ratio >= LEAST_RATIO && ms_per_file < MOST_MS_PER_FILE {
        true => Ok(()),
        false => Err("a bound is broken".to_string()),
    }
}

/// The sources of PyTorch in the environment of the benchmarks.
fn torch_sources() -> Result<PathBuf, String> {
    let environment = python_env::prepare(Purpose::Bench)?;
    let ask = "import torch, os; print(os.path.dirname(torch.__file__))";
    let answer = python_env::program(&environment, "python")
        .args(["-c", ask])
        .output()
        .map_err(|error| format!("python: {error}"))?;
    Ok(PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim()))
}

/// The first thousand Python files that mention PyTorch, copied side by side so that both tools see
/// exactly these.
fn copy(folder: &Path) -> Result<PathBuf, String> {
    let corpus = run::target().join("bench/lint");
    let _ = std::fs::remove_dir_all(&corpus);
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    let (mut folders, mut count) = (vec![folder.to_path_buf()], 0);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "py") && count < FILES {
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                if text.contains("torch") {
                    let copy = corpus.join(format!("file_{count:04}.py"));
                    std::fs::write(&copy, text)
                        .map_err(|error| format!("{}: {error}", copy.display()))?;
                    count += 1;
                }
            }
        }
    }
    match count {
        FILES => Ok(corpus),
        _ => Err(format!("{} holds only {count} files that mention torch", folder.display())),
    }
}

/// Seconds from start to end; findings are no failure.
fn time(command: &mut Command) -> Result<f64, String> {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.map_err(|error| format!("{command:?}: {error}"))?;
    Ok(start.elapsed().as_secs_f64())
}
