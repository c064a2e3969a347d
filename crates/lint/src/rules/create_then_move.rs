//! `create-then-move`: a tensor is made in host memory only to be copied to a device in the same
//! expression. Silent for data that lies on the host anyway, for pinned tensors, and with an
//! explicit generator.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::evidence::{appended, name_range};
use super::{Check, Rule};
use crate::finding::Edit;
use crate::model::expression::{keyword, method, passes_unseen, string};
use crate::model::{CONSTANT_CREATORS, RANDOM_CREATORS, Residence, Scope};

pub(crate) static RULE: Rule = Rule {
    name: "create-then-move",
    code: "PLM014",
    summary: "A tensor is made on the host only to be copied to a device",
    pedantic: false,
    page: include_str!("../../pages/create-then-move.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            let Some((Expr::Call(creation), move_name @ ("cuda" | "to"))) = method(call) else {
                continue;
            };
            let Some(full) = file.callee(creation) else { continue };
            let Some(kind) = full.strip_prefix("torch.") else { continue };
            let random = RANDOM_CREATORS.contains(&kind);
            if !random && !CONSTANT_CREATORS.contains(&kind) {
                continue;
            }
            // Outside of loops random numbers are often made on the host on purpose, to be the same
            // on every device.
            if random
                && !scope
                    .loops_of(item)
                    .any(|around| around.has_backward || around.loader.is_some())
            {
                continue;
            }
            // A `try` around it asks whether the device can.
            if scope.is_guarded(item) {
                continue;
            }
            if file.default_device_changed || passes_unseen(creation) || passes_unseen(call) {
                continue;
            }
            if ["device", "generator", "pin_memory", "out", "requires_grad"]
                .iter()
                .any(|k| keyword(creation, k).is_some())
            {
                continue;
            }
            let Some(device) = destination(check, scope, call, move_name, item) else { continue };
            let text = check.quote(creation);
            let edits = if random {
                Vec::new()
            } else {
                moved_into(check.source.text(), call, creation, &device)
            };
            let note = if random { " (the device's generator then gives the numbers)" } else { "" };
            check.report_fix(
                call.range(),
                format!("`{text}` is filled in host memory and then copied: the bytes exist twice and cross the bus"),
                format!("make it where it is used: `device={device}`{note}"),
                edits,
            );
        }
    }
}

/// The device as it is written, if the call moves to a device and does nothing else.
fn destination(
    check: &Check<'_, '_>,
    scope: &Scope<'_>,
    call: &ExprCall,
    name: &str,
    item: usize,
) -> Option<String> {
    if name == "cuda" {
        return match (&*call.arguments.args, call.arguments.keywords.len()) {
            ([], _) => Some("\"cuda\"".to_string()),
            ([device], 0) => Some(check.quote(device)),
            _ => None,
        };
    }
    let device = match &*call.arguments.args {
        [device] => device,
        [] => keyword(call, "device")?,
        _ => return None,
    };
    let others = call.arguments.keywords.iter().any(|keyword| {
        keyword
            .arg
            .as_ref()
            .is_some_and(|name| name.as_str() != "device" && name.as_str() != "non_blocking")
    });
    let place = check.file.place_of(scope, device, item);
    // A word that names no device is a dtype or a tensor.
    let known = place.is_device() || string(device).is_some_and(|text| text.starts_with("cuda"));
    (known && place != Residence::Host && !others)
        .then(|| check.source.text()[device.range().to_std_range()].to_string())
}

/// The creation with a `device` argument instead of the move.
fn moved_into(text: &str, call: &ExprCall, creation: &ExprCall, device: &str) -> Vec<Edit> {
    let mut edits = appended(text, creation, &format!("device={device}"));
    let made = creation.end().to_usize();
    let Some(name) = name_range(call).filter(|_| !edits.is_empty()) else { return Vec::new() };
    // Brackets around the creation stay: `(torch.zeros(4, 4)).cuda()`.
    let between = text.get(made..name.start().to_usize()).unwrap_or_default();
    let start = made + between.rfind(')').map_or(0, |bracket| bracket + 1);
    edits.push(Edit { start, end: call.end().to_usize(), text: String::new() });
    edits
}
