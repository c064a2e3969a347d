//! `set-to-none-default`: `zero_grad(set_to_none=True)` says what has been the default since
//! PyTorch 2.0.

use ruff_text_size::{Ranged, TextRange};

use super::{Check, Rule};
use crate::finding::Edit;
use crate::model::expression::is_true;

pub(crate) static RULE: Rule = Rule {
    name: "set-to-none-default",
    code: "PLM034",
    summary: "`set_to_none=True` is the default",
    pedantic: true,
    page: include_str!("../../pages/set-to-none-default.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for (_, _, call) in file.calls_of("zero_grad") {
        let Some(flag) =
            call.arguments.find_keyword("set_to_none").filter(|flag| is_true(&flag.value))
        else {
            continue;
        };
        let alone = call.arguments.args.is_empty() && call.arguments.keywords.len() == 1;
        let inside = TextRange::new(
            call.arguments.range.start() + ruff_text_size::TextSize::new(1),
            call.end() - ruff_text_size::TextSize::new(1),
        );
        let edits = if alone { vec![Edit::replace(inside, "")] } else { Vec::new() };
        check.report_fix(
            flag.range(),
            "`set_to_none=True` is the default since PyTorch 2.0; gradients are freed either way"
                .to_string(),
            "leave it out",
            edits,
        );
    }
}
