//! Loops told from the sequence of allocations alone: sizes and stacks that come again in the same
//! order. This finds loops whose body is a single line, and loops in traces without stacks.

use std::collections::HashMap;

use super::lives::Lives;

/// A pattern must come this often.
const FEWEST: usize = 3;
/// Candidates for the period that are tried, the most frequent distances first.
const CANDIDATES: usize = 24;
/// The share of allocations that must equal the one a period before.
const AGREEMENT: f64 = 0.85;

/// Positions at which the repeated pattern starts, or nothing if there is none.
pub(super) fn period(lives: &Lives) -> Option<Vec<u32>> {
    let marks: Vec<u64> = (0..lives.in_trace)
        .map(|life| {
            let stack = u64::from(lives.stack[life].0);
            (lives.bytes[life] ^ stack.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
        .collect();
    let mut last: HashMap<u64, usize> = HashMap::new();
    let mut distances: HashMap<usize, usize> = HashMap::new();
    for (at, mark) in marks.iter().enumerate() {
        if let Some(before) = last.insert(*mark, at) {
            *distances.entry(at - before).or_default() += 1;
        }
    }
    let mut candidates: Vec<(usize, usize)> =
        distances.into_iter().filter(|(distance, _)| marks.len() / distance >= FEWEST).collect();
    candidates.sort_by_key(|(distance, count)| (std::cmp::Reverse(*count), *distance));
    candidates.truncate(CANDIDATES);
    candidates.sort_unstable();
    candidates
        .into_iter()
        .find_map(|(distance, _)| repeats(&marks, distance))
        .map(|starts| starts.into_iter().map(|at| lives.born[at] - 1).collect())
}

/// The starts of the pattern of length `distance`, if the sequence from some point on repeats it.
fn repeats(marks: &[u64], distance: usize) -> Option<Vec<usize>> {
    let agree = |at: usize| marks[at] == marks[at + distance];
    let last = marks.len() - distance;
    // The beginning of a program (building the model, the first step) does not repeat: skip to the
    // first whole pattern that comes again.
    let mut run = 0;
    let mut first = None;
    for at in 0..last {
        run = if agree(at) { run + 1 } else { 0 };
        if run >= distance {
            first = Some(at + 1 - distance);
            break;
        }
    }
    let first = first?;
    let agreed = (first..last).filter(|at| agree(*at)).count();
    let starts: Vec<usize> = (first..=marks.len() - distance).step_by(distance).collect();
    let enough = starts.len() >= FEWEST && agreed as f64 >= AGREEMENT * (last - first) as f64;
    // A constant sequence repeats at every distance; that is no pattern of steps.
    let varied = distance > 1 || starts.len() > 2 * FEWEST;
    (enough && varied).then_some(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_after_a_setup_is_found() {
        let marks = [9, 8, 7, 1, 2, 2, 3, 1, 2, 2, 3, 1, 2, 2, 3, 1, 2, 2, 3];
        assert_eq!(repeats(&marks, 4), Some(vec![3, 7, 11, 15]));
        assert_eq!(repeats(&marks, 1), None);
        assert_eq!(repeats(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 2), None);
    }
}
