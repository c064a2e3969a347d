//! `checkpoint-use-reentrant`: a call of PyTorch's `checkpoint` without `use_reentrant`. The two
//! implementations differ in what they support; leaving the choice open is a warning today and an
//! error to come.

use ruff_text_size::Ranged;

use super::evidence::appended;
use super::{Check, Rule};
use crate::model::Scope;
use crate::model::expression::{keyword, passes_unseen};

pub(crate) static RULE: Rule = Rule {
    name: "checkpoint-use-reentrant",
    code: "PLM020",
    summary: "A checkpoint does not say which of the two implementations it means",
    pedantic: false,
    page: include_str!("../../pages/checkpoint-use-reentrant.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for name in ["checkpoint", "checkpoint_sequential"] {
        for (scope, node, call) in file.calls_of(name) {
            let Some(full) = file.callee(call) else { continue };
            if !full.starts_with("torch.utils.checkpoint.")
                || keyword(call, "use_reentrant").is_some()
            {
                continue;
            }
            // `**options` may hold it; `*inputs` cannot, it is keyword-only.
            if passes_unseen(call)
                && call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none())
            {
                continue;
            }
            if call.arguments.args.is_empty() || is_for_old_versions(scope, scope.nodes[node].item)
            {
                continue;
            }
            let edits = appended(check.source.text(), call, "use_reentrant=False");
            check.report_fix(
                call.range(),
                format!(
                    "`{name}` does not say which implementation it means: PyTorch warns, and the one without \
                     re-entry also works with inputs that need no gradient, with `no_grad` and with keyword arguments"
                ),
                "pass `use_reentrant=False`",
                edits,
            );
        }
    }
}

/// Another arm of the same branch passes it: this one serves versions that do not know it.
fn is_for_old_versions(scope: &Scope<'_>, item: usize) -> bool {
    scope.calls().any(|(node, call)| {
        keyword(call, "use_reentrant").is_some() && scope.exclusive(scope.nodes[node].item, item)
    })
}
