//! `no-pin-memory`: batches of a loader that does not pin memory are copied with `non_blocking=True`. The copy cannot overlap:
//! pageable memory is staged by the host. Only if the loader is made in this file and shows its arguments.

use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::Value;
use crate::model::expression::{is_true, keyword, method, path};

pub(crate) static RULE: Rule = Rule {
    name: "no-pin-memory",
    code: "PLM017",
    summary: "Non-blocking copies from memory that is not pinned",
    pedantic: false,
    page: include_str!("../../../../docs/lint/no-pin-memory.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for around in &scope.loops {
            let Some(over) = around.over.and_then(path) else { continue };
            let Value::Loader(loader) = file.value_at(scope, &over, around.item) else { continue };
            if loader.pinned != Some(false) {
                continue;
            }
            let copy = scope.calls_in(around.body()).find(|(_, call)| {
                matches!(method(call), Some((receiver, "to" | "cuda")) if {
                    let root = crate::model::expression::holder_path(receiver).unwrap_or_default();
                    let root = root.split('.').next().unwrap_or_default();
                    around.targets.iter().any(|target| target == root)
                }) && keyword(call, "non_blocking").is_some_and(is_true)
            });
            let Some((_, copy)) = copy else { continue };
            let line = check.line(&loader.made);
            check.report(
                copy.range(),
                format!(
                    "`non_blocking=True` has no effect here: `{over}` (line {line}) does not pin its batches, and \
                     copies from pageable memory go through a staging buffer while the host waits"
                ),
                format!("make `{over}` with `pin_memory=True`"),
            );
        }
    }
}
