//! Outputs of a model that a function gathers over a whole loader while autograd records, with no
//! backward pass in sight: inference that keeps every batch's graph. Only where nothing in the file
//! says that autograd is off or that somebody wants the gradients, and never beside
//! `eval-without-no-grad`, which says it of the pass itself.

use ruff_python_ast::{Expr, Stmt};

use super::facts::Facts;
use super::stores::Store;
use crate::model::expression::{arguments, is_false, last_name, mentions, method, path};
use crate::model::{File, Grad, How, Loop, Meaning, Region, Scope, Value};
use crate::rules::evidence::calls_for_gradients;

/// Whether a list gathers outputs with their graphs in a function that only infers.
pub(super) fn gathers_graphs<'a>(
    file: &File<'a>,
    facts: &mut Facts<'_, 'a>,
    around: &Loop<'a>,
    store: &Store<'a>,
) -> bool {
    let scope = facts.scope;
    if store.how != "appended to" || scope.has_backward || !is_over_loader(file, scope, around) {
        return false;
    }
    let infers = *facts
        .only_infers
        .get_or_insert_with(|| records(file, scope) && !wants_gradients(file, scope));
    let key = (around.number, store.holder.clone());
    infers
        && is_output(file, scope, store.value, store.item)
        && *facts
            .made_before
            .entry(key)
            .or_insert_with(|| is_made_before(scope, around, &store.holder))
        && file.grad(scope, store.item) != Grad::Off
        && !scope.regions_of(store.item).any(grad_unknown)
        && !facts.is_detached_in_place(store, around)
}

fn grad_unknown(region: Region<'_>) -> bool {
    matches!(region, Region::With { meaning: Meaning::GradUnknown, .. })
}

/// A loop over a data loader, by its name or by what it is bound to.
fn is_over_loader<'a>(file: &File<'a>, scope: &Scope<'a>, around: &Loop<'a>) -> bool {
    around.loader.is_some()
        || around.over.and_then(path).is_some_and(|over| {
            matches!(file.value_at(scope, &over, around.item), Value::Loader(_))
        })
}

/// The output of a model whose parameters are not frozen, at most moved or made into
/// probabilities.
fn is_output<'a>(file: &File<'a>, scope: &Scope<'a>, value: &'a Expr, item: usize) -> bool {
    const KEPT: &[&str] = &["cpu", "to", "cuda", "float", "squeeze", "softmax", "sigmoid", "view"];
    const FUNCTIONS: &[&str] = &["softmax", "sigmoid", "normalize", "log_softmax"];
    match value {
        Expr::Call(call) => {
            if let Some(module) = module_of(file, scope, &call.func, item) {
                return !file.frozen.contains(&module);
            }
            let full = file.callee(call).unwrap_or_default();
            match method(call) {
                _ if full.starts_with("torch.") => {
                    last_name(&call.func).is_some_and(|name| FUNCTIONS.contains(&name))
                        && arguments(call).next().is_some_and(|of| is_output(file, scope, of, item))
                }
                Some((receiver, name)) if KEPT.contains(&name) => {
                    is_output(file, scope, receiver, item)
                }
                _ => false,
            }
        }
        Expr::Name(name) => scope.latest(&name.id, item).is_some_and(|bound| {
            bound.how == How::Assign
                && scope.dominates(bound.item, item)
                && file.grad(scope, bound.item) != Grad::Off
                && bound.expr.is_some_and(|expr| {
                    !mentions(expr, &name.id) && is_output(file, scope, expr, bound.item)
                })
        }),
        _ => false,
    }
}

/// The path of a module that the function is given, or that the file makes.
fn module_of<'a>(file: &File<'a>, scope: &Scope<'a>, called: &Expr, item: usize) -> Option<String> {
    let name = path(called)?;
    let Value::Module(module) = file.infer(scope, called, item) else { return None };
    let given = scope.bindings_of(&name).any(|binding| binding.how == How::Parameter);
    (given || module.certain).then_some(name)
}

/// The list is made in this scope, before the loop, and the loop neither empties nor replaces it.
fn is_made_before(scope: &Scope<'_>, around: &Loop<'_>, holder: &str) -> bool {
    let made = scope
        .latest(holder, around.item)
        .is_some_and(|made| made.how != How::Parameter && made.value == Value::Container);
    let replaced = scope.bindings_within(holder, around.body()).next().is_some();
    // What the loop itself reads from the list is a window over the batches.
    let read = scope.calls_in(around.body()).any(|(_, call)| {
        let emptied = method(call).is_some_and(|(receiver, name)| {
            matches!(name, "clear" | "pop") && path(receiver).as_deref() == Some(holder)
        });
        emptied
            || last_name(&call.func) != Some("len")
                && call.arguments.args.iter().any(|given| mentions(given, holder))
    });
    made && !replaced && !read
}

/// Nothing in the file says that autograd may be off here.
fn records<'a>(file: &File<'a>, scope: &Scope<'a>) -> bool {
    let switch = |name: &str| {
        file.calls_of(name).any(|(other, _, call)| {
            other.number == scope.number || call.arguments.args.first().is_some_and(is_false)
        })
    };
    let modes = scope
        .calls()
        .any(|(_, call)| matches!(method(call), Some((_, "eval" | "train" | "requires_grad_"))));
    let foreign = scope.class.is_some_and(|class| {
        file.classes[class].is_module
            || file.classes[class].is_lightning
            || file.derives_from_elsewhere(class)
    });
    scope.decorated == Meaning::Other
        && scope.function().is_none_or(|function| function.decorator_list.is_empty())
        && !["set_grad_enabled", "_set_grad_enabled"].into_iter().any(switch)
        && !modes
        && !foreign
        && !file.called_without_grad(scope)
}

/// The function, or one that calls it, differentiates: what it gathers may be for that.
fn wants_gradients<'a>(file: &File<'a>, scope: &Scope<'a>) -> bool {
    let words = ["train", "fit", "step", "loss", "forward", "grad", "attack"];
    let named = words.iter().any(|word| scope.name().contains(word));
    let given_back = !scope.name().is_empty()
        && file.calls_of(scope.name()).any(|(caller, node, _)| {
            let item = caller.nodes[node].item;
            let alone = matches!(caller.items[item].stmt, Stmt::Expr(_));
            caller.has_backward && !alone
        });
    let flag = |expr: &Expr| expr.is_attribute_expr() && last_name(expr) == Some("requires_grad");
    named
        || given_back
        || calls_for_gradients(scope, 0..scope.items.len())
        || scope.nodes.iter().any(|node| flag(node.expr))
}
