//! The ends of steps, for figures that only they can tell: how long a step takes, and what grows
//! from one to the next. Within a step memory rises and falls; at its end stands what outlives it.
//! Nobody pays for this while nobody serves figures, and next to nothing while nobody asks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plimsoll_memory::{BreakdownRow, current_step};
use plimsoll_tensor::memory;

/// Whoever asked longer ago does not look any more.
const LOOKS_FOR: Duration = Duration::from_secs(10);
/// Ends of steps that are noted lie so far apart, and so many are kept.
const APART: Duration = Duration::from_millis(100);
const KEPT: usize = 16;
/// A step's time is the mean over so long.
const TIMED_FOR: Duration = Duration::from_secs(5);

static SERVERS: AtomicUsize = AtomicUsize::new(0);
static STEPS: Mutex<Steps> = Mutex::new(Steps::new());

/// What was live in each arena at the end of a step.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) step: u64,
    pub(crate) rows: Vec<(String, Vec<BreakdownRow>)>,
}

#[derive(Debug)]
struct Steps {
    asked_at: Option<Instant>,
    count: u64,
    /// Ends of steps and how many there had been by then.
    ends: VecDeque<(Instant, u64)>,
    endings: VecDeque<Ending>,
}

/// Says that a training step has ended: what is live now has outlived it. `plimsoll train` and, in
/// Python, `plimsoll.step()` call it; a program of your own that serves figures calls it before it
/// says that the next step begins.
///
/// ```
/// for _ in 0..3 {
///     plimsoll_live::step_ended();
///     plimsoll_memory::next_step();
/// }
/// ```
#[inline]
pub fn step_ended() {
    if SERVERS.load(Ordering::Relaxed) > 0 {
        note(Instant::now());
    }
}

/// Begins to follow steps, or ends it.
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) fn follow(is_on: bool) {
    if is_on {
        SERVERS.fetch_add(1, Ordering::Relaxed);
    } else if SERVERS.fetch_sub(1, Ordering::Relaxed) == 1 {
        *STEPS.lock() = Steps::new();
    }
}

/// Somebody looks.
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) fn asked() {
    STEPS.lock().asked_at = Some(Instant::now());
}

#[cold]
fn note(now: Instant) {
    // A forked process may have got the lock as another thread held it, for ever.
    let Some(mut steps) = STEPS.try_lock() else { return };
    steps.count += 1;
    if steps.ends.back().is_some_and(|(last, _)| now - *last < APART) {
        return;
    }
    let count = steps.count;
    steps.ends.push_back((now, count));
    while steps.ends.front().is_some_and(|(first, _)| now - *first > TIMED_FOR)
        && steps.ends.len() > 2
    {
        steps.ends.pop_front();
    }
    if steps.asked_at.is_some_and(|asked| now - asked < LOOKS_FOR) {
        let rows = memory::arenas().into_iter().map(|arena| (arena.name(), arena.live_by_origin()));
        let ending = Ending { step: current_step(), rows: rows.collect() };
        // A count that starts again would make nonsense of differences.
        if steps.endings.back().is_some_and(|last| last.step >= ending.step) {
            steps.endings.clear();
        }
        steps.endings.push_back(ending);
        if steps.endings.len() > KEPT {
            steps.endings.pop_front();
        }
    } else {
        steps.endings.clear();
    }
}

/// How long a step takes, and the first and last of the latest noted endings, if there are two.
pub(crate) fn known() -> (Option<f64>, Option<(Ending, Ending)>) {
    let steps = STEPS.lock();
    (steps.step_seconds(), steps.first_and_last())
}

impl Steps {
    const fn new() -> Steps {
        Steps { asked_at: None, count: 0, ends: VecDeque::new(), endings: VecDeque::new() }
    }

    fn step_seconds(&self) -> Option<f64> {
        let ((first, before), (last, after)) = (self.ends.front()?, self.ends.back()?);
        (after > before).then(|| (*last - *first).as_secs_f64() / (after - before) as f64)
    }

    fn first_and_last(&self) -> Option<(Ending, Ending)> {
        let (first, last) = (self.endings.front()?, self.endings.back()?);
        (last.step > first.step).then(|| (first.clone(), last.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_takes_the_mean_of_the_latest() {
        let mut steps = Steps::new();
        assert_eq!(steps.step_seconds(), None);
        let start = Instant::now();
        steps.ends.push_back((start, 10));
        assert_eq!(steps.step_seconds(), None);
        steps.ends.push_back((start + Duration::from_secs(2), 14));
        assert_eq!(steps.step_seconds(), Some(0.5));
    }
}
