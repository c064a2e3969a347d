//! Graphs kept alive: when several different results of forward stay together at each step, something holds the graph that
//! saved them for backward. What was made last in a step is what is being held: a loss, an output, or a state that the next
//! step starts from.

use std::collections::HashMap;

use super::Case;
use super::leak::Cause;
use super::words::counted;
use crate::analysis::code::{Code, CodeOf};
use crate::analysis::{Growth, Phase, SiteId, Steps};
use crate::stacks::StackId;

/// A loss is a number or two.
const SCALAR_BYTES: u64 = 16;

/// What holds a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// There is no graph.
    Nothing,
    /// A loss of each step.
    Loss,
    /// An output of each step.
    Output,
    /// A state that goes from step to step.
    State,
}

/// Whether what grows is a graph, and what holds it.
pub(super) fn holder(case: &Case<'_>, growth: &Growth) -> Holder {
    let forward =
        |stack: StackId| matches!(case.lines.phases.get(stack), Phase::Model | Phase::Program);
    let stacks = growth.stacks.iter().filter(|g| forward(g.stack));
    let in_model = stacks.clone().any(|g| case.lines.phases.get(g.stack) == Phase::Model);
    let different = stacks.clone().count();
    let steps = growth.stacks.iter().map(|g| g.steps).max().unwrap_or(1).max(1);
    let per_step = stacks.map(|g| g.count).sum::<u32>().div_ceil(steps);
    // Results that a program keeps on purpose look like a small graph; results from inside a model do not, nor many in a
    // program that learns.
    let lives = &case.device.lives;
    let learns = || lives.stack.iter().any(|s| case.lines.phases.get(*s) == Phase::Backward);
    let is_graph = different >= 2 && (in_model || per_step >= 3 && learns());
    if !is_graph {
        return Holder::Nothing;
    }
    let (head, bytes) = head(case, growth);
    if backward_lengthens(case, growth) || is_recurrent(case, head) {
        Holder::State
    } else if bytes <= SCALAR_BYTES || ends_in_scalar(case, growth) {
        Holder::Loss
    } else {
        Holder::Output
    }
}

/// The steps by which the growth was judged.
fn steps_of<'a>(case: &'a Case<'_>, growth: &Growth) -> Option<&'a Steps> {
    case.device.steps.iter().find(|steps| steps.bounds.last() == Some(&growth.position))
}

/// The stack of what is made last in each step and stays, and its bytes.
fn head(case: &Case<'_>, growth: &Growth) -> (StackId, u64) {
    let lives = &case.device.lives;
    let forward = |life: &&u32| {
        let phase = case.lines.phases.get(lives.stack[**life as usize]);
        matches!(phase, Phase::Model | Phase::Program)
    };
    let Some(steps) = steps_of(case, growth) else { return (StackId::EMPTY, 0) };
    let mut votes: HashMap<(StackId, u64), u32> = HashMap::new();
    let mut last: Option<(usize, u32)> = None;
    let mut vote = |life: u32| {
        let key = (lives.stack[life as usize], lives.bytes[life as usize]);
        *votes.entry(key).or_default() += 1;
    };
    for life in growth.lives.iter().filter(forward) {
        let step = steps.of_position(lives.born[*life as usize] - 1).unwrap_or(usize::MAX);
        if let Some((before, held)) = last
            && before != step
        {
            vote(held);
        }
        last = Some((step, *life));
    }
    last.into_iter().for_each(|(_, held)| vote(held));
    let most = votes.into_iter().max_by_key(|((stack, bytes), count)| (*count, *bytes, stack.0));
    most.map_or((StackId::EMPTY, 0), |(key, _)| key)
}

/// Whether each step's backward asks for more than the one before: it goes through all earlier steps.
fn backward_lengthens(case: &Case<'_>, growth: &Growth) -> bool {
    let lives = &case.device.lives;
    let Some(steps) = steps_of(case, growth) else { return false };
    let mut asked = vec![0u32; steps.count()];
    for life in 0..lives.in_trace {
        if case.lines.phases.get(lives.stack[life]) == Phase::Backward
            && let Some(step) = steps.of_position(lives.born[life] - 1)
        {
            asked[step] += 1;
        }
    }
    let longer = asked.windows(2).filter(|pair| pair[1] > pair[0]).count();
    asked.len() >= 4 && longer * 4 >= (asked.len() - 1) * 3
}

/// Whether the last result of forward in most steps is a number: a loss, kept or added to a sum. Either way it outlives its
/// step; a number that does not is part of some operation's work.
fn ends_in_scalar(case: &Case<'_>, growth: &Growth) -> bool {
    let lives = &case.device.lives;
    let Some(steps) = steps_of(case, growth) else { return false };
    let mut last = vec![u64::MAX; steps.count()];
    for life in 0..lives.in_trace {
        let phase = case.lines.phases.get(lives.stack[life]);
        if matches!(phase, Phase::Model | Phase::Program)
            && let Some(step) = steps.of_position(lives.born[life] - 1)
            && lives.died[life] > steps.bounds[step + 1]
        {
            last[step] = lives.bytes[life];
        }
    }
    last.iter().filter(|bytes| **bytes <= SCALAR_BYTES).count() * 2 > last.len()
}

/// Whether a stack goes through a recurrent layer: what that returns is a state.
fn is_recurrent(case: &Case<'_>, stack: StackId) -> bool {
    case.snapshot.frames_of(stack).any(|(_, file, _)| file.ends_with("torch/nn/modules/rnn.py"))
}

/// Whether the user's own function in a stack was called by a module and is not its `forward`: a hook.
pub(super) fn is_hook(case: &Case<'_>, stack: StackId) -> bool {
    let code = CodeOf::new(case.snapshot);
    let frames: Vec<_> = case.snapshot.stacks.frames(stack).collect();
    frames.windows(2).any(|pair| {
        code.of(pair[0].file) == Code::User
            && code.of(pair[1].file) == Code::Module
            && case.snapshot.strings.get(pair[0].function) != "forward"
    })
}

/// The cause in words.
pub(super) fn cause_of(case: &Case<'_>, growth: &Growth, holder: Holder) -> Cause {
    let (head, _) = head(case, growth);
    let site = case.lines.sites.caller_of_stack(head);
    let mut others: Vec<SiteId> = growth
        .stacks
        .iter()
        .filter(|g| case.lines.phases.get(g.stack) != Phase::Backward)
        .map(|g| case.lines.sites.of_stack(g.stack))
        .filter(|other| *other != site)
        .collect();
    others.sort_unstable();
    others.dedup();
    let lines = match others.first() {
        None => String::new(),
        Some(first) if others.len() == 1 => format!(" and at {}", case.line(*first)),
        Some(_) => format!(" and at {}", counted(others.len() as u64, "other line")),
    };
    let line = case.line(site);
    let (name, what, advice) = match holder {
        Holder::Loss => (
            "a graph is kept alive by a loss that is kept",
            format!(
                "They are results of forward at {line}{lines}, saved for backward: the loss made at \
                 {line} is kept, or added to a sum, with its graph."
            ),
            "Keep the number, not the tensor: `losses.append(loss.item())`, `total += loss.item()`, or `loss.detach()`.",
        ),
        Holder::State => (
            "a graph is kept alive by a state that is carried from step to step",
            format!(
                "They are results of forward at {line}{lines}, saved for backward: the state made at \
                 {line} goes into the next step with the graph of all steps before."
            ),
            "Cut the graph between steps: `state = state.detach()` before the next step (each tensor of \
             it), or run under `torch.no_grad()` where nothing is learned.",
        ),
        Holder::Output | Holder::Nothing => (
            "a graph is kept alive by results that are kept",
            format!(
                "They are results of forward at {line}{lines}, saved for backward: the output made at \
                 {line} is kept with its graph: in a list, a sum, an exception, or as a state for the next step."
            ),
            "Run under `torch.no_grad()` or `torch.inference_mode()` where nothing is learned, or keep \
             `output.detach()` (`output.detach().cpu()` to free the device).",
        ),
    };
    Cause { name, site, what, advice }
}
