//! Loops that only keep: each iteration makes something, nothing is let go. A data set loaded ahead
//! and a model built by hand look like this, and so does a list of slices, each of which keeps what
//! it was cut from. They are told apart by what follows: what is loaded is then used, and other
//! work comes after it; what piles up does so until the trace ends.

use super::Case;
use crate::analysis::code::{Code, CodeOf};
use crate::analysis::{ALIVE, Growth, Phase, Steps};
use crate::stacks::StackId;

/// Fewer iterations than this are a handful of tensors.
const FEWEST_TURNS: usize = 6;
/// One in so many of what the iterations made may be gone: a first iteration sets things up.
const TOLERATED_GONE: usize = 20;
/// The share of what is alive at the end: one part in so many. Less is not what fills the device.
const TOLERATED_SHARE: u64 = 4;

/// Whether a loop that only keeps is worth a line.
pub(super) fn piles_up(case: &Case<'_>, growth: &Growth, steps: &Steps) -> bool {
    let lives = &case.device.lives;
    let turns = lives.made_by(steps.bounds[0])..lives.made_by(steps.bounds[steps.count()]);
    // No more follows than a iteration that the end of the trace cut off, and a last look at what
    // was gathered.
    let to_the_end = lives.in_trace - turns.end <= 2 * turns.len().div_ceil(steps.count());
    let gone = turns.clone().filter(|life| lives.died[*life] != ALIVE).count();
    // A list that is filled after a program's main loop is just filled.
    let is_main_loop = case.device.steps.first() == Some(steps);
    steps.count() >= FEWEST_TURNS
        && is_main_loop
        && to_the_end
        && gone <= turns.len() / TOLERATED_GONE
        && growth.stacks.iter().any(|grown| is_of_the_program(case, grown.stack))
        && growth.total(lives).0 >= lives.bytes_at(lives.last_position()) / TOLERATED_SHARE
}

/// Whether the program's own line asked, outside of a model and of what makes an object: loops
/// inside a library load or build something as a whole, and what a constructor makes is part of
/// what it constructs.
fn is_of_the_program(case: &Case<'_>, stack: StackId) -> bool {
    let code = CodeOf::new(case.snapshot);
    let mut python =
        case.snapshot.stacks.frames(stack).filter(|frame| code.of(frame.file) != Code::Native);
    let constructs = |function| case.snapshot.strings.get(function) == "__init__";
    case.lines.phases.get(stack) == Phase::Program
        && python
            .next()
            .is_some_and(|frame| code.of(frame.file) == Code::User && !constructs(frame.function))
        && python.all(|frame| !constructs(frame.function))
}
