//! `allocation-in-loop`: a tensor of constant size and content is made in device memory in every
//! iteration. Silent for random content, for sizes that the loop computes, for small tensors, and
//! where the tensor is kept, changed or rebound.

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use super::evidence::{bound_in, in_every_iteration};
use super::{Check, Rule};
use crate::model::expression::{
    arguments, integer, is_true, keyword, mentions, method, path, paths,
};
use crate::model::{CONSTANT_CREATORS, How, Loop, Scope};

pub(crate) static RULE: Rule = Rule {
    name: "allocation-in-loop",
    code: "PLM013",
    summary: "Device memory of constant size is allocated in every iteration",
    pedantic: false,
    page: include_str!("../../pages/allocation-in-loop.md"),
    check,
};

/// Elements below which reuse is not worth a line of code.
const SMALL: i64 = 1024;

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for item in 0..scope.items.len() {
            let Stmt::Assign(assign) = scope.items[item].stmt else { continue };
            let ([target], Some(around)) = (&*assign.targets, scope.innermost_loop(item)) else {
                continue;
            };
            let Some(name) = path(target).filter(|path| !path.contains('.')) else { continue };
            let Some(creation) = creation(&assign.value) else { continue };
            let Some(full) = file.callee(creation) else { continue };
            let Some(kind) = full.strip_prefix("torch.") else { continue };
            if !CONSTANT_CREATORS.contains(&kind)
                || kind == "arange"
                || keyword(creation, "requires_grad").is_some_and(is_true)
            {
                continue;
            }
            if !file.infer(scope, &assign.value, item).place().is_device() {
                continue;
            }
            if !is_constant(scope, around, creation) || is_small(creation) || around.is_outer_turn()
            {
                continue;
            }
            if !in_every_iteration(scope, item, around) || escapes(scope, around, item, &name) {
                continue;
            }
            let line = check.line(around.stmt);
            let text = check.quote(creation);
            check.report(
                assign.value.range(),
                format!(
                    "`{text}` has the same size and content in every iteration of the loop on line {line}, and \
                     is allocated and filled anew each time (relied on: nothing in its arguments is bound in the loop)"
                ),
                format!("make `{name}` once before the loop; reset it with `{name}.zero_()` if it is changed"),
            );
        }
    }
}

/// The creating call under moves and casts.
fn creation(expr: &Expr) -> Option<&ExprCall> {
    let call = expr.as_call_expr()?;
    match method(call) {
        Some((receiver, "cuda" | "to" | "float" | "half" | "double" | "long")) => {
            creation(receiver)
        }
        _ => Some(call),
    }
}

fn is_constant(scope: &Scope<'_>, around: &Loop<'_>, creation: &ExprCall) -> bool {
    arguments(creation).all(|argument| {
        paths(argument).iter().all(|path| !bound_in(scope, around, path))
            && !crate::model::expression::any(argument, &mut |expr| match expr {
                // A size that a call computes may change; `len` and `size` of something constant do
                // not.
                Expr::Call(call) => !matches!(
                    crate::model::expression::last_name(&call.func),
                    Some("len" | "size" | "int")
                ),
                _ => false,
            })
    })
}

fn is_small(creation: &ExprCall) -> bool {
    let sizes: Vec<&Expr> = match &*creation.arguments.args {
        [] => return true,
        [Expr::Tuple(tuple), ..] => tuple.elts.iter().collect(),
        [Expr::List(list), ..] => list.elts.iter().collect(),
        many => many.iter().collect(),
    };
    let known: Option<i64> = sizes
        .iter()
        .map(|size| integer(size))
        .try_fold(1i64, |product, size| Some(product.saturating_mul(size?)));
    match known {
        Some(elements) => elements < SMALL,
        // One unknown size is a row of numbers; two or more are a matrix.
        None => sizes.iter().filter(|size| integer(size) != Some(1)).count() < 2,
    }
}

/// Each iteration needs its own tensor: it is rebound, changed, kept, or handed out.
fn escapes(scope: &Scope<'_>, around: &Loop<'_>, item: usize, name: &str) -> bool {
    let rebound = scope.bindings_within(name, around.body()).any(|binding| {
        around.contains(binding.item) && binding.item != item && binding.how != How::Delete
    });
    rebound
        || (item + 1..around.end).any(|later| match scope.items[later].stmt {
            Stmt::Return(stmt) => stmt.value.as_deref().is_some_and(|value| mentions(value, name)),
            Stmt::Assign(assign) => {
                assign.targets.iter().any(|target| {
                    target.is_subscript_expr() && mentions(target, name)
                        || (target.is_subscript_expr() || target.is_attribute_expr())
                            && mentions(&assign.value, name)
                }) || path(&assign.value).as_deref() == Some(name)
            }
            _ => scope.nodes_of(later).iter().any(|node| match node.expr {
                Expr::Call(call) => match method(call) {
                    Some((receiver, called)) if path(receiver).as_deref() == Some(name) => {
                        called.ends_with('_')
                    }
                    Some((_, "append" | "extend" | "put" | "insert" | "add")) => {
                        call.arguments.args.iter().any(|argument| mentions(argument, name))
                    }
                    _ => false,
                },
                Expr::Yield(yielded) => {
                    yielded.value.as_deref().is_some_and(|value| mentions(value, name))
                }
                _ => false,
            }),
        })
}
