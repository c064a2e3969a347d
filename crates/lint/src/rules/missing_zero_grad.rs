//! `missing-zero-grad`: a loop that runs backward and steps, and in which nothing clears gradients.
//! The gradients add up in the same buffers: a wrong result, not a leak. Silent if anything in the
//! loop looks like clearing, or reads gradients itself.

use ruff_python_ast::ExprCall;
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::FxHashMap;

use super::{Check, Rule};
use crate::model::expression::{last_name, method, path, receiver};
use crate::model::{How, Loop, Scope, Value, is_backward, is_optimizer_name, is_optimizer_step};

pub(crate) static RULE: Rule = Rule {
    name: "missing-zero-grad",
    code: "PLM002",
    summary: "Gradients are never cleared, so they add up across steps",
    pedantic: false,
    page: include_str!("../../pages/missing-zero-grad.md"),
    check,
};

/// A loop that calls more functions than this is not followed: its own would be lost among them.
const MOST_FUNCTIONS: usize = 12;

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    if !file.calls_any("backward") && !file.calls_any("manual_backward") {
        return;
    }
    let own_step = own_step_clears(check);
    let steps = file.calls_any("step");
    for scope in &file.scopes {
        let mut cleared: FxHashMap<usize, bool> = FxHashMap::default();
        if steps && !own_step {
            for around in scope.loops.iter().filter(|around| !around.has_backward) {
                through_functions(check, scope, around);
            }
        }
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
            if !reads && around.has_step {
                one_of_several(check, scope, around);
            }
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

/// A loop that clears one optimizer and steps another whose gradients nothing in the file clears.
fn one_of_several(check: &mut Check<'_, '_>, scope: &Scope<'_>, around: &Loop<'_>) {
    let file = check.file;
    let mut clearing = Vec::new();
    for (_, call) in scope.calls_in(around.item..around.end).filter(|(_, call)| may_clear(call)) {
        match receiver(call, "zero_grad").and_then(path) {
            // A module clears its own parameters, whichever optimizer has them.
            Some(optimizer) if is_optimizer_name(&optimizer) => clearing.push(optimizer),
            _ => return,
        }
    }
    if clearing.is_empty() {
        return;
    }
    // Cleared anywhere in the file, or cleared by a call whose receiver has no name: not certain.
    let elsewhere: Vec<Option<String>> = file
        .calls_of("zero_grad")
        .map(|(_, _, call)| receiver(call, "zero_grad").and_then(path))
        .collect();
    if elsewhere.iter().any(|path| path.as_ref().is_none_or(|path| !is_optimizer_name(path))) {
        return;
    }
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_string();
    let steps: Vec<(String, TextRange)> = scope
        .calls_in(around.body())
        .filter(|(_, call)| is_optimizer_step(call) && call.arguments.args.is_empty())
        .filter_map(|(_, call)| Some((receiver(call, "step").and_then(path)?, call.range())))
        .collect();
    for (optimizer, range) in steps {
        let is_it = |other: &String| last(other) == last(&optimizer);
        let made = file.value_at(scope, &optimizer, around.item) == Value::Optimizer;
        if !made || elsewhere.iter().flatten().any(is_it) || !is_optimizer_name(&optimizer) {
            continue;
        }
        let (line, other) = (check.line(around.stmt), &clearing[0]);
        check.report(
            range,
            format!(
                "the loop on line {line} clears `{other}` and never `{optimizer}`, so the gradients of the latter \
                 add up over all steps: wrong gradients in the same memory (relied on: nothing in this file clears \
                 `{optimizer}` or a module)"
            ),
            format!("call `{optimizer}.zero_grad()` once in each step"),
        );
    }
}

/// A loop whose steps lie in functions of this file: together they run backward and step, and
/// nothing on the way clears.
fn through_functions(check: &mut Check<'_, '_>, scope: &Scope<'_>, around: &Loop<'_>) {
    let file = check.file;
    let mut seen: Vec<usize> = Vec::new();
    let mut next: Vec<(&Scope<'_>, std::ops::Range<usize>)> = vec![(scope, around.body())];
    let (mut passes, mut steps) = (false, Vec::new());
    while let Some((place, items)) = next.pop() {
        if seen.len() > MOST_FUNCTIONS || !place.reads_grad.is_empty() {
            return;
        }
        for (node, call) in place.calls_in(items) {
            if may_clear(call) || is_backward(call) && is_engine(call) {
                return;
            }
            let direct = place.number == scope.number || place.innermost_loop(node.item).is_none();
            if is_backward(call) {
                passes = true;
                // A loop that holds both is judged by itself.
                if place.number == scope.number || !direct {
                    return;
                }
            } else if is_optimizer_step(call) && call.arguments.args.is_empty() {
                let optimizer = receiver(call, "step");
                // One that the function makes is new at each call, and so are its gradients.
                let own = optimizer.is_none_or(|optimizer| {
                    matches!(file.infer(place, optimizer, node.item), Value::Instance(_))
                        || path(optimizer).is_none_or(|path| is_made_in(place, &path))
                });
                if own || !direct {
                    return;
                }
                steps.push(call.range());
            } else if let Some(function) = file.called(place, call)
                && !seen.contains(&function.number)
            {
                seen.push(function.number);
                next.push((function, 0..function.items.len()));
            }
        }
    }
    if !passes {
        return;
    }
    let line = check.line(around.stmt);
    for range in steps {
        check.report(
            range,
            format!(
                "nothing that the loop on line {line} calls clears gradients, so each backward pass adds to the \
                 sum of all earlier ones: wrong gradients in the same memory (relied on: the functions of this \
                 file that it calls run `backward` and step, and none has `zero_grad` or `.grad = None`)"
            ),
            "call `optimizer.zero_grad()` once in each step",
        );
    }
}

fn is_made_in(place: &Scope<'_>, path: &str) -> bool {
    let root = path.split('.').next().unwrap_or(path);
    let made = |path: &str| place.bindings_of(path).any(|b| b.how != How::Parameter);
    made(path) || made(root)
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
    scope.calls_in(around.item..around.end).any(|(_, call)| may_clear(call))
}

fn may_clear(call: &ExprCall) -> bool {
    let name = last_name(&call.func).unwrap_or_default().to_ascii_lowercase();
    let clips = name.contains("clip") || name.contains("no_grad") || name.contains("enable");
    let makes = name.starts_with("zeros");
    name.contains("zero") && !makes || name.contains("grad") && !clips || name.contains("closure")
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
            matches!(check.file.infer(scope, optimizer, node.item), Value::Instance(_))
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
