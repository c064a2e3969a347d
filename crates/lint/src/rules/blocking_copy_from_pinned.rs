//! `blocking-copy-from-pinned`: batches of a loader that pins memory are copied without `non_blocking=True`, so the host waits
//! for each copy and pinning gains less than it could.

use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::finding::Edit;
use crate::model::Value;
use crate::model::expression::{holder_path, keyword, method, path};

pub(crate) static RULE: Rule = Rule {
    name: "blocking-copy-from-pinned",
    code: "PLM031",
    summary: "A copy from pinned memory waits although it need not",
    pedantic: true,
    page: include_str!("../../../../docs/lint/blocking-copy-from-pinned.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for around in &scope.loops {
            let Some(over) = around.over.and_then(path) else { continue };
            let Value::Loader(loader) = file.value_at(scope, &over, around.item) else { continue };
            if loader.pinned != Some(true) {
                continue;
            }
            for (node, call) in scope.calls_in(around.body()) {
                let Some((receiver, name @ ("to" | "cuda"))) = method(call) else { continue };
                let root = holder_path(receiver).unwrap_or_default();
                let root = root.split('.').next().unwrap_or_default();
                let of_batch = around.targets.iter().any(|target| target == root);
                let moves = name == "cuda"
                    || file.moved_to(scope, call, node.item).is_some_and(|place| place.is_device());
                if !of_batch || !moves || keyword(call, "non_blocking").is_some() {
                    continue;
                }
                let close = call.end().to_usize() - 1;
                let empty = call.arguments.args.is_empty() && call.arguments.keywords.is_empty();
                let text = if empty { "non_blocking=True" } else { ", non_blocking=True" };
                let last = call
                    .arguments
                    .args
                    .iter()
                    .map(|a| a.end())
                    .chain(call.arguments.keywords.iter().map(|k| k.end()))
                    .max();
                let at = last.map_or(close, |end| end.to_usize());
                check.report_fix(
                    call.range(),
                    format!("`{over}` pins its batches, but this copy waits until it is done"),
                    "pass `non_blocking=True`; the device orders its own work after the copy",
                    vec![Edit::insert(at, text)],
                );
            }
        }
    }
}
