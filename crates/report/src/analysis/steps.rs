//! Steps: where the program's pattern repeats. They are found from spans that the program or its
//! optimizer marked, from the optimizer's own stacks, from the lines of the innermost loop
//! (`line_loops.rs`), or from the sequence of sizes and stacks alone (`periods.rs`), whichever the
//! trace offers first.

use super::line_loops::line_loop;
use super::lives::Lives;
use super::periods::period;
use super::phases::{Phase, Phases};
use crate::events::Action;
use crate::snapshot::Snapshot;

/// The repetitions that were found in one trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Positions at which a step begins, and at last the one at which the last whole step ends.
    pub bounds: Vec<u32>,
    /// What told them.
    pub counted_by: CountedBy,
}

/// What told the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountedBy {
    /// Nothing repeats.
    #[default]
    Nothing,
    /// Spans named after steps.
    Annotations,
    /// Spans or stacks of an optimizer's step.
    Optimizer,
    /// Lines that run again and again in the same order.
    Lines,
    /// A sequence of sizes and stacks that repeats.
    Pattern,
}

impl Steps {
    /// How many whole steps there are.
    pub fn count(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// The step in which a position lies, if it lies in one.
    pub fn of_position(&self, position: u32) -> Option<usize> {
        let after = self.bounds.partition_point(|bound| *bound <= position);
        (after > 0 && after < self.bounds.len()).then(|| after - 1)
    }

    fn new(mut bounds: Vec<u32>, counted_by: CountedBy) -> Option<Steps> {
        bounds.sort_unstable();
        bounds.dedup();
        (bounds.len() >= 3).then_some(Steps { bounds, counted_by })
    }
}

/// Every way of cutting the trace into steps that works, the best first.
pub(super) fn find(snapshot: &Snapshot, device: i32, lives: &Lives, phases: &Phases) -> Vec<Steps> {
    let mut found = Vec::new();
    found.extend(by_annotations(snapshot, device, lives));
    if found.is_empty() {
        found.extend(by_optimizer_stacks(snapshot, lives, phases));
    }
    let lines = line_loop(snapshot, lives);
    found.extend(lines.and_then(|bounds| Steps::new(bounds, CountedBy::Lines)));
    let pattern = period(lives).filter(|bounds| !is_layers(snapshot, lives, phases, bounds));
    found.extend(pattern.and_then(|bounds| Steps::new(bounds, CountedBy::Pattern)));
    found
}

/// Whether a pattern is that of a model's layers and not of steps: all of it is asked for inside
/// the model, and then backward comes, or memory runs out on the way.
fn is_layers(snapshot: &Snapshot, lives: &Lives, phases: &Phases, bounds: &[u32]) -> bool {
    let (first, last) = (bounds[0], bounds[bounds.len() - 1]);
    let mut inside = (0..lives.in_trace).filter(|l| (first + 1..=last).contains(&lives.born[*l]));
    let in_model = inside.all(|life| phases.get(lives.stack[life]) == Phase::Model);
    let ends = snapshot.events.action[lives.rows.clone()].contains(&Action::Oom)
        || lives.stack[..lives.in_trace].iter().any(|s| phases.get(*s) == Phase::Backward);
    in_model && ends
}

/// Spans named after steps, or an optimizer's steps, which PyTorch marks by itself.
fn by_annotations(snapshot: &Snapshot, device: i32, lives: &Lives) -> Option<Steps> {
    let (mut named, mut optimizer) = (Vec::new(), Vec::new());
    let times = &snapshot.events.time_us[lives.rows.clone()];
    for annotation in snapshot.annotations.iter().filter(|a| a.device == device || device < 0) {
        let name = snapshot.strings.get(annotation.name);
        let position = || times.partition_point(|time| *time <= annotation.time_us) as u32;
        if annotation.is_start && is_step(name) {
            named.push(position());
        } else if !annotation.is_start && name.starts_with("Optimizer.step#") {
            optimizer.push(position());
        }
    }
    Steps::new(named, CountedBy::Annotations)
        .or_else(|| Steps::new(optimizer, CountedBy::Optimizer))
}

/// `step 7`, `Step_7`, `ProfilerStep#7`, `iteration 7`, `iter-7`, `batch 7`.
fn is_step(name: &str) -> bool {
    let words = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let numbered = words.len() < name.len();
    let word = words.trim_end_matches([' ', '_', '#', '-', ':', '=']).to_ascii_lowercase();
    numbered && ["step", "profilerstep", "iteration", "iter", "batch"].contains(&word.as_str())
}

/// Each run of allocations in an optimizer ends a step. Frees do not count: `zero_grad` is the
/// optimizer's too.
fn by_optimizer_stacks(snapshot: &Snapshot, lives: &Lives, phases: &Phases) -> Option<Steps> {
    let mut bounds = Vec::new();
    let mut inside = false;
    for (index, row) in lives.rows.clone().enumerate() {
        if snapshot.events.action[row] != Action::Alloc {
            continue;
        }
        let now = phases.get(snapshot.events.stack[row]) == Phase::Optimizer;
        if inside && !now {
            bounds.push(index as u32);
        }
        inside = now;
    }
    if inside {
        bounds.push(lives.last_position());
    }
    Steps::new(bounds, CountedBy::Optimizer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_steps() {
        for name in ["step 7", "ProfilerStep#12", "Iteration_3", "batch: 1", "step0"] {
            assert!(is_step(name), "{name}");
        }
        for name in ["forward", "step", "7", "footstep 7", "Optimizer.step#Adam.step"] {
            assert!(!is_step(name), "{name}");
        }
    }

    #[test]
    fn positions_lie_in_steps() {
        let steps = Steps { bounds: vec![2, 5, 9], counted_by: CountedBy::Lines };
        assert_eq!(steps.count(), 2);
        assert_eq!(steps.of_position(1), None);
        assert_eq!(steps.of_position(2), Some(0));
        assert_eq!(steps.of_position(8), Some(1));
        assert_eq!(steps.of_position(9), None);
    }
}
