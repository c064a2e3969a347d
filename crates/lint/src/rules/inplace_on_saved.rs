//! `inplace-on-saved`: an operation saved a value for backward, the value is then changed in place,
//! and a backward pass follows. PyTorch raises in backward. Only operations that are known to save
//! what they are given or what they return count.

use ruff_python_ast::{Expr, Operator, Stmt};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::FxHashMap;

use super::evidence::{in_place_receiver, into_backward};
use super::{Check, Rule};
use crate::model::expression::{integer, last_name, method, path};
use crate::model::{How, Scope};

pub(crate) static RULE: Rule = Rule {
    name: "inplace-on-saved",
    code: "PLM006",
    summary: "A value that backward needs is overwritten before backward runs",
    pedantic: false,
    page: include_str!("../../pages/inplace-on-saved.md"),
    check,
};

/// Operations that save their result.
const SAVE_RESULT: &[&str] =
    &["exp", "sigmoid", "tanh", "softmax", "sqrt", "rsqrt", "reciprocal", "expm1", "elu"];
/// Operations that save their input.
const SAVE_INPUT: &[&str] =
    &["pow", "square", "sin", "cos", "log", "log2", "abs", "gelu", "silu", "norm"];

fn check(check: &mut Check<'_, '_>) {
    for scope in &check.file.scopes {
        if scope.backwards.is_empty() {
            continue;
        }
        let inputs = saved_inputs(check, scope);
        let flows = into_backward(scope, 0..scope.items.len());
        for item in 0..scope.items.len() {
            let Some((name, range)) = changed(scope, item) else { continue };
            let Some((backward, _)) = scope.backward_after(item) else { continue };
            let Some((saved, operation)) = saved_before(check, scope, &inputs, &name, item) else {
                continue;
            };
            let result = scope.bindings_in(saved..saved + 1).first();
            if !result.is_some_and(|result| flows.contains(&result.path)) || scope.is_guarded(item)
            {
                continue;
            }
            let same_turn = |other: usize| {
                scope.innermost_loop(other).map(|l| l.number)
                    == scope.innermost_loop(item).map(|l| l.number)
            };
            if !same_turn(saved) {
                continue;
            }
            let (line, back) =
                (check.line(scope.items[saved].stmt), check.line(scope.items[backward].stmt));
            check.report(
                range,
                format!(
                    "`{operation}` on line {line} saved `{name}` for backward, and this changes it in place \
                     before the backward pass on line {back}, which then raises"
                ),
                "make a new tensor here, or change it after the backward pass",
            );
        }
    }
}

fn changed(scope: &Scope<'_>, item: usize) -> Option<(String, TextRange)> {
    match scope.items[item].stmt {
        Stmt::AugAssign(assign) => Some((path(&assign.target)?, assign.range())),
        Stmt::Expr(expr) => {
            let call = expr.value.as_call_expr()?;
            Some((path(in_place_receiver(call)?.0)?, call.range()))
        }
        Stmt::Assign(assign) => match &*assign.targets {
            [Expr::Subscript(subscript)] => Some((path(&subscript.value)?, assign.range())),
            _ => None,
        },
        _ => None,
    }
}

/// The item whose operation saved the tensor that the name holds now, and the operation.
fn saved_before(
    check: &Check<'_, '_>,
    scope: &Scope<'_>,
    inputs: &SavedInputs<'_>,
    name: &str,
    item: usize,
) -> Option<(usize, String)> {
    let current = scope.latest(name, item)?;
    if current.how != How::Assign {
        return None;
    }
    let needs_graph = |expr: &Expr, at: usize| check.file.infer(scope, expr, at).has_graph();
    // It is the result of an operation that saved it.
    if let Some(Expr::Call(call)) = current.expr {
        let operation = last_name(&call.func)?;
        let input = match method(call) {
            Some((receiver, _)) if check.file.callee(call).is_none() => Some(receiver),
            _ => call.arguments.args.first(),
        };
        if SAVE_RESULT.contains(&operation)
            && input.is_some_and(|input| needs_graph(input, current.item))
        {
            return Some((current.item, operation.to_string()));
        }
    }
    // It went into an operation that saved it.
    let saves = inputs.get(name).map(Vec::as_slice).unwrap_or_default();
    let first = saves.partition_point(|(at, _)| *at <= current.item);
    let (saved, operation) = saves.get(first).filter(|(at, _)| *at < item)?;
    Some((*saved, operation.to_string()))
}

/// For each name the items whose operation saved it as its input, in order, with the operation.
type SavedInputs<'a> = FxHashMap<String, Vec<(usize, &'a str)>>;

fn saved_inputs<'a>(check: &Check<'_, '_>, scope: &Scope<'a>) -> SavedInputs<'a> {
    let mut found = SavedInputs::default();
    for binding in &scope.bindings {
        let Some((name, operation)) = binding.expr.and_then(|expr| saves_input(check, expr)) else {
            continue;
        };
        if binding.path != name && check.file.value_at(scope, &name, binding.item).has_graph() {
            found.entry(name).or_default().push((binding.item, operation));
        }
    }
    found
}

/// The name that an operation saves as its input, and the operation.
fn saves_input<'a>(check: &Check<'_, '_>, expr: &'a Expr) -> Option<(String, &'a str)> {
    match expr {
        Expr::BinOp(binary) if binary.op == Operator::Pow => {
            let name = path(&binary.left)?;
            (integer(&binary.right) != Some(1)).then_some((name, "**"))
        }
        Expr::BinOp(binary) if binary.op == Operator::Mult => {
            let (left, right) = (path(&binary.left)?, path(&binary.right)?);
            (left == right).then_some((left, "*"))
        }
        Expr::Call(call) => {
            let operation = last_name(&call.func).filter(|name| SAVE_INPUT.contains(name))?;
            let input = match method(call) {
                Some((receiver, _)) if check.file.callee(call).is_none() => path(receiver),
                _ => call.arguments.args.first().and_then(path),
            };
            Some((input?, operation))
        }
        _ => None,
    }
}
