//! `slice-keeps-storage`: a slice shares the storage of its tensor, so keeping the slice keeps all
//! of it. Reported where the program shows that it wants to keep only the slice: it deletes the
//! tensor, collects one slice of each output, or saves it.

use ruff_python_ast::{Expr, ExprSubscript, Stmt};
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::finding::Edit;
use crate::model::expression::{integer, method, path};
use crate::model::{Grad, Graph, How, Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "slice-keeps-storage",
    code: "PLM007",
    summary: "A small slice keeps the whole storage of its tensor alive",
    pedantic: false,
    page: include_str!("../../pages/slice-keeps-storage.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for item in 0..scope.items.len() {
            match scope.items[item].stmt {
                Stmt::Assign(assign) => {
                    let (Expr::Subscript(slice), [target]) = (&*assign.value, &*assign.targets)
                    else {
                        continue;
                    };
                    let Some(kept) = path(target) else { continue };
                    deleted_after(check, scope, item, slice, &kept);
                }
                Stmt::Expr(expr) => {
                    let Expr::Call(call) = &*expr.value else { continue };
                    if let (Some((_, "append")), [Expr::Subscript(slice)]) =
                        (method(call), &*call.arguments.args)
                    {
                        collected(check, scope, item, slice);
                    }
                    if file.callee(call).as_deref() == Some("torch.save")
                        && let Some(Expr::Subscript(slice)) = call.arguments.args.first()
                        && is_tensor(check, scope, slice, item)
                        && is_part(slice)
                    {
                        let whole = check.quote(&*slice.value);
                        let message = format!(
                            "`torch.save` of a slice writes the whole storage of `{whole}`, not only the slice"
                        );
                        report(check, slice, message);
                    }
                }
                _ => {}
            }
        }
    }
}

fn report(check: &mut Check<'_, '_>, slice: &ExprSubscript, message: String) {
    let text = check.quote(slice);
    let edit = vec![Edit::insert(slice.end().to_usize(), ".clone()")];
    check.report_fix(slice.range(), message, format!("copy what you keep: `{text}.clone()`"), edit);
}

/// `y = x[0]` ... `del x`, or `x = None`: the author wants the memory back.
fn deleted_after(
    check: &mut Check<'_, '_>,
    scope: &Scope<'_>,
    item: usize,
    slice: &ExprSubscript,
    kept: &str,
) {
    let Some(whole) = path(&slice.value) else { return };
    if whole == *kept || !is_part(slice) || !is_tensor(check, scope, slice, item) {
        return;
    }
    let next = scope.bindings_within(&whole, item + 1..scope.items.len()).next();
    let gone = next.filter(|binding| match binding.how {
        How::Delete => true,
        How::Assign => binding.expr.is_some_and(Expr::is_none_literal_expr),
        _ => false,
    });
    // The slice itself must outlive it.
    let Some(gone) =
        gone.filter(|gone| scope.bindings_within(kept, item + 1..gone.item + 1).next().is_none())
    else {
        return;
    };
    let line = check.line(scope.items[gone.item].stmt);
    let message = format!(
        "`{kept}` shares the storage of `{whole}`; dropping `{whole}` on line {line} frees nothing while \
         `{kept}` is alive"
    );
    report(check, slice, message);
}

/// `features.append(out[:, 0])` while nothing is recorded: each slice keeps a whole output.
fn collected(check: &mut Check<'_, '_>, scope: &Scope<'_>, item: usize, slice: &ExprSubscript) {
    if scope.innermost_loop(item).is_none()
        || check.file.grad(scope, item) != Grad::Off
        || !is_small(slice)
    {
        return;
    }
    let Value::Tensor(tensor) = check.file.infer(scope, &slice.value, item) else { return };
    if !tensor.output || tensor.graph != Graph::No {
        return;
    }
    let whole = check.quote(&*slice.value);
    let message = format!(
        "each collected slice keeps the whole storage of its `{whole}` alive (relied on: `{whole}` is a \
         model's output, made anew in each iteration)"
    );
    report(check, slice, message);
}

fn is_tensor(check: &Check<'_, '_>, scope: &Scope<'_>, slice: &ExprSubscript, item: usize) -> bool {
    matches!(check.file.infer(scope, &slice.value, item), Value::Tensor(_))
}

/// A basic index that leaves something out; masks and lists copy.
fn is_part(slice: &ExprSubscript) -> bool {
    let parts = match &*slice.slice {
        Expr::Tuple(tuple) => &tuple.elts[..],
        one => std::slice::from_ref(one),
    };
    let basic = |index: &Expr| {
        index.is_slice_expr() || integer(index).is_some() || index.is_ellipsis_literal_expr()
    };
    let leaves_out = |index: &Expr| match index {
        Expr::Slice(range) => range.lower.is_some() || range.upper.is_some(),
        other => integer(other).is_some(),
    };
    parts.iter().all(basic) && parts.iter().any(leaves_out)
}

/// One position of a dimension after the first: `out[:, 0]`, `out[:, -1, :]`.
fn is_small(slice: &ExprSubscript) -> bool {
    match &*slice.slice {
        Expr::Tuple(tuple) => {
            is_part(slice) && tuple.elts.iter().skip(1).any(|index| integer(index).is_some())
        }
        _ => false,
    }
}
