//! `data-parallel-device`: the output of `DataParallel` lies on its first device, and a target that
//! was never moved meets it in the loss. Only where wrapping, call and loss are in one function.

use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::{mentions, method, path, paths};
use crate::model::{How, Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "data-parallel-device",
    code: "PLM018",
    summary: "The output of DataParallel meets tensors that were never moved to its device",
    pedantic: false,
    page: include_str!("../../pages/data-parallel-device.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    if !file.calls_any("DataParallel") {
        return;
    }
    for scope in &file.scopes {
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            if !matches!(file.infer(scope, &call.func, item), Value::Criterion) {
                continue;
            }
            let [output, target, ..] = &*call.arguments.args else { continue };
            let Some(output) = path(output) else { continue };
            let Some(made) = scope.latest(&output, item) else { continue };
            let Some(model) =
                made.expr.and_then(|expr| expr.as_call_expr()).and_then(|call| path(&call.func))
            else {
                continue;
            };
            let Value::Module(module) = file.value_at(scope, &model, made.item) else { continue };
            // Moved after wrapping, as the usual right code does, says that the author minds
            // devices.
            if !module.data_parallel || scope.latest(&model, made.item).is_none() {
                continue;
            }
            let moved = paths(target).iter().any(|target| is_moved(scope, target, item))
                || mentions_move(target);
            if moved || paths(target).is_empty() {
                continue;
            }
            let text = check.quote(target);
            check.report(
                call.range(),
                format!(
                    "`{output}` comes from `nn.DataParallel` and lies on its first device; `{text}` is never \
                     moved there before this line"
                ),
                format!("name the device once and move both: `{text} = {text}.to(device)`"),
            );
        }
    }
}

/// Moved, or made by something that may have moved it.
fn is_moved(scope: &Scope<'_>, target: &str, before: usize) -> bool {
    scope.bindings_of(target).any(|binding| {
        binding.item < before
            && match binding.how {
                How::Parameter | How::Iterate => false,
                _ => binding.expr.is_some_and(|expr| {
                    mentions_move(expr) || expr.is_call_expr() && !mentions(expr, target)
                }),
            }
    })
}

fn mentions_move(expr: &ruff_python_ast::Expr) -> bool {
    crate::model::expression::any(expr, &mut |expr| {
        expr.as_call_expr()
            .is_some_and(|call| matches!(method(call), Some((_, "to" | "cuda" | "type_as"))))
    })
}
