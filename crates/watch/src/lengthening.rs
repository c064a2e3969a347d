//! Lines whose memory is made of itself in each step, longer every time: `seen = cat([seen, x])`,
//! or a list that is copied, entries and all. What one step made lives at a time, so nothing
//! outlives its steps, and [`Growth`](crate::Growth) sees nothing stay. Told by how long the newest
//! is, and by who hears that it was made of an older one.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::growth::{
    Alive, PATIENCE, SUSPECT_STEPS, TOLERATED_BYTES, VERDICT_STEPS, WARM_UP_STEPS,
};

/// Lines that are followed.
const MOST_LINES: usize = 1024;

/// A line that makes its memory of itself, longer each time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Longer<L> {
    /// The line.
    pub line: L,
    /// Bytes that each step adds, on average.
    pub bytes_per_step: u64,
    /// Objects that each step adds.
    pub objects_per_step: f64,
    /// Steps in which it was heard to be made of an older one.
    pub judged_steps: u64,
}

impl<L> Longer<L> {
    /// Whether it has been heard for long enough to be a verdict.
    pub fn is_verdict(&self) -> bool {
        self.judged_steps >= VERDICT_STEPS
    }
}

/// Follows the newest memory of each line.
#[derive(Clone, Debug)]
pub struct Lengthening<L> {
    warm_until: u64,
    lines: HashMap<L, Line>,
}

/// What a line had made in a step.
#[derive(Clone, Copy, Debug)]
struct Made {
    step: u64,
    bytes: u64,
    objects: u64,
}

#[derive(Clone, Debug)]
struct Line {
    /// The first since it was begun anew, and the newest.
    first: Made,
    newest: Made,
    /// How often the newest was longer than the one before.
    rises: u64,
    /// How often it was heard to be made of the one before, and whether it ever was.
    rebuilt: u64,
    was_rebuilt: bool,
    /// The most bytes that it has had before it was begun anew.
    most_before: u64,
}

impl<L> Default for Lengthening<L> {
    fn default() -> Lengthening<L> {
        Lengthening { warm_until: WARM_UP_STEPS, lines: HashMap::new() }
    }
}

impl<L: Copy + Eq + Hash + Ord> Lengthening<L> {
    /// Begins anew at `step`: another loop has begun.
    pub fn warm_up(&mut self, step: u64) {
        self.warm_until = step + WARM_UP_STEPS;
        self.lines.clear();
    }

    /// Looks at what lives of lines that join or copy: of each the newest.
    ///
    /// ```
    /// use plimsoll_watch::{Alive, Lengthening};
    /// let mut lengthening = Lengthening::default();
    /// for step in 3..10 {
    ///     let newest = Alive { line: "train.rs:9", step, bytes: 2048 * step, objects: 1 };
    ///     lengthening.look(&[newest]);
    ///     if lengthening.is_possible("train.rs:9") {
    ///         lengthening.rebuilt("train.rs:9"); // in the step after the look
    ///     }
    /// }
    /// assert_eq!(lengthening.growing(10)[0].bytes_per_step, 2048);
    /// ```
    pub fn look(&mut self, newest: &[Alive<L>]) {
        let present: HashSet<L> = newest.iter().map(|row| row.line).collect();
        // What was never made of itself may give its place to others.
        self.lines.retain(|line, of| present.contains(line) || of.was_rebuilt);
        for (_, of) in self.lines.iter_mut().filter(|(line, _)| !present.contains(line)) {
            of.begin_anew(Made { bytes: 0, objects: 0, ..of.newest });
        }
        for row in newest.iter().filter(|row| row.step >= self.warm_until) {
            let now = Made { step: row.step, bytes: row.bytes, objects: row.objects };
            if let Some(line) = self.lines.get_mut(&row.line) {
                line.go_on(now);
            } else if self.lines.len() < MOST_LINES {
                self.lines.insert(row.line, Line::new(now));
            }
        }
    }

    /// Whether the line has become longer so often that it is worth hearing what it is made of.
    pub fn is_possible(&self, line: L) -> bool {
        self.lines.get(&line).is_some_and(|line| line.rises + 1 >= SUSPECT_STEPS)
    }

    /// The line was heard to be made of what was its newest at the last look.
    pub fn rebuilt(&mut self, line: L) {
        if let Some(line) = self.lines.get_mut(&line) {
            line.rebuilt += 1;
            line.was_rebuilt = true;
        }
    }

    /// The lines that grow, after `step` steps, the fastest first.
    pub fn growing(&self, step: u64) -> Vec<Longer<L>> {
        let found = self.lines.iter().filter_map(|(line, of)| {
            let (first, newest) = (of.first, of.newest);
            let steps = (newest.step - first.step).max(1);
            let bytes_per_step = (newest.bytes - first.bytes) / steps;
            let goes_on = 3 * step.saturating_sub(newest.step) <= step - first.step.min(step) + 3;
            let is_long = newest.bytes > PATIENCE * of.most_before;
            let grows = of.rebuilt >= SUSPECT_STEPS && bytes_per_step >= TOLERATED_BYTES;
            (grows && goes_on && is_long).then_some(Longer {
                line: *line,
                bytes_per_step,
                objects_per_step: newest.objects.saturating_sub(first.objects) as f64
                    / steps as f64,
                judged_steps: of.rebuilt,
            })
        });
        let mut found: Vec<Longer<L>> = found.collect();
        found.sort_by(|a, b| b.bytes_per_step.cmp(&a.bytes_per_step).then(a.line.cmp(&b.line)));
        found
    }
}

impl Line {
    fn new(first: Made) -> Line {
        Line { first, newest: first, rises: 0, rebuilt: 0, was_rebuilt: false, most_before: 0 }
    }

    fn go_on(&mut self, now: Made) {
        if now.bytes < self.newest.bytes {
            self.begin_anew(now);
        } else if now.bytes > self.newest.bytes {
            self.rises += 1;
            self.newest = now;
        }
    }

    /// A sentence is complete, an episode over.
    fn begin_anew(&mut self, now: Made) {
        let most_before = self.most_before.max(self.newest.bytes);
        *self = Line { most_before, was_rebuilt: self.was_rebuilt, ..Line::new(now) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told at the end of each step, of a line whose newest has `bytes(step)` and is joined
    /// with the one before if `joins(step)`.
    fn told(steps: u64, bytes: impl Fn(u64) -> u64, joins: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut lengthening = Lengthening::default();
        let mut told = Vec::new();
        for step in 1..=steps {
            if lengthening.is_possible("a") && joins(step) {
                lengthening.rebuilt("a");
            }
            let row = Alive { line: "a", step: step - 1, bytes: bytes(step), objects: 1 };
            lengthening.look(if bytes(step) > 0 { std::slice::from_ref(&row) } else { &[] });
            if !lengthening.growing(step).is_empty() {
                told.push(step);
            }
        }
        told
    }

    #[test]
    fn what_is_made_of_itself_and_longer_is_told_after_eleven_steps() {
        let told = told(20, |step| 2048 * step, |_| true);
        assert_eq!(told, (11..=20).collect::<Vec<_>>());
    }

    #[test]
    fn longer_inputs_that_are_not_made_of_older_ones_are_none() {
        assert!(told(60, |step| 2048 * step, |_| false).is_empty());
    }

    #[test]
    fn what_begins_anew_is_told_only_once_it_is_twice_as_long() {
        // Sentences of fifteen words, then one without an end.
        let length = |step: u64| if step < 45 { step % 15 } else { step - 44 };
        let told = told(100, |step| 2048 * length(step), |_| true);
        let late: Vec<u64> = told.iter().copied().filter(|step| *step >= 15).collect();
        assert_eq!(late.first(), Some(&(44 + 2 * 14 + 1)), "{told:?}");
    }

    #[test]
    fn what_stops_and_what_adds_little_is_not_told() {
        let stops = told(100, |step| 2048 * step.min(20), |step| step <= 20);
        assert!(stops.last().is_some_and(|last| *last <= 32), "{stops:?}");
        assert!(told(60, |step| 512 * step, |_| true).is_empty());
    }
}
