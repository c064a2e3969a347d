//! `batchnorm-or-dropout-without-eval`: a model with batch normalisation or dropout, known from
//! this file, runs inference under `no_grad` and is nowhere set to evaluation. Silent if anything
//! in the file calls `eval()` or `train(False)`, and inside training loops.

use std::collections::HashSet;

use ruff_python_ast::ExprCall;
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::{is_false, path, receiver};
use crate::model::{Grad, Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "batchnorm-or-dropout-without-eval",
    code: "PLM026",
    summary: "Inference runs with layers in training mode",
    pedantic: false,
    page: include_str!("../../pages/batchnorm-or-dropout-without-eval.md"),
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
        let mut trained: Option<HashSet<String>> = None;
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            let Some(model) = path(&call.func) else { continue };
            if file.grad(scope, item) != Grad::Off || scope.in_lambda(node) {
                continue;
            }
            let Value::Module(module) = file.infer(scope, &call.func, item) else { continue };
            let Some(layer) = module.mode_layer.filter(|_| module.certain) else { continue };
            // One call somewhere may be a check of the model; a loop, or a script, is inference.
            // Between training steps a generator draws samples, and a teacher or target answers, in
            // whatever mode the training wants.
            match scope.innermost_loop(item) {
                None if !scope.is_module() => continue,
                Some(around) if around.has_backward => continue,
                _ => {}
            }
            let inside = scope.class.is_some_and(|class| file.classes[class].is_module);
            let trained = trained.get_or_insert_with(|| kept_in_training(scope));
            if inside || trained.contains(&model) || trained.contains(EVERY_MODEL) {
                continue;
            }
            let outcome = match layer.contains("Dropout") {
                true => "it drops values at random, and each call gives other outputs",
                false => {
                    "outputs depend on the batch, and each call changes the running statistics"
                }
            };
            check.report(
                call.range(),
                format!(
                    "`{model}` holds a `{layer}` and runs inference in training mode: {outcome} (relied on: no \
                     `eval()` in this file)"
                ),
                format!("call `{model}.eval()` before, and `{model}.train()` after"),
            );
        }
    }
}

/// Stands for all models of a scope; no path is spelled like this.
const EVERY_MODEL: &str = "*";

/// `model.train()` is a choice: dropout at test time, statistics to be renewed.
fn kept_in_training(scope: &Scope<'_>) -> HashSet<String> {
    let trains = |call: &ExprCall| receiver(call, "train").and_then(path);
    let mut kept: HashSet<String> = scope.calls().filter_map(|(_, call)| trains(call)).collect();
    let named = |name: &str| name.contains("mc_") || name.contains("update_bn");
    if scope.nodes.iter().any(|node| node.expr.as_name_expr().is_some_and(|n| named(&n.id))) {
        kept.insert(EVERY_MODEL.to_string());
    }
    kept
}
