//! `blocking-copy-from-pinned`: batches of a loader that pins memory are copied without
//! `non_blocking=True`, so the host waits for each copy and pinning gains less than it could.

use ruff_text_size::Ranged;

use super::evidence::{appended, batch_copies};
use super::{Check, Rule};
use crate::model::expression::{keyword, last_name};

pub(crate) static RULE: Rule = Rule {
    name: "blocking-copy-from-pinned",
    code: "PLM031",
    summary: "A copy from pinned memory waits although it need not",
    pedantic: true,
    page: include_str!("../../pages/blocking-copy-from-pinned.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for copy in batch_copies(file, scope, true) {
            let to_device = || {
                file.moved_to(scope, copy.call, copy.item).is_some_and(|place| place.is_device())
            };
            let moves = last_name(&copy.call.func) == Some("cuda") || to_device();
            if !moves || keyword(copy.call, "non_blocking").is_some() {
                continue;
            }
            let edits = appended(check.source.text(), copy.call, "non_blocking=True");
            check.report_fix(
                copy.call.range(),
                format!("`{}` pins its batches, but this copy waits until it is done", copy.over),
                "pass `non_blocking=True`; the device orders its own work after the copy",
                edits,
            );
        }
    }
}
