//! `features-on-device`: outputs of a model are collected in a list over a whole loader while
//! nothing is recorded, or gradients of inputs from step to step, and stay in device memory. Only
//! where the file shows that they lie on a device, and nothing moves or reduces them; gradients
//! also where nothing ever reads the list.

use std::collections::HashSet;

use ruff_python_ast::{CmpOp, Expr, Stmt};
use ruff_text_size::Ranged;

use super::evidence::{bound_in, in_every_iteration};
use super::{Check, Rule};
use crate::model::expression::{
    any, holder_path, is_true, keyword, last_name, method, path, paths,
};
use crate::model::{File, Grad, Graph, How, Loop, Scope, Value};

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
        // Of each list and input one gradient a loop is judged; the others would repeat it.
        let mut judged: HashSet<(Option<usize>, String, String)> = HashSet::new();
        for item in 0..scope.items.len() {
            let Stmt::Expr(expr) = scope.items[item].stmt else { continue };
            let Expr::Call(call) = &*expr.value else { continue };
            let (Some((receiver, "append")), [value]) = (method(call), &*call.arguments.args)
            else {
                continue;
            };
            let Some(holder) = holder_path(receiver) else { continue };
            if let Some(input) = gradient_of(value) {
                let released = released.get_or_insert_with(|| released_in(scope));
                let number = scope.innermost_loop(item).map(|around| around.number);
                let key = (number, holder.clone(), path(input).unwrap_or_default());
                if !released.contains(&holder) && judged.insert(key) {
                    check_gradient(check, scope, item, &holder, (value, input));
                }
                continue;
            }
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

/// The tensor whose gradient an expression is: `x` of `x.grad` and `x.grad.clone()`.
fn gradient_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Attribute(attribute) => match attribute.attr.as_str() {
            "grad" => Some(&attribute.value),
            "data" => gradient_of(&attribute.value),
            _ => None,
        },
        Expr::Call(call) => match method(call)? {
            (receiver, "clone" | "detach") => gradient_of(receiver),
            _ => None,
        },
        _ => None,
    }
}

/// The gradient of an input that each step makes anew, kept in a list that outlives the steps.
fn check_gradient<'a>(
    check: &mut Check<'a, '_>,
    scope: &Scope<'a>,
    item: usize,
    holder: &str,
    (value, input): (&Expr, &Expr),
) {
    let turn = |around: &&Loop<'_>| around.has_backward && !around.is_outer_turn();
    let (Some(around), Some(name)) = (scope.loops_of(item).find(turn), path(input)) else { return };
    if !bound_in(scope, around, &name)
        || !is_asked(scope, around, &name)
        || made_inside(scope, around, holder)
        || !in_every_iteration(scope, item, around)
    {
        return;
    }
    // Of a fixed number of steps all may be needed at once; a loader has no end that is known.
    let on_device =
        around.loader.is_some() && check.file.infer(scope, input, item).place().is_device();
    let unread = is_unread(check.file, scope, holder);
    if !on_device && !unread {
        return;
    }
    let place = if on_device { "in device memory" } else { "alive" };
    let relied = match unread {
        true => format!("nothing reads `{holder}`"),
        false => {
            "the input lies on a device, and nothing moves its gradient to the host".to_string()
        }
    };
    let (text, line) = (check.quote(value), check.line(around.stmt));
    check.report(
        value.range(),
        format!(
            "`{text}` of every step of the loop on line {line} stays {place} inside `{holder}`, each as large as \
             its input (relied on: {relied})"
        ),
        format!("keep what you need of it, on the host: `{holder}.append({text}.cpu())` or a sum"),
    );
}

/// The loop asks for the gradient of this tensor.
fn is_asked(scope: &Scope<'_>, around: &Loop<'_>, name: &str) -> bool {
    let by_call = scope.calls_in(around.body()).any(|(_, call)| match method(call) {
        Some((receiver, "requires_grad_")) => path(receiver).as_deref() == Some(name),
        _ => false,
    });
    let bound = scope.bindings_within(name, around.body()).any(|binding| {
        binding.value.tensor().is_some_and(|tensor| tensor.graph == Graph::Yes)
            && binding.expr.is_none_or(|expr| {
                any(expr, &mut |part| {
                    part.as_call_expr().is_some_and(|call| {
                        last_name(&call.func) == Some("requires_grad_")
                            || keyword(call, "requires_grad").is_some_and(is_true)
                    })
                })
            })
    });
    let flag = format!("{name}.requires_grad");
    by_call || bound || scope.bindings_within(&flag, around.body()).next().is_some()
}

/// Whether a list is only filled and counted, in its scope and in those inside it.
fn is_unread(file: &File<'_>, of: &Scope<'_>, holder: &str) -> bool {
    let inside = |scope: &&Scope<'_>| {
        let outer = |scope: &Scope<'_>| scope.parent.map(|(outer, _)| outer);
        std::iter::successors(Some(scope.number), |number| outer(&file.scopes[*number]))
            .any(|number| number == of.number)
    };
    let reads = |scope: &Scope<'_>| {
        scope.nodes.iter().any(|node| {
            let Expr::Name(name) = node.expr else { return false };
            if name.id.as_str() != holder || name.ctx.is_store() {
                return false;
            }
            let around = node.parent.map(|parent| scope.nodes[parent].expr);
            match around {
                Some(Expr::Attribute(attribute)) => attribute.attr.as_str() != "append",
                Some(Expr::Call(call)) => last_name(&call.func) != Some("len"),
                _ => true,
            }
        })
    };
    let local = of.bindings_of(holder).next().is_some();
    local && !holder.contains('.') && !file.scopes.iter().filter(inside).any(reads)
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
