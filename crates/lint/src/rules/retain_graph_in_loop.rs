//! `retain-graph-in-loop`: the last backward pass of an iteration retains the graph although the
//! optimizer then steps. Nothing can use the graph again; it stays until the next iteration
//! replaces it. Silent if another backward pass follows.

use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::{is_true, keyword, last_name};
use crate::model::{How, Loop, Scope, backward_roots, is_backward, is_optimizer_step};

pub(crate) static RULE: Rule = Rule {
    name: "retain-graph-in-loop",
    code: "PLM021",
    summary: "The graph is retained in every step although nothing uses it again",
    pedantic: false,
    page: include_str!("../../pages/retain-graph-in-loop.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for (scope, node, call) in file.calls_of("backward") {
        let item = scope.nodes[node].item;
        if !is_backward(call) || !keyword(call, "retain_graph").is_some_and(is_true) {
            continue;
        }
        if keyword(call, "create_graph")
            .is_some_and(|flag| !crate::model::expression::is_false(flag))
        {
            continue;
        }
        let Some(around) = scope.innermost_loop(item) else { continue };
        if used_again(scope, around, item)
            || !fresh_loss(scope, around, item, &backward_roots(call))
        {
            continue;
        }
        let steps = scope
            .calls_in(item..around.end)
            .any(|(node, call)| is_optimizer_step(call) && !scope.exclusive(node.item, item));
        if !steps {
            continue;
        }
        let line = check.line(around.stmt);
        check.report(
            call.range(),
            format!(
                "`retain_graph=True` keeps every saved activation although no backward pass follows in the loop on \
                 line {line}; two iterations' graphs are alive at once (relied on: the optimizer steps after it)"
            ),
            "leave it out; if PyTorch then reports a second backward pass, detach what is carried over",
        );
    }
}

/// Another pass over the graph later in the iteration.
fn used_again(scope: &Scope<'_>, around: &Loop<'_>, item: usize) -> bool {
    let is_grad = |expr: &Expr| last_name(expr) == Some("grad");
    scope.nodes_in(item..around.end).iter().any(|node| match node.expr {
        Expr::Call(call) => {
            node.item > item && is_backward(call) && !scope.exclusive(node.item, item)
                || is_grad(&call.func)
        }
        _ => false,
    })
}

/// The loss is computed in the same iteration; one from outside is meant to be used again.
fn fresh_loss(scope: &Scope<'_>, around: &Loop<'_>, item: usize, roots: &[String]) -> bool {
    roots.iter().any(|root| {
        scope
            .bindings_of(root)
            .any(|b| around.contains(b.item) && b.item < item && b.how != How::Delete)
    })
}
