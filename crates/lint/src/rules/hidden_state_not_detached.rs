//! `hidden-state-not-detached`: a state that a recurrent module returns goes back into it in the
//! next iteration with its graph. With a backward pass in the loop PyTorch raises in the second
//! iteration, with `retain_graph=True` as soon as a step has changed the weights; where nothing
//! raises the graph grows. Silent for loops over time steps inside one pass, and wherever the state
//! is bound to anything else in the loop.

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use super::evidence::every_pass_retains;
use super::{Check, Rule};
use crate::model::expression::{arguments, last_name, path, targets};
use crate::model::{Grad, How, Loop, Scope, Value, is_recurrent};

pub(crate) static RULE: Rule = Rule {
    name: "hidden-state-not-detached",
    code: "PLM003",
    summary: "A hidden state carries its graph from one batch into the next",
    pedantic: false,
    page: include_str!("../../pages/hidden-state-not-detached.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for item in 0..scope.items.len() {
            let Stmt::Assign(assign) = scope.items[item].stmt else { continue };
            let Expr::Call(call) = &*assign.value else { continue };
            let Some(around) = scope.innermost_loop(item) else { continue };
            let bound: Vec<String> = assign.targets.iter().flat_map(targets).collect();
            let Some(state) = carried(call, &bound) else { continue };
            if file.grad(scope, item) != Grad::On || !runs_over_batches(around) {
                continue;
            }
            let Value::Module(module) = file.infer(scope, &call.func, item) else { continue };
            let named = path(&call.func).is_some_and(|path| is_recurrent(&path))
                || looks_like_state(&state);
            if !(module.recurrent || named)
                || rebound(scope, around, item, &state)
                || changed(scope, around)
            {
                continue;
            }
            let callee = check.quote(&*call.func);
            let outcome = outcome(scope, around);
            let line = check.line(around.stmt);
            check.report(
                call.range(),
                format!(
                    "`{state}` goes into `{callee}` with the graph of the batch before; {outcome} (relied on: \
                     `{state}` is not bound to anything else in the loop on line {line})"
                ),
                format!(
                    "detach it before it is used again: `{state} = {state}.detach()`, for an LSTM \
                     `{state} = tuple(h.detach() for h in {state})`"
                ),
            );
        }
    }
}

/// What becomes of the chain of graphs, by what the loop does with it.
fn outcome(scope: &Scope<'_>, around: &Loop<'_>) -> &'static str {
    match (around.has_backward, every_pass_retains(scope, around), around.has_step) {
        (false, ..) => "the graph grows by one batch in every iteration",
        (true, false, _) => {
            "the second backward pass then runs into the first batch's freed graph and raises"
        }
        (true, true, true) => {
            "`retain_graph=True` keeps that graph, but the step changes the weights that it needs, so a later \
             backward pass runs back into it and raises"
        }
        (true, true, false) => {
            "`retain_graph=True` keeps that graph, so it grows by one batch in every iteration, and each backward \
             pass runs through all of it"
        }
    }
}

/// A path that the call both reads and is bound to, if the call also gets something else.
fn carried(call: &ExprCall, bound: &[String]) -> Option<String> {
    let passed: Vec<&Expr> = arguments(call).collect();
    if passed.len() < 2 {
        return None;
    }
    passed.iter().skip(1).filter_map(|argument| path(argument)).find(|path| bound.contains(path))
}

fn runs_over_batches(around: &Loop<'_>) -> bool {
    around.has_backward || around.loader.is_some()
}

fn looks_like_state(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or(path).to_ascii_lowercase();
    name.contains("hidden")
        || name.contains("state")
        || ["h", "hx", "hc", "h_n"].contains(&name.as_str())
}

fn rebound(scope: &Scope<'_>, around: &Loop<'_>, item: usize, state: &str) -> bool {
    around.targets.iter().any(|target| target == state)
        || scope.bindings_within(state, around.body()).any(|binding| {
            binding.item != item
                && around.contains(binding.item)
                && binding.how != How::Delete
                // `hidden = hidden.to(device)` keeps the graph.
                && !binding.expr.is_some_and(keeps_graph)
        })
}

fn keeps_graph(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if matches!(last_name(&call.func), Some("to" | "cuda")))
}

/// `hidden.detach_()` and loops over its parts that detach them.
fn changed(scope: &Scope<'_>, around: &Loop<'_>) -> bool {
    scope.calls_in(around.body()).any(|(_, call)| {
        let name = last_name(&call.func).unwrap_or_default();
        name.contains("detach") || name.contains("repackage") || name.contains("reset")
    })
}
