//! Lines that grow only when what they make in several modules is taken together: a layer that is
//! added in every step has a path of its own, so no single origin grows.

use std::collections::{HashMap, HashSet};

use plimsoll_memory::{ModulePath, OriginId};
use plimsoll_watch::{Alive, Growth, Suspect};

/// Judges operation, line and phase, whatever the module.
#[derive(Debug, Default)]
pub(super) struct LineGrowth {
    growth: Growth<OriginId>,
    /// From an origin to the one that stands for its line, outside of all modules.
    lines: HashMap<OriginId, OriginId>,
}

impl LineGrowth {
    pub(super) fn warm_up(&mut self, step: u64) {
        self.growth.warm_up(step);
    }

    /// What stands for the line of an origin, once that was judged; else the origin itself.
    pub(super) fn line_of(&self, origin: OriginId) -> OriginId {
        self.lines.get(&origin).copied().unwrap_or(origin)
    }

    /// The lines that grow although none of their origins does `alone`.
    pub(super) fn judge(
        &mut self,
        alive: &[Alive<OriginId>],
        step: u64,
        alone: &[Suspect<OriginId>],
    ) -> Vec<Suspect<OriginId>> {
        let mut rows: HashMap<(OriginId, u64), (u64, u64)> = HashMap::new();
        let mut origins: HashMap<OriginId, HashSet<OriginId>> = HashMap::new();
        for row in alive {
            let line = *self.lines.entry(row.line).or_insert_with(|| outside_of_modules(row.line));
            origins.entry(line).or_default().insert(row.line);
            let sum = rows.entry((line, row.step)).or_default();
            *sum = (sum.0 + row.bytes, sum.1 + row.objects);
        }
        let alive: Vec<Alive<OriginId>> = rows
            .into_iter()
            .map(|((line, step), (bytes, objects))| Alive { line, step, bytes, objects })
            .collect();
        let mut found = self.growth.judge(&alive, step);
        let known: HashSet<OriginId> = alone.iter().map(|one| self.line_of(one.line)).collect();
        let has_several = |line: &OriginId| origins.get(line).is_some_and(|of| of.len() > 1);
        found.retain(|one| has_several(&one.line) && !known.contains(&one.line));
        found
    }
}

fn outside_of_modules(origin: OriginId) -> OriginId {
    match origin {
        OriginId::UNKNOWN => origin,
        origin => origin.in_module(ModulePath::ROOT),
    }
}
