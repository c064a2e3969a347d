//! The figures of a program that runs on Plimsoll, from its ledger: exact, and read without
//! stopping the program for longer than one look into each arena's book.

use std::collections::BTreeMap;
use std::time::Instant;

use plimsoll_memory::{BreakdownRow, Site, SystemMemory, current_epoch, current_step};
use plimsoll_tensor::memory;

use crate::figures::{Figures, Level, Part, Process, Row, VERSION, largest};
use crate::steps::{self, Ending};

/// What is not made in a module.
const OUTSIDE: &str = "outside of modules";

/// A source of figures of this process, for [`Server::start`](crate::Server::start); `name` is what
/// the program is called.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor};
/// let figures = plimsoll_live::ledger_figures("example");
/// let kept = Tensor::zeros(&[1 << 20], DType::F32)?;
/// let kinds = &figures().parts[0];
/// assert_eq!(kinds.by, "kind");
/// assert!(kinds.rows.iter().any(|row| row.name == "temporary" && row.bytes >= 4 << 20));
/// # drop(kept);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn ledger_figures(name: &str) -> impl Fn() -> Figures + Send + Sync + 'static {
    let (name, began) = (name.to_string(), Instant::now());
    move || figures(&name, began)
}

fn figures(name: &str, began: Instant) -> Figures {
    let (step_seconds, endings) = steps::known();
    let mut all = Vec::new();
    let mut levels = Vec::new();
    for arena in memory::arenas() {
        let (name, stats) = (arena.name(), arena.stats());
        let is_forecast = arena.device().is_dry() && stats.allocated_bytes.all.current == 0;
        // What was never used, and a dry run that is over.
        if stats.reserved_bytes.all.peak == 0 || is_forecast {
            continue;
        }
        let bytes = |count: i64| u64::try_from(count).ok();
        levels.push(Level {
            allocated_bytes: bytes(stats.allocated_bytes.all.current),
            reserved_bytes: bytes(stats.reserved_bytes.all.current),
            peak_bytes: bytes(stats.allocated_bytes.all.peak),
            growth_per_step: endings.as_ref().map(|(first, last)| {
                let at = |ending: &Ending| total(ending, &name) as f64;
                (at(last) - at(first)) / (last.step - first.step) as f64
            }),
            name,
        });
        all.extend(arena.live_by_origin());
    }
    let by_kind = |row: &BreakdownRow| row.kind.to_string();
    Figures {
        live: VERSION,
        process: Process {
            pid: std::process::id(),
            name: name.to_string(),
            runtime: format!("Plimsoll {}", env!("CARGO_PKG_VERSION")),
            seconds: began.elapsed().as_secs_f64(),
        },
        step: current_step(),
        steps_of: "steps".to_string(),
        epoch: current_epoch(),
        step_seconds,
        resident_bytes: SystemMemory::read().resident_bytes.map(|bytes| bytes as u64),
        levels,
        parts: vec![
            part("kind", &all, endings.as_ref(), by_kind),
            part("module", &all, endings.as_ref(), module_of),
            part("line", &all, endings.as_ref(), line_of),
        ],
        growing: Vec::new(),
        notes: Vec::new(),
    }
}

fn total(ending: &Ending, arena: &str) -> usize {
    let of = ending.rows.iter().filter(|(name, _)| name == arena);
    of.flat_map(|(_, rows)| rows).map(|row| row.bytes).sum()
}

fn module_of(row: &BreakdownRow) -> String {
    let module = row.origin.get().module;
    if module.is_root() { OUTSIDE.to_string() } else { module.to_string() }
}

fn line_of(row: &BreakdownRow) -> String {
    let site = row.origin.get().site;
    match (site, site.resolve()) {
        (_, Some(place)) => format!("{}:{}", place.file, place.line),
        (Site::Unknown, None) => "not the program's".to_string(),
        (_, None) => site.to_string(),
    }
}

/// The rows gathered by what `name_of` says of them, with what each grew by between two endings.
fn part(
    by: &str,
    rows: &[BreakdownRow],
    endings: Option<&(Ending, Ending)>,
    name_of: impl Fn(&BreakdownRow) -> String,
) -> Part {
    let mut sums: BTreeMap<String, Row> = BTreeMap::new();
    let mut largest_of: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        let name = name_of(row);
        let sum = sums.entry(name.clone()).or_default();
        sum.bytes += row.bytes as u64;
        sum.count += row.count as u64;
        let most = largest_of.entry(name).or_default();
        if by == "line" && row.bytes >= *most {
            *most = row.bytes;
            sum.what = format!("{}, {}", row.origin.get().operation, row.kind);
        }
    }
    if let Some((first, last)) = endings {
        let steps = (last.step - first.step) as f64;
        for (ending, sign) in [(last, 1.0), (first, -1.0)] {
            for row in ending.rows.iter().flat_map(|(_, rows)| rows) {
                // What has gone since tells nothing of what is there.
                if let Some(sum) = sums.get_mut(&name_of(row)) {
                    *sum.growth_per_step.get_or_insert(0.0) += sign * row.bytes as f64 / steps;
                }
            }
        }
    }
    let named = sums.into_iter().map(|(name, sum)| {
        // What was at neither end is not kept from step to step.
        let growth_per_step = endings.map(|_| sum.growth_per_step.unwrap_or(0.0));
        Row { name, growth_per_step, ..sum }
    });
    largest(by, named.collect())
}

#[cfg(test)]
mod tests {
    use plimsoll_memory::{Kind, OriginId};

    use super::*;

    fn row(operation: &'static str, kind: Kind, bytes: usize) -> BreakdownRow {
        let origin = OriginId::intern(operation, Site::Unknown);
        BreakdownRow { origin, kind, bytes, count: 1 }
    }

    #[test]
    fn growth_is_what_two_endings_differ_by_a_step() {
        let ending = |step, bytes| Ending {
            step,
            rows: vec![("cpu".to_string(), vec![row("live add", Kind::Activation, bytes)])],
        };
        let endings = (ending(10, 1000), ending(14, 3000));
        let now = [row("live add", Kind::Activation, 5000), row("live mul", Kind::Gradient, 6000)];
        let part = part("kind", &now, Some(&endings), |row| row.kind.to_string());
        let told: Vec<_> = part
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.bytes, row.growth_per_step))
            .collect();
        assert_eq!(told, [("gradient", 6000, Some(0.0)), ("activation", 5000, Some(500.0))]);
        assert_eq!(total(&endings.1, "cpu"), 3000);
    }

    #[test]
    fn a_line_tells_the_operation_of_its_largest_block() {
        let now = [row("live small", Kind::Gradient, 10), row("live large", Kind::Parameter, 20)];
        let part = part("line", &now, None, line_of);
        assert_eq!(part.rows[0].what, "live large, parameter");
        assert_eq!((part.rows[0].bytes, part.rows[0].growth_per_step), (30, None));
    }
}
