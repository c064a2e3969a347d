//! How many threads are worth having: one for each physical core that affinity and cgroups leave
//! us. Two hyperthreads share one set of vector units, so kernels gain nothing from the second.

use std::fs;

/// Physical cores usable by this process, at least one.
pub(super) fn usable() -> usize {
    // An interpreter runs one thread at a time, and reads none of the files below.
    if cfg!(miri) {
        return 1;
    }
    // Logical CPUs after affinity and after the cgroup's quota.
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    match physical_in_affinity() {
        Some(cores) => allowed.min(cores).max(1),
        None => allowed,
    }
}

/// Physical cores under the CPUs of the affinity mask, or `None` where the system does not tell.
fn physical_in_affinity() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut cores = Vec::new();
    for cpu in parse_cpu_list(list)? {
        let topology = format!("/sys/devices/system/cpu/cpu{cpu}/topology/");
        // CPUs with the same siblings are the same core.
        let siblings = fs::read_to_string(topology + "thread_siblings_list").ok()?;
        if !cores.contains(&siblings) {
            cores.push(siblings);
        }
    }
    (!cores.is_empty()).then_some(cores.len())
}

/// `0-3,8,10-11` as numbers.
fn parse_cpu_list(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for item in list.trim().split(',') {
        match item.split_once('-') {
            Some((first, last)) => cpus.extend(first.parse().ok()?..=last.parse::<usize>().ok()?),
            None => cpus.push(item.parse().ok()?),
        }
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read() {
        assert_eq!(parse_cpu_list(" 0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_cpu_list("x"), None);
    }

    #[test]
    fn there_is_a_core() {
        assert!(usable() >= 1);
    }
}
