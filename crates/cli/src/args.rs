//! What the command line says, as types. Ranges are checked here, so that commands get only what
//! makes sense.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use plimsoll_core::ByteSize;
use plimsoll_report::Moment;

use crate::gpt::model::Part;
use crate::gpt::settings::GivenSettings;

/// A tensor runtime in which every byte is accounted for.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, max_term_width = 80)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare what two memory snapshots hold at their peaks
    Diff(Diff),
    /// Show what this machine offers and which settings are in force
    Doctor(Doctor),
    /// Draw what a memory snapshot holds as a flame graph (SVG)
    Flame(Flame),
    /// Find memory mistakes in PyTorch source
    Lint(Lint),
    /// List the operations and what each of them supports
    Ops(Ops),
    /// Say where the memory went in a snapshot of PyTorch or Plimsoll
    Report(Report),
    /// Run a PyTorch program on Plimsoll and say where its memory went
    #[command(disable_help_flag = true)]
    Run(Run),
    /// Show what a running program holds, live; or the GPUs
    Top(Top),
    /// Turn a memory snapshot into a trace for Perfetto
    Trace(Trace),
    /// Train a GPT on a text and report its memory
    Train(Box<Train>),
    /// Draw a memory snapshot: a page for the browser
    View(View),
    /// Run a PyTorch program and say what grows, which line makes it and who holds it
    #[command(disable_help_flag = true)]
    Watch(Watch),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Measure what giving cached memory back, collecting garbage, copies, reading a number and
    /// many small operations cost here; needs the Python package
    #[arg(long)]
    pub(crate) measure: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ops {
    /// How to print the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Text,
    /// An array of objects for programs
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// The snapshot: a pickle or JSON, as it is or through gzip
    pub(crate) file: PathBuf,
    /// How to write the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// 80 columns for people
    Text,
    /// One object for programs
    Json,
    /// One page that needs nothing else
    Html,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// The snapshot from before
    pub(crate) before: PathBuf,
    /// The snapshot from after
    pub(crate) after: PathBuf,
    /// How to write the changes
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Exit with 1 if the peak grew by more than this, as in 50MiB
    #[arg(long, value_parser = ByteSize::parse)]
    pub(crate) fail_above: Option<ByteSize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Flame {
    /// The snapshot
    pub(crate) file: PathBuf,
    /// The moment: `50%`, or a time from the trace's start, as in `1.5s`, `20ms` or `700us`; the
    /// peak if not given
    #[arg(long)]
    pub(crate) at: Option<Moment>,
    /// The device's index; the one with the highest peak if not given
    #[arg(long)]
    pub(crate) device: Option<i32>,
    /// Where to write; the screen if not given
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Trace {
    /// The snapshot
    pub(crate) file: PathBuf,
    /// Where to write; the screen if not given
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Top {
    /// The program: its process id, or its name or a part of it; without one, those that can be
    /// looked at are listed
    #[arg(value_name = "PROGRAM", conflicts_with = "device")]
    pub(crate) program: Option<String>,
    /// Show memory, utilisation and processes of each GPU, and why it is not busy
    #[arg(long)]
    pub(crate) device: bool,
    /// Seconds from one look to the next [default: 1]; of the GPUs also into a pipe
    #[arg(short = 'l', long = "every", value_name = "SECONDS", value_parser = interval)]
    pub(crate) every: Option<f64>,
    /// Print one look as text and end, as into a pipe
    #[arg(long)]
    pub(crate) once: bool,
}

/// Seconds between two looks.
fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds from 0.1 to 3600".to_string())
}

#[derive(Debug, clap::Args)]
pub(crate) struct Lint {
    /// Python files, notebooks, folders, or `-` for standard input
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only these rules, by name or code
    #[arg(long, value_delimiter = ',', value_name = "RULE")]
    pub(crate) select: Vec<String>,
    /// Without these rules
    #[arg(long, value_delimiter = ',', value_name = "RULE")]
    pub(crate) ignore: Vec<String>,
    /// The rules about habits and speed too
    #[arg(long)]
    pub(crate) pedantic: bool,
    /// How to print findings
    #[arg(long, value_enum, default_value_t = LintFormat::Text)]
    pub(crate) format: LintFormat,
    /// Print how often each rule fired
    #[arg(long)]
    pub(crate) statistics: bool,
    /// Make the edits that are safe
    #[arg(long, conflicts_with = "diff")]
    pub(crate) fix: bool,
    /// Show the edits that are safe
    #[arg(long)]
    pub(crate) diff: bool,
    /// Print a rule's page and stop
    #[arg(long, value_name = "RULE")]
    pub(crate) explain: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintFormat {
    /// With the source line, the reason and the remedy
    Text,
    /// An array of objects
    Json,
    /// Annotations for GitHub's logs
    Github,
    /// SARIF 2.1.0 for code scanning
    Sarif,
}

#[derive(Debug, clap::Args)]
pub(crate) struct View {
    /// The snapshot
    pub(crate) file: PathBuf,
    /// Where to write the page; beside the snapshot if not given
    #[arg(short, long, conflicts_with = "serve")]
    pub(crate) output: Option<PathBuf>,
    /// Serve it on this machine instead, for files too large for a page
    #[arg(long)]
    pub(crate) serve: bool,
    /// The port to serve on; a free one if not given
    #[arg(long, default_value_t = 0, requires = "serve")]
    pub(crate) port: u16,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Options of the run (`--help` lists them), then the program and its own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Watch {
    /// Options of the watch (`--help` lists them), then the program and its own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Train {
    /// The text to learn; by default Plimsoll's own documentation and source
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: GivenSettings,
    /// What to compute again in backward instead of keeping it, as in gelu,norm
    #[arg(long, value_name = "PARTS", value_enum, value_delimiter = ',')]
    pub(crate) recompute: Vec<Part>,
    /// Capture the second step in a graph and replay it from then on, on a GPU
    #[arg(long)]
    pub(crate) capture: bool,
    /// Time the kernels of the last step, and close with each beside the least time it can take
    #[arg(long, conflicts_with = "capture")]
    pub(crate) kernels: bool,
    /// Where to train: cpu, cuda, cuda:1, dry (only the accounts) or dry:h200 [default: cpu; of
    /// gpt2 cuda]
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Only the accounts: nothing is computed and no memory taken; without a GPU, of an H200
    #[arg(long)]
    pub(crate) dry: bool,
    /// The most memory that may be reserved, as in 512MiB
    #[arg(long, value_parser = ByteSize::parse)]
    pub(crate) limit: Option<ByteSize>,
    /// Tokens that the model writes in the end
    #[arg(long, default_value_t = 240)]
    pub(crate) sample: usize,
    /// Save the run to this file: before the first step, on the way and in the end
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Steps from one save to the next
    #[arg(long, value_name = "STEPS", default_value_t = 100, requires = "save")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) save_every: u64,
    /// Go on with the run that was saved to this file, with its settings
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// Write each step's loss to this file, a line a step; a resumed run adds its lines
    #[arg(long, value_name = "FILE")]
    pub(crate) losses: Option<PathBuf>,
    /// Say what grows from step to step, while it trains and as a verdict in the end
    #[arg(long)]
    pub(crate) watch: bool,
    /// Exit with 3 if the verdict is that something leaks
    #[arg(long, requires = "watch")]
    pub(crate) fail: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_follows_watch_is_not_ours() {
        let line = ["plimsoll", "watch", "--fail", "-m", "train", "--help", "--lr=1", "-x"];
        let Command::Watch(watch) = Args::try_parse_from(line).unwrap().command else { panic!() };
        assert_eq!(watch.arguments, line[2..]);
    }

    #[test]
    fn what_follows_run_is_not_ours() {
        let line = ["plimsoll", "run", "--limit", "4GiB", "-m", "train", "--help", "--lr=1"];
        let Command::Run(run) = Args::try_parse_from(line).unwrap().command else { panic!() };
        assert_eq!(run.arguments, line[2..]);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for wrong in [["-l", "0"], ["-l", "NaN"], ["--every", "soon"], ["train.py", "--device"]] {
            let line = ["plimsoll", "top"].into_iter().chain(wrong);
            assert!(Args::try_parse_from(line).is_err(), "{wrong:?}");
        }
        let two_ways = ["plimsoll", "view", "x.pickle", "-o", "x.html", "--serve"];
        assert!(Args::try_parse_from(two_ways).is_err());
        let wrong_moment = ["plimsoll", "flame", "x.pickle", "--at", "noon"];
        assert!(Args::try_parse_from(wrong_moment).is_err());
        let wrong_size = ["plimsoll", "diff", "a", "b", "--fail-above", "much"];
        assert!(Args::try_parse_from(wrong_size).is_err());
        for wrong in [
            ["--steps", "0"],
            ["--width", "-1"],
            ["--vocabulary", "255"],
            ["--save-every", "0"],
            // Nothing is saved without a file.
            ["--save-every", "5"],
        ] {
            let line = ["plimsoll", "train"].into_iter().chain(wrong);
            assert!(Args::try_parse_from(line).is_err(), "{wrong:?}");
        }
    }
}
