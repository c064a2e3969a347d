//! `scaler-misuse`: a gradient scaler whose calls do not fit together: a scaled backward pass
//! followed by a plain step, a step without `update`, clipping of scaled gradients. Only where the
//! scaler is known and the file holds no counterpart.

use ruff_python_ast::ExprCall;
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::{any, holder_path, last_name, method, receiver};
use crate::model::{Scope, Value, is_backward, is_optimizer_name};

pub(crate) static RULE: Rule = Rule {
    name: "scaler-misuse",
    code: "PLM010",
    summary: "A gradient scaler's calls are incomplete or out of order",
    pedantic: false,
    page: include_str!("../../pages/scaler-misuse.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    // The name alone would include every other thing that scales.
    if !is_known(check) {
        return;
    }
    let scalers = |name: &str| {
        file.calls_of(name)
            .filter(|(scope, node, call)| is_on_scaler(check, scope, call, scope.nodes[*node].item))
            .count()
    };
    let (steps, updates, unscales) = (scalers("step"), scalers("update"), scalers("unscale_"));
    for scope in &file.scopes {
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            if method(call).is_some_and(|(_, name)| name == "step")
                && is_on_scaler(check, scope, call, item)
                && updates == 0
                && check.source.text().contains("GradScaler")
            {
                let scaler = receiver(call, "step").map(|r| check.quote(r)).unwrap_or_default();
                check.report(
                    call.range(),
                    format!(
                        "`{scaler}.step` is never followed by `{scaler}.update()`: the scale never changes, and the \
                         next step of the same optimizer raises a RuntimeError"
                    ),
                    format!("call `{scaler}.update()` after the step"),
                );
            }
            if scaled_backward(check, scope, call, item) {
                plain_step(check, scope, item, steps);
                clipped(check, scope, item, unscales);
            }
        }
    }
}

fn is_on_scaler(check: &Check<'_, '_>, scope: &Scope<'_>, call: &ExprCall, item: usize) -> bool {
    let Some((receiver, _)) = method(call) else { return false };
    matches!(check.file.infer(scope, receiver, item), Value::Scaler)
}

/// The file makes or imports a gradient scaler, or uses one that it is given as nothing else is
/// used: `scaler.scale(loss).backward()`.
fn is_known(check: &Check<'_, '_>) -> bool {
    let file = check.file;
    file.calls_any("GradScaler")
        || file.imports.names_a_module("GradScaler")
        || file
            .calls_of("backward")
            .any(|(scope, node, call)| scaled_backward(check, scope, call, scope.nodes[node].item))
}

/// `scaler.scale(loss).backward()`.
fn scaled_backward(check: &Check<'_, '_>, scope: &Scope<'_>, call: &ExprCall, item: usize) -> bool {
    is_backward(call)
        && method(call).and_then(|(receiver, _)| receiver.as_call_expr()).is_some_and(|inner| {
            receiver(inner, "scale").is_some() && is_on_scaler(check, scope, inner, item)
        })
}

fn plain_step(check: &mut Check<'_, '_>, scope: &Scope<'_>, item: usize, steps: usize) {
    // A scaler that comes from elsewhere may be stepped there.
    let made = check.file.calls_any("GradScaler") || check.source.text().contains("GradScaler");
    if steps > 0 || !made {
        return;
    }
    let Some(around) = scope.innermost_loop(item) else { return };
    for (node, call) in scope.calls_in(item..around.end) {
        let Some(optimizer) = receiver(call, "step").and_then(holder_path) else { continue };
        if is_optimizer_name(&optimizer) && !scope.exclusive(node.item, item) {
            let line = check.line(scope.items[item].stmt);
            check.report(
                call.range(),
                format!(
                    "the gradients are scaled (line {line}) and `{optimizer}.step()` uses them as they are: the \
                     step is too large by the scale, 65,536 at first"
                ),
                format!("call `scaler.step({optimizer})` and then `scaler.update()`"),
            );
        }
    }
}

/// Clipping between a scaled backward pass and the step.
fn clipped(check: &mut Check<'_, '_>, scope: &Scope<'_>, item: usize, unscales: usize) {
    if unscales > 0 {
        return;
    }
    // Passes that accumulate lie in a loop of their own; the step follows them.
    let end = scope.loops_of(item).last().map_or(scope.items.len(), |around| around.end);
    let clip = scope.calls_in(item + 1..end).find(|(node, call)| {
        matches!(last_name(&call.func), Some("clip_grad_norm_" | "clip_grad_value_"))
            && !scope.exclusive(node.item, item)
            && !any(&call.func, &mut |expr| {
                last_name(expr).is_some_and(|name| name.contains("scaler"))
            })
    });
    if let Some((_, call)) = clip {
        check.report(
            call.range(),
            "gradients are clipped while they are still scaled: the bound acts on values that are too large by \
             the scale"
                .to_string(),
            "call `scaler.unscale_(optimizer)` before clipping",
        );
    }
}
