//! `cargo xtask test`: everything that must pass before a change lands, step after step. All steps
//! run even if one fails; the last line adds up what passed and failed. A step that cannot run here
//! says so and why; with `--strict`, as in continuous integration, that is a failure.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::licences;
use crate::nvrtc;
use crate::python_env::{self, Purpose};
use crate::rules;
use crate::run::{self, Counts};

struct Step {
    name: &'static str,
    run: fn() -> Outcome,
    /// Why it runs only when it is named.
    only_named: Option<&'static str>,
}

impl Step {
    const fn new(name: &'static str, run: fn() -> Outcome) -> Step {
        Step { name, run, only_named: None }
    }
}

enum Outcome {
    Ran(Counts),
    /// Something is missing on this machine.
    CannotRun(&'static str),
    /// Nobody asked for it.
    NotNamed(&'static str),
}

impl Outcome {
    /// One check that printed what is wrong.
    fn of(checked: Result<(), String>) -> Outcome {
        Outcome::Ran(match checked {
            Ok(()) => Counts::PASSED,
            Err(message) => {
                println!("{message}");
                Counts::FAILED
            }
        })
    }

    /// What it adds to the total, and its line in the summary.
    fn told(&self, name: &str, seconds: f64, strict: bool) -> (Counts, String) {
        match *self {
            Outcome::Ran(counts) => {
                let Counts { passed, failed } = counts;
                let line = format!("{name:8} {passed:5} passed, {failed} failed  ({seconds:.0} s)");
                (counts, line)
            }
            Outcome::CannotRun(why) if strict => {
                (Counts::FAILED, format!("{name:8} failed: it cannot run here: {why}"))
            }
            Outcome::CannotRun(why) | Outcome::NotNamed(why) => {
                (Counts::default(), format!("{name:8} skipped: {why}"))
            }
        }
    }
}

const STEPS: &[Step] = &[
    Step::new("format", format),
    Step::new("rules", house_rules),
    Step::new("licences", || Outcome::of(licences::print())),
    Step::new("package", package),
    Step::new("clippy", clippy),
    Step::new("rust", rust),
    Step::new("doc", doc),
    Step::new("rustdoc", rustdoc),
    Step::new("features", features),
    Step::new("chaos", chaos),
    Step {
        only_named: Some(
            "an interpreter, it takes longer than all the rest; run `cargo xtask test miri`",
        ),
        ..Step::new("miri", miri)
    },
    Step::new("cuda", cuda),
    Step::new("python", python),
    Step {
        only_named: Some("it installs PyTorch, several GB; run `cargo xtask test viewer`"),
        ..Step::new("viewer", viewer)
    },
    Step {
        only_named: Some("it installs PyTorch, several GB; run `cargo xtask test watch`"),
        ..Step::new("watch", watch)
    },
    Step::new("page", page),
];

/// Runs the named steps, or all of them.
pub(crate) fn test(arguments: &[String]) -> Result<(), String> {
    let (options, names): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| argument.starts_with('-'));
    if let Some(unknown) = options.iter().find(|option| *option != &"--strict") {
        return Err(format!("`{unknown}` is no option; there is `--strict`"));
    }
    let strict = !options.is_empty();
    let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("`{unknown}` is no step; the steps are {}", known.join(", ")));
    }
    let mut total = Counts::default();
    let mut closing = Vec::new();
    let is_named = |step: &Step| names.iter().any(|name| *name == step.name);
    for step in STEPS.iter().filter(|step| names.is_empty() || is_named(step)) {
        println!("\n== {} ==", step.name);
        let start = Instant::now();
        let outcome = match step.only_named {
            Some(why) if names.is_empty() => Outcome::NotNamed(why),
            _ => (step.run)(),
        };
        let (counts, line) = outcome.told(step.name, start.elapsed().as_secs_f64(), strict);
        total.add(counts);
        closing.push(line);
    }
    println!("\n== summary ==\n{}", closing.join("\n"));
    println!("{} passed, {} failed", total.passed, total.failed);
    if total.failed == 0 { Ok(()) } else { Err("some checks failed".to_string()) }
}

fn cargo(arguments: &[&str]) -> Command {
    run::command(env!("CARGO"), arguments)
}

fn format() -> Outcome {
    Outcome::Ran(run::counted(cargo(&["fmt", "--all", "--", "--check"])))
}

fn house_rules() -> Outcome {
    Outcome::of(rules::print())
}

/// Every crate that is published can be packaged: its files are its own, its metadata complete.
/// Nothing is compiled.
fn package() -> Outcome {
    // Cargo would ask the registry anew for each crate, which takes minutes.
    if let Err(message) = run::plain(&mut cargo(&["fetch", "--quiet", "--locked"])) {
        return Outcome::of(Err(message));
    }
    let mut command = cargo(&["package", "--offline", "--quiet", "--no-verify", "--allow-dirty"]);
    command.args(["--workspace", "--exclude", "xtask", "--exclude", "xtask-generate"]);
    command.args(["--exclude", "plimsoll-testkit", "--exclude", "plimsoll-python"]);
    Outcome::Ran(run::counted(command))
}

fn clippy() -> Outcome {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    Outcome::Ran(run::counted(cargo(&arguments)))
}

/// The test runner: nextest where it is installed, else cargo's own.
fn test_command() -> Command {
    if has_nextest() {
        // Not the examples: clippy compiles them, and nothing here runs them.
        cargo(&["nextest", "run", "--no-fail-fast", "--lib", "--bins", "--tests"])
    } else {
        cargo(&["test", "--no-fail-fast", "--lib", "--bins", "--tests"])
    }
}

fn has_nextest() -> bool {
    run::answers(env!("CARGO"), &["nextest", "--version"])
}

/// The families of kernels. Their tests switch on the engine's feature `testing`, which compiles
/// every loop three times; in one run with the others it would do so for all of them.
const KERNELS: &[&str] = &[
    "plimsoll-engine",
    "plimsoll-kernels-conv",
    "plimsoll-kernels-copy",
    "plimsoll-kernels-elementwise",
    "plimsoll-kernels-index",
    "plimsoll-kernels-linalg",
    "plimsoll-kernels-matmul",
    "plimsoll-kernels-nn",
    "plimsoll-kernels-reduce",
];

/// Runs a test command over the workspace in two parts: all but [`KERNELS`], then those.
fn kernels_apart(command: impl Fn() -> Command) -> Outcome {
    let with_each = |mut command: Command, option: &str| {
        KERNELS.iter().for_each(|package| {
            command.args([option, package]);
        });
        run::counted(command)
    };
    let mut others = command();
    others.arg("--workspace");
    let mut counts = with_each(others, "--exclude");
    counts.add(with_each(command(), "--package"));
    Outcome::Ran(counts)
}

fn rust() -> Outcome {
    kernels_apart(test_command)
}

fn doc() -> Outcome {
    kernels_apart(|| cargo(&["test", "--doc", "--no-fail-fast"]))
}

/// The documentation of every crate, without a warning: no link in it leads nowhere.
fn rustdoc() -> Outcome {
    let mut command = cargo(&["doc", "--no-deps", "--workspace"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    Outcome::Ran(run::counted(command))
}

/// What programs depend on, without the features that they may leave out; and nothing that belongs
/// to the command comes with it.
fn features() -> Outcome {
    let without = ["--package", "plimsoll", "--no-default-features"];
    let mut tests = cargo(&["test", "--no-fail-fast", "--test", "features"]);
    tests.args(without);
    // Without cudarc the crate `half` has fewer features, so every kernel is compiled once more.
    // Two tests of errors need no fast ones.
    tests.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    let mut counts = run::counted(tests);
    let checked = pulls_none_of(&["--package", "plimsoll"], OF_THE_COMMAND)
        .and_then(|()| pulls_none_of(&without, &["cudarc"]));
    if let Outcome::Ran(tree) = Outcome::of(checked) {
        counts.add(tree);
    }
    Outcome::Ran(counts)
}

/// Crates that reports, source checks and the command need, and programs do not.
const OF_THE_COMMAND: &[&str] =
    &["plimsoll-cli", "plimsoll-lint", "plimsoll-report", "clap", "flate2", "ruff_python_parser"];

/// An error that names the `unwanted` crates that come with what `selection` selects.
fn pulls_none_of(selection: &[&str], unwanted: &[&str]) -> Result<(), String> {
    let output = cargo(&["tree", "--edges", "normal", "--prefix", "none"]).args(selection).output();
    let output = output.map_err(|e| format!("cargo tree: {e}"))?;
    let listed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !listed.starts_with("plimsoll ") {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let pulled = listed.lines().filter_map(|line| line.split(' ').next());
    let found: Vec<&str> = pulled.filter(|name| unwanted.contains(name)).collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(format!("`{}` pulls in {}", selection.join(" "), found.join(", ")))
}

/// The tensor tests again, while unpinned storages lose their memory at random between operations.
fn chaos() -> Outcome {
    let keys = std::fs::read_to_string(run::root().join("crates/memory/src/configuration/keys.rs"));
    if !keys.is_ok_and(|keys| keys.contains("chaos_seed")) {
        return Outcome::CannotRun("the configuration has no key `chaos_seed`");
    }
    let mut command = test_command();
    if has_nextest() {
        // The step `rust` built this selection; another would compile both crates once more.
        command.arg("--workspace");
        KERNELS.iter().for_each(|package| {
            command.args(["--exclude", package]);
        });
        // The test kit's other binaries open devices of their own, which ask for chaos themselves
        // or for none: they would do here what they did there.
        let ours = "package(plimsoll-tensor) \
                    | (package(plimsoll-testkit) & binary(/^(devices|examples|optimizers|scaling)$/))";
        command.args(["--filterset", &format!("({ours}) - test(/_in_chaos$/)")]);
    } else {
        command.args(["--package", "plimsoll-tensor", "--package", "plimsoll-testkit"]);
    }
    command.env("PLIMSOLL_CONF", "chaos_seed:7");
    Outcome::Ran(run::counted(command))
}

/// Every CUDA source compiled, which needs no GPU.
fn cuda() -> Outcome {
    Outcome::Ran(match nvrtc::compile_into(&nvrtc::cubins()) {
        Ok(command) => run::counted(command),
        Err(message) => {
            println!("{message}");
            Counts::FAILED
        }
    })
}

/// The crates with `unsafe` that miri can follow, and the test of claims above them, on a nightly
/// toolchain.
fn miri() -> Outcome {
    if !run::answers("cargo", &["+nightly", "miri", "--version"]) {
        return Outcome::CannotRun("there is no nightly toolchain with miri");
    }
    let below = ["--package", "plimsoll-core", "--package", "plimsoll-memory", "--lib", "--tests"];
    let mut counts = interpreted(&below);
    counts.add(interpreted(&["--package", "plimsoll-tensor", "--test", "claims"]));
    Outcome::Ran(counts)
}

fn interpreted(what: &[&str]) -> Counts {
    let mut command = run::command("cargo", &["+nightly", "miri", "test", "--no-fail-fast"]);
    command.args(what);
    // Leave the toolchain to `+nightly`: within `cargo xtask` these name the one that built us.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command.env("CARGO_TARGET_DIR", run::target().join("miri"));
    // Tests read files and clocks. Blocks hold addresses, not pointers, so provenance is exposed by
    // design.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-permissive-provenance");
    run::counted(command)
}

/// Builds the Python package into an environment of its own and tests it there.
fn python() -> Outcome {
    if !run::root().join("pyproject.toml").exists() {
        return Outcome::CannotRun("there is no Python package");
    }
    let folder = match python_package() {
        Ok(folder) => folder,
        Err(message) => {
            println!("{message}");
            return Outcome::Ran(Counts::FAILED);
        }
    };
    let mut tests = python_env::program(&folder, "python");
    tests.args(["-m", "pytest", "-q", "crates/python/tests"]);
    Outcome::Ran(run::counted(tests))
}

/// The environment that the Python package is installed in, the command `plimsoll` with it.
fn python_package() -> Result<PathBuf, String> {
    let folder = python_env::prepare(Purpose::Tests)?;
    run::plain(python_env::program(&folder, "maturin").arg("develop"))?;
    Ok(folder)
}

/// What Plimsoll writes, its own snapshots and those of PyTorch written anew, opened with the tool
/// that PyTorch ships.
fn viewer() -> Outcome {
    let folder = run::target().join("viewer");
    let written = std::fs::create_dir_all(&folder)
        .map_err(|e| format!("{}: {e}", folder.display()))
        .and_then(|()| {
            let mut write = cargo(&["run", "--quiet", "--package", "plimsoll-memory"]);
            run::plain(write.args(["--example", "write_snapshot", "--"]).arg(&folder))
        })
        .and_then(|()| {
            let build =
                ["build", "--quiet", "--package", "plimsoll-report", "--example", "rewrite"];
            run::plain(&mut cargo(&build))
        })
        .and_then(|()| python_env::prepare(Purpose::Bench));
    match written {
        Ok(environment) => {
            let mut open = python_env::program(&environment, "python");
            open.arg("crates/memory/tests/viz.py").arg(&folder);
            let mut counts = run::counted(open);
            let mut compare = python_env::program(&environment, "python");
            compare.arg("crates/report/tests/check_written.py");
            compare.arg(run::target().join("debug/examples/rewrite"));
            counts.add(run::counted(compare));
            Outcome::Ran(counts)
        }
        Err(message) => {
            println!("{message}");
            Outcome::Ran(Counts::FAILED)
        }
    }
}

/// The watch on programs of PyTorch, which comes from the interpreter that `PLIMSOLL_TORCH_PYTHON`
/// names, else from an environment made for it.
fn watch() -> Outcome {
    let named = std::env::var_os("PLIMSOLL_TORCH_PYTHON").map(PathBuf::from);
    let prepared = || python_env::prepare(Purpose::Watch).map(|at| at.join("bin").join("python"));
    match named.map_or_else(prepared, Ok) {
        Ok(python) => {
            let arguments = ["-m", "pytest", "-q", "crates/python/tests/watch"];
            Outcome::Ran(run::counted(run::command(python, &arguments)))
        }
        Err(message) => {
            println!("{message}");
            Outcome::Ran(Counts::FAILED)
        }
    }
}

/// The page of `plimsoll view` in a headless browser, with the network off.
fn page() -> Outcome {
    let browsers = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let Some(browser) = browsers.into_iter().find(|name| run::answers(name, &["--version"])) else {
        return Outcome::CannotRun("there is no Chromium; install the package `chromium`");
    };
    // The command that comes with the Python package: alone, it would be compiled once more.
    let folder = match python_package() {
        Ok(folder) => folder,
        Err(message) => {
            println!("{message}");
            return Outcome::Ran(Counts::FAILED);
        }
    };
    let mut command = run::command("python3", &["crates/report/tests/page/check_page.py"]);
    command.arg(folder.join("bin").join("plimsoll")).arg(browser);
    Outcome::Ran(run::counted(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_run_fails_only_where_it_must_run() {
        let missing = Outcome::CannotRun("there is no Chromium");
        let (counts, line) = missing.told("page", 0.0, false);
        assert_eq!(counts, Counts::default());
        assert_eq!(line, "page     skipped: there is no Chromium");
        let (counts, line) = missing.told("page", 0.0, true);
        assert_eq!(counts, Counts::FAILED);
        assert_eq!(line, "page     failed: it cannot run here: there is no Chromium");
        let not_named = Outcome::NotNamed("it takes long");
        assert_eq!(not_named.told("miri", 0.0, true).0, Counts::default());
    }

    #[test]
    fn unknown_steps_and_options_are_told() {
        let refused = |word: &str| test(&[word.to_string()]).unwrap_err();
        assert!(refused("clipy").contains("the steps are format, rules"));
        assert!(refused("--strikt").contains("`--strict`"));
    }
}
