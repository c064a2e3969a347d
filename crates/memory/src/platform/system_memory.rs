//! How much memory this process may use: the machine's, or less where a container (cgroup version 1
//! or 2) allows less. Reading it costs some file reads, so it is for start, reports and limits, not
//! for every allocation.

use std::fs;
use std::path::{Path, PathBuf};

use crate::platform::source::Room;

/// What the system says about memory, in bytes. Missing figures could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemMemory {
    /// Physical memory of the machine.
    pub physical_bytes: Option<usize>,
    /// What the machine could give without swapping.
    pub available_bytes: Option<usize>,
    /// The lowest limit of the control groups that this process is in.
    pub cgroup_limit_bytes: Option<usize>,
    /// What that group uses now.
    pub cgroup_used_bytes: Option<usize>,
    /// What this process has in memory now.
    pub resident_bytes: Option<usize>,
}

impl SystemMemory {
    /// Reads the figures of this process. Under Miri, which has no such files, all are missing.
    pub fn read() -> SystemMemory {
        if cfg!(miri) { SystemMemory::default() } else { SystemMemory::read_under(Path::new("/")) }
    }

    /// Reads the figures from the files under `root`, which is `/` but for tests.
    fn read_under(root: &Path) -> SystemMemory {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let meminfo = text("proc/meminfo");
        let cgroup = tightest_cgroup(root, &text("proc/self/cgroup"), &text("proc/self/mountinfo"));
        SystemMemory {
            physical_bytes: kib_field(&meminfo, "MemTotal:"),
            available_bytes: kib_field(&meminfo, "MemAvailable:"),
            cgroup_limit_bytes: cgroup.map(|group| group.limit_bytes),
            cgroup_used_bytes: cgroup.and_then(|group| group.used_bytes),
            resident_bytes: kib_field(&text("proc/self/status"), "VmRSS:"),
        }
    }

    /// All that this process may use: the machine's memory or the container's limit.
    pub fn total_bytes(&self) -> Option<usize> {
        lower(self.physical_bytes, self.cgroup_limit_bytes)
    }

    /// The same figures as a source reports them.
    pub fn room(&self) -> Room {
        let in_group = match (self.cgroup_limit_bytes, self.cgroup_used_bytes) {
            (Some(limit), Some(used)) => Some(limit.saturating_sub(used)),
            _ => None,
        };
        let free_bytes = lower(self.available_bytes, in_group);
        let used_by_others_bytes = match (self.total_bytes(), free_bytes, self.resident_bytes) {
            (Some(total), Some(free), Some(own)) => Some(total.saturating_sub(free + own)),
            _ => None,
        };
        Room { total_bytes: self.total_bytes(), free_bytes, used_by_others_bytes }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cgroup {
    limit_bytes: usize,
    used_bytes: Option<usize>,
}

fn lower(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The field `name` of a file in the manner of `/proc/meminfo`, whose values are in KiB.
fn kib_field(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<usize>().ok()?.checked_mul(1024)
}

/// The lowest limit among the groups of this process and all groups above them.
fn tightest_cgroup(root: &Path, cgroup: &str, mountinfo: &str) -> Option<Cgroup> {
    let mut tightest: Option<Cgroup> = None;
    for line in cgroup.lines() {
        // `number:controllers:path`; version 2 has the number 0 and no controllers.
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let unified = number == "0" && controllers.is_empty();
        if !unified && !controllers.split(',').any(|name| name == "memory") {
            continue;
        }
        let (limit, used) = match unified {
            true => ("memory.max", "memory.current"),
            false => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        };
        for mount in cgroup_mounts(mountinfo, unified) {
            for group in groups_upwards(root, &mount, path) {
                let number =
                    |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok();
                // Version 2 writes `max` where there is no limit, version 1 a number near 2^63.
                if let Some(limit_bytes) = number(limit).filter(|&bytes: &usize| bytes < 1 << 60)
                    && tightest.is_none_or(|found| limit_bytes < found.limit_bytes)
                {
                    tightest = Some(Cgroup { limit_bytes, used_bytes: number(used) });
                }
            }
        }
    }
    tightest
}

/// Where the hierarchy is mounted: (root of the mount within the hierarchy, mount point).
fn cgroup_mounts(mountinfo: &str, unified: bool) -> Vec<(String, String)> {
    let parse = |line: &str| {
        // `id parent major:minor root mount-point options ... - type source super-options`
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split_whitespace();
        let (kind, options) = (after.next()?, after.nth(1)?);
        let wanted = match unified {
            true => kind == "cgroup2",
            false => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
        };
        let mut before = before.split_whitespace().skip(3);
        let (top, point) = (before.next()?, before.next()?);
        wanted.then(|| (top.to_string(), point.to_string()))
    };
    mountinfo.lines().filter_map(parse).collect()
}

/// The folder of the group `path` and of every group above it, as far as they can be seen here. In
/// a container the path may name groups outside of it; then only the mount itself is left.
fn groups_upwards(root: &Path, (top, point): &(String, String), path: &str) -> Vec<PathBuf> {
    let point = root.join(point.trim_start_matches('/'));
    let below = path.strip_prefix(top.trim_end_matches('/')).unwrap_or(path);
    let mut group = point.join(below.trim_start_matches('/'));
    let mut groups = Vec::new();
    while group.starts_with(&point) {
        groups.push(group.clone());
        if !group.pop() {
            break;
        }
    }
    groups
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;

    /// A folder that imitates `/`, removed at the end.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, &str)]) -> Tree {
            let root = std::env::temp_dir().join(format!("plimsoll-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Tree(root)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const MEMINFO: &str = "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:   8192 kB\n";

    #[test]
    fn a_version_2_limit_above_the_group_counts() {
        let tree = Tree::new(
            "cgroup2",
            &[
                ("proc/meminfo", MEMINFO),
                ("proc/self/cgroup", "0::/jobs/one\n"),
                ("proc/self/status", "VmRSS:\t 1024 kB\n"),
                ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("sys/fs/cgroup/jobs/memory.max", "6291456\n"),
                ("sys/fs/cgroup/jobs/memory.current", "2097152\n"),
                ("sys/fs/cgroup/jobs/one/memory.max", "max\n"),
            ],
        );
        let memory = SystemMemory::read_under(&tree.0);
        assert_eq!(memory.cgroup_limit_bytes, Some(6 << 20));
        assert_eq!(memory.total_bytes(), Some(6 << 20));
        let room = memory.room();
        assert_eq!(room.free_bytes, Some(4 << 20));
        assert_eq!(room.used_by_others_bytes, Some(1 << 20));
    }

    #[test]
    fn a_version_1_limit_counts_and_no_limit_does_not() {
        let files = |limit: &'static str| {
            [
                ("proc/meminfo", MEMINFO),
                ("proc/self/cgroup", "4:memory:/box\n3:cpu:/box\n0::/\n"),
                (
                    "proc/self/mountinfo",
                    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                     36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
                ),
                ("sys/fs/cgroup/memory/box/memory.limit_in_bytes", limit),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ]
        };
        let limited = Tree::new("cgroup1", &files("4194304\n"));
        assert_eq!(SystemMemory::read_under(&limited.0).total_bytes(), Some(4 << 20));
        let unlimited = Tree::new("cgroup1-free", &files("9223372036854771712\n"));
        let memory = SystemMemory::read_under(&unlimited.0);
        assert_eq!(memory.cgroup_limit_bytes, None);
        assert_eq!(memory.total_bytes(), Some(16 << 20));
    }

    #[test]
    fn a_container_that_hides_its_path_still_shows_the_mount() {
        let tree = Tree::new(
            "cgroup-hidden",
            &[
                ("proc/self/cgroup", "0::/../outside\n"),
                ("proc/self/mountinfo", "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n"),
                ("cg/memory.max", "1048576\n"),
            ],
        );
        assert_eq!(SystemMemory::read_under(&tree.0).cgroup_limit_bytes, Some(1 << 20));
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = SystemMemory::read();
        assert!(memory.total_bytes().unwrap() > 64 << 20);
        assert!(memory.resident_bytes.unwrap() > 0);
    }
}
