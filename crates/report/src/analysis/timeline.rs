//! Live bytes over time: every change in order, and the highest value in each of a number of equal
//! parts of the trace.

use super::lives::{ALIVE, Lives};

/// One change of what is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The position from which it holds.
    pub position: u32,
    /// The life that begins or ends.
    pub life: u32,
    /// Whether it begins.
    pub is_birth: bool,
}

/// Births and deaths in order of position. What was there before the trace has no birth here.
pub fn changes(lives: &Lives) -> Vec<Change> {
    // One event begins at most one life and ends at most one. Where a free was not recorded it does
    // both, the death first.
    let none = u32::MAX;
    let mut births = vec![none; lives.rows.len() + 1];
    let mut deaths = vec![none; lives.rows.len() + 1];
    for life in 0..lives.len() {
        if lives.born[life] > 0 {
            births[lives.born[life] as usize] = life as u32;
        }
        if lives.died[life] != ALIVE {
            deaths[lives.died[life] as usize] = life as u32;
        }
    }
    let mut changes = Vec::with_capacity(lives.len() * 2);
    for position in 0..births.len() {
        let mut push = |life: u32, is_birth: bool| {
            if life != none {
                changes.push(Change { position: position as u32, life, is_birth });
            }
        };
        push(deaths[position], false);
        push(births[position], true);
    }
    changes
}

/// The highest live bytes in each of `buckets` equal parts of the trace.
pub fn highest_by_bucket(lives: &Lives, buckets: usize) -> Vec<u64> {
    let last = lives.last_position().max(1) as usize;
    let buckets = buckets.clamp(1, last);
    let mut highest = vec![0u64; buckets];
    let mut now = lives.bytes_before;
    let mut bucket = 0;
    highest[0] = now;
    for change in changes(lives) {
        let next = ((change.position as usize).saturating_sub(1) * buckets / last).min(buckets - 1);
        while bucket < next {
            bucket += 1;
            highest[bucket] = now;
        }
        let bytes = lives.bytes[change.life as usize];
        now = match change.is_birth {
            true => now.saturating_add(bytes),
            false => now.saturating_sub(bytes),
        };
        highest[bucket] = highest[bucket].max(now);
    }
    highest[bucket + 1..].fill(now);
    highest
}
