//! Growth: stacks whose allocations of each step are still there when later steps end. A step makes
//! and drops much; what it leaves behind at every repetition is growth, told from the lives alone
//! and without guessing at causes.

use std::collections::{HashMap, HashSet};

use super::lives::Lives;
use super::steps::Steps;
use crate::stacks::StackId;

/// The share of steps that must leave something behind.
const SHARE: f64 = 0.6;
/// Where fewer steps than this share leave something, it does not come with every step.
const EVERY: f64 = 0.75;

/// What one trace leaves behind, cut into steps in one way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// The stacks that leave something behind, with what they hold, in falling order of bytes.
    pub stacks: Vec<Grown>,
    /// The lives that are left, in order of birth.
    pub lives: Vec<u32>,
    /// Bytes left behind by each step that could be judged, in order.
    pub bytes_by_step: Vec<u64>,
    /// The position at which all this is counted: the end of the last whole step.
    pub position: u32,
    /// Whether the steps let nothing go, as in a loop that fills a list.
    pub only_keeps: bool,
}

/// One stack that leaves something behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grown {
    /// Who asked.
    pub stack: StackId,
    /// Bytes held.
    pub bytes: u64,
    /// Allocations held.
    pub count: u32,
    /// Steps that left some.
    pub steps: u32,
}

impl Growth {
    /// Bytes that a step leaves behind: the median, or where many steps leave nothing, the mean.
    pub fn bytes_per_step(&self) -> u64 {
        if !self.is_rare() {
            return median(self.bytes_by_step.clone());
        }
        let all = self.bytes_by_step.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        all / self.bytes_by_step.len().max(1) as u64
    }

    /// Whether many steps leave nothing: what grows comes with every epoch, say, or with steps that
    /// fail.
    pub fn is_rare(&self) -> bool {
        let some = self.bytes_by_step.iter().filter(|bytes| **bytes > 0).count();
        (some as f64) < EVERY * self.bytes_by_step.len() as f64
    }

    /// How many steps leave something, and the median of what those do.
    pub fn steps_that_leave(&self) -> (usize, u64) {
        let left: Vec<u64> = self.bytes_by_step.iter().copied().filter(|b| *b > 0).collect();
        (left.len(), median(left))
    }

    /// Bytes and allocations left behind.
    pub fn total(&self, lives: &Lives) -> (u64, u64) {
        let bytes = self.lives.iter().fold(0u64, |s, l| s.saturating_add(lives.bytes[*l as usize]));
        (bytes, self.lives.len() as u64)
    }
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// What the steps leave behind; nothing if they are too few.
pub fn growth(lives: &Lives, steps: &Steps) -> Option<Growth> {
    let count = steps.count();
    // The first step sets things up, and what the last two hold may be let go in the next.
    let judged = count.checked_sub(2).filter(|judged| *judged >= 2)?;
    let end = *steps.bounds.last()?;
    let mut held: HashMap<StackId, (Grown, u32, u32)> = HashMap::new();
    let mut drops = vec![false; count];
    let mut step = 0;
    let in_order = &lives.born[..lives.in_trace];
    let first = in_order.partition_point(|born| *born <= steps.bounds[0]);
    for life in first..lives.in_trace {
        if lives.born[life] > end {
            break;
        }
        while lives.born[life] > steps.bounds[step + 1] {
            step += 1;
        }
        if lives.died[life] <= end {
            drops[step] = true;
            continue;
        }
        if step == 0 || step > judged {
            continue;
        }
        let grown = Grown { stack: lives.stack[life], bytes: 0, count: 0, steps: 0 };
        let (grown, last, _) =
            held.entry(lives.stack[life]).or_insert((grown, u32::MAX, step as u32));
        grown.bytes = grown.bytes.saturating_add(lives.bytes[life]);
        grown.count += 1;
        if *last != step as u32 {
            grown.steps += 1;
            *last = step as u32;
        }
    }
    let only_keeps = drops[1..=judged].iter().filter(|drops| **drops).count() * 2 < judged;
    let enough = |grown: &Grown, first: u32, last: u32| {
        let most = f64::from(grown.steps) >= (SHARE * judged as f64).max(2.0);
        // Every tenth step, say: rarer, but from early on to the end.
        let thirds = judged as u32 / 3;
        let rarer = grown.steps >= 4 && first <= thirds + 1 && last + thirds >= judged as u32;
        most || rarer
    };
    let mut stacks: Vec<Grown> = held
        .into_values()
        .filter(|(grown, last, first)| enough(grown, *first, *last))
        .map(|(grown, ..)| grown)
        .collect();
    let lately = exchanged(lives, steps, count / 2);
    stacks.retain(|grown| lately.get(&grown.stack).is_some_and(|(gone, new)| *gone <= new / 2));
    if stacks.is_empty() {
        return None;
    }
    stacks.sort_by_key(|grown| (std::cmp::Reverse(grown.bytes), grown.stack));
    Some(Growth { only_keeps, ..collect(lives, steps, stacks, judged, end) })
}

/// What each stack held over a whole step before the one numbered `step` and has let go since, and
/// what it holds since. A buffer that is full lets an old entry go for each new one: every step
/// leaves something, and nothing grows.
fn exchanged(lives: &Lives, steps: &Steps, step: usize) -> HashMap<StackId, (u64, u64)> {
    let (before, after) = (steps.bounds[step], steps.bounds[steps.count()]);
    let mut held: HashMap<StackId, (u64, u64)> = HashMap::new();
    for life in 0..lives.len() {
        let (was, is) = (lives.is_alive(life, before), lives.is_alive(life, after));
        let in_flight = was && lives.born[life] > steps.bounds[step - 1];
        if was != is && !in_flight {
            let (gone, new) = held.entry(lives.stack[life]).or_default();
            let side = if was { gone } else { new };
            *side = side.saturating_add(lives.bytes[life]);
        }
    }
    held
}

/// The lives of the stacks that grow, and what each step left of them. What the first step alone
/// asks for (a library's workspace) is not growth, even if it comes from the same stack.
fn collect(lives: &Lives, steps: &Steps, stacks: Vec<Grown>, judged: usize, end: u32) -> Growth {
    let growing: HashSet<StackId> = stacks.iter().map(|g| g.stack).collect();
    let mut again: HashSet<(StackId, u64)> = HashSet::new();
    let mut growth =
        Growth { stacks, bytes_by_step: vec![0; judged], position: end, ..Growth::default() };
    let mut step = 0;
    for life in 0..lives.in_trace {
        let born = lives.born[life];
        if born <= steps.bounds[0]
            || lives.died[life] <= end
            || !growing.contains(&lives.stack[life])
        {
            continue;
        }
        if born > end {
            break;
        }
        while born > steps.bounds[step + 1] {
            step += 1;
        }
        growth.lives.push(life as u32);
        if step > 0 {
            again.insert((lives.stack[life], lives.bytes[life]));
        }
        if (1..=judged).contains(&step) {
            let bytes = &mut growth.bytes_by_step[step - 1];
            *bytes = bytes.saturating_add(lives.bytes[life]);
        }
    }
    growth.lives.retain(|life| {
        let life = *life as usize;
        again.contains(&(lives.stack[life], lives.bytes[life]))
            || lives.born[life] > steps.bounds[1]
    });
    growth
}
