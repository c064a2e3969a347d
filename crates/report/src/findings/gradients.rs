//! Gradients that stay: told by the tensors they belong to, which were kept while they required
//! gradients, or by the line that ran before backward.

use std::collections::HashMap;

use plimsoll_watch::causes;

use super::Case;
use super::leak::Cause;
use crate::analysis::{Growth, Phase, Sites};
use crate::stacks::StackId;

/// Gradients that stay: their tensors were kept while they required gradients, or they were taken
/// from them and kept.
pub(super) fn cause_of(case: &Case<'_>, growth: &Growth, kept: Option<StackId>) -> Cause {
    let lives = &case.device.lives;
    let Some(stack) = kept.or_else(|| owners(case, growth)) else {
        // The last line that ran before one of them was made.
        let site = growth.lives.last().map_or(Sites::NOWHERE, |life| {
            let before = (0..*life as usize).rev().map(|l| lives.stack[l]);
            let line = before.map(|stack| case.lines.sites.caller_of_stack(stack));
            line.into_iter().find(|site| *site != Sites::NOWHERE).unwrap_or(Sites::NOWHERE)
        });
        return Cause {
            name: causes::GRADIENTS.name,
            site,
            what: format!(
                "Backward made gradients that stay, after {}: they are kept by themselves (in a list of \
                 `x.grad`), or by tensors that were made earlier.",
                case.line(site)
            ),
            advice: causes::GRADIENTS.remedy,
        };
    };
    let site = case.lines.sites.caller_of_stack(stack);
    Cause {
        name: causes::INPUT_GRADIENTS.name,
        site,
        what: format!(
            "Backward made gradients that stay: the tensors of {} require gradients and are kept, \
             each with its `.grad`.",
            case.line(site)
        ),
        advice: "Keep what you need of the gradient (`x.grad.cpu()`), then set `x.grad = None`, or \
                 keep `x.detach()` instead of `x`; use `torch.autograd.grad` to get gradients \
                 without storing them.",
    }
}

/// Who made the tensors that gradients belong to, if they were made before the steps: as many and
/// as large as the gradients.
fn owners(case: &Case<'_>, growth: &Growth) -> Option<StackId> {
    let lives = &case.device.lives;
    let mut sizes: HashMap<u64, u64> = HashMap::new();
    for life in &growth.lives {
        *sizes.entry(lives.bytes[*life as usize]).or_default() += 1;
    }
    let most = |(bytes, count): &(u64, u64)| (bytes.saturating_mul(*count), *bytes);
    let (bytes, count) = sizes.into_iter().max_by_key(most)?;
    let mut made: HashMap<StackId, u64> = HashMap::new();
    for life in lives.alive_at(growth.position).filter(|life| lives.bytes[*life] == bytes) {
        if case.lines.phases.get(lives.stack[life]) == Phase::Program {
            *made.entry(lives.stack[life]).or_default() += 1;
        }
    }
    let (stack, tensors) = made.into_iter().max_by_key(|(stack, count)| (*count, stack.0))?;
    (tensors >= count).then_some(stack)
}
