//! `closure-keeps-self`: an object stores a lambda or inner function that captures it. The cycle
//! keeps the object and its model alive until Python's collector runs. Only where the closure
//! reaches a model or the class is a module.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::{Check, Rule};
use crate::model::expression::{any, holder_path, method, path};
use crate::model::{Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "closure-keeps-self",
    code: "PLM008",
    summary: "An object stores a closure that captures it, a cycle that is freed late",
    pedantic: false,
    page: include_str!("../../pages/closure-keeps-self.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        let Some(class) = scope.class.filter(|_| scope.function().is_some()) else { continue };
        for item in 0..scope.items.len() {
            let Some((holder, closure)) = stored(scope, item) else { continue };
            if !holder.starts_with("self.") {
                continue;
            }
            let Some((range, what)) = capturing(check, scope, closure, item) else { continue };
            let name = file.classes[class].name();
            check.report(
                range,
                format!(
                    "`{holder}` keeps a closure that captures `self`: the `{name}` and its `{what}` form a \
                     cycle, which is freed only when Python's collector happens to run"
                ),
                "capture only what it needs, use `weakref.ref(self)`, or clear the closure when done",
            );
        }
    }
}

/// What a statement stores on an object, and where.
fn stored<'a>(scope: &Scope<'a>, item: usize) -> Option<(String, &'a Expr)> {
    match scope.items[item].stmt {
        Stmt::Assign(assign) => match &*assign.targets {
            [target] => Some((holder_path(target)?, &assign.value)),
            _ => None,
        },
        Stmt::Expr(expr) => {
            let call = expr.value.as_call_expr()?;
            let (receiver, "append" | "add" | "insert") = method(call)? else { return None };
            Some((holder_path(receiver)?, call.arguments.args.last()?))
        }
        _ => None,
    }
}

/// The closure's range and the memory that it reaches through `self`: a lambda, or a function
/// defined here.
fn capturing(
    check: &Check<'_, '_>,
    scope: &Scope<'_>,
    closure: &Expr,
    item: usize,
) -> Option<(TextRange, String)> {
    let reaches = |expr: &Expr| {
        let path = path(expr).filter(|path| path.starts_with("self."))?;
        let attribute: String = path.split('.').take(2).collect::<Vec<_>>().join(".");
        matches!(check.file.value_at(scope, &attribute, item), Value::Module(_))
            .then_some(attribute)
    };
    let reached = match closure {
        Expr::Lambda(lambda) => {
            let mut reached = None;
            any(&lambda.body, &mut |expr| {
                reached = reaches(expr);
                reached.is_some()
            });
            reached
        }
        Expr::Name(name) => {
            let inner = check.file.function_in(scope, &name.id)?;
            inner.nodes.iter().find_map(|node| reaches(node.expr))
        }
        _ => None,
    };
    Some((closure.range(), reached?))
}
