//! `delete-before-backward`: a tensor that went into the loss is deleted before the backward pass.
//! It is no mistake: the graph keeps what backward needs. The finding says what is really freed,
//! because the gain depends on the operation.

use ruff_python_ast::Stmt;
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::{path, paths, targets};
use crate::model::{How, Scope, backward_roots};

pub(crate) static RULE: Rule = Rule {
    name: "delete-before-backward",
    code: "PLM027",
    summary: "Deleting a tensor before backward frees only what the graph does not need",
    pedantic: true,
    page: include_str!("../../pages/delete-before-backward.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for item in 0..scope.items.len() {
            let (names, range) = match scope.items[item].stmt {
                Stmt::Delete(delete) => {
                    (delete.targets.iter().flat_map(targets).collect::<Vec<_>>(), delete.range())
                }
                Stmt::Assign(assign) if assign.value.is_none_literal_expr() => {
                    (assign.targets.iter().filter_map(path).collect(), assign.range())
                }
                _ => continue,
            };
            let Some((name, back)) = names.iter().find_map(|name| {
                let back = backward_of(scope, name, item)?;
                Some((name, back))
            }) else {
                continue;
            };
            let line = check.line(scope.items[back].stmt);
            check.report(
                range,
                format!(
                    "dropping `{name}` before the backward pass on line {line} is safe, and frees it only if no \
                     operation saved it: cross-entropy does not save its logits, a mean squared error saves its input"
                ),
                "keep it if it frees memory that you measured; otherwise drop it after the backward pass",
            );
        }
    }
}

/// The backward pass after an item over a loss that was computed from the name before it.
fn backward_of(scope: &Scope<'_>, name: &str, item: usize) -> Option<usize> {
    let made = scope.bindings_within(name, 0..item).next_back()?;
    let (back, call) = scope.backward_after(item)?;
    let roots = backward_roots(call);
    let same_turn = scope.innermost_loop(back).map(|l| l.number)
        == scope.innermost_loop(item).map(|l| l.number);
    let made_from = scope.bindings_in(made.item + 1..item).iter().any(|binding| {
        roots.contains(&binding.path)
            && binding.how != How::Delete
            && binding.expr.is_some_and(|expr| paths(expr).iter().any(|path| path == name))
    });
    (same_turn && made_from && !roots.iter().any(|root| root == name)).then_some(back)
}
