//! `no-pin-memory`: batches of a loader that does not pin memory are copied with
//! `non_blocking=True`. The copy cannot overlap: pageable memory is staged by the host. Only if the
//! loader is made in this file and shows its arguments.

use ruff_text_size::Ranged;

use super::evidence::batch_copies;
use super::{Check, Rule};
use crate::model::expression::{is_true, keyword};

pub(crate) static RULE: Rule = Rule {
    name: "no-pin-memory",
    code: "PLM017",
    summary: "Non-blocking copies from memory that is not pinned",
    pedantic: false,
    page: include_str!("../../pages/no-pin-memory.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        let mut reported = None;
        for copy in batch_copies(file, scope, false) {
            // One finding a loop: the remedy is one argument of the loader.
            if reported == Some(copy.around)
                || !keyword(copy.call, "non_blocking").is_some_and(is_true)
            {
                continue;
            }
            reported = Some(copy.around);
            let (over, line) = (copy.over, check.line(&copy.made));
            check.report(
                copy.call.range(),
                format!(
                    "`non_blocking=True` has no effect here: `{over}` (line {line}) does not pin its batches, and \
                     copies from pageable memory go through a staging buffer while the host waits"
                ),
                format!("make `{over}` with `pin_memory=True`"),
            );
        }
    }
}
