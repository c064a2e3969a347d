//! `cargo xtask bench report`: reading, analysing and reporting a snapshot of 179,324 events beside
//! CPython's `pickle.loads` alone on the same file, taking turns, so that whatever else the machine
//! does hits both. `cargo xtask bench large-report`: what a file of 12 million events (about 800
//! MB) takes to report and to zoom in.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::Worker;
use crate::run;

/// The size of a trace that a user could not open in PyTorch's viewer.
const EVENTS: &str = "179324";
/// A file of about 800 MB.
const LARGE_EVENTS: &str = "12000000";
/// Windows that are asked for in the large file.
const WINDOWS: &str = "400";
const ROUNDS: usize = 11;
/// The share of `pickle.loads`' time that a whole report may take.
const AT_MOST: f64 = 0.5;

/// Makes the file if it is not there, then measures.
pub(crate) fn bench() -> Result<(), String> {
    let file = snapshot(EVENTS)?;
    let mut ours = Worker::start(worker("report_worker")?)?;
    let mut python = Command::new("python3");
    python.arg(run::root().join("xtask/bench/pickle_worker.py"));
    let mut theirs = Worker::start(python)?;
    measure(&file, &mut ours, &mut theirs)
}

/// A file larger than people can open elsewhere. The worker knows what it may take, and fails
/// beyond it.
pub(crate) fn bench_large() -> Result<(), String> {
    let mut zoom = worker("zoom_worker")?;
    let file = snapshot(LARGE_EVENTS)?;
    let measured = run::plain(zoom.arg(&file).arg(WINDOWS));
    // 800 MB are not kept for a next time.
    std::fs::remove_file(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    measured
}

/// The file with so many events, made if it is not there.
fn snapshot(events: &str) -> Result<PathBuf, String> {
    let folder = run::target().join("bench");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let file = folder.join(format!("{events}_events.pickle"));
    if !file.exists() {
        let script = run::root().join("xtask/bench/make_large_snapshot.py");
        let mut make = Command::new("python3");
        run::plain(make.arg(script).arg(events).arg(&file))?;
    }
    Ok(file)
}

/// An example of the report crate, built for speed.
fn worker(name: &str) -> Result<Command, String> {
    let build = ["build", "--release", "--package", "plimsoll-report", "--example", name];
    run::plain(&mut run::command(env!("CARGO"), &build))?;
    Ok(Command::new(run::target().join("release/examples").join(name)))
}

fn measure(file: &Path, ours: &mut Worker, theirs: &mut Worker) -> Result<(), String> {
    let name = file.display().to_string();
    let mut rounds = Vec::new();
    // The first round warms caches and is not counted.
    for round in 0..=ROUNDS {
        let pair = (ours.time(&name, 1)?, theirs.time(&name, 1)?);
        if round > 0 {
            rounds.push((pair.0 / pair.1, pair.0, pair.1));
        }
    }
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, ours_us, theirs_us) = rounds[ROUNDS / 2];
    println!("report of {EVENTS} events: {ours_us:.0} us; pickle.loads alone: {theirs_us:.0} us");
    println!(
        "ratio {ratio:.3} [{:.3}, {:.3}], at most {AT_MOST}",
        rounds[0].0,
        rounds[ROUNDS - 1].0
    );
    match ratio <= AT_MOST {
        true => Ok(()),
        false => Err("the report takes longer than it may".to_string()),
    }
}
