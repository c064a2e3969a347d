//! `sync-in-loop`: something in every iteration of a training loop makes the host wait for the
//! device: `.item()`, `.cpu()`, printing a tensor, an explicit synchronization. Silent behind a
//! condition.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::evidence::in_every_iteration;
use super::{Check, Rule};
use crate::model::expression::{method, path};
use crate::model::{Scope, is_loss};

pub(crate) static RULE: Rule = Rule {
    name: "sync-in-loop",
    code: "PLM028",
    summary: "The host waits for the device in every iteration",
    pedantic: true,
    page: include_str!("../../pages/sync-in-loop.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            let Some(around) = scope.innermost_loop(item).filter(|around| around.has_backward)
            else {
                continue;
            };
            if !in_every_iteration(scope, item, around) || scope.in_lambda(node) {
                continue;
            }
            let Some(what) = waits(check, scope, call, item) else { continue };
            let line = check.line(around.stmt);
            let text = check.quote(call);
            check.report(
                call.range(),
                format!("`{text}` {what} in every iteration of the loop on line {line}: the device runs dry meanwhile"),
                "collect detached tensors and read them every few hundred iterations",
            );
        }
    }
}

fn waits(
    check: &Check<'_, '_>,
    scope: &Scope<'_>,
    call: &ExprCall,
    item: usize,
) -> Option<&'static str> {
    if check.file.callee(call).as_deref() == Some("torch.cuda.synchronize") {
        return Some("waits for the device");
    }
    match method(call) {
        Some((_, "item" | "tolist")) if call.arguments.args.is_empty() => {
            return Some("waits for the device to have the value");
        }
        Some((_, "cpu")) => return Some("waits for the device and copies"),
        _ => {}
    }
    let name = call.func.as_name_expr()?.id.as_str();
    let tensor = call.arguments.args.iter().any(|argument| {
        path(argument).is_some_and(|path| is_loss(&path))
            && check.file.infer(scope, argument, item).has_graph()
    });
    match name {
        "print" if tensor => Some("prints a tensor and so waits for it"),
        "float" | "int" | "bool" if tensor => Some("waits for the device to have the value"),
        _ => None,
    }
    .filter(|_| !call.arguments.args.iter().any(Expr::is_starred_expr))
}
