//! `cargo xtask bench cpu` and `cargo xtask bench operations`: Plimsoll beside PyTorch from PyPI,
//! two threads each. Two workers (the test kit's `bench_worker` and `bench/torch_worker.py`) hold
//! the inputs and take turns, round by round, so that whatever else the machine does hits both;
//! what counts is the median of the rounds' ratios. Absolute times are compared with a bound only
//! where the table says so.
//!
//! `cargo xtask bench cpu --against WORKER` puts the worker of another version in PyTorch's place:
//! no row should be more than a tenth slower than there.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::python_env::{self, Purpose};
use crate::run;

/// Rounds of each row; odd, so that the median is one of them.
const ROUNDS: usize = 15;
/// Ranks, from either end, of the interval around the median of 15 that holds with about 96 %.
const INTERVAL_RANK: usize = 3;
/// How long one side of a round should take, in microseconds; short work is repeated.
const ROUND_US: f64 = 60_000.0;
/// Between turns, so that the other side's spinning threads have gone to sleep.
const PAUSE: Duration = Duration::from_millis(15);

/// Work by name, each with a bound.
type Table = &'static [(&'static str, f64)];

/// Work, and the ratio of Plimsoll's time to PyTorch's that it may take at most.
const ROWS: Table = &[
    ("add_400mb", 0.35),
    ("broadcast_400mb", 0.35),
    ("relu_64mb", 0.45),
    ("exp_64mb", 0.45),
    ("tanh_64mb", 0.45),
    ("gelu_64mb", 0.45),
    ("softmax_64mb", 0.50),
    ("layer_norm_64mb", 0.50),
    ("batch_norm_64mb", 0.60),
    ("batch_norm_channels_last_64mb", 0.60),
    ("batch_norm_features_64mb", 0.60),
    ("add_in_place_400mb", 1.05),
    ("sum_64mb", 1.05),
    ("add_4mb", 0.60),
    ("transposed_add_64mb", 0.60),
    ("transposed_contiguous_64mb", 0.35),
    ("sort_64mb", 1.00),
    ("gather_64mb", 1.00),
    ("cat_64mb", 1.00),
    ("matmul_f32_256", 1.10),
    ("matmul_f32_1024", 1.10),
    ("matmul_f32_2048", 1.10),
    ("matmul_f32_1x4096x4096", 1.10),
    ("matmul_f32_32x4096x4096", 1.10),
    ("matmul_f32_64_batches_of_128", 1.10),
    ("matmul_f64_1024", 1.10),
    ("matmul_bf16_2048", 1.50),
];

/// The same for `bench operations`: what networks are made of, where it says so forward alone, else
/// forward and backward; and the rest forward.
const OPERATIONS: Table = &[
    ("conv2d_64_forward", 1.20),
    ("conv2d_64", 1.20),
    ("conv2d_3_to_16", 1.00),
    ("conv2d_16_to_32", 1.00),
    ("conv2d_depthwise_96_forward", 1.00),
    ("conv2d_depthwise_96", 1.00),
    ("max_pool2d_64mb", 0.60),
    ("batch_norm_64mb", 0.60),
    ("group_norm_64mb", 0.60),
    ("cross_entropy_4096x32768", 0.60),
    ("linear_cross_entropy_50304", 1.05),
    ("attention_causal", 1.00),
    ("lstm", 1.00),
    ("embedding_50000x512", 0.60),
    ("cumsum_64mb", 1.00),
    ("topk_64mb", 1.00),
    ("index_select_64mb", 1.00),
    ("scatter_add_64mb", 1.00),
    ("unique_64mb", 1.00),
    ("argmax_64mb", 1.00),
    ("where_64mb", 0.60),
    ("clamp_64mb", 0.60),
    ("lerp_64mb", 0.60),
    ("addcmul_64mb", 0.60),
    ("var_64mb", 0.60),
    ("logsumexp_64mb", 0.60),
    ("norm_64mb", 0.60),
];

/// Work of Plimsoll alone, and the nanoseconds that it may take at most.
const ABSOLUTE: Table = &[
    ("add_of_4", 375.0),
    ("allocate", 150.0),
    ("allocate_with_history", 250.0),
    ("add_of_4, two threads", 750.0),
    ("allocate, two threads", 300.0),
    ("allocate_with_history, two threads", 500.0),
];

/// How often such work is repeated in a round.
const SHORT_COUNT: u32 = 100_000;

/// One row of the result. In rows with an absolute bound `ratio` is the time over the bound, and
/// PyTorch has no time.
struct BenchRow {
    name: &'static str,
    plimsoll_us: f64,
    torch_us: Option<f64>,
    ratio: f64,
    interval: (f64, f64),
    at_most: f64,
}

/// What a row may take of another version's time.
const OF_ANOTHER_VERSION: f64 = 1.10;

/// Runs the benchmark of that name, only the rows that contain `filter` if there is one.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    const USAGE: &str =
        "usage: cargo xtask bench cpu|operations [--against WORKER] [PART OF A ROW'S NAME]";
    let Some((which, rest)) = arguments.split_first() else { return Err(USAGE.to_string()) };
    let (table, alone) = match which.as_str() {
        "cpu" => (ROWS, ABSOLUTE),
        "operations" => (OPERATIONS, &[][..]),
        _ => return Err(USAGE.to_string()),
    };
    let filter = match rest {
        [] => "",
        [option, worker, filter @ ..] if option == "--against" && filter.len() < 2 => {
            return against(table, alone, worker, filter.first().map_or("", String::as_str));
        }
        [filter] if filter != "--against" => filter,
        _ => return Err(USAGE.to_string()),
    };
    let environment = python_env::prepare(Purpose::Bench)?;
    let mut plimsoll = own_worker()?;
    let mut torch = python_env::program(&environment, "python");
    torch.arg(run::root().join("xtask/bench/torch_worker.py"));
    let mut torch = Worker::start(torch)?;
    println!("{:36} {:>12} {:>12}  {:19} at most", "work", "plimsoll us", "torch us", "ratio");
    let compared: Vec<_> = table.iter().filter(|(name, _)| name.contains(filter)).collect();
    let bounded = alone.iter().filter(|(name, _)| name.contains(filter));
    let mut absolute: Vec<Absolute> = bounded.map(Absolute::new).collect();
    let mut rows = Vec::new();
    // Rounds without a peer are spread over the whole run, so that they see the machine as the
    // others do: in good times and bad.
    for turn in 0..ROUNDS {
        let first = |turn: usize| compared.len() * turn / ROUNDS;
        for (name, at_most) in &compared[first(turn)..first(turn + 1)] {
            let row = compare(name, *at_most, None, &mut plimsoll, &mut torch)?;
            row.print();
            rows.push(row);
        }
        absolute.iter_mut().try_for_each(|row| row.round(&mut plimsoll))?;
    }
    for row in absolute.into_iter().map(Absolute::row) {
        row.print();
        rows.push(row);
    }
    let folder = run::target().join("bench");
    let path = folder.join(format!("{which}.json"));
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, json(&rows)))
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let over = rows.iter().filter(|row| row.ratio > row.at_most).count();
    println!("{} rows, {over} over their bound; written to {}", rows.len(), path.display());
    Ok(())
}

fn own_worker() -> Result<Worker, String> {
    Worker::start(Command::new(built_worker()?))
}

/// Builds Plimsoll's worker and says where it is.
pub(crate) fn built_worker() -> Result<PathBuf, String> {
    let build = ["build", "--release", "--package", "plimsoll-testkit", "--bin", "bench_worker"];
    run::plain(&mut run::command(env!("CARGO"), &build))?;
    Ok(run::target().join("release/bench_worker"))
}

/// Every row beside another version's worker. Rows that it does not know are left out.
fn against(table: Table, alone: Table, worker: &str, filter: &str) -> Result<(), String> {
    let mut ours = own_worker()?;
    let mut theirs = Worker::start(Command::new(worker))?;
    println!("{:36} {:>12} {:>12}  {:19} at most", "work", "this us", "other us", "ratio");
    let short = alone.iter().map(|(name, _)| (*name, Some(SHORT_COUNT)));
    let names = table.iter().map(|(name, _)| (*name, None)).chain(short);
    let (mut rows, mut over) = (0, 0);
    for (name, count) in names.filter(|(name, _)| name.contains(filter)) {
        if theirs.time(name, 1).is_err() {
            println!("{name:36} unknown to the other version");
            theirs = Worker::start(Command::new(worker))?;
            continue;
        }
        let row = compare(name, OF_ANOTHER_VERSION, count, &mut ours, &mut theirs)?;
        row.print();
        rows += 1;
        over += usize::from(row.ratio > row.at_most);
    }
    println!("{rows} rows, {over} more than a tenth slower");
    Ok(())
}

/// Paired rounds of one work, the two sides taking turns at going first.
fn compare(
    name: &'static str,
    at_most: f64,
    count: Option<u32>,
    plimsoll: &mut Worker,
    torch: &mut Worker,
) -> Result<BenchRow, String> {
    // Twice: the first time makes the inputs and warms caches.
    let mut longest = 0.0f64;
    for _ in 0..2 {
        longest = plimsoll.time(name, 1)?.max(torch.time(name, 1)?);
    }
    let count = count.unwrap_or((ROUND_US / longest).clamp(1.0, 1e6) as u32);
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let (ours, theirs) = if round % 2 == 0 {
            let ours = plimsoll.time(name, count)?;
            (ours, torch.time(name, count)?)
        } else {
            let theirs = torch.time(name, count)?;
            (plimsoll.time(name, count)?, theirs)
        };
        rounds.push((ours / f64::from(count), theirs / f64::from(count)));
    }
    let ratios = sorted(rounds.iter().map(|(ours, theirs)| ours / theirs));
    Ok(BenchRow {
        name,
        plimsoll_us: median(&sorted(rounds.iter().map(|round| round.0))),
        torch_us: Some(median(&sorted(rounds.iter().map(|round| round.1)))),
        ratio: median(&ratios),
        interval: (ratios[INTERVAL_RANK], ratios[ROUNDS - 1 - INTERVAL_RANK]),
        at_most,
    })
}

/// Work of Plimsoll alone, being measured.
struct Absolute {
    name: &'static str,
    bound_us: f64,
    rounds_us: Vec<f64>,
    /// By the time in which the processor kept its own pace, and the share of that time.
    undisturbed: Vec<(f64, f64)>,
}

impl Absolute {
    fn new((name, bound_ns): &(&'static str, f64)) -> Absolute {
        Absolute { name, bound_us: bound_ns / 1e3, rounds_us: Vec::new(), undisturbed: Vec::new() }
    }

    fn round(&mut self, plimsoll: &mut Worker) -> Result<(), String> {
        plimsoll.time(self.name, SHORT_COUNT / 10)?;
        let numbers = plimsoll.ask(self.name, SHORT_COUNT)?;
        let &[us, undisturbed_us, share] = &numbers[..] else {
            return Err(format!("{}: the worker answered {numbers:?}", self.name));
        };
        self.rounds_us.push(us / f64::from(SHORT_COUNT));
        self.undisturbed.push((undisturbed_us / f64::from(SHORT_COUNT), share));
        Ok(())
    }

    fn row(self) -> BenchRow {
        let undisturbed = sorted(self.undisturbed.iter().map(|(us, _)| *us));
        let shares = self.undisturbed.iter().map(|(_, share)| share);
        println!(
            "{}: {:.3} us while the processor kept its own pace ({:.0} % of the time)",
            self.name,
            median(&undisturbed),
            100.0 * shares.sum::<f64>() / undisturbed.len() as f64
        );
        let rounds = sorted(self.rounds_us.into_iter());
        let plimsoll_us = median(&rounds);
        let interval = [INTERVAL_RANK, ROUNDS - 1 - INTERVAL_RANK].map(|at| rounds[at]);
        BenchRow {
            name: self.name,
            plimsoll_us,
            torch_us: None,
            ratio: plimsoll_us / self.bound_us,
            interval: (interval[0] / self.bound_us, interval[1] / self.bound_us),
            at_most: 1.0,
        }
    }
}

/// In order, the least first.
pub(crate) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The middle one.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

impl BenchRow {
    fn print(&self) {
        let torch = self.torch_us.map_or("-".to_string(), |us| format!("{us:.1}"));
        let verdict = if self.ratio <= self.at_most { "" } else { "  OVER" };
        println!(
            "{:36} {:>12.3} {torch:>12}  {:.2} [{:.2}, {:.2}]  {:>5.2}{verdict}",
            self.name, self.plimsoll_us, self.ratio, self.interval.0, self.interval.1, self.at_most
        );
    }
}

fn json(rows: &[BenchRow]) -> String {
    let mut text = String::from("[\n");
    for (at, row) in rows.iter().enumerate() {
        let torch = row.torch_us.map_or("null".to_string(), |us| format!("{us:.4}"));
        let _ = writeln!(
            text,
            "  {{\"name\": \"{}\", \"plimsoll_us\": {:.4}, \"torch_us\": {torch}, \"ratio\": {:.4}, \
             \"ratio_low\": {:.4}, \"ratio_high\": {:.4}, \"at_most\": {:.2}}}{}",
            row.name,
            row.plimsoll_us,
            row.ratio,
            row.interval.0,
            row.interval.1,
            row.at_most,
            if at + 1 < rows.len() { "," } else { "" }
        );
    }
    text + "]\n"
}

/// A process that runs work when asked.
pub(crate) struct Worker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn start(mut command: Command) -> Result<Worker, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => {
                Ok(Worker { child, input, output: BufReader::new(output) })
            }
            _ => Err(format!("{command:?}: no way to talk to it")),
        }
    }

    /// Microseconds of running `name` that often.
    pub(crate) fn time(&mut self, name: &str, count: u32) -> Result<f64, String> {
        let numbers = self.ask(name, count)?;
        numbers.first().copied().ok_or_else(|| format!("{name}: a worker answered nothing"))
    }

    /// All numbers that a worker answers with.
    fn ask(&mut self, name: &str, count: u32) -> Result<Vec<f64>, String> {
        std::thread::sleep(PAUSE);
        let mut answer = String::new();
        writeln!(self.input, "{name} {count}")
            .and_then(|()| self.output.read_line(&mut answer))
            .map_err(|e| format!("{name}: {e}"))?;
        let numbers: Result<Vec<f64>, _> = answer.split_whitespace().map(str::parse).collect();
        numbers.map_err(|_| format!("{name}: a worker answered `{}`", answer.trim()))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It ends by itself once its input closes, but not before its present work is done.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_json_with_every_figure() {
        let row = BenchRow {
            name: "add_4mb",
            plimsoll_us: 1.5,
            torch_us: None,
            ratio: 0.5,
            interval: (0.4, 0.6),
            at_most: 1.0,
        };
        let text = json(&[row]);
        assert!(text.contains("\"name\": \"add_4mb\", \"plimsoll_us\": 1.5000"), "{text}");
        assert!(text.contains("\"torch_us\": null"), "{text}");
    }

    #[test]
    fn both_workers_know_every_row() {
        let read = |path: &str| std::fs::read_to_string(run::root().join(path)).unwrap();
        let rust = read("crates/testkit/src/bin/bench_worker/main.rs")
            + &read("crates/testkit/src/workloads.rs");
        let python = read("xtask/bench/torch_worker.py") + &read("xtask/bench/torch_operations.py");
        for (name, _) in ROWS.iter().chain(OPERATIONS) {
            assert!(rust.contains(&format!("\"{name}\" =>")), "{name}");
            assert!(python.contains(&format!("\"{name}\":")), "{name}");
        }
    }
}
