//! `empty-cache-in-loop`: the device cache is given back in every iteration of a loop that works on
//! batches. Silent behind a modulus or any other condition that changes, in handlers, and in loops
//! over epochs or models.

use ruff_text_size::Ranged;

use super::evidence::{in_every_iteration, is_hot};
use super::{Check, Rule};
use crate::model::expression::last_name;

pub(crate) static RULE: Rule = Rule {
    name: "empty-cache-in-loop",
    code: "PLM011",
    summary: "The cache of device memory is emptied in every iteration",
    pedantic: false,
    page: include_str!("../../pages/empty-cache-in-loop.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for (scope, node, call) in file.calls_of("empty_cache") {
        let item = scope.nodes[node].item;
        let Some(around) = scope.innermost_loop(item) else { continue };
        if last_name(&call.func) != Some("empty_cache") || scope.in_lambda(node) {
            continue;
        }
        if !in_every_iteration(scope, item, around) || !is_hot(file, scope, around) {
            continue;
        }
        let line = check.line(around.stmt);
        check.report(
            call.range(),
            format!(
                "every iteration of the loop on line {line} gives the cached device memory back: the next \
                 iteration waits for the device and asks the driver for the same memory again"
            ),
            "leave it out, or call it every few hundred iterations or after a change of shapes",
        );
    }
}
