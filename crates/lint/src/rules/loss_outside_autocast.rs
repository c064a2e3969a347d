//! `loss-outside-autocast`: an output made under autocast goes into a loss outside of it. Autocast
//! would compute the loss in float32; outside it runs in the half precision of the output. Silent
//! if the output is cast first, and without gradients.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::path;
use crate::model::{Grad, Graph, How, Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "loss-outside-autocast",
    code: "PLM009",
    summary: "A loss is computed outside autocast from half-precision outputs",
    pedantic: false,
    page: include_str!("../../pages/loss-outside-autocast.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        if !scope.has_autocast() {
            continue;
        }
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            if scope.in_autocast(item) || !is_loss_call(check, scope, call, item) {
                continue;
            }
            if file.grad(scope, item) == Grad::Off || decorated(scope) {
                continue;
            }
            let Some((name, made)) = half_output(scope, call, item) else { continue };
            let line = check.line(scope.items[made].stmt);
            let callee = check.quote(&*call.func);
            check.report(
                call.range(),
                format!(
                    "`{name}` is made under autocast (line {line}) but `{callee}` runs outside of it, in half \
                     precision instead of float32; small losses lose digits and large ones overflow"
                ),
                format!("compute the loss inside the autocast block, or cast: `{name}.float()`"),
            );
        }
    }
}

fn is_loss_call(check: &Check<'_, '_>, scope: &Scope<'_>, call: &ExprCall, item: usize) -> bool {
    if let Some(full) = check.file.callee(call) {
        // Log-probabilities come from `log_softmax`, which autocast computes in float32.
        return full.starts_with("torch.nn.functional.")
            && full != "torch.nn.functional.nll_loss"
            && (full.ends_with("_loss")
                || full.contains("cross_entropy")
                || full.ends_with("kl_div"));
    }
    matches!(check.file.infer(scope, &call.func, item), Value::Criterion)
}

/// A function that runs under autocast as a whole.
fn decorated(scope: &Scope<'_>) -> bool {
    scope.function().is_some_and(|function| {
        function.decorator_list.iter().any(|decorator| {
            let callee = match &decorator.expression {
                Expr::Call(call) => &call.func,
                other => other,
            };
            crate::model::expression::last_name(callee)
                .is_some_and(|name| name.contains("autocast"))
        })
    })
}

/// An argument that the nearest binding made under autocast by calling a model.
fn half_output(scope: &Scope<'_>, call: &ExprCall, item: usize) -> Option<(String, usize)> {
    call.arguments.args.iter().filter_map(path).find_map(|name| {
        let made = scope.latest(&name, item)?;
        let by_model = made.value.tensor().is_some_and(|t| t.output && t.graph != Graph::No);
        let here = scope.innermost_loop(item).map(|l| l.number)
            == scope.innermost_loop(made.item).map(|l| l.number);
        let bound = matches!(made.how, How::Assign | How::Unpack);
        (bound && by_model && here && scope.in_autocast(made.item)).then_some((name, made.item))
    })
}
