//! `cargo xtask bench report`: reading, analysing and reporting a snapshot of 179,324 events beside CPython's `pickle.loads` alone on
//! the same file, taking turns, so that whatever else the machine does hits both.

use std::path::Path;
use std::process::Command;

use crate::bench::Worker;
use crate::run;

/// The size of a trace that a user could not open in PyTorch's viewer.
const EVENTS: &str = "179324";
const ROUNDS: usize = 11;
/// The share of `pickle.loads`' time that a whole report may take.
const AT_MOST: f64 = 0.5;

/// Makes the file if it is not there, then measures.
pub(crate) fn bench() -> Result<(), String> {
    let folder = run::target().join("bench");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let file = folder.join(format!("{EVENTS}_events.pickle"));
    if !file.exists() {
        let script = run::root().join("xtask/bench/make_large_snapshot.py");
        let mut make = Command::new("python3");
        run::plain(make.arg(script).arg(EVENTS).arg(&file))?;
    }
    let build =
        ["build", "--release", "--package", "plimsoll-report", "--example", "report_worker"];
    run::plain(&mut run::command(env!("CARGO"), &build))?;
    let mut ours =
        Worker::start(Command::new(run::target().join("release/examples/report_worker")))?;
    let mut python = Command::new("python3");
    python.arg(run::root().join("xtask/bench/pickle_worker.py"));
    let mut theirs = Worker::start(python)?;
    measure(&file, &mut ours, &mut theirs)
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
