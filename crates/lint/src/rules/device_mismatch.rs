//! `device-mismatch`: two tensors, or a module and its input, whose places are both written in this
//! function and differ. Silent as soon as one of them is a variable, a number in a tensor, or
//! decided by a default.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange};

use super::{Check, Rule};
use crate::model::expression::{method, path};
use crate::model::{Residence, Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "device-mismatch",
    code: "PLM019",
    summary: "Tensors on different devices meet in one operation",
    pedantic: false,
    page: include_str!("../../pages/device-mismatch.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    if file.default_device_changed || !check.source.text().contains("cuda") {
        return;
    }
    for scope in &file.scopes {
        for (number, node) in scope.nodes.iter().enumerate() {
            if scope.is_guarded(node.item) || scope.in_lambda(number) {
                continue;
            }
            match node.expr {
                Expr::BinOp(binary) => {
                    let left = placed(check, scope, &binary.left, node.item);
                    let right = placed(check, scope, &binary.right, node.item);
                    meet(check, binary.range(), left, right);
                }
                Expr::Call(call) => called(check, scope, call, node.item),
                _ => {}
            }
        }
    }
}

/// A place that is certain, with the text of what lies there.
fn placed(
    check: &Check<'_, '_>,
    scope: &Scope<'_>,
    expr: &Expr,
    item: usize,
) -> Option<(String, Residence)> {
    // Only names and views of them: a value made on the spot is what `create-then-move` looks at.
    let name = path(viewed(expr))?;
    let made = scope.latest(&name, item)?;
    // A binding in one arm of a branch, or an attribute, is not proof.
    if name.contains('.') || !scope.dominates(made.item, item) {
        return None;
    }
    match file_value(check, scope, &name, item) {
        Value::Tensor(tensor)
            if !tensor.scalar
                && tensor.place != Residence::Unknown
                && tensor.place != Residence::Chosen =>
        {
            Some((name, tensor.place))
        }
        Value::Module(module) if matches!(module.place, Residence::Host | Residence::Cuda) => {
            Some((name, module.place))
        }
        _ => None,
    }
}

/// What a view or a cast, which stays where it is, was made of: `x` in `x.t()` and `x.T`.
fn viewed(expr: &Expr) -> &Expr {
    const VIEWS: &[&str] = &[
        "t",
        "transpose",
        "permute",
        "view",
        "reshape",
        "squeeze",
        "unsqueeze",
        "flatten",
        "contiguous",
        "detach",
        "float",
        "half",
        "clone",
    ];
    match expr {
        Expr::Call(call) => match method(call) {
            Some((receiver, name)) if VIEWS.contains(&name) => viewed(receiver),
            _ => expr,
        },
        Expr::Attribute(attribute) if matches!(attribute.attr.as_str(), "T" | "mT" | "H") => {
            viewed(&attribute.value)
        }
        _ => expr,
    }
}

fn file_value(check: &Check<'_, '_>, scope: &Scope<'_>, name: &str, item: usize) -> Value {
    check.file.value_at(scope, name, item)
}

fn called(check: &mut Check<'_, '_>, scope: &Scope<'_>, call: &ExprCall, item: usize) {
    let functions =
        ["torch.matmul", "torch.mm", "torch.add", "torch.mul", "torch.bmm", "torch.cat"];
    let full = check.file.callee(call);
    if full.as_deref().is_some_and(|full| functions.contains(&full)) {
        if let [left, right, ..] = &*call.arguments.args {
            let (left, right) =
                (placed(check, scope, left, item), placed(check, scope, right, item));
            meet(check, call.range(), left, right);
        }
        return;
    }
    if method(call).is_none() && check.file.is_module(scope, &call.func, item) {
        let module = placed(check, scope, &call.func, item);
        let input = call.arguments.args.first().and_then(|input| placed(check, scope, input, item));
        meet(check, call.range(), module, input);
    }
}

fn meet(
    check: &mut Check<'_, '_>,
    range: TextRange,
    left: Option<(String, Residence)>,
    right: Option<(String, Residence)>,
) {
    let (Some((left, left_place)), Some((right, right_place))) = (left, right) else { return };
    if left_place == right_place {
        return;
    }
    let word = |place| if place == Residence::Cuda { "a CUDA device" } else { "the host" };
    check.report(
        range,
        format!(
            "`{left}` lies on {} and `{right}` on {}: PyTorch raises a RuntimeError",
            word(left_place),
            word(right_place)
        ),
        "make or move both on one device",
    );
}
