//! `features-on-device`: outputs of a model are collected in a list over a whole loader while nothing is recorded, and stay in
//! device memory. Only where the file shows that they lie on a device, and nothing moves or reduces them.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::{any, holder_path, is_or_under, last_name, method, path};
use crate::model::{Grad, Graph, How, Loop, Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "features-on-device",
    code: "PLM022",
    summary: "Outputs are collected in device memory over a whole pass",
    pedantic: false,
    page: include_str!("../../../../docs/lint/features-on-device.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for item in 0..scope.items.len() {
            let Stmt::Expr(expr) = scope.items[item].stmt else { continue };
            let Expr::Call(call) = &*expr.value else { continue };
            let (Some((receiver, "append")), [value]) = (method(call), &*call.arguments.args)
            else {
                continue;
            };
            let Some(holder) = holder_path(receiver) else { continue };
            let Some(around) = scope.loops_of(item).find(|around| around.loader.is_some()) else {
                continue;
            };
            if file.grad(scope, item) != Grad::Off || made_inside(scope, around, &holder) {
                continue;
            }
            let Value::Tensor(tensor) = file.infer(scope, value, item) else { continue };
            if !tensor.output || !tensor.place.is_device() || tensor.graph == Graph::Yes {
                continue;
            }
            if moved_later(scope, &holder) {
                continue;
            }
            let text = check.quote(value);
            let line = check.line(around.stmt);
            check.report(
                value.range(),
                format!(
                    "`{text}` of every batch of the loop on line {line} stays in device memory inside `{holder}` \
                     (relied on: it is a model's output on a device, and nothing moves it to the host)"
                ),
                format!("collect on the host: `{holder}.append({text}.cpu())`"),
            );
        }
    }
}

fn made_inside(scope: &Scope<'_>, around: &Loop<'_>, holder: &str) -> bool {
    scope
        .bindings_of(holder)
        .any(|binding| around.contains(binding.item) && binding.how == How::Assign)
}

/// The list is moved as a whole inside the loop, gathered across processes, or emptied.
fn moved_later(scope: &Scope<'_>, holder: &str) -> bool {
    scope.calls().any(|(_, call)| {
        let name = last_name(&call.func).unwrap_or_default();
        let reads = |expr: &Expr| any(expr, &mut |expr| path(expr).is_some_and(|p| is_or_under(&p, holder)));
        let gathers = name.contains("gather") || name.contains("reduce") || name.contains("accuracy");
        gathers && call.arguments.args.iter().any(reads)
            || matches!(method(call), Some((receiver, "clear" | "pop")) if holder_path(receiver).as_deref() == Some(holder))
    })
}
