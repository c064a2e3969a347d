//! `non-contiguous-in-loop`: a transposed tensor from outside a loop is copied into order by
//! `contiguous`, `reshape` or `flatten` in every iteration. Element-wise work on strided tensors is
//! not reported: it is no slower.

use ruff_text_size::Ranged;

use super::evidence::bound_in;
use super::{Check, Rule};
use crate::model::Value;
use crate::model::expression::{method, path};

pub(crate) static RULE: Rule = Rule {
    name: "non-contiguous-in-loop",
    code: "PLM030",
    summary: "A strided tensor is copied into order in every iteration",
    pedantic: true,
    page: include_str!("../../pages/non-contiguous-in-loop.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            let Some((receiver, name @ ("contiguous" | "reshape" | "flatten" | "ravel"))) =
                method(call)
            else {
                continue;
            };
            let (Some(strided), Some(around)) = (path(receiver), scope.innermost_loop(item)) else {
                continue;
            };
            let Value::Tensor(tensor) = file.infer(scope, receiver, item) else { continue };
            if !tensor.strided || bound_in(scope, around, &strided) {
                continue;
            }
            let line = check.line(around.stmt);
            check.report(
                call.range(),
                format!(
                    "`{strided}` is transposed outside the loop on line {line}, so `{name}` copies all of it in \
                     every iteration"
                ),
                format!("copy once before the loop: `{strided} = {strided}.contiguous()`"),
            );
        }
    }
}
