//! `round-trip-to-host`: a tensor leaves the device and what becomes of it goes back, in one
//! expression or under one name in a loop. Silent if the work in between is done by a library that
//! knows only the host.

use std::collections::HashSet;

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange};

use super::{Check, Rule};
use crate::model::expression::{any, last_name, mentions, method, path, paths};
use crate::model::{Binding, How, Scope};

pub(crate) static RULE: Rule = Rule {
    name: "round-trip-to-host",
    code: "PLM015",
    summary: "A tensor goes to the host and comes back",
    pedantic: false,
    page: include_str!("../../pages/round-trip-to-host.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            if !returns(check, scope, call, item) {
                continue;
            }
            let Some((inner, _)) = method(call) else { continue };
            if let Some(leaving) = leaves(inner) {
                if !any(inner, &mut |expr| host_only(check, expr)) {
                    report(check, leaving, call.range());
                }
                continue;
            }
            through_names(check, scope, call, inner, item);
        }
    }
}

fn report(check: &mut Check<'_, '_>, leaving: TextRange, back: TextRange) {
    let line = check.line(&back);
    let text = check.quote(&leaving);
    check.report(
        leaving,
        format!(
            "`{text}` copies to the host and line {line} copies the result back: two waits and two transfers"
        ),
        "do the work on the device; most NumPy functions have a counterpart in `torch`",
    );
}

/// `.cuda()` or `.to(device)`.
fn returns(check: &Check<'_, '_>, scope: &Scope<'_>, call: &ExprCall, item: usize) -> bool {
    match method(call) {
        Some((_, "cuda")) => true,
        Some((_, "to")) => {
            check.file.moved_to(scope, call, item).is_some_and(|place| place.is_device())
        }
        _ => false,
    }
}

/// The `.cpu()` inside an expression that still is the tensor's data.
fn leaves(expr: &Expr) -> Option<TextRange> {
    let call = expr.as_call_expr()?;
    match method(call) {
        Some((_, "cpu")) => Some(call.range()),
        Some((
            receiver,
            "numpy" | "detach" | "float" | "clone" | "astype" | "copy" | "double" | "contiguous",
        )) => leaves(receiver),
        _ => match last_name(&call.func) {
            Some("from_numpy" | "tensor" | "as_tensor" | "array" | "asarray" | "FloatTensor") => {
                call.arguments.args.first().and_then(leaves)
            }
            _ => None,
        },
    }
}

/// `x = x.cpu().numpy()`, `x = f(x)`, `x = torch.from_numpy(x).cuda()` inside one loop.
fn through_names(
    check: &mut Check<'_, '_>,
    scope: &Scope<'_>,
    call: &ExprCall,
    inner: &Expr,
    item: usize,
) {
    let Some(around) = scope.innermost_loop(item) else { return };
    let wraps = inner.as_call_expr().and_then(|wrap| {
        let name = last_name(&wrap.func)?;
        matches!(name, "from_numpy" | "tensor" | "as_tensor" | "FloatTensor")
            .then(|| wrap.arguments.args.first())?
    });
    let Some(mut name) = wraps.and_then(path) else { return };
    let mut seen = HashSet::new();
    for _ in 0..4 {
        let Some(made) = latest_in(scope, &name, item, around.item, &seen) else { return };
        let Some(expr) = made.expr.filter(|_| made.how == How::Assign) else { return };
        if any(expr, &mut |expr| host_only(check, expr)) {
            return;
        }
        if let Some(leaving) = leaves(expr) {
            // What left must have been on the device: the same value, not something computed for
            // the host.
            if !is_chosen_for_host(expr) {
                report(check, leaving, call.range());
            }
            return;
        }
        // A method of some object may need the host; a function or NumPy has a counterpart.
        let by_object = any(expr, &mut |expr| {
            expr.as_call_expr()
                .is_some_and(|call| !call.func.is_name_expr() && check.file.callee(call).is_none())
        });
        if by_object {
            return;
        }
        seen.insert(made.item);
        let Some(next) = paths(expr).into_iter().find(|path| {
            path == &name
                || latest_in(scope, path, made.item, around.item, &seen)
                    .is_some_and(|b| b.expr.is_some_and(|expr| leaves(expr).is_some()))
        }) else {
            return;
        };
        if !mentions(expr, &next) {
            return;
        }
        name = next;
    }
}

fn latest_in<'s, 'a>(
    scope: &'s Scope<'a>,
    name: &str,
    before: usize,
    after: usize,
    seen: &HashSet<usize>,
) -> Option<&'s Binding<'a>> {
    scope.bindings_within(name, after + 1..before).rev().find(|b| !seen.contains(&b.item))
}

/// An index or a maximum that the host needs for its own decisions.
fn is_chosen_for_host(expr: &Expr) -> bool {
    any(expr, &mut |expr| {
        expr.as_call_expr().is_some_and(|call| {
            matches!(
                last_name(&call.func),
                Some("argmax" | "item" | "tolist" | "multinomial" | "sample")
            )
        })
    })
}

/// Libraries without a device.
fn host_only(check: &Check<'_, '_>, expr: &Expr) -> bool {
    const LIBRARIES: &[&str] =
        &["scipy", "cv2", "PIL", "sklearn", "skimage", "librosa", "soundfile", "gym", "gymnasium"];
    let Expr::Call(call) = expr else { return false };
    let Some(full) = check.file.callee(call) else {
        return path(&call.func).is_some_and(|path| {
            let path = path.to_ascii_lowercase();
            path.starts_with("env")
                || path.contains(".step")
                || path.contains("render")
                || path.contains("linear_sum")
        });
    };
    let top = full.split('.').next().unwrap_or_default();
    LIBRARIES.contains(&top) || full.starts_with("numpy.random") || full.starts_with("numpy.linalg")
}
