//! Oversized cache: far more is reserved than anything lately has used. Either an early peak left it, or the sizes that are
//! asked for change, so that what earlier ones left serves none of the later ones.

use super::words::{counted, percent, size, total};
use super::{Case, Finding, FindingKind};
use crate::analysis::{ALIVE, Lives, PlacedSegment, Sites, placement};

/// Caches below this help more than they cost.
const TOLERATED_BYTES: u64 = 64 << 20;
/// The idle share of what is reserved, in percent.
const TOLERATED_PERCENT: u64 = 40;

/// Reserved bytes at the end that nothing needed lately (see [`lately`]).
pub(super) fn cold_bytes(case: &Case<'_>, reserved: u64) -> u64 {
    reserved.saturating_sub(highest_since(&case.device.lives, lately(case)))
}

/// From which position on needs count. Where the program repeats itself, from the start of a step in the last third, so that
/// whole steps are seen. Once its loop is over, what the loop needed is over too: then only what was asked for since counts.
fn lately(case: &Case<'_>) -> u32 {
    let lives = &case.device.lives;
    let last = lives.last_position();
    let Some(steps) = case.device.steps.first().filter(|steps| steps.count() >= 3) else {
        return last - last / 3;
    };
    let born = &lives.born[..lives.in_trace];
    let bounds = &steps.bounds;
    let made_by = |position: u32| born.partition_point(|born| *born <= position);
    let (start, end) = (made_by(bounds[0]), made_by(bounds[steps.count()]));
    // A last step that the loop did not close lies after the last bound; what goes well beyond it is no step any more.
    let step = (end - start).div_ceil(steps.count());
    match born.get(end + 2 * step) {
        Some(_) => born[end + step] - 1,
        None => bounds[steps.count() * 2 / 3],
    }
}

/// The most bytes alive at once when something was asked for after a position. What is only let go there needs nothing.
fn highest_since(lives: &Lives, from: u32) -> u64 {
    let mut changes: Vec<(u32, i128)> = Vec::new();
    for life in 0..lives.len() {
        if lives.died[life] <= from {
            continue;
        }
        if lives.born[life] > from {
            changes.push((lives.born[life], i128::from(lives.bytes[life])));
        }
        if lives.died[life] != ALIVE {
            changes.push((lives.died[life], -i128::from(lives.bytes[life])));
        }
    }
    changes.sort_unstable();
    let start = lives.bytes_at(from);
    let (mut now, mut highest) = (0i128, None);
    for (_, change) in changes {
        now += change;
        if change > 0 {
            highest = Some(highest.map_or(now, |most: i128| most.max(now)));
        }
    }
    let wide = i128::from(start) + highest.unwrap_or(0);
    u64::try_from(wide.max(0)).unwrap_or(u64::MAX)
}

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let (device, lives) = (case.device.device, &case.device.lives);
    let last = lives.last_position();
    let placed = placement(case.snapshot, device, lives, last);
    let reserved = total(placed.iter().map(PlacedSegment::total_bytes));
    let empty: Vec<&PlacedSegment> = placed.iter().filter(|segment| segment.is_empty()).collect();
    let idle = total(empty.iter().map(|segment| segment.total_bytes()));
    let cold = cold_bytes(case, reserved).min(idle);
    // Without an end that is quieter than what came before, an idle cache is just the end of a program.
    let quiet = !lives.rows.is_empty() && !case.device.steps.is_empty();
    if !quiet || cold < TOLERATED_BYTES || percent(cold, reserved) < TOLERATED_PERCENT {
        return None;
    }
    let peak = &case.device.at_peak;
    let known = peak.by_site.iter().find(|(site, _)| *site != Sites::NOWHERE);
    let site = known.map_or(Sites::NOWHERE, |(site, _)| *site);
    let needed = reserved - cold_bytes(case, reserved);
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
