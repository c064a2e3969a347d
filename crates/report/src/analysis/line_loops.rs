//! Loops told from lines. Stacks are read from the outside in: as long as all allocations go through one line of a function,
//! the loop is further in. In the first function in which several lines take turns, lines of a loop run again and again, and
//! the first of those that run most often begins a step. Inside a model it ends: loops there go over layers, not over steps.

use std::collections::HashMap;

use super::code::{Code, CodeOf};
use super::lives::Lives;
use crate::snapshot::Snapshot;
use crate::stacks::{FrameId, StackId};

/// A line must run this often to be a loop's.
const FEWEST_RUNS: usize = 3;
/// How deep to look; beyond this a stack is recursion.
const DEEPEST: usize = 64;

/// Runs of one line: how many, and where each starts.
#[derive(Default)]
struct Runs {
    starts: Vec<u32>,
    allocations: usize,
}

/// Positions at which the loop's first line starts to run, or nothing if no lines take turns.
pub(super) fn line_loop(snapshot: &Snapshot, lives: &Lives) -> Option<Vec<u32>> {
    let code = CodeOf::new(snapshot);
    // Stacks from the outside in; those of threads without Python frames say nothing.
    let mut inside: Vec<usize> =
        (0..lives.in_trace).filter(|life| lives.stack[*life] != StackId::EMPTY).collect();
    for depth in 0..DEEPEST {
        let frame_at = |life: usize| -> Option<FrameId> {
            let frames = snapshot.stacks.frame_ids(lives.stack[life]);
            frames.len().checked_sub(depth + 1).map(|at| frames[at])
        };
        let mut lines: HashMap<FrameId, Runs> = HashMap::new();
        let outside = |frame: FrameId| {
            !matches!(code.of(snapshot.stacks.frame(frame).file), Code::Module | Code::Optimizer)
        };
        let mut last = None;
        for life in &inside {
            let Some(frame) = frame_at(*life).filter(|frame| outside(*frame)) else { continue };
            let runs = lines.entry(frame).or_default();
            runs.allocations += 1;
            if last != Some(frame) {
                runs.starts.push(lives.born[*life] - 1);
                last = Some(frame);
            }
        }
        if let Some(bounds) = turns(&lines) {
            return Some(bounds);
        }
        // No loop here: look inside the line through which most allocations go.
        let most = lines.iter().max_by_key(|(frame, runs)| (runs.allocations, frame.0));
        let into = *most?.0;
        inside.retain(|life| frame_at(*life) == Some(into));
    }
    None
}

/// The runs of the first line among those that run most often, if at least two lines take turns.
fn turns(lines: &HashMap<FrameId, Runs>) -> Option<Vec<u32>> {
    let most = lines.values().map(|runs| runs.starts.len()).max()?;
    if most < FEWEST_RUNS {
        return None;
    }
    // The last turn may be cut off by the end of the trace, the first by its beginning.
    let in_loop = || lines.values().filter(|runs| runs.starts.len() + 1 >= most);
    if in_loop().count() < 2 {
        return None;
    }
    let first = in_loop().min_by_key(|runs| runs.starts[0])?;
    Some(first.starts.clone())
}
