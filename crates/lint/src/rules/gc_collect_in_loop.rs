//! `gc-collect-in-loop`: Python's collector is run in every iteration of a loop that works on
//! batches. Silent behind a condition that changes, in handlers, and in loops over epochs or
//! models.

use ruff_text_size::Ranged;

use super::evidence::{in_every_iteration, is_hot};
use super::{Check, Rule};

pub(crate) static RULE: Rule = Rule {
    name: "gc-collect-in-loop",
    code: "PLM012",
    summary: "Python's collector runs in every iteration",
    pedantic: false,
    page: include_str!("../../pages/gc-collect-in-loop.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for (scope, node, call) in file.calls_of("collect") {
        let item = scope.nodes[node].item;
        if file.callee(call).as_deref() != Some("gc.collect") {
            continue;
        }
        let Some(around) = scope.innermost_loop(item) else { continue };
        if !in_every_iteration(scope, item, around) || !is_hot(file, scope, around) {
            continue;
        }
        let line = check.line(around.stmt);
        check.report(
            call.range(),
            format!(
                "every iteration of the loop on line {line} walks all Python objects; tensors without cycles \
                 are freed without it"
            ),
            "leave it out, or call it every few hundred iterations; find the cycle that needs it",
        );
    }
}
