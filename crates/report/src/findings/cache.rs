//! Oversized cache: an early peak left far more reserved than anything since has used.

use super::words::{percent, size};
use super::{Case, Finding, FindingKind};
use crate::analysis::{ALIVE, PlacedSegment, Sites, placement};

/// Caches below this help more than they cost.
const TOLERATED_BYTES: u64 = 64 << 20;
/// The idle share of what is reserved, in percent.
const TOLERATED_PERCENT: u64 = 40;

/// Reserved bytes at the end that nothing needed in the last third of the trace.
pub(super) fn cold_bytes(case: &Case<'_>, reserved: u64) -> u64 {
    let lives = &case.device.lives;
    let last = lives.last_position();
    let from = match case.device.steps.first() {
        // From the start of a step on, so that a whole step is seen.
        Some(steps) if steps.count() >= 3 => steps.bounds[steps.count() * 2 / 3],
        _ => last - last / 3,
    };
    reserved.saturating_sub(highest_since(case, from))
}

/// The most bytes alive at once from a position on.
fn highest_since(case: &Case<'_>, from: u32) -> u64 {
    let lives = &case.device.lives;
    let mut changes: Vec<(u32, i64)> = Vec::new();
    for life in 0..lives.len() {
        if lives.died[life] <= from {
            continue;
        }
        if lives.born[life] > from {
            changes.push((lives.born[life], lives.bytes[life] as i64));
        }
        if lives.died[life] != ALIVE {
            changes.push((lives.died[life], -(lives.bytes[life] as i64)));
        }
    }
    changes.sort_unstable();
    let (mut now, start) = (0i64, lives.bytes_at(from));
    let highest = changes.into_iter().fold(0i64, |highest, (_, change)| {
        now += change;
        highest.max(now)
    });
    start.saturating_add_signed(highest)
}

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let (device, lives) = (case.device.device, &case.device.lives);
    let last = lives.last_position();
    let placed = placement(case.snapshot, device, lives, last);
    let reserved: u64 = placed.iter().map(PlacedSegment::total_bytes).sum();
    let empty: Vec<&PlacedSegment> = placed.iter().filter(|segment| segment.is_empty()).collect();
    let idle: u64 = empty.iter().map(|segment| segment.total_bytes()).sum();
    let cold = cold_bytes(case, reserved).min(idle);
    // Without an end that is quieter than what came before, an idle cache is just the end of a program.
    let quiet = !lives.rows.is_empty() && !case.device.steps.is_empty();
    if !quiet || cold < TOLERATED_BYTES || percent(cold, reserved) < TOLERATED_PERCENT {
        return None;
    }
    let peak = &case.device.at_peak;
    let known = peak.by_site.iter().find(|(site, _)| *site != Sites::NOWHERE);
    let site = known.map_or(Sites::NOWHERE, |(site, _)| *site);
    Some(Finding {
        kind: FindingKind::OversizedCache,
        cause: "an early peak left the cache larger than what is used since".to_string(),
        device,
        bytes: cold,
        count: empty.len() as u64,
        bytes_per_step: None,
        site,
        message: format!(
            "{} are reserved, but the last third of the trace used {} at most: {} stay in the cache since \
             the peak of {}, which {} filled the most.",
            size(reserved),
            size(reserved - cold_bytes(case, reserved)),
            size(cold),
            size(peak.total.bytes),
            case.line(site),
        ),
        advice: "If other programs need the memory, call `torch.cuda.empty_cache()` once after that peak; \
                 better, avoid the peak (a smaller first batch, or parts of it at a time)."
            .to_string(),
        position: last,
    })
}
