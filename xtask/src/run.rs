//! Running a command as one step of `cargo xtask test`: its output passes through line by line,
//! while the test counts that it prints are added up. It judges nothing but the exit status and
//! those counts.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// How many checks passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Counts {
    pub(crate) const PASSED: Counts = Counts { passed: 1, failed: 0 };
    pub(crate) const FAILED: Counts = Counts { passed: 0, failed: 1 };

    pub(crate) fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The folder that cargo builds into.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Whether a command exists and answers.
pub(crate) fn answers(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// A command in the workspace's folder.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command whose output nobody counts; an error says which one failed.
pub(crate) fn plain(command: &mut Command) -> Result<(), String> {
    println!("+ {}", words(command));
    let status = command.status().map_err(|e| format!("{}: {e}", words(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", words(command))) }
}

/// Runs a command and adds up the tests that it reports; one that reports none counts as one check.
pub(crate) fn counted(mut command: Command) -> Counts {
    println!("+ {}", words(&command));
    let counts = Mutex::new(Counts::default());
    let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            println!("{}: {error}", words(&command));
            return Counts::FAILED;
        }
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(|| stdout.map(|stream| pass_through(stream, &counts)));
        scope.spawn(|| stderr.map(|stream| pass_through(stream, &counts)));
    });
    let succeeded = child.wait().is_ok_and(|status| status.success());
    let mut counts = counts.into_inner().unwrap_or_default();
    match succeeded {
        true if counts == Counts::default() => counts = Counts::PASSED,
        // A crash, or a build that broke before any test ran.
        false if counts.failed == 0 => counts.failed = 1,
        _ => {}
    }
    counts
}

fn pass_through(stream: impl Read, counts: &Mutex<Counts>) {
    for line in BufReader::new(stream).split(b'\n') {
        let Ok(line) = line else { return };
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        if let (Some(found), Ok(mut counts)) = (counts_in(&line), counts.lock()) {
            counts.add(found);
        }
    }
}

/// The counts in a closing line of cargo's own runner, of nextest, or of pytest.
fn counts_in(line: &str) -> Option<Counts> {
    let line = line.trim_matches([' ', '=']);
    let pytest = line.starts_with(|c: char| c.is_ascii_digit())
        && line.contains(" in ")
        && (line.contains(" passed") || line.contains(" failed") || line.contains(" error"));
    let closing = line.starts_with("test result:") || line.starts_with("Summary [") || pytest;
    closing.then(|| Counts {
        passed: number_before(line, "passed"),
        failed: number_before(line, "failed") + number_before(line, "error"),
    })
}

fn number_before(line: &str, word: &str) -> usize {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|found| found.trim_end_matches([';', ',', 's']) == word);
    at.and_then(|at| at.checked_sub(1)).and_then(|at| words[at].parse().ok()).unwrap_or(0)
}

fn words(command: &Command) -> String {
    let mut text: Vec<String> = Vec::new();
    for (name, value) in command.get_envs() {
        let value = value.unwrap_or_default().to_string_lossy();
        text.push(format!("{}={value}", name.to_string_lossy()));
    }
    text.push(command.get_program().to_string_lossy().into_owned());
    text.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    text.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_every_runner_are_counted() {
        let counts = |line| counts_in(line).unwrap();
        let cargo =
            "test result: FAILED. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(counts(cargo), Counts { passed: 12, failed: 1 });
        let nextest =
            "     Summary [   1.234s] 40 tests run: 38 passed (1 slow), 2 failed, 3 skipped";
        assert_eq!(counts(nextest), Counts { passed: 38, failed: 2 });
        assert_eq!(counts("===== 7 passed in 0.12s ====="), Counts { passed: 7, failed: 0 });
        assert_eq!(
            counts("1 failed, 6 passed, 2 errors in 0.12s"),
            Counts { passed: 6, failed: 3 }
        );
        assert_eq!(counts_in("test layouts_passed ... ok"), None);
    }
}
