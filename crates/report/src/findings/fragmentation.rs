//! Fragmentation: memory that is free but in pieces, at the moment when the most was reserved; and
//! segments that live blocks keep although a good part of them lies idle, at the end. A wholly free
//! segment is cache (`cache.rs`), and holes that each step fills again are no loss.

use super::idle::{Touched, lately};
use super::words::{counted, percent, size, total};
use super::{Case, Finding, FindingKind};
use crate::analysis::{PlacedSegment, SiteId, Sites, placement};
use crate::events::Action;

/// Below this, free pieces are part of normal work.
const TOLERATED_BYTES: u64 = 24 << 20;
/// Below this, idle parts of segments are: a segment of the large pool has 20 MiB at least.
const TOLERATED_IDLE_BYTES: u64 = 64 << 20;
/// Pieces must be this share of what is reserved, in percent.
const TOLERATED_PERCENT: u64 = 20;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = in_pieces(case).into_iter().collect();
    // Where both are fragmentation, they are the same pieces.
    let idle = kept_idle(case).filter(|idle| found.iter().all(|other| other.kind != idle.kind));
    found.extend(idle);
    found
}

/// Free pieces when the allocator last had to ask the driver for more.
fn in_pieces(case: &Case<'_>) -> Option<Finding> {
    let (device, lives) = (case.device.device, &case.device.lives);
    // The event after a segment's is the allocation that it was made for.
    let grown = case.device.reserved.peak.position;
    let position = match grown {
        0 => return None,
        grown => (grown + 1).min(lives.last_position()),
    };
    let placed = placement(case.snapshot, device, lives, position);
    let used: Vec<&PlacedSegment> = placed.iter().filter(|segment| !segment.is_empty()).collect();
    let free = total(used.iter().map(|segment| segment.enclosed_bytes()));
    let reserved = total(placed.iter().map(PlacedSegment::total_bytes));
    let largest = used.iter().map(|segment| segment.largest_hole_bytes).max().unwrap_or(0);
    let forced = forced_segments(case, position);
    let matters = free >= TOLERATED_BYTES && percent(free, reserved) >= TOLERATED_PERCENT;
    if !matters || largest > free / 2 || forced < 2 {
        return None;
    }
    let holes = total(used.iter().map(|segment| u64::from(segment.holes)));
    let site =
        keeper(case, used.iter().filter(|s| s.enclosed_bytes() >= s.total_bytes() / 4).copied());
    Some(Finding {
        kind: FindingKind::Fragmentation,
        cause: "free memory lies in pieces between live blocks".to_string(),
        device,
        bytes: free,
        count: holes,
        bytes_per_step: None,
        site,
        message: format!(
            "When {} were reserved, {} of them ({} %) were free but in {} between live blocks, the \
             largest of {}; {} the driver was asked for more although enough was free. Blocks made at \
             {} keep the most holes apart.",
            size(reserved),
            size(free),
            percent(free, reserved),
            counted(holes, "hole"),
            size(largest),
            counted(forced, "time"),
            case.line(site),
        ),
        advice:
            "Set PYTORCH_ALLOC_CONF=expandable_segments:True; allocate what lives long before what \
                 lives shortly, and make sizes repeat (pad to a few lengths)."
                .to_string(),
        position,
    })
}

/// How often, up to a position, a segment was made although more than its bytes were free inside
/// others.
fn forced_segments(case: &Case<'_>, until: u32) -> u64 {
    let lives = &case.device.lives;
    let events = &case.snapshot.events;
    let mut used = i128::from(lives.bytes_before);
    let mut reserved = i128::from(case.device.reserved.start_bytes);
    let mut forced = 0;
    for row in lives.rows.clone().take(until as usize) {
        let bytes = i128::from(events.size[row]);
        match events.action[row] {
            Action::Alloc => used += bytes,
            Action::FreeCompleted => used -= bytes,
            Action::SegmentAlloc | Action::SegmentMap => {
                forced += u64::from(reserved - used >= bytes);
                reserved += bytes;
            }
            Action::SegmentFree | Action::SegmentUnmap => reserved -= bytes,
            _ => {}
        }
    }
    forced
}

/// Segments in use of which a good part lies idle at the end: nothing lately fitted into what the
/// live blocks leave.
fn kept_idle(case: &Case<'_>) -> Option<Finding> {
    let (device, lives) = (case.device.device, &case.device.lives);
    let last = lives.last_position();
    let placed = placement(case.snapshot, device, lives, last);
    let used: Vec<&PlacedSegment> = placed.iter().filter(|segment| !segment.is_empty()).collect();
    // The exact count takes time and memory; most traces are told from this one.
    if total(used.iter().map(|segment| segment.free_bytes())) < TOLERATED_IDLE_BYTES {
        return None;
    }
    let touched = Touched::since(lives, lately(case));
    let kept: Vec<(&PlacedSegment, u64)> = used
        .iter()
        .map(|segment| (*segment, touched.unused_bytes(segment)))
        .filter(|(segment, idle)| {
            segment.total_bytes() > (2 << 20) && *idle >= segment.total_bytes() / 3
        })
        .collect();
    let idle = total(kept.iter().map(|(_, idle)| *idle));
    let in_use = total(used.iter().map(|segment| segment.total_bytes()));
    if idle < TOLERATED_IDLE_BYTES || percent(idle, in_use) < TOLERATED_PERCENT || kept.len() < 2 {
        return None;
    }
    let live = total(kept.iter().map(|(segment, _)| segment.used_bytes));
    let site = keeper(case, kept.iter().map(|(segment, _)| *segment));
    let (kind, cause) = match live <= idle / 3 {
        true => (FindingKind::PinnedSegment, "small live blocks keep large segments"),
        false => (
            FindingKind::Fragmentation,
            "live blocks leave parts of segments that nothing fits into",
        ),
    };
    Some(Finding {
        kind,
        cause: cause.to_string(),
        device,
        bytes: idle,
        count: kept.len() as u64,
        bytes_per_step: None,
        site,
        message: format!(
            "{} hold {} live bytes only and cannot go back to the driver: {} in them lie idle, and nothing \
             lately fitted into them. The blocks that keep them were made at {}.",
            counted(kept.len() as u64, "segment"),
            size(live),
            size(idle),
            case.line(site),
        ),
        advice: "Make those long-lived tensors before the large short-lived ones, or clone them after the \
                 large ones are gone; or set PYTORCH_ALLOC_CONF=expandable_segments:True."
            .to_string(),
        position: last,
    })
}

/// The line whose blocks lie in the most of these segments.
fn keeper<'a>(case: &Case<'_>, segments: impl Iterator<Item = &'a PlacedSegment>) -> SiteId {
    let mut votes = std::collections::BTreeMap::new();
    for segment in segments {
        let mut here: Vec<SiteId> = segment
            .lives
            .iter()
            .map(|life| case.lines.sites.of_stack(case.device.lives.stack[*life as usize]))
            .collect();
        here.sort_unstable();
        here.dedup();
        here.into_iter().for_each(|site| *votes.entry(site).or_insert(0u64) += 1);
    }
    let most = votes.into_iter().max_by_key(|(site, count)| (*count, std::cmp::Reverse(*site)));
    most.map_or(Sites::NOWHERE, |(site, _)| site)
}
