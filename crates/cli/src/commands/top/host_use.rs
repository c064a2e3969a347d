//! What a process does with this machine's processors and disks, from `/proc`. Elsewhere than on
//! Linux nothing is known.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// A process between two looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HostUse {
    /// Processors that it kept busy, its threads together.
    pub(super) cores: f64,
    /// Its children (a loader's workers), and the processors that they kept busy.
    pub(super) children: usize,
    pub(super) child_cores: f64,
    /// What it and its children read from disks a second.
    pub(super) read_bytes_per_second: f64,
}

/// Times of all processes at one moment.
#[derive(Debug)]
pub(super) struct Look {
    at: Instant,
    processes: BTreeMap<u32, Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    parent: u32,
    ticks: u64,
    read_bytes: u64,
}

/// Clock ticks a second, which Linux promises to programs on every architecture it runs on today.
const TICKS: f64 = 100.0;

impl Look {
    pub(super) fn now() -> Look {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let processes = pids.filter_map(|pid| Some((pid, seen(pid)?))).collect();
        Look { at: Instant::now(), processes }
    }

    /// What a process did from this look to a later one; `None` if it was not there in both.
    pub(super) fn until(&self, later: &Look, pid: u32) -> Option<HostUse> {
        let seconds = (later.at - self.at).as_secs_f64().max(1e-3);
        let between = |pid: u32| {
            let (before, after) = (self.processes.get(&pid)?, later.processes.get(&pid)?);
            let cores = after.ticks.saturating_sub(before.ticks) as f64 / TICKS / seconds;
            let read = after.read_bytes.saturating_sub(before.read_bytes) as f64 / seconds;
            Some((cores, read))
        };
        let (cores, mut read_bytes_per_second) = between(pid)?;
        let children: Vec<(f64, f64)> = later
            .processes
            .iter()
            .filter(|(_, seen)| seen.parent == pid)
            .filter_map(|(child, _)| between(*child))
            .collect();
        read_bytes_per_second += children.iter().map(|(_, read)| read).sum::<f64>();
        let child_cores = children.iter().map(|(cores, _)| cores).sum();
        Some(HostUse { cores, children: children.len(), child_cores, read_bytes_per_second })
    }
}

fn seen(pid: u32) -> Option<Seen> {
    let (parent, ticks) = times(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    // Only of the user's own processes.
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let read_bytes = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    Some(Seen { parent, ticks, read_bytes: read_bytes.and_then(|n| n.parse().ok()).unwrap_or(0) })
}

/// Parent and processor time of a line of `/proc/PID/stat`. The name, in parentheses, may have
/// anything in it.
fn times(stat: &str) -> Option<(u32, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some((u32::try_from(number(1)?).ok()?, number(11)? + number(12)?))
}

/// The user of a process and ours, if there is such a process.
#[cfg(unix)]
pub(super) fn user_of(pid: u32) -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;

    let user = |process: &str| Some(fs::metadata(format!("/proc/{process}")).ok()?.uid());
    Some((user(&pid.to_string())?, user("self")?))
}

/// The user of a process and ours: not known here.
#[cfg(not(unix))]
pub(super) fn user_of(_: u32) -> Option<(u32, u32)> {
    None
}

/// What a process is called: the program that a Python runs, or its own name.
pub(super) fn name_of(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<String> = line
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let name = command_name(&words)?;
    Some(name.chars().filter(|c| !c.is_control()).collect())
}

fn command_name(words: &[String]) -> Option<String> {
    let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
    let program = last(words.first().filter(|word| !word.is_empty())?);
    if !program.starts_with("python") {
        return Some(program);
    }
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-m" => return rest.next().map(|module| format!("{program} -m {module}")),
            "-c" => break,
            word if word.starts_with('-') || word.is_empty() => {}
            script => return Some(format!("{program} {}", last(script))),
        }
    }
    Some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let stat = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 5 0 0";
        assert_eq!(times(stat), Some((7, 300)));
        assert_eq!(times("42 (a) S 7"), None);
        assert_eq!(times(""), None);
    }

    #[test]
    fn a_python_is_called_by_its_program() {
        let name = |line: &str| {
            command_name(&line.split(' ').map(str::to_string).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(name("/usr/bin/python3 -u src/train.py --lr 1"), "python3 train.py");
        assert_eq!(name("python -m torch.distributed.run x.py"), "python -m torch.distributed.run");
        assert_eq!(name("python -c print(1)"), "python");
        assert_eq!(name("/opt/trainer/bin/run --fast"), "run");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn work_is_seen_between_two_looks() {
        let before = Look::now();
        let began = Instant::now();
        // A busy machine may not let us work for one tick of its clock at once.
        let used = loop {
            let round = Instant::now();
            let mut sum = 0u64;
            while round.elapsed().as_millis() < 100 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
            }
            let used = before.until(&Look::now(), std::process::id()).unwrap();
            if used.cores > 0.0 || began.elapsed().as_secs() > 60 {
                break used;
            }
        };
        assert!(used.cores > 0.0, "{used:?}");
        assert_eq!(before.until(&Look::now(), u32::MAX), None);
    }
}
