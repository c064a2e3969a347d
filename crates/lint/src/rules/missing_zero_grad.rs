//! `missing-zero-grad`: a loop that runs backward and steps, and in which nothing clears gradients.
//! The gradients add up in the same buffers: a wrong result, not a leak. Silent if anything in the
//! loop looks like clearing, or reads gradients itself.

use ruff_python_ast::ExprCall;
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;

use super::{Check, Rule};
use crate::model::expression::{last_name, method, path, receiver};
use crate::model::{Loop, Scope, is_backward, is_optimizer_name, is_optimizer_step};

pub(crate) static RULE: Rule = Rule {
    name: "missing-zero-grad",
    code: "PLM002",
    summary: "Gradients are never cleared, so they add up across steps",
    pedantic: false,
    page: include_str!("../../pages/missing-zero-grad.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    let own_step = own_step_clears(check);
    for scope in &file.scopes {
        let mut cleared: FxHashMap<usize, bool> = FxHashMap::default();
        for around in scope.loops.iter().filter(|around| around.has_backward) {
            if !around.has_step && around.loader.is_none() {
                continue;
            }
            // The innermost loop with the backward pass decides; the ones around it would repeat
            // the finding.
            let Some((node, call)) = scope.calls_in(around.body()).find(|(node, call)| {
                is_backward(call)
                    && scope
                        .innermost_loop(node.item)
                        .is_some_and(|inner| inner.number == around.number)
            }) else {
                continue;
            };
            if is_engine(call) {
                continue;
            }
            let outermost = scope.loops_of(node.item).last().unwrap_or(around);
            // A step once for many passes is accumulation, cleared by whoever steps.
            if !around.has_step && outermost.has_step {
                continue;
            }
            let clearing = if around.has_step { around } else { outermost };
            // Code that reads `.grad` does its own bookkeeping.
            let reads = scope.reads_grad.last().is_some_and(|item| *item >= outermost.item);
            if reads || *cleared.entry(clearing.number).or_insert_with(|| clears(scope, clearing)) {
                continue;
            }
            if around.has_step {
                if own_step || !steps_plainly(scope, around) || own_optimizer(check, scope, around)
                {
                    continue;
                }
            } else if !calls_module(check, scope, around) {
                continue;
            }
            let line = check.line(around.stmt);
            let evidence = if around.has_step {
                "the loop steps an optimizer"
            } else {
                "the loop runs over a loader and calls a model"
            };
            check.report(
                call.range(),
                format!(
                    "nothing in the loop on line {line} clears gradients, so each backward pass adds to the \
                     sum of all earlier ones: wrong gradients in the same memory (relied on: {evidence}, and no \
                     `zero_grad` or `.grad = None` is in it)"
                ),
                "call `optimizer.zero_grad()` once in each step",
            );
        }
    }
}

/// `engine.backward(loss)` belongs to a library that steps and clears by itself, unless it is one
/// that is known not to.
fn is_engine(call: &ExprCall) -> bool {
    let Some((receiver, "backward")) = method(call) else { return false };
    let name = last_name(receiver).unwrap_or_default();
    !call.arguments.args.is_empty()
        && path(receiver).is_some()
        && !matches!(name, "accelerator" | "fabric" | "loss")
}

/// Anything that could clear: `zero_grad`, `reset_grad`, `clear_gradients`, `p.grad = None`.
fn clears(scope: &Scope<'_>, around: &Loop<'_>) -> bool {
    scope.calls_in(around.item..around.end).any(|(_, call)| {
        let name = last_name(&call.func).unwrap_or_default().to_ascii_lowercase();
        let clips = name.contains("clip") || name.contains("no_grad") || name.contains("enable");
        name.contains("zero") || name.contains("grad") && !clips || name.contains("closure")
    })
}

/// A step without a closure; with one, the closure clears.
fn steps_plainly(scope: &Scope<'_>, around: &Loop<'_>) -> bool {
    scope.calls_in(around.body()).any(|(_, call)| {
        is_optimizer_step(call)
            && (call.arguments.args.is_empty()
                || call.arguments.args.iter().all(|a| last_name(a).is_some_and(is_optimizer_name)))
    })
}

/// The loop steps an optimizer of a class of this file.
fn own_optimizer(check: &Check<'_, '_>, scope: &Scope<'_>, around: &Loop<'_>) -> bool {
    scope.calls_in(around.body()).any(|(node, call)| {
        receiver(call, "step").is_some_and(|optimizer| {
            matches!(
                check.file.infer(scope, optimizer, node.item),
                crate::model::Value::Instance(_)
            )
        })
    })
}

/// A class of this file clears in its own `step`.
fn own_step_clears(check: &Check<'_, '_>) -> bool {
    let zeroes = |call: &ExprCall| last_name(&call.func).is_some_and(|name| name.contains("zero"));
    let methods = check.file.classes.iter().flat_map(|class| &class.methods);
    methods
        .map(|method| &check.file.scopes[*method])
        .any(|method| method.name() == "step" && method.calls().any(|(_, call)| zeroes(call)))
}

fn calls_module(check: &Check<'_, '_>, scope: &Scope<'_>, around: &Loop<'_>) -> bool {
    scope
        .calls_in(around.body())
        .any(|(node, call)| check.file.is_module(scope, &call.func, node.item))
}
