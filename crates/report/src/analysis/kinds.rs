//! Kinds where the file has none: inferred from who asked and how long it lived. PyTorch's
//! snapshots have no kinds; what is inferred here is said to be inferred wherever it is shown.
//!
//! ```text
//! asked by            lived                                          kind
//! the optimizer       past the end of its step                       optimizer state
//! building a model    (at all)                                       parameter
//! backward            past the end of that backward                  gradient
//! a model, a line     into the next backward, or across steps        activation
//! a line              the same, before any model ran in that step    input
//! any of these        less                                           temporary
//! a model, backward   once, in the first step only, and stays        workspace of a library
//! a line              once, the size of one, beside a result, stays  workspace
//! ```

use std::collections::{HashMap, HashSet};

use super::lives::{ALIVE, Lives};
use super::phases::{Phase, Phases};
use super::steps::Steps;
use crate::events::Action;
use crate::kind::Kind;
use crate::snapshot::Snapshot;
use crate::stacks::StackId;

/// What PyTorch gives its matrix library to work in, by default and on newer devices. Where no
/// steps tell a workspace from an activation, its size does.
const WORKSPACE_BYTES: [u64; 2] = [8_519_680, 33_554_432];

/// Fills in the kinds that the file does not say. Returns whether any was inferred.
pub(super) fn infer(
    snapshot: &Snapshot,
    lives: &mut Lives,
    phases: &Phases,
    steps: Option<&Steps>,
) -> bool {
    let moments = Moments::of(snapshot, lives, phases);
    let once = Once::of(lives, phases, steps);
    let mut inferred = false;
    for life in 0..lives.len() {
        if lives.kind[life] != Kind::Unknown {
            continue;
        }
        let kind = match lives.born[life] {
            0 if WORKSPACE_BYTES.contains(&lives.bytes[life]) => Kind::Workspace,
            0 => before_the_trace(phases.get(lives.stack[life]), lives.stack[life]),
            _ => in_the_trace(lives, life, phases, steps, &moments, &once),
        };
        inferred |= kind != Kind::Unknown;
        lives.kind[life] = kind;
    }
    inferred
}

/// Of what was there before, only the stack is known.
fn before_the_trace(phase: Phase, stack: StackId) -> Kind {
    match phase {
        _ if stack == StackId::EMPTY => Kind::Unknown,
        Phase::Build => Kind::Parameter,
        Phase::Optimizer => Kind::OptimizerState,
        Phase::Backward => Kind::Gradient,
        Phase::Model => Kind::Activation,
        Phase::Program => Kind::Input,
        Phase::Unknown => Kind::Unknown,
    }
}

fn in_the_trace(
    lives: &Lives,
    life: usize,
    phases: &Phases,
    steps: Option<&Steps>,
    moments: &Moments,
    once: &Once,
) -> Kind {
    let (born, died, stack) = (lives.born[life], lives.died[life], lives.stack[life]);
    let stays = |kind, until: Option<u32>| match until {
        Some(until) if died > until => kind,
        None if died == ALIVE => kind,
        _ => Kind::Temporary,
    };
    match phases.get(stack) {
        Phase::Optimizer => {
            stays(Kind::OptimizerState, Moments::after(&moments.optimizer_ends, born))
        }
        Phase::Build => Kind::Parameter,
        Phase::Backward | Phase::Model if once.is_workspace(lives, life) => Kind::Workspace,
        Phase::Program if once.is_workspace_of_a_line(lives, life) => Kind::Workspace,
        Phase::Backward => stays(Kind::Gradient, Moments::after(&moments.backward_ends, born)),
        Phase::Model | Phase::Program => {
            // What forward held when memory ran out it held for backward, even if the failure then
            // freed it.
            let next = Moments::after(&moments.forward_ends, born);
            let kind = match phases.get(stack) {
                Phase::Program if moments.no_model_yet(steps, born) => Kind::Input,
                _ => Kind::Activation,
            };
            // Without a backward to wait for, what outlives its step was kept.
            let until = next.or_else(|| {
                let steps = steps?;
                steps.of_position(born - 1).map(|step| steps.bounds[step + 1])
            });
            match kind {
                // An input serves a whole step even if nothing of it is saved.
                Kind::Input => Kind::Input,
                _ => stays(kind, until),
            }
        }
        Phase::Unknown => Kind::Unknown,
    }
}

/// What is asked for once, in the first step, and stays: a library's workspace, unless it is as
/// large as a parameter (then it is a gradient that is kept and filled with zeros).
struct Once {
    counts: HashMap<(StackId, u64), u32>,
    parameter_bytes: HashSet<u64>,
    second_step: Option<u32>,
}

impl Once {
    fn of(lives: &Lives, phases: &Phases, steps: Option<&Steps>) -> Once {
        let mut once = Once {
            counts: HashMap::new(),
            parameter_bytes: HashSet::new(),
            second_step: steps.and_then(|steps| steps.bounds.get(1)).copied(),
        };
        for life in 0..lives.len() {
            match (lives.born[life], phases.get(lives.stack[life])) {
                (_, Phase::Build) => {
                    once.parameter_bytes.insert(lives.bytes[life]);
                }
                (1.., _) => {
                    *once.counts.entry((lives.stack[life], lives.bytes[life])).or_default() += 1;
                }
                _ => {}
            }
        }
        once
    }

    fn is_workspace(&self, lives: &Lives, life: usize) -> bool {
        let early = match self.second_step {
            Some(second) => lives.born[life] < second,
            None => WORKSPACE_BYTES.contains(&lives.bytes[life]),
        };
        early && self.stays_alone(lives, life)
    }

    /// Of a program's own line only the size tells, and that the same line asked for its result
    /// just before or after: a tensor that was made once to stay has a line for itself.
    fn is_workspace_of_a_line(&self, lives: &Lives, life: usize) -> bool {
        let beside = [life.checked_sub(1), Some(life + 1)].into_iter().flatten();
        WORKSPACE_BYTES.contains(&lives.bytes[life])
            && self.stays_alone(lives, life)
            && beside.filter(|l| *l < lives.in_trace).any(|l| lives.stack[l] == lives.stack[life])
    }

    fn stays_alone(&self, lives: &Lives, life: usize) -> bool {
        lives.died[life] == ALIVE
            && !self.parameter_bytes.contains(&lives.bytes[life])
            && self.counts.get(&(lives.stack[life], lives.bytes[life])) == Some(&1)
    }
}

/// Positions at which phases begin and end, in order.
#[derive(Default)]
struct Moments {
    /// Where a backward starts, or an allocation fails.
    forward_ends: Vec<u32>,
    backward_ends: Vec<u32>,
    optimizer_ends: Vec<u32>,
    /// Where a model begins to run.
    model_starts: Vec<u32>,
}

impl Moments {
    fn of(snapshot: &Snapshot, lives: &Lives, phases: &Phases) -> Moments {
        let mut moments = Moments::default();
        let mut last = Phase::Unknown;
        for (index, row) in lives.rows.clone().enumerate() {
            // Frees of another thread come in between; only what is asked for tells the phase.
            let at = index as u32;
            match snapshot.events.action[row] {
                Action::Alloc => {}
                Action::Oom => {
                    moments.forward_ends.push(at);
                    continue;
                }
                _ => continue,
            }
            let now = phases.get(snapshot.events.stack[row]);
            if now != last {
                match last {
                    Phase::Backward => moments.backward_ends.push(at),
                    Phase::Optimizer => moments.optimizer_ends.push(at),
                    _ => {}
                }
                match now {
                    Phase::Backward => moments.forward_ends.push(at),
                    Phase::Model => moments.model_starts.push(at),
                    _ => {}
                }
                last = now;
            }
        }
        moments
    }

    /// The first of these positions after `position`.
    fn after(list: &[u32], position: u32) -> Option<u32> {
        list.get(list.partition_point(|at| *at < position)).copied()
    }

    /// Whether no model has run yet in the step of a position.
    fn no_model_yet(&self, steps: Option<&Steps>, position: u32) -> bool {
        let after = steps.map_or(0, |s| s.bounds.partition_point(|bound| *bound < position));
        let start = match (steps, after) {
            (Some(steps), 1..) => steps.bounds[after - 1],
            _ => 0,
        };
        Moments::after(&self.model_starts, start).is_none_or(|model| model + 1 >= position)
    }
}
