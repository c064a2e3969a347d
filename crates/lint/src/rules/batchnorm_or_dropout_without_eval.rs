//! `batchnorm-or-dropout-without-eval`: a model with batch normalisation or dropout, known from this file, runs inference under
//! `no_grad` and is nowhere set to evaluation. Silent if anything in the file calls `eval()` or `train(False)`.

use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::{is_false, method, path};
use crate::model::{Grad, Value};

pub(crate) static RULE: Rule = Rule {
    name: "batchnorm-or-dropout-without-eval",
    code: "PLM026",
    summary: "Inference runs with layers in training mode",
    pedantic: false,
    page: include_str!("../../../../docs/lint/batchnorm-or-dropout-without-eval.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    let sets_mode = file.calls_any("eval")
        || file.calls_of("train").any(|(_, _, call)| {
            call.arguments.args.first().is_some_and(|a| is_false(a) || !a.is_boolean_literal_expr())
        });
    if sets_mode {
        return;
    }
    for scope in &file.scopes {
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            let Some(model) = path(&call.func) else { continue };
            if file.grad(scope, item) != Grad::Off || scope.in_lambda(node) {
                continue;
            }
            let Value::Module(module) = file.infer(scope, &call.func, item) else { continue };
            let Some(layer) = module.mode_layer.filter(|_| module.certain) else { continue };
            // One call somewhere may be a check of the model; a loop, or a script, is inference.
            if scope.innermost_loop(item).is_none() && !scope.is_module() {
                continue;
            }
            let inside = scope.class.is_some_and(|class| file.classes[class].is_module);
            if inside || stays_in_training(scope, &model) {
                continue;
            }
            check.report(
                call.range(),
                format!(
                    "`{model}` holds a `{layer}` and runs inference in training mode: outputs are random or depend \
                     on the batch, and batch statistics are updated (relied on: no `eval()` in this file)"
                ),
                format!("call `{model}.eval()` before, and `{model}.train()` after"),
            );
        }
    }
}

/// `model.train()` just before is a choice: dropout at test time, statistics to be renewed.
fn stays_in_training(scope: &crate::model::Scope<'_>, model: &str) -> bool {
    scope.calls().any(|(_, call)| {
        matches!(method(call), Some((receiver, "train")) if path(receiver).as_deref() == Some(model))
    }) || scope.nodes.iter().any(|node| {
        matches!(node.expr, Expr::Name(name) if name.id.contains("mc_") || name.id.contains("update_bn"))
    })
}
