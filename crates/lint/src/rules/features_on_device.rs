//! `features-on-device`: outputs of a model are collected in a list over a whole loader while
//! nothing is recorded, and stay in device memory. Only where the file shows that they lie on a
//! device, and nothing moves or reduces them.

use std::collections::HashSet;

use ruff_python_ast::{CmpOp, Expr, Stmt};
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::{any, holder_path, last_name, method, paths};
use crate::model::{Grad, Graph, How, Loop, Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "features-on-device",
    code: "PLM022",
    summary: "Outputs are collected in device memory over a whole pass",
    pedantic: false,
    page: include_str!("../../pages/features-on-device.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        let mut released: Option<HashSet<String>> = None;
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
            if file.grad(scope, item) != Grad::Off
                || made_inside(scope, around, &holder)
                || of_one_batch(scope, item, around)
            {
                continue;
            }
            let Value::Tensor(tensor) = file.infer(scope, value, item) else { continue };
            if !tensor.output || !tensor.place.is_device() || tensor.graph == Graph::Yes {
                continue;
            }
            if released.get_or_insert_with(|| released_in(scope)).contains(&holder) {
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

/// `if step == 0:` takes one batch of the pass.
fn of_one_batch<'a>(scope: &Scope<'a>, item: usize, around: &Loop<'a>) -> bool {
    scope.tests_within(item, around).into_iter().flatten().any(|test| {
        test.as_compare_expr().is_some_and(|compare| {
            compare.ops.first() == Some(&CmpOp::Eq) && !any(test, &mut |e| e.is_bin_op_expr())
        })
    })
}

fn made_inside(scope: &Scope<'_>, around: &Loop<'_>, holder: &str) -> bool {
    scope.bindings_within(holder, around.body()).any(|binding| binding.how == How::Assign)
}

/// Lists that are gathered across processes or reduced as a whole, and those that are emptied.
fn released_in(scope: &Scope<'_>) -> HashSet<String> {
    let mut released = HashSet::new();
    for (_, call) in scope.calls() {
        let name = last_name(&call.func).unwrap_or_default();
        if ["gather", "reduce", "accuracy"].iter().any(|word| name.contains(word)) {
            for path in call.arguments.args.iter().flat_map(paths) {
                // What hangs on a list (`features.copy`) stands for the list too.
                let dots = path.match_indices('.').map(|(at, _)| &path[..at]);
                released.extend(dots.map(str::to_string));
                released.insert(path);
            }
        }
        if let Some((receiver, "clear" | "pop")) = method(call) {
            released.extend(holder_path(receiver));
        }
    }
    released
}
