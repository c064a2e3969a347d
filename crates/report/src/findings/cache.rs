//! Oversized cache: far more is reserved than anything lately has used. Either an early peak left
//! it, or the sizes that are asked for change, so that what earlier ones left serves none of the
//! later ones.

use super::idle::{highest_since, lately};
use super::words::{counted, percent, size, total};
use super::{Case, Finding, FindingKind};
use crate::analysis::{PlacedSegment, Sites, placement};

/// Caches below this help more than they cost.
const TOLERATED_BYTES: u64 = 64 << 20;
/// The idle share of what is reserved, in percent.
const TOLERATED_PERCENT: u64 = 40;

/// Reserved bytes at the end that nothing needed lately.
pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let (device, lives) = (case.device.device, &case.device.lives);
    let last = lives.last_position();
    let placed = placement(case.snapshot, device, lives, last);
    let reserved = total(placed.iter().map(PlacedSegment::total_bytes));
    let empty: Vec<&PlacedSegment> = placed.iter().filter(|segment| segment.is_empty()).collect();
    let idle = total(empty.iter().map(|segment| segment.total_bytes()));
    let needed = highest_since(lives, lately(case)).min(reserved);
    // What is free beside live blocks is no cache; `fragmentation.rs` looks at that.
    let beside = total(placed.iter().filter(|s| !s.is_empty()).map(PlacedSegment::free_bytes));
    let cold = (reserved - needed).saturating_sub(beside).min(idle);
    // Without an end that is quieter than what came before, an idle cache is just the end of a
    // program.
    let quiet = !lives.rows.is_empty() && !case.device.steps.is_empty();
    if !quiet || cold < TOLERATED_BYTES || percent(cold, reserved) < TOLERATED_PERCENT {
        return None;
    }
    let peak = &case.device.at_peak;
    let known = peak.by_site.iter().find(|(site, _)| *site != Sites::NOWHERE);
    let site = known.map_or(Sites::NOWHERE, |(site, _)| *site);
    let seen = format!(
        "{} are reserved, but lately {} were needed at most: {} stay in {} that nothing uses. ",
        size(reserved),
        size(needed),
        size(cold),
        counted(empty.len() as u64, "segment"),
    );
    let peak_bytes = size(peak.total.bytes);
    let line = case.line(site);
    // What a peak above the present needs accounts for; the rest was never in use all at once.
    let early = peak.total.bytes.saturating_sub(needed) >= cold / 2;
    let (cause, why, advice) = match early {
        true => (
            "an early peak left the cache larger than what is used since",
            format!("They are left from the peak of {peak_bytes}, which {line} filled the most."),
            "If other programs need the memory, call `torch.cuda.empty_cache()` once after that peak; \
             better, avoid the peak (a smaller first batch, or parts of it at a time).",
        ),
        false => (
            "sizes that change leave segments that later ones do not fit",
            format!(
                "Even the peak had {peak_bytes} live, the most from {line}: each new size took new \
                 segments, because those of the sizes before are too small for it."
            ),
            "Run the largest size first (one step with the longest sequence), pad to a few lengths, or \
             set PYTORCH_ALLOC_CONF=expandable_segments:True.",
        ),
    };
    Some(Finding {
        kind: FindingKind::OversizedCache,
        cause: cause.to_string(),
        device,
        bytes: cold,
        count: empty.len() as u64,
        bytes_per_step: None,
        site,
        message: seen + &why,
        advice: advice.to_string(),
        position: last,
    })
}
