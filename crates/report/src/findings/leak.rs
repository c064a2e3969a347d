//! Leaks: growth with a cause. What a step leaves behind tells what holds it: gradients, an
//! optimizer's state, a whole graph of results (several different ones of each step, held
//! together), or single values.

use std::collections::{HashMap, HashSet};

use plimsoll_watch::causes;

use super::filling;
use super::gradients;
use super::graph::{self, Holder};
use super::words::{counted, size, total};
use super::{Case, Finding, FindingKind};
use crate::analysis::code::{Code, CodeOf};
use crate::analysis::{Growth, Phase, SiteId, Sites, Steps, growth};
use crate::kind::Kind;
use crate::stacks::{Frame, StackId};

/// Steps may leave this much behind: numbers for a log.
const TOLERATED_PER_STEP: u64 = 1024;
/// Growth below this share of the peak is not worth a line.
const TOLERATED_SHARE: u64 = 1000;

/// Tensors that an optimizer keeps for each parameter, at most: Adam's two averages, and its
/// maximum with `amsgrad`.
const STATES_PER_PARAMETER: u32 = 3;

/// What the steps of a device leave behind, if it is enough to matter.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let lives = &case.device.lives;
    let matters = |growth: &Growth, steps: &Steps| {
        growth.bytes_per_step() >= TOLERATED_PER_STEP
            && growth.total(lives).0 >= lives.peak.bytes / TOLERATED_SHARE
            && !is_first_state(case, growth)
            && (!growth.only_keeps || filling::piles_up(case, growth, steps))
    };
    let grown: Vec<(Growth, &Steps)> = case
        .device
        .steps
        .iter()
        .filter_map(|steps| growth(lives, steps).map(|growth| (growth, steps)))
        .filter(|(growth, steps)| matters(growth, steps))
        .collect();
    // Steps that each leave something are the leak's own; epochs show as steps of which few do.
    // Least telling is a loop that does nothing else.
    let best = grown.iter().min_by_key(|(growth, _)| (growth.only_keeps, growth.is_rare()));
    best.map(|(growth, steps)| explain(case, growth, steps.count())).into_iter().collect()
}

/// Whether what grows is the state that an optimizer makes when it first meets a parameter: no more
/// tensors of any size than its parameters account for. Layers that are unfrozen one after the
/// other bring their state late.
fn is_first_state(case: &Case<'_>, growth: &Growth) -> bool {
    let lives = &case.device.lives;
    let is_state = |stack: StackId| case.lines.phases.get(stack) == Phase::Optimizer;
    if !growth.stacks.iter().all(|grown| is_state(grown.stack)) {
        return false;
    }
    let mut tensors: HashMap<u64, (u32, u32)> = HashMap::new();
    for life in lives.alive_at(growth.position) {
        let (parameters, states) = tensors.entry(lives.bytes[life]).or_default();
        *parameters += u32::from(lives.kind[life] == Kind::Parameter);
        *states += u32::from(is_state(lives.stack[life]));
    }
    let sizes = growth.lives.iter().map(|life| lives.bytes[*life as usize]);
    sizes.into_iter().all(|bytes| {
        let (parameters, states) = tensors.get(&bytes).copied().unwrap_or_default();
        states <= parameters.saturating_mul(STATES_PER_PARAMETER)
    })
}

/// Why it grows, in words.
pub(super) struct Cause {
    pub(super) name: &'static str,
    pub(super) site: SiteId,
    pub(super) what: String,
    pub(super) advice: &'static str,
}

fn explain(case: &Case<'_>, growth: &Growth, steps: usize) -> Finding {
    let (bytes, count) = growth.total(&case.device.lives);
    let mut cause = cause(case, growth);
    if let Some(call) = call_that_keeps(case, growth, cause.site) {
        let place = case.place(call);
        cause.what += &format!(
            " That line runs from elsewhere too; what stays comes from the call at {place}."
        );
    }
    if growth.only_keeps {
        cause.what += " Up to the end of the trace no turn of that loop frees anything. If it is meant to \
                       hold all of this (a data set loaded ahead), this is what it costs, and no mistake.";
    }
    let per_step = growth.bytes_per_step();
    let leaves = match growth.is_rare() {
        false => {
            let each = (count as usize).div_ceil(steps.max(1)) as u64;
            format!("Each step leaves {} behind ({})", size(per_step), counted(each, "allocation"))
        }
        true => {
            let (some, each) = growth.steps_that_leave();
            let judged = growth.bytes_by_step.len();
            format!("{some} of {judged} steps leave something behind, {} each", size(each))
        }
    };
    let message = format!("{leaves}; after {steps} steps {} are held. {}", size(bytes), cause.what);
    Finding {
        kind: FindingKind::Leak,
        cause: cause.name.to_string(),
        device: case.device.device,
        bytes,
        count,
        bytes_per_step: Some(per_step),
        site: cause.site,
        message,
        advice: cause.advice.to_string(),
        position: growth.position,
    }
}

/// The call that reaches a line, where the line alone does not tell which: it is reached by other
/// calls too, of which nothing stays.
fn call_that_keeps(case: &Case<'_>, growth: &Growth, site: SiteId) -> Option<Frame> {
    let code = CodeOf::new(case.snapshot);
    let line = case.lines.sites.frame(site);
    let call_of = |stack: StackId| {
        let mut outward = case.snapshot.stacks.frames(stack).skip_while(|frame| *frame != line);
        outward.next();
        outward.find(|frame| code.of(frame.file) == Code::User)
    };
    let lives = &case.device.lives;
    let held = lives.alive_at(growth.position).map(|life| lives.stack[life]);
    let held: HashSet<StackId> = held.collect();
    let gone = lives.stack[..lives.in_trace].iter().filter(|stack| !held.contains(stack));
    let gone: HashSet<StackId> = gone.copied().collect();
    let elsewhere: HashSet<Frame> = gone.into_iter().filter_map(call_of).collect();
    let keeping: HashSet<Frame> = growth.stacks.iter().filter_map(|g| call_of(g.stack)).collect();
    match keeping.iter().next() {
        Some(call) if keeping.len() == 1 && !elsewhere.is_empty() => {
            (!elsewhere.contains(call)).then_some(*call)
        }
        _ => None,
    }
}

fn cause(case: &Case<'_>, growth: &Growth) -> Cause {
    let phase_of = |stack: StackId| case.lines.phases.get(stack);
    let bytes_in = |wanted: Phase| -> u64 {
        total(growth.stacks.iter().filter(|g| phase_of(g.stack) == wanted).map(|g| g.bytes))
    };
    let all = total(growth.stacks.iter().map(|g| g.bytes));
    let most_of = |wanted: Phase| bytes_in(wanted) > all / 2;
    let largest = |wanted: &[Phase]| {
        let found = growth.stacks.iter().find(|g| wanted.contains(&phase_of(g.stack)));
        found.map(|g| g.stack)
    };
    let caller = |stack: StackId| case.lines.sites.caller_of_stack(stack);
    if most_of(Phase::Optimizer) {
        let site = largest(&[Phase::Optimizer]).map_or(Sites::NOWHERE, caller);
        return Cause {
            name: causes::OPTIMIZER_STATE.name,
            site,
            what: format!(
                "They are optimizers' state, made at {}, and more than one optimizer needs: those \
                 that were replaced are still held, in a list, by a scheduler or in a checkpoint.",
                case.line(site)
            ),
            advice: causes::OPTIMIZER_STATE.remedy,
        };
    }
    if most_of(Phase::Build) {
        let site = largest(&[Phase::Build]).map_or(Sites::NOWHERE, caller);
        return Cause {
            name: causes::MODELS.name,
            site,
            what: format!("They are parameters, made or copied at {}.", case.line(site)),
            advice: causes::MODELS.remedy,
        };
    }
    let holder = graph::holder(case, growth);
    let forward = largest(&[Phase::Program, Phase::Model]);
    if holder == Holder::Nothing && bytes_in(Phase::Backward) > 0 {
        return gradients::cause_of(case, growth, forward);
    }
    match holder {
        Holder::Nothing => {
            let values = values(case, forward.unwrap_or_default(), growth.only_keeps);
            let results = growth.stacks.iter().filter(|g| phase_of(g.stack) == Phase::Program);
            match results.count() {
                0 | 1 => values,
                _ => perhaps_a_graph(case, growth, values),
            }
        }
        graph => graph::cause_of(case, growth, graph),
    }
}

/// Values of several of the program's own lines stay together at each step. Without a model that
/// tells, they may be kept each for itself, or all by a graph.
fn perhaps_a_graph(case: &Case<'_>, growth: &Growth, values: Cause) -> Cause {
    let others = graph::other_lines(case, growth, values.site);
    Cause {
        name: "values are kept, by themselves or by a graph that needs them",
        what: format!(
            "Values made at {}{others} are kept together each time: in a list, a cache, an attribute, a \
             closure or an exception, or by a graph, if gradients are recorded and something goes on from \
             step to step (a state, a sum).",
            case.line(values.site)
        ),
        advice: "Cut a graph between steps with `.detach()`, or run under `torch.no_grad()` where nothing is \
                 learned; of values, keep a copy of the part you need (`part.clone()`, or `part.cpu()`), and \
                 drop old entries.",
        ..values
    }
}

/// Whether the model mostly goes on to other results after those of a stack.
fn is_on_the_way(case: &Case<'_>, stack: StackId) -> bool {
    let lives = &case.device.lives;
    let sites = &case.lines.sites;
    let caller = sites.caller_of_stack(stack);
    let made = (0..lives.in_trace).filter(|life| lives.stack[*life] == stack);
    let goes_on = |life: &usize| {
        let next = lives.stack[..lives.in_trace].get(life + 1);
        next.is_some_and(|next| {
            case.lines.phases.get(*next) == Phase::Model && sites.caller_of_stack(*next) == caller
        })
    };
    made.clone().filter(goes_on).count() * 2 > made.count()
}

/// One result of each step is kept, without what led to it; `only_keeps` if the steps do nothing
/// else.
fn values(case: &Case<'_>, stack: StackId, only_keeps: bool) -> Cause {
    let sites = &case.lines.sites;
    if graph::is_hook(case, stack) {
        let site = sites.of_stack(stack);
        return Cause {
            name: causes::HOOK.name,
            site,
            what: format!("A hook makes and keeps a value at each call ({}).", case.line(site)),
            advice: causes::HOOK.remedy,
        };
    }
    let (inner, caller) = (sites.of_stack(stack), sites.caller_of_stack(stack));
    let made = match inner == caller {
        true => case.line(inner),
        false => format!("{} (called from {})", case.line(inner), case.line(caller)),
    };
    // What a model returns is kept by who called it; what it makes on the way, inside of it.
    let site = if is_on_the_way(case, stack) { inner } else { caller };
    Cause {
        name: "values are kept, or slices that keep the whole storage",
        site,
        what: format!(
            "A value made at {made} is kept each time: in a list, a cache, an attribute, a closure, \
             a hook or an exception; a slice or any other view keeps the whole storage it was cut from."
        ),
        advice: match only_keeps {
            true => {
                "If only a part of each is needed, keep a copy of that part (`part.clone()`, or \
                 `part.cpu()`). Otherwise keep them on the host and bring each to the device when its \
                 turn comes, or bound the list."
            }
            false => {
                "Keep a copy of the part you need (`part.clone()`, or `part.cpu()`), bound the list or \
                 cache, and drop old entries."
            }
        },
    }
}
