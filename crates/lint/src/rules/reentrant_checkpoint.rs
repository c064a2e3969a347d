//! `reentrant-checkpoint`: `use_reentrant=True` asks for the old implementation of checkpoints. It
//! holds the same bytes, and lacks keyword arguments, `no_grad` inside, and inputs that need no
//! gradient.

use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::finding::Edit;
use crate::model::expression::is_true;

pub(crate) static RULE: Rule = Rule {
    name: "reentrant-checkpoint",
    code: "PLM033",
    summary: "The reentrant checkpoint is the old implementation",
    pedantic: true,
    page: include_str!("../../pages/reentrant-checkpoint.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for (_, call) in scope.calls() {
            let Some(flag) = call.arguments.find_keyword("use_reentrant") else { continue };
            if !is_true(&flag.value) {
                continue;
            }
            check.report_fix(
                flag.range(),
                "the re-entrant checkpoint holds the same bytes as the other and supports less: no gradients if no \
                 input needs one, no keyword arguments, no `torch.autograd.grad`"
                    .to_string(),
                "pass `use_reentrant=False`",
                vec![Edit::replace(flag.value.range(), "False")],
            );
        }
    }
}
