//! `view-on-non-contiguous`: `view` on a transposed or permuted tensor where the number of
//! dimensions shows that it must merge some. PyTorch raises. Silent where the number is not known:
//! `view` that only splits dimensions works.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::evidence::name_range;
use super::{Check, Rule};
use crate::finding::Edit;
use crate::model::Value;
use crate::model::expression::{integer, receiver};

pub(crate) static RULE: Rule = Rule {
    name: "view-on-non-contiguous",
    code: "PLM016",
    summary: "`view` on a transposed tensor whose dimensions it merges",
    pedantic: false,
    page: include_str!("../../pages/view-on-non-contiguous.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for (scope, node, call) in file.calls_of("view") {
        let item = scope.nodes[node].item;
        let Some(viewed) = receiver(call, "view") else { continue };
        let Value::Tensor(tensor) = file.infer(scope, viewed, item) else { continue };
        if !tensor.strided || scope.is_guarded(item) {
            continue;
        }
        let Some(wanted) = dims(call) else { continue };
        let flattens = matches!(&*call.arguments.args, [one] if integer(one).is_some());
        let merges = match tensor.runs {
            Some(runs) => wanted < runs,
            None => flattens,
        };
        let Some(name) = name_range(call).filter(|_| merges) else { continue };
        let text = check.quote(viewed);
        let known = match tensor.runs {
            Some(runs) => format!("no fewer than {runs} are possible, {wanted} asked for"),
            None => "all dimensions become one".to_string(),
        };
        check.report_fix(
            call.range(),
            format!(
                "`{text}` is transposed and so not contiguous, and `view` cannot merge its dimensions ({known}): \
                 PyTorch raises a RuntimeError"
            ),
            "use `reshape`, which copies where it must, or `.contiguous()` first",
            vec![Edit::replace(name, "reshape")],
        );
    }
}

fn dims(call: &ExprCall) -> Option<usize> {
    match &*call.arguments.args {
        [] => None,
        [Expr::Tuple(tuple)] => Some(tuple.elts.len()),
        [one] => integer(one).map(|_| 1),
        many if many.iter().any(Expr::is_starred_expr) => None,
        many => Some(many.len()),
    }
}
