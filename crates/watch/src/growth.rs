//! Which lines grow: of what lives at the end of a step, what has outlived its own steps, judged
//! line by line. It knows neither holders nor kinds. The rules are those of the watch of PyTorch's
//! programs (`_growth.py`), which sees single steps only; here every step is seen.

use std::collections::HashMap;
use std::hash::Hash;

/// Steps at the beginning that are not judged: state is made lazily, caches fill.
pub const WARM_UP_STEPS: u64 = 3;
/// Further steps that something must outlive.
pub const SETTLE_STEPS: u64 = 3;
/// What leaves less than this behind per step is not told.
pub const TOLERATED_BYTES: u64 = 1024;
/// Judged steps before a line is suspect, and before a suspect may become a verdict.
pub(crate) const SUSPECT_STEPS: u64 = 4;
pub(crate) const VERDICT_STEPS: u64 = 5;
/// Steps before which nothing can be said.
pub const LEAST_STEPS: u64 = WARM_UP_STEPS + SUSPECT_STEPS + SETTLE_STEPS;
/// The share of judged steps that leave something behind, or as many of them however rare.
const USUAL_SHARE: f64 = 0.6;
const RARE_STEPS: u64 = 4;
/// A line whose memory was let go after some time is judged only when it has kept other for longer
/// by this factor.
pub(crate) const PATIENCE: u64 = 2;
/// Rows that are remembered from one judgement to the next, so that the watch's own memory is
/// bounded.
const MOST_ROWS: usize = 200_000;

/// What lives of one line and one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alive<L> {
    /// The line.
    pub line: L,
    /// The step in which it was made: how many had ended before.
    pub step: u64,
    /// Bytes.
    pub bytes: u64,
    /// How many.
    pub objects: u64,
}

/// A line that grows, and the steps it was judged over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect<L> {
    /// The line.
    pub line: L,
    /// Bytes that stay of the judged steps.
    pub bytes: u64,
    /// How many things.
    pub objects: u64,
    /// Steps that it was judged over, from the first that left something.
    pub judged_steps: u64,
    /// The first of them.
    pub first_step: u64,
    /// The step after the last of them.
    pub end_step: u64,
}

impl<L> Suspect<L> {
    /// Whether it has been judged for long enough to be a verdict.
    pub fn is_verdict(&self) -> bool {
        self.judged_steps >= VERDICT_STEPS
    }
}

/// Judges what lives at step boundaries.
#[derive(Clone, Debug)]
pub struct Growth<L> {
    warm_until: u64,
    /// Of each line, how long it kept what it has let go since.
    longest_life: HashMap<L, u64>,
    /// What lived at the last judgement.
    before: HashMap<(L, u64), u64>,
}

impl<L> Default for Growth<L> {
    fn default() -> Growth<L> {
        Growth { warm_until: WARM_UP_STEPS, longest_life: HashMap::new(), before: HashMap::new() }
    }
}

impl<L: Copy + Eq + Hash + Ord> Growth<L> {
    /// Begins anew at `step`: another loop has begun.
    pub fn warm_up(&mut self, step: u64) {
        self.warm_until = step + WARM_UP_STEPS;
        self.before.clear();
    }

    /// Whether something that was made in `step` counts, once `now` steps have ended.
    pub fn is_judged(&self, step: u64, now: u64) -> bool {
        self.warm_until <= step && step + SETTLE_STEPS < now
    }

    /// The lines that grow, after `step` steps; `alive` has a line and step once. A line grows if
    /// what is made there stays: in most judged steps since the first that stayed, or in several
    /// throughout, up to the latest, and longer than any that the line has let go before.
    ///
    /// ```
    /// use plimsoll_watch::{Alive, Growth};
    /// let mut growth = Growth::default();
    /// let kept = |step| Alive { line: "train.rs:9", step, bytes: 4096, objects: 1 };
    /// let nine: Vec<_> = (0..9).map(kept).collect();
    /// assert!(growth.judge(&nine, 9).is_empty());
    /// let ten: Vec<_> = (0..10).map(kept).collect();
    /// let found = growth.judge(&ten, 10);
    /// assert_eq!((found[0].line, found[0].bytes), ("train.rs:9", 16384));
    /// assert_eq!(found[0].judged_steps, 4);
    /// ```
    pub fn judge(&mut self, alive: &[Alive<L>], step: u64) -> Vec<Suspect<L>> {
        self.note_what_went(alive, step);
        let (begin, end) = (self.warm_until, step.saturating_sub(SETTLE_STEPS));
        if end < begin + SUSPECT_STEPS {
            return Vec::new();
        }
        let mut lines: HashMap<L, Line> = HashMap::new();
        for row in alive {
            let line = lines.entry(row.line).or_default();
            line.oldest = line.oldest.min(row.step);
            if (begin..end).contains(&row.step) {
                line.first = line.first.min(row.step);
                line.last = line.last.max(row.step);
                line.steps += 1;
                line.bytes += row.bytes;
                line.objects += row.objects;
            }
        }
        let found = lines.into_iter().filter_map(|(line, of)| self.suspect(line, &of, step, end));
        let mut found: Vec<Suspect<L>> = found.collect();
        found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.line.cmp(&b.line)));
        found
    }

    fn suspect(&self, line: L, of: &Line, step: u64, end: u64) -> Option<Suspect<L>> {
        let since = end.checked_sub(of.first).filter(|since| *since >= SUSPECT_STEPS)?;
        let is_often = of.steps >= RARE_STEPS || of.steps as f64 >= USUAL_SHARE * since as f64;
        let goes_on = of.last >= end - (since / 3).max(1);
        let patience = PATIENCE * self.longest_life.get(&line).copied().unwrap_or(0);
        // A quarter: several lines of one holder are told together.
        let is_enough = 4 * of.bytes >= TOLERATED_BYTES * since;
        (is_often && goes_on && is_enough && step - of.oldest > patience).then_some(Suspect {
            line,
            bytes: of.bytes,
            objects: of.objects,
            judged_steps: since,
            first_step: of.first,
            end_step: end,
        })
    }

    /// Remembers of what died since the last judgement how long its line kept it: a buffer that is
    /// full, a list that is cleared each epoch. What died within its steps was never held.
    fn note_what_went(&mut self, alive: &[Alive<L>], step: u64) {
        let now: HashMap<(L, u64), u64> =
            alive.iter().take(MOST_ROWS).map(|row| ((row.line, row.step), row.objects)).collect();
        if alive.len() <= MOST_ROWS {
            for ((line, made), objects) in &self.before {
                let life = step.saturating_sub(*made);
                let is_gone = now.get(&(*line, *made)).is_none_or(|left| left < objects);
                if is_gone && life > 2 * SETTLE_STEPS {
                    let longest = self.longest_life.entry(*line).or_default();
                    *longest = life.max(*longest);
                }
            }
        }
        self.before = now;
    }
}

/// What one line has in the judged steps.
struct Line {
    first: u64,
    last: u64,
    /// Of all steps.
    oldest: u64,
    /// Judged steps that left something.
    steps: u64,
    bytes: u64,
    objects: u64,
}

impl Default for Line {
    fn default() -> Line {
        Line { first: u64::MAX, last: 0, oldest: u64::MAX, steps: 0, bytes: 0, objects: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(steps: impl IntoIterator<Item = u64>) -> Vec<Alive<&'static str>> {
        let row = |step| Alive { line: "a", step, bytes: 4096, objects: 1 };
        steps.into_iter().map(row).collect()
    }

    /// What is told at the end of each step, of a program that holds `held(step)`.
    fn told<I: IntoIterator<Item = u64>>(steps: u64, held: impl Fn(u64) -> I) -> Vec<u64> {
        let mut growth = Growth::default();
        (1..=steps).filter(|step| !growth.judge(&rows(held(*step)), *step).is_empty()).collect()
    }

    #[test]
    fn a_list_is_told_after_ten_steps_and_a_verdict_a_step_later() {
        assert_eq!(told(20, |step| 0..step), (10..=20).collect::<Vec<_>>());
        let mut growth = Growth::default();
        assert!(!growth.judge(&rows(0..10), 10)[0].is_verdict());
        assert!(growth.judge(&rows(0..11), 11)[0].is_verdict());
    }

    #[test]
    fn a_list_that_is_cleared_each_epoch_is_told_in_the_first_one_only() {
        assert_eq!(told(100, |step| step / 20 * 20..step), (10..20).collect::<Vec<_>>());
        // One that is no longer cleared is, once it has kept for twice as long.
        let held = |step: u64| if step < 60 { step / 20 * 20..step } else { 60..step };
        let late: Vec<u64> = told(140, held).into_iter().filter(|step| *step > 20).collect();
        assert_eq!(late.first(), Some(&(60 + 2 * 20 + 1)));
    }

    #[test]
    fn a_buffer_that_is_full_is_told_no_longer() {
        let told = told(200, |step| step.saturating_sub(30)..step);
        assert_eq!((told.first(), told.last()), (Some(&10), Some(&30)));
    }

    #[test]
    fn what_is_made_once_or_stops_is_not_told() {
        assert!(told(100, |_| 0..3).is_empty());
        assert!(told(100, |step| [5].into_iter().filter(move |made| *made < step)).is_empty());
        let stops = told(100, |step| 0..step.min(20));
        assert!(stops.last().is_some_and(|last| *last < 40), "{stops:?}");
    }

    #[test]
    fn every_tenth_step_is_enough_if_it_goes_on() {
        let told = told(100, |step| (0..step).filter(|made| made % 10 == 4));
        assert_eq!(told.first(), Some(&38));
    }

    #[test]
    fn another_loop_has_its_own_warm_up() {
        let mut growth = Growth::default();
        growth.warm_up(50);
        assert!(growth.judge(&rows(50..59), 59).is_empty());
        assert_eq!(growth.judge(&rows(50..60), 60)[0].first_step, 53);
    }
}
