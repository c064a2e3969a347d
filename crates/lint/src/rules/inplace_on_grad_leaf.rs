//! `inplace-on-grad-leaf`: a leaf that requires gradients, made in this function, is changed in
//! place while autograd records. PyTorch raises. Silent under `no_grad`, through `.data`, and
//! inside a `try` that catches the error.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::evidence::in_place_receiver;
use super::{Check, Rule};
use crate::model::expression::{holder_path, path};
use crate::model::{Grad, Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "inplace-on-grad-leaf",
    code: "PLM005",
    summary: "A leaf that requires gradients is changed in place",
    pedantic: false,
    page: include_str!("../../pages/inplace-on-grad-leaf.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for item in 0..scope.items.len() {
            let Some((target, range, how)) = change(scope, item) else { continue };
            let Some(name) = holder_path(target) else { continue };
            // Only what this scope made itself: attributes may have been replaced elsewhere.
            let Some(made) = scope.latest(&name, item) else { continue };
            let Value::Tensor(tensor) = file.value_at(scope, &name, item) else { continue };
            if !tensor.leaf
                || file.grad(scope, item) == Grad::Off
                || scope.is_guarded(item)
                || file.called_without_grad(scope)
            {
                continue;
            }
            if scope.regions_of(item).any(|region| {
                matches!(region, crate::model::Region::With { meaning, .. } if meaning == crate::model::Meaning::GradUnknown)
            }) {
                continue;
            }
            let line = check.line(scope.items[made.item].stmt);
            check.report(
                range,
                format!(
                    "`{name}` is a leaf that requires gradients (line {line}), and {how} changes it in place \
                     while autograd records: PyTorch raises a RuntimeError"
                ),
                "change it under `with torch.no_grad():`, or make a new tensor",
            );
        }
    }
}

/// What a statement changes in place.
fn change<'a>(scope: &Scope<'a>, item: usize) -> Option<(&'a Expr, TextRange, String)> {
    match scope.items[item].stmt {
        Stmt::AugAssign(assign)
            if path(&assign.target).is_some() || assign.target.is_subscript_expr() =>
        {
            let how = format!("`{}=`", assign.op.as_str());
            Some((&assign.target, assign.range(), how))
        }
        Stmt::Expr(expr) => {
            let call = expr.value.as_call_expr()?;
            let (target, name) = in_place_receiver(call)?;
            Some((target, call.range(), format!("`{name}`")))
        }
        Stmt::Assign(assign) => match &*assign.targets {
            [Expr::Subscript(subscript)] => {
                Some((&subscript.value, assign.range(), "assigning to its elements".to_string()))
            }
            _ => None,
        },
        _ => None,
    }
}
