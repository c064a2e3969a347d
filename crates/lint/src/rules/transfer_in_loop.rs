//! `transfer-in-loop`: the same tensor is copied to a device in every iteration. Batches must be
//! copied; what does not change in the loop can be copied before it.

use ruff_text_size::Ranged;

use super::evidence::{bound_in, in_every_iteration};
use super::{Check, Rule};
use crate::model::Value;
use crate::model::expression::{method, path};

pub(crate) static RULE: Rule = Rule {
    name: "transfer-in-loop",
    code: "PLM029",
    summary: "The same tensor is copied to the device in every iteration",
    pedantic: true,
    page: include_str!("../../pages/transfer-in-loop.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            let Some((receiver, name @ ("cuda" | "to"))) = method(call) else { continue };
            let (Some(moved), Some(around)) = (path(receiver), scope.innermost_loop(item)) else {
                continue;
            };
            let to_device = name == "cuda"
                || file.moved_to(scope, call, item).is_some_and(|place| place.is_device());
            if !to_device
                || bound_in(scope, around, &moved)
                || !in_every_iteration(scope, item, around)
            {
                continue;
            }
            let known = file.infer(scope, receiver, item);
            if matches!(known, Value::Module(_) | Value::Criterion | Value::Optimizer)
                || moved.starts_with("self")
            {
                continue;
            }
            if scope.in_lambda(node)
                || around.is_outer_turn()
                || around.loader.is_none() && !around.has_backward
            {
                continue;
            }
            let line = check.line(around.stmt);
            check.report(
                call.range(),
                format!(
                    "`{moved}` does not change in the loop on line {line} but is copied to the device in every \
                     iteration (relied on: nothing in the loop binds `{moved}`)"
                ),
                format!("move `{moved}` once before the loop"),
            );
        }
    }
}
