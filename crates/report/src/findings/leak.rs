//! Leaks: growth with a cause. What a step leaves behind tells what holds it: gradients, an optimizer's state, a whole graph of
//! results (several different ones of each step, held together), or single values.

use super::graph::{self, Holder};
use super::words::{counted, size};
use super::{Case, Finding, FindingKind};
use crate::analysis::{Growth, Phase, SiteId, Sites, growth};
use crate::stacks::StackId;

/// Steps may leave this much behind: numbers for a log.
const TOLERATED_PER_STEP: u64 = 1024;
/// Growth below this share of the peak is not worth a line.
const TOLERATED_SHARE: u64 = 1000;

/// What the steps of a device leave behind, if it is enough to matter.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let lives = &case.device.lives;
    for steps in &case.device.steps {
        let Some(growth) = growth(lives, steps) else { continue };
        let (bytes, _) = growth.total(lives);
        let per_step = growth.bytes_per_step();
        if per_step < TOLERATED_PER_STEP || bytes < lives.peak.bytes / TOLERATED_SHARE {
            continue;
        }
        return vec![explain(case, &growth, steps.count())];
    }
    Vec::new()
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
    let cause = cause(case, growth);
    let per_step = growth.bytes_per_step();
    let per_step_count = (count as usize).div_ceil(steps.max(1)) as u64;
    let message = format!(
        "Each step leaves {} behind ({}); after {steps} steps {} are held. {}",
        size(per_step),
        counted(per_step_count, "allocation"),
        size(bytes),
        cause.what,
    );
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

fn cause(case: &Case<'_>, growth: &Growth) -> Cause {
    let phase_of = |stack: StackId| case.lines.phases.get(stack);
    let bytes_in = |wanted: Phase| -> u64 {
        growth.stacks.iter().filter(|g| phase_of(g.stack) == wanted).map(|g| g.bytes).sum()
    };
    let all: u64 = growth.stacks.iter().map(|g| g.bytes).sum();
    let most_of = |wanted: Phase| bytes_in(wanted) * 2 > all;
    let largest = |wanted: &[Phase]| {
        let found = growth.stacks.iter().find(|g| wanted.contains(&phase_of(g.stack)));
        found.map(|g| g.stack)
    };
    let caller = |stack: StackId| case.lines.sites.caller_of_stack(stack);
    if most_of(Phase::Optimizer) {
        let site = largest(&[Phase::Optimizer]).map_or(Sites::NOWHERE, caller);
        return Cause {
            name: "optimizer state is made anew at each step",
            site,
            what: format!("They are an optimizer's state, made at {}.", case.line(site)),
            advice: "Make the optimizer once, before the loop; drop old ones with their state.",
        };
    }
    if most_of(Phase::Build) {
        let site = largest(&[Phase::Build]).map_or(Sites::NOWHERE, caller);
        return Cause {
            name: "models are made at each step and kept",
            site,
            what: format!("They are parameters, made or copied at {}.", case.line(site)),
            advice: "Build or copy the model once; of copies for a record, keep them on the host \
                     (`{k: v.cpu() for k, v in model.state_dict().items()}`).",
        };
    }
    let holder = graph::holder(case, growth);
    let forward = largest(&[Phase::Program, Phase::Model]);
    if holder == Holder::Nothing && bytes_in(Phase::Backward) > 0 {
        return gradients(case, growth, forward);
    }
    match holder {
        Holder::Nothing => values(case, forward.unwrap_or_default()),
        graph => graph::cause_of(case, growth, graph),
    }
}

/// Gradients that stay: their tensors were kept while they required gradients.
fn gradients(case: &Case<'_>, growth: &Growth, kept: Option<StackId>) -> Cause {
    let lives = &case.device.lives;
    let site = match kept {
        Some(stack) => case.lines.sites.caller_of_stack(stack),
        // Only gradients grow: the last line that ran before one of them was made.
        None => growth.lives.last().map_or(Sites::NOWHERE, |life| {
            let before = (0..*life as usize).rev().map(|l| lives.stack[l]);
            let line = before.map(|stack| case.lines.sites.caller_of_stack(stack));
            line.into_iter().find(|site| *site != Sites::NOWHERE).unwrap_or(Sites::NOWHERE)
        }),
    };
    Cause {
        name: "kept inputs keep their gradients",
        site,
        what: format!(
            "Backward made gradients that stay: the tensors of {} require gradients and are kept, \
             each with its `.grad`.",
            case.line(site)
        ),
        advice: "Keep what you need of the gradient (`x.grad.cpu()`), then set `x.grad = None`, or \
                 keep `x.detach()` instead of `x`; use `torch.autograd.grad` to get gradients \
                 without storing them.",
    }
}

/// One result of each step is kept, without what led to it.
fn values(case: &Case<'_>, stack: StackId) -> Cause {
    let sites = &case.lines.sites;
    if graph::is_hook(case, stack) {
        let site = sites.of_stack(stack);
        return Cause {
            name: "a hook keeps values",
            site,
            what: format!("A hook makes and keeps a value at each call ({}).", case.line(site)),
            advice: "Clear what the hook gathers after each step, keep numbers or host copies, or \
                     remove the hook when it has done its work.",
        };
    }
    let site = sites.caller_of_stack(stack);
    let inner = sites.of_stack(stack);
    let made = match inner == site {
        true => case.line(site),
        false => format!("{} (called from {})", case.line(inner), case.line(site)),
    };
    Cause {
        name: "values are kept, or slices that keep the whole storage",
        site,
        what: format!(
            "A value made at {made} is kept at each step: in a list, a cache, an attribute, a closure \
             or a hook; a slice or any other view keeps the whole storage it was cut from."
        ),
        advice: "Keep a copy of the part you need (`part.clone()`, or `part.cpu()`), bound the list or \
                 cache, and let old entries go.",
    }
}
