//! `hooks-in-loop`: a hook is registered on the same module in every iteration and none is removed.
//! Silent for loops over modules, for hooks on tensors made in the loop, and where the handle is
//! removed.

use ruff_python_ast::Stmt;
use ruff_text_size::Ranged;

use super::evidence::{bound_in, in_every_iteration};
use super::{Check, Rule};
use crate::model::expression::{holder_path, method};
use crate::model::{Loop, Scope};

pub(crate) static RULE: Rule = Rule {
    name: "hooks-in-loop",
    code: "PLM023",
    summary: "A hook is registered in every iteration and never removed",
    pedantic: false,
    page: include_str!("../../pages/hooks-in-loop.md"),
    check,
};

const REGISTER: &[&str] = &[
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_backward_hook",
    "register_hook",
    "register_state_dict_pre_hook",
];

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for name in REGISTER {
        for (scope, node, call) in file.calls_of(name) {
            let item = scope.nodes[node].item;
            let Some((receiver, _)) = method(call) else { continue };
            let (Some(hooked), Some(around)) = (holder_path(receiver), scope.innermost_loop(item))
            else {
                continue;
            };
            let indexed = receiver.is_subscript_expr();
            if indexed || bound_in(scope, around, &hooked) || removes(scope, around) {
                continue;
            }
            if !in_every_iteration(scope, item, around)
                || scope.in_lambda(node)
                || over_parts(around)
            {
                continue;
            }
            let line = check.line(around.stmt);
            check.report(
                call.range(),
                format!(
                    "every iteration of the loop on line {line} adds one more hook to `{hooked}`; all of them run \
                     in every pass, and what they capture stays alive"
                ),
                "register it once before the loop, or keep the handle and call `handle.remove()`",
            );
        }
    }
}

fn removes(scope: &Scope<'_>, around: &Loop<'_>) -> bool {
    scope.calls_in(around.body()).any(|(_, call)| matches!(method(call), Some((_, "remove"))))
        || around
            .body()
            .any(|item| matches!(scope.items[item].stmt, Stmt::Break(_) | Stmt::Return(_)))
}

/// A loop over layers, modules or names of them registers on different things, however it spells
/// them.
fn over_parts(around: &Loop<'_>) -> bool {
    let words = ["module", "layer", "child", "param", "block", "name", "hook"];
    let text = |text: &str| words.iter().any(|word| text.to_ascii_lowercase().contains(word));
    around.targets.iter().any(|target| text(target))
        || around
            .over
            .is_some_and(|over| crate::model::expression::paths(over).iter().any(|path| text(path)))
}
