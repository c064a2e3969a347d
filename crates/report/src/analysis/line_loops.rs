//! Loops told from lines. Stacks are read from the outside in: as long as all allocations go
//! through one line of a function, the loop is further in. In the first function in which several
//! lines take turns, lines of a loop run again and again, and the first of those that run most
//! often begins a step. Inside a model it ends: loops there go over layers, not over steps.

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
    let outside = |frame: FrameId| {
        !matches!(code.of(snapshot.stacks.frame(frame).file), Code::Module | Code::Optimizer)
    };
    // Stacks that go through the lines chosen so far; those of threads without Python frames say
    // nothing.
    let mut inside: Vec<bool> = (0..snapshot.stacks.len()).map(|at| at != 0).collect();
    for depth in 0..DEEPEST {
        // The work is done once a stack, not once an allocation: traces have thousands of times
        // more of those.
        let mut line_of_stack: Vec<Option<u32>> = vec![None; inside.len()];
        let mut lines: Vec<(FrameId, Runs)> = Vec::new();
        let mut ids: HashMap<FrameId, u32> = HashMap::new();
        for stack in (0..inside.len()).filter(|stack| inside[*stack]) {
            let frames = snapshot.stacks.frame_ids(StackId(stack as u32));
            let frame = frames.len().checked_sub(depth + 1).map(|at| frames[at]);
            line_of_stack[stack] = frame.filter(|frame| outside(*frame)).map(|frame| {
                *ids.entry(frame).or_insert_with(|| {
                    lines.push((frame, Runs::default()));
                    lines.len() as u32 - 1
                })
            });
        }
        let mut last = None;
        for life in 0..lives.in_trace {
            let Some(line) = line_of_stack[lives.stack[life].0 as usize] else { continue };
            let runs = &mut lines[line as usize].1;
            runs.allocations += 1;
            if last != Some(line) {
                runs.starts.push(lives.born[life] - 1);
                last = Some(line);
            }
        }
        lines.retain(|(_, runs)| runs.allocations > 0);
        if let Some(bounds) = turns(&lines) {
            return Some(bounds);
        }
        // No loop here: look inside the line through which most allocations go.
        let most = lines.iter().max_by_key(|(frame, runs)| (runs.allocations, frame.0))?;
        let into = ids.get(&most.0).copied();
        for (stack, line) in line_of_stack.iter().enumerate() {
            inside[stack] = line.is_some() && *line == into;
        }
    }
    None
}

/// The runs of the first line among those that run most often, if at least two lines take turns.
fn turns(lines: &[(FrameId, Runs)]) -> Option<Vec<u32>> {
    let most = lines.iter().map(|(_, runs)| runs.starts.len()).max()?;
    if most < FEWEST_RUNS {
        return None;
    }
    // The last iteration may be cut off by the end of the trace, the first by its beginning.
    let in_loop = || lines.iter().filter(|(_, runs)| runs.starts.len() + 1 >= most);
    if in_loop().count() < 2 {
        return None;
    }
    let first = in_loop().min_by_key(|(_, runs)| runs.starts[0])?;
    Some(first.1.starts.clone())
}
