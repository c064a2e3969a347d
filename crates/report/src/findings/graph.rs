//! Graphs kept alive: when several different results of forward stay together at each step,
//! something holds the graph that saved them for backward. What was made last in a step is what is
//! being held: a loss, an output, or a state that the next step starts from.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use plimsoll_watch::causes;

use super::Case;
use super::leak::Cause;
use super::words::{counted, total};
use crate::analysis::code::{Code, CodeOf};
use crate::analysis::{ALIVE, Growth, Phase, SiteId, Steps};
use crate::kind::Kind;
use crate::stacks::StackId;

/// Lines that are named besides the first.
const MOST_LINES: usize = 3;
/// What holds less than this part of all is small against the rest.
const SMALL_SHARE: u64 = 64;
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
    let stacks = growth.stacks.iter().filter(|g| is_forward(case, g.stack));
    let in_model = stacks.clone().any(|g| case.lines.phases.get(g.stack) == Phase::Model);
    let different = stacks.clone().count();
    let steps = growth.stacks.iter().map(|g| g.steps).max().unwrap_or(1).max(1);
    // Small ones beside large ones, unless they are losses, are what comes with a batch that is
    // kept: its labels, say.
    let held = total(stacks.clone().map(|g| g.bytes));
    let counted = stacks.filter(|g| {
        g.bytes >= held / SMALL_SHARE || g.bytes <= SCALAR_BYTES.saturating_mul(g.count.into())
    });
    let per_step = counted.map(|g| g.count).sum::<u32>().div_ceil(steps);
    // Results that a program keeps on purpose look like a small graph; results from inside a model
    // do not, nor many in a program that learns.
    let (head, bytes) = head(case, growth);
    let is_graph = different >= 2
        && match in_model {
            true => bytes <= SCALAR_BYTES || !backward_frees_the_rest(case, growth),
            false => per_step >= 3 && learns(case),
        };
    if !is_graph {
        return Holder::Nothing;
    }
    if backward_lengthens(case, growth) || is_recurrent(case, head) {
        Holder::State
    } else if bytes <= SCALAR_BYTES || ends_in_scalar(case, growth) {
        Holder::Loss
    } else {
        Holder::Output
    }
}

/// Whether backward lets go of more results of the same call of the model than stay: then the graph
/// is gone, and what stays was kept for itself, by a cache or a hook. Another call has a graph of
/// its own.
fn backward_frees_the_rest(case: &Case<'_>, growth: &Growth) -> bool {
    let lives = &case.device.lives;
    let in_model = |stack: &StackId| case.lines.phases.get(*stack) == Phase::Model;
    let kept: HashSet<StackId> = growth.stacks.iter().map(|g| g.stack).filter(in_model).collect();
    let call = |stack: &StackId| case.lines.sites.caller_of_stack(*stack);
    let calls: HashSet<SiteId> = kept.iter().map(call).collect();
    let saved = (0..lives.in_trace).filter(|life| lives.kind[*life] == Kind::Activation);
    let freed: HashSet<StackId> = saved
        .filter(|life| lives.died[*life] != ALIVE)
        .map(|life| lives.stack[life])
        .filter(|stack| in_model(stack) && !kept.contains(stack) && calls.contains(&call(stack)))
        .collect();
    learns(case) && freed.len() > kept.len()
}

/// Whether a stack made a result of forward.
fn is_forward(case: &Case<'_>, stack: StackId) -> bool {
    matches!(case.lines.phases.get(stack), Phase::Model | Phase::Program)
}

/// Whether the program runs backward at all.
fn learns(case: &Case<'_>) -> bool {
    let stacks = &case.device.lives.stack;
    stacks.iter().any(|stack| case.lines.phases.get(*stack) == Phase::Backward)
}

/// The steps by which the growth was judged.
fn steps_of<'a>(case: &'a Case<'_>, growth: &Growth) -> Option<&'a Steps> {
    case.device.steps.iter().find(|steps| steps.bounds.last() == Some(&growth.position))
}

/// The stack of what is made last in each step and stays, and its bytes.
fn head(case: &Case<'_>, growth: &Growth) -> (StackId, u64) {
    let lives = &case.device.lives;
    let forward = |life: &&u32| is_forward(case, lives.stack[**life as usize]);
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

/// Whether each step's backward asks for more than the one before: it goes through all earlier
/// steps.
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

/// Whether the last result of forward in most steps is a number: a loss, kept or added to a sum.
/// Either way it outlives its step; a number that does not is part of some operation's work. If its
/// line lets go of what it saved for backward, the number's graph is gone, and something else holds
/// what stays.
fn ends_in_scalar(case: &Case<'_>, growth: &Growth) -> bool {
    let lives = &case.device.lives;
    let Some(steps) = steps_of(case, growth) else { return false };
    let kept: HashSet<u32> = growth.lives.iter().copied().collect();
    let line = |life: usize| case.lines.sites.caller_of_stack(lives.stack[life]);
    // By step: the last result that outlives it, and the line of the last large one that is let go
    // later.
    let mut last: Vec<Option<usize>> = vec![None; steps.count()];
    let mut let_go: Vec<Option<SiteId>> = vec![None; steps.count()];
    for life in 0..lives.in_trace {
        let phase = case.lines.phases.get(lives.stack[life]);
        if matches!(phase, Phase::Model | Phase::Program)
            && let Some(step) = steps.of_position(lives.born[life] - 1)
            && lives.died[life] > steps.bounds[step + 1]
        {
            last[step] = Some(life);
            if phase == Phase::Program
                && lives.bytes[life] > SCALAR_BYTES
                && !kept.contains(&(life as u32))
            {
                let_go[step] = Some(line(life));
            }
        }
    }
    let holds = |step: usize| {
        last[step].is_some_and(|life| {
            lives.bytes[life] <= SCALAR_BYTES && let_go[step] != Some(line(life))
        })
    };
    (0..last.len()).filter(|step| holds(*step)).count() * 2 > last.len()
}

/// Whether a stack goes through a recurrent layer: what that returns is a state.
fn is_recurrent(case: &Case<'_>, stack: StackId) -> bool {
    case.snapshot.frames_of(stack).any(|(_, file, _)| file.ends_with("torch/nn/modules/rnn.py"))
}

/// Whether the user's own function in a stack was called by a module and is not its `forward`: a
/// hook.
pub(super) fn is_hook(case: &Case<'_>, stack: StackId) -> bool {
    let code = CodeOf::new(case.snapshot);
    let frames: Vec<_> = case.snapshot.stacks.frames(stack).collect();
    frames.windows(2).any(|pair| {
        code.of(pair[0].file) == Code::User
            && code.of(pair[1].file) == Code::Module
            && case.snapshot.strings.get(pair[0].function) != "forward"
    })
}

/// The other lines whose results stay, those that hold the most first: ` and at lines 14, 7 and
/// 10`.
pub(super) fn other_lines(case: &Case<'_>, growth: &Growth, site: SiteId) -> String {
    let mut bytes: BTreeMap<SiteId, u64> = BTreeMap::new();
    for grown in &growth.stacks {
        let other = case.lines.sites.of_stack(grown.stack);
        if case.lines.phases.get(grown.stack) != Phase::Backward && other != site {
            let sum = bytes.entry(other).or_default();
            *sum = sum.saturating_add(grown.bytes);
        }
    }
    let mut others: Vec<SiteId> = bytes.keys().copied().collect();
    others.sort_by_key(|other| (Reverse(bytes[other]), *other));
    let file = case.lines.sites.frame(site).file;
    let mut names: Vec<String> = others
        .iter()
        .take(MOST_LINES)
        .map(|other| match case.lines.sites.frame(*other) {
            frame if frame.file == file => format!("line {}", frame.line),
            frame => case.place(frame),
        })
        .collect();
    if others.len() > MOST_LINES {
        names.push(counted((others.len() - MOST_LINES) as u64, "other line"));
    }
    match names.pop() {
        None => String::new(),
        Some(only) if names.is_empty() => format!(" and at {only}"),
        Some(last) => format!(" and at {} and {last}", names.join(", ")),
    }
}

/// The cause in words.
pub(super) fn cause_of(case: &Case<'_>, growth: &Growth, holder: Holder) -> Cause {
    let (head, _) = head(case, growth);
    let site = case.lines.sites.caller_of_stack(head);
    let lines = other_lines(case, growth, site);
    let line = case.line(site);
    let (name, mut what, advice) = match holder {
        Holder::Loss => (
            causes::LOSS.name,
            format!(
                "They are results of forward at {line}{lines}, saved for backward: the loss made at \
                 {line} is kept, or added to a sum, with its graph."
            ),
            causes::LOSS.remedy,
        ),
        Holder::State => (
            causes::STATE.name,
            format!(
                "They are results of forward at {line}{lines}, saved for backward: the state made at \
                 {line} goes into the next step with the graph of all steps before."
            ),
            causes::STATE.remedy,
        ),
        Holder::Output | Holder::Nothing => (
            causes::RESULTS.name,
            format!(
                "They are results of forward at {line}{lines}, saved for backward: the output made at \
                 {line} is kept with its graph: in a list, a sum, an exception, or as a state for the next step."
            ),
            causes::RESULTS.remedy,
        ),
    };
    if growth.is_rare() {
        what += " Not every step keeps its graph: look at what those do that keep it (an exception that is \
                 kept holds the frames it went through).";
    }
    Cause { name, site, what, advice }
}
