//! `optimizer-in-loop`: an optimizer with state is made anew in the loop that steps it, so that its
//! state is thrown away and made again in every step. Silent where the parameters are new too or
//! are reset in the loop, where the loop runs over settings or tasks, and for optimizers that have
//! no state.

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use super::evidence::{bound_in, in_every_iteration};
use super::{Check, Rule};
use crate::model::expression::{
    arguments, integer, keyword, last_name, mentions, method, passes_unseen, path, paths,
};
use crate::model::{Binding, How, Loop, Scope, Value, is_backward};

pub(crate) static RULE: Rule = Rule {
    name: "optimizer-in-loop",
    code: "PLM036",
    summary: "An optimizer is made anew in every step and loses its state",
    pedantic: false,
    page: include_str!("../../pages/optimizer-in-loop.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    if !file.calls_any("backward") || !file.calls_any("step") {
        return;
    }
    for scope in file.scopes.iter().filter(|scope| scope.has_backward) {
        let made = |binding: &&Binding<'_>| {
            binding.how == How::Assign && binding.value == Value::Optimizer
        };
        for binding in scope.bindings.iter().filter(made) {
            let Some(call) = binding.expr.and_then(|expr| expr.as_call_expr()) else { continue };
            let Some(around) = scope.innermost_loop(binding.item) else { continue };
            let Some(name) = file.callee(call).and_then(|full| class_with_state(call, &full))
            else {
                continue;
            };
            if !in_every_iteration(scope, binding.item, around)
                || !is_stepped(scope, around, binding)
                || is_wanted(scope, around, call)
            {
                continue;
            }
            let (optimizer, line) = (&binding.path, check.line(around.stmt));
            check.report(
                call.range(),
                format!(
                    "`{optimizer}` is made anew in every iteration of the loop on line {line} that steps it: the \
                     state of {name} is thrown away and allocated again in each step, and never has more than one \
                     step behind it (relied on: nothing in the loop makes or resets the parameters)"
                ),
                format!("make `{optimizer}` once, before the loop"),
            );
        }
    }
}

/// The name of an optimizer that keeps something from step to step.
fn class_with_state(call: &ExprCall, full: &str) -> Option<String> {
    let name = full.strip_prefix("torch.optim.")?.rsplit('.').next()?;
    let momentum = || {
        keyword(call, "momentum").or_else(|| call.arguments.args.get(2)).is_some_and(|momentum| {
            let zero = integer(momentum) == Some(0) || is_zero(momentum);
            !zero
        })
    };
    let has_state = match name {
        "SGD" => !passes_unseen(call) && momentum(),
        "Adam" | "AdamW" | "NAdam" | "RAdam" | "Adamax" | "SparseAdam" | "Adagrad" | "Adadelta"
        | "RMSprop" | "Rprop" | "Adafactor" => true,
        _ => false,
    };
    has_state.then(|| name.to_string())
}

fn is_zero(expr: &Expr) -> bool {
    let number = expr.as_number_literal_expr().and_then(|literal| literal.value.as_float());
    number.is_some_and(|value| *value == 0.0)
}

/// The same turn of the loop runs a backward pass and steps this optimizer once.
fn is_stepped(scope: &Scope<'_>, around: &Loop<'_>, binding: &Binding<'_>) -> bool {
    let after = binding.item + 1..around.end;
    let here = |item| scope.innermost_loop(item).is_some_and(|inner| inner.number == around.number);
    let (mut passes, mut steps) = (0, 0);
    for (node, call) in scope.calls_in(after) {
        let steps_it = match method(call) {
            Some((receiver, "step")) => {
                let by_scaler = call.arguments.args.first().and_then(path);
                path(receiver).as_ref() == Some(&binding.path)
                    || by_scaler.as_ref() == Some(&binding.path)
            }
            _ => false,
        };
        // A loop inside that steps uses the state.
        if steps_it && !here(node.item) {
            return false;
        }
        steps += usize::from(steps_it);
        if steps > 1 {
            return false;
        }
        passes += usize::from(is_backward(call) && here(node.item));
    }
    steps == 1 && passes > 0
}

/// A reason to start afresh: other parameters, other settings, or parameters that are set back.
fn is_wanted(scope: &Scope<'_>, around: &Loop<'_>, call: &ExprCall) -> bool {
    let Some(parameters) = call.arguments.args.first().or_else(|| keyword(call, "params")) else {
        return true;
    };
    let over = around.targets.iter().map(String::as_str).chain(around.over.and_then(last_name));
    let turns = ["task", "client", "model", "net", "layer", "agent", "subject", "optim", "image"];
    let named = |name: &str| {
        let name = name.to_ascii_lowercase();
        turns.iter().any(|word| name.contains(word))
    };
    around.is_outer_turn() && around.loader.is_none() && depends(scope, around, call)
        || around.loader.is_none() && over.into_iter().any(named)
        || arguments(call).any(|value| around.targets.iter().any(|t| mentions(value, t)))
        || paths(parameters).iter().any(|path| bound_in(scope, around, path))
        || resets(scope, around)
        || leaves(scope, around)
}

/// An argument changes in the loop.
fn depends(scope: &Scope<'_>, around: &Loop<'_>, call: &ExprCall) -> bool {
    arguments(call).flat_map(paths).any(|path| bound_in(scope, around, &path))
}

/// The loop sets parameters back, chooses which of them are trained, or makes a model.
fn resets(scope: &Scope<'_>, around: &Loop<'_>) -> bool {
    let by_call = scope.calls_in(around.body()).any(|(_, call)| {
        let name = last_name(&call.func).unwrap_or_default();
        ["reset", "init", "load", "deepcopy", "freeze", "requires_grad", "restore", "build", "copy"]
            .iter()
            .any(|word| name.contains(word))
            || name == "apply"
    });
    let sets = |target: &Expr| {
        target.as_attribute_expr().is_some_and(|attribute| {
            matches!(attribute.attr.as_str(), "requires_grad" | "data" | "training")
        })
    };
    by_call
        || around.body().any(|item| match scope.items[item].stmt {
            Stmt::Assign(assign) => assign.targets.iter().any(sets),
            _ => false,
        })
}

/// The loop is left in its first turn.
fn leaves(scope: &Scope<'_>, around: &Loop<'_>) -> bool {
    around.body().any(|item| {
        let stmt = scope.items[item].stmt;
        (stmt.is_break_stmt() || stmt.is_return_stmt())
            && scope.tests_within(item, around).is_empty()
    })
}
