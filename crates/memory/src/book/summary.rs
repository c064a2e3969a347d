//! The counters as a table for people, in the layout of PyTorch's `memory_summary`: 77 columns, one
//! group of rows a metric, units chosen by column from the row over both pools. Figures for
//! programs are [`Stats`] itself.

use crate::book::stats::{PoolStat, Stat, Stats};

/// How a column of figures is shortened.
#[derive(Clone, Copy)]
enum Figure {
    Bytes,
    Count,
}

/// The table for `device`; abbreviated, it leaves out the rows of the single pools.
///
/// ```
/// use plimsoll_memory::{Stats, memory_summary};
/// let table = memory_summary(&Stats::default(), "cpu", false);
/// assert!(table.lines().all(|line| line.chars().count() == 77));
/// ```
pub fn memory_summary(stats: &Stats, device: &str, abbreviated: bool) -> String {
    let (double, single) = ("=".repeat(75), "-".repeat(75));
    // A name too long for the column would push out the right bar.
    let device: String = device.chars().take(40).collect();
    let mut lines = vec![
        double.clone(),
        format!("{:^75}", format!("Plimsoll memory summary, device {device}")),
        single.clone(),
        format!(
            "{:>22} {:<13}|{:>27} {:<10}",
            "OOMs:", stats.num_ooms, "Allocation retries:", stats.num_alloc_retries
        ),
        double.clone(),
        "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ".to_string(),
    ];
    for (name, stat, figure) in pool_metrics(stats) {
        lines.push(single.clone());
        lines.push(row(name, &stat.all, &stat.all, figure));
        if !abbreviated {
            lines.push(row("      from large pool", &stat.large_pool, &stat.all, figure));
            lines.push(row("      from small pool", &stat.small_pool, &stat.all, figure));
        }
    }
    for (name, stat) in [
        ("Oversize allocations", &stats.oversize_allocations),
        ("Oversize segments", &stats.oversize_segments),
    ] {
        lines.push(single.clone());
        lines.push(row(name, stat, stat, Figure::Count));
    }
    lines.push(double);
    lines.iter().map(|line| format!("|{line}|\n")).collect()
}

fn pool_metrics(stats: &Stats) -> [(&'static str, &PoolStat, Figure); 9] {
    [
        ("Allocated memory", &stats.allocated_bytes, Figure::Bytes),
        ("Active memory", &stats.active_bytes, Figure::Bytes),
        ("Requested memory", &stats.requested_bytes, Figure::Bytes),
        ("Reserved memory", &stats.reserved_bytes, Figure::Bytes),
        ("Non-releasable memory", &stats.inactive_split_bytes, Figure::Bytes),
        ("Allocations", &stats.allocation, Figure::Count),
        ("Active allocs", &stats.active, Figure::Count),
        ("Reserved segments", &stats.segment, Figure::Count),
        ("Non-releasable allocs", &stats.inactive_split, Figure::Count),
    ]
}

/// One row; `leading` is the row whose figures decide the units.
fn row(name: &str, stat: &Stat, leading: &Stat, figure: Figure) -> String {
    let cell = |value: i64, leading: i64| match figure {
        Figure::Bytes => bytes_cell(value, leading),
        Figure::Count => count_cell(value, leading),
    };
    format!(
        " {name:<21} | {} | {} | {} | {} ",
        cell(stat.current, leading.current),
        cell(stat.peak, leading.peak),
        cell(stat.allocated, leading.allocated),
        cell(stat.freed, leading.freed)
    )
}

fn bytes_cell(value: i64, leading: i64) -> String {
    let units = ["B  ", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (value, unit) = shortened(value, leading, 1024, 768 * 1024, units.len());
    format!("{value:6} {}", units[unit])
}

fn count_cell(value: i64, leading: i64) -> String {
    let units = [" ", "K", "M"];
    let (value, unit) = shortened(value, leading, 1000, 750 * 1000, units.len());
    format!("{value:7} {} ", units[unit])
}

/// Divides both figures until the leading one is below `ceiling`, or the units end.
fn shortened(value: i64, leading: i64, by: i64, ceiling: i64, units: usize) -> (i64, usize) {
    // The leading figure keeps its fraction, as in PyTorch; the shown one is cut to whole units.
    let (mut value, mut leading, mut unit) = (value, leading as f64, 0);
    while unit + 1 < units && leading >= ceiling as f64 {
        value = value.div_euclid(by);
        leading /= by as f64;
        unit += 1;
    }
    (value, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same figures as `tests/data/make_summary.py` hands to PyTorch's own function.
    fn figures() -> Stats {
        let mut seed = 0i64;
        let mut stat = || {
            seed += 1;
            let of = |n: i64| (seed * 7 + n).pow(3) * 10i64.pow(((seed + n) % 7) as u32);
            Stat { current: of(1), peak: of(2), allocated: of(3), freed: of(4) }
        };
        let mut pool = || PoolStat { all: stat(), large_pool: stat(), small_pool: stat() };
        Stats {
            allocated_bytes: pool(),
            active_bytes: pool(),
            requested_bytes: pool(),
            reserved_bytes: pool(),
            inactive_split_bytes: pool(),
            allocation: pool(),
            active: pool(),
            segment: pool(),
            inactive_split: pool(),
            oversize_allocations: stat(),
            oversize_segments: stat(),
            num_ooms: 12,
            num_alloc_retries: 345,
            ..Stats::default()
        }
    }

    /// PyTorch's table under our words. Its title and its line of counts are its own.
    fn in_our_words(pytorch: &str) -> Vec<String> {
        pytorch
            .lines()
            .map(|line| {
                line.replace("GPU reserved memory   |", "Reserved memory       |")
                    .replace("GPU reserved segments |", "Reserved segments     |")
                    .replace("Oversize GPU segments |", "Oversize segments     |")
            })
            .collect()
    }

    #[test]
    fn every_row_is_what_pytorch_prints_for_the_same_figures() {
        for (abbreviated, pytorch) in [
            (false, include_str!("../../tests/data/summary.txt")),
            (true, include_str!("../../tests/data/summary_abbreviated.txt")),
        ] {
            let ours = memory_summary(&figures(), "cpu", abbreviated);
            let theirs = in_our_words(pytorch);
            assert_eq!(ours.lines().count(), theirs.len());
            for (at, (ours, theirs)) in ours.lines().zip(&theirs).enumerate() {
                match at {
                    1 => assert_eq!(
                        ours.trim_matches('|').trim(),
                        "Plimsoll memory summary, device cpu"
                    ),
                    3 => assert_eq!(
                        ours.split_whitespace().collect::<Vec<_>>().join(" "),
                        "| OOMs: 12 | Allocation retries: 345 |"
                    ),
                    _ => assert_eq!(ours, theirs, "line {at}"),
                }
            }
            // The bar between the two counts stands where PyTorch's does.
            assert_eq!(ours.lines().nth(3).unwrap().rfind("| "), theirs[3].rfind("| "));
        }
    }

    #[test]
    fn a_long_device_name_stays_inside_the_frame() {
        let table = memory_summary(&figures(), &"d".repeat(200), true);
        assert!(table.lines().all(|line| line.chars().count() == 77), "{table}");
    }
}
