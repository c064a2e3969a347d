//! `eval-without-no-grad`: after `model.eval()` the model is called in a loop while autograd
//! records. `eval()` changes layers, not autograd. Silent if gradients are used, if parameters are
//! frozen, or if a caller in this file switches autograd off.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::{is_false, last_name, method, path, receiver};
use crate::model::{Grad, Loop, Scope};

pub(crate) static RULE: Rule = Rule {
    name: "eval-without-no-grad",
    code: "PLM004",
    summary: "An evaluation loop records graphs that nobody uses",
    pedantic: false,
    page: include_str!("../../pages/eval-without-no-grad.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    let library_switch = ["set_grad_enabled", "_set_grad_enabled"].iter().any(|name| {
        file.calls_of(name).any(|(_, _, call)| call.arguments.args.first().is_some_and(is_false))
    });
    // Before version 0.4 inputs marked as volatile did what `no_grad` does now.
    if library_switch || check.source.text().contains("volatile=True") {
        return;
    }
    for scope in &file.scopes {
        if scope.loops.iter().all(|around| around.loader.is_none()) {
            continue;
        }
        let modes = modes(scope);
        let flags = flags(scope);
        let mut reported: HashSet<usize> = HashSet::new();
        let mut graph_wanted: HashMap<usize, bool> = HashMap::new();
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            let Some(module) = path(&call.func) else { continue };
            if scope.in_lambda(node) || !file.is_module(scope, &call.func, item) {
                continue;
            }
            let Some(around) = scope.loops_of(item).find(|around| over_batches(around)) else {
                continue;
            };
            if reported.contains(&around.number) {
                continue;
            }
            let Some(eval) = mode_before(scope, &modes, &module, item) else { continue };
            if file.grad(scope, item) == Grad::Off
                || scope.regions_of(item).any(grad_unknown)
                || *graph_wanted
                    .entry(around.number)
                    .or_insert_with(|| uses_gradients(scope, &flags, around))
                || file.frozen.contains(&module)
                || file.called_without_grad(scope)
            {
                continue;
            }
            if scope.class.is_some_and(|class| file.classes[class].is_module) {
                continue;
            }
            reported.insert(around.number);
            let (mode, line) =
                (check.quote(scope.nodes[eval].expr), check.line(scope.nodes[eval].expr));
            check.report(
                call.range(),
                format!(
                    "`{module}` is called in a loop after `{mode}` (line {line}) while autograd \
                     records: every activation that a backward pass would need is kept until the output \
                     is dropped (relied on: no `no_grad` or `inference_mode` around it, no backward pass in the loop)"
                ),
                "put the loop under `with torch.no_grad():` or `torch.inference_mode()`",
            );
        }
    }
}

fn grad_unknown(region: crate::model::Region<'_>) -> bool {
    use crate::model::Meaning;
    matches!(region, crate::model::Region::With { meaning: Meaning::GradUnknown, .. })
}

/// A loop over a loader, by its name or its kind.
fn over_batches(around: &Loop<'_>) -> bool {
    around.loader.is_some()
}

/// Calls of `eval` and `train` by module, in order: item, node, and whether it sets evaluation.
type Modes = HashMap<String, Vec<(usize, usize, bool)>>;

fn modes(scope: &Scope<'_>) -> Modes {
    let mut modes = Modes::new();
    for (node, call) in scope.calls() {
        let (receiver, eval) = match method(call) {
            Some((receiver, "eval")) => (receiver, true),
            Some((receiver, "train")) => {
                (receiver, call.arguments.args.first().is_some_and(is_false))
            }
            _ => continue,
        };
        if let Some(module) = path(receiver) {
            modes.entry(module).or_default().push((scope.nodes[node].item, node, eval));
        }
    }
    modes
}

/// The `eval()` in force at an item: the latest call of `eval` or `train` on the module is an
/// `eval`.
fn mode_before(scope: &Scope<'_>, modes: &Modes, module: &str, item: usize) -> Option<usize> {
    let calls = modes.get(module)?;
    let before = calls.partition_point(|(at, _, _)| *at <= item);
    let latest = calls[..before].iter().rev().find(|(at, _, _)| !scope.exclusive(*at, item))?;
    latest.2.then_some(latest.1)
}

/// Items that read or set a `requires_grad`, in order.
fn flags(scope: &Scope<'_>) -> Vec<usize> {
    let is_flag = |expr: &Expr| {
        expr.as_attribute_expr().is_some_and(|attribute| attribute.attr.as_str() == "requires_grad")
    };
    scope.nodes.iter().filter(|node| is_flag(node.expr)).map(|node| node.item).collect()
}

/// A backward pass, gradients of inputs, or hooks: somebody wants the graph.
fn uses_gradients(scope: &Scope<'_>, flags: &[usize], around: &Loop<'_>) -> bool {
    let outer = scope
        .loops_of(around.item)
        .last()
        .map_or(around.item..around.end, |outer| outer.item..outer.end);
    let wants = |name: &str| {
        matches!(
            name,
            "backward"
                | "grad"
                | "requires_grad_"
                | "jacobian"
                | "vjp"
                | "retain_grad"
                | "manual_backward"
        )
    };
    let calls = scope.calls_in(around.item..around.end).any(|(_, call)| {
        last_name(&call.func).is_some_and(wants) || receiver(call, "attack").is_some()
    });
    let next = flags.partition_point(|item| *item < outer.start);
    calls || flags.get(next).is_some_and(|item| *item < outer.end)
}
