//! Churn: the same memory given back and asked for again at once. Blocks from the cache cost
//! little, so they count only in long runs; segments from the driver cost a synchronisation each.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::words::{counted, size};
use super::{Case, Finding, FindingKind};
use crate::analysis::{SiteId, Sites};
use crate::events::Action;

/// Segments of one size that come and go this often are churn.
const SEGMENTS: u64 = 6;
/// Allocations of one stack and size in a row, each gone before the next but one.
const RUN: u64 = 200;
/// Blocks smaller than this cost nothing worth a line.
const RUN_BYTES: u64 = 1 << 20;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    segments(case).into_iter().chain(blocks(case)).collect()
}

/// Segments that go back to the driver and come again.
fn segments(case: &Case<'_>) -> Option<Finding> {
    let events = &case.snapshot.events;
    let rows = case.device.lives.rows.clone();
    let mut freed: HashMap<u64, u64> = HashMap::new();
    let mut again: HashMap<SiteId, (u64, u64)> = HashMap::new();
    let (mut count, mut bytes, mut last) = (0, 0u64, 0);
    for (index, row) in rows.enumerate() {
        let size = events.size[row];
        match events.action[row] {
            Action::SegmentFree | Action::SegmentUnmap => *freed.entry(size).or_default() += 1,
            Action::SegmentAlloc | Action::SegmentMap => {
                if let Some(left) = freed.get_mut(&size).filter(|left| **left > 0) {
                    *left -= 1;
                    let site = case.lines.sites.of_stack(events.stack[row]);
                    let entry = again.entry(site).or_default();
                    (entry.0, entry.1) = (entry.0 + 1, entry.1.saturating_add(size));
                    (count, bytes, last) =
                        (count + 1, bytes.saturating_add(size), index as u32 + 1);
                }
            }
            _ => {}
        }
    }
    // A line to look at, if any of the program's own is among them.
    let known = |site: &SiteId| *site != Sites::NOWHERE;
    let most = again.iter().max_by_key(|(site, (n, b))| (known(site), *b, *n, Reverse(**site)));
    let site = *most?.0;
    let whose =
        if again.contains_key(&Sites::NOWHERE) && known(&site) { " in the program" } else { "" };
    (count >= SEGMENTS).then(|| Finding {
        kind: FindingKind::Churn,
        cause: "segments go back to the driver and are asked for again".to_string(),
        device: case.device.device,
        bytes,
        count,
        bytes_per_step: None,
        site,
        message: format!(
            "{} the driver was asked for a segment of a size that had just gone back to it, {} in all, the \
             most{whose} at {}. Each time the device is synchronised.",
            counted(count, "time"),
            size(bytes),
            case.line(site),
        ),
        advice: "Take `torch.cuda.empty_cache()` out of the loop. If memory is so short that the allocator \
                 gives its cache back by itself, lower the peak or use expandable segments."
            .to_string(),
        position: last,
    })
}

/// The longest run of one stack and size.
fn blocks(case: &Case<'_>) -> Option<Finding> {
    let lives = &case.device.lives;
    let (mut run, mut longest) = (0u64, (0u64, 0usize));
    for life in 1..lives.in_trace {
        let same = lives.stack[life] == lives.stack[life - 1]
            && lives.bytes[life] == lives.bytes[life - 1]
            && lives.bytes[life] >= RUN_BYTES
            && (life < 2 || run == 0 || lives.died[life - 2] <= lives.born[life]);
        run = if same { run + 1 } else { 0 };
        if run > longest.0 {
            longest = (run, life);
        }
    }
    let (count, life) = longest;
    if count < RUN {
        return None;
    }
    let site = case.lines.sites.of_stack(lives.stack[life]);
    let bytes = lives.bytes[life];
    Some(Finding {
        kind: FindingKind::Churn,
        cause: "a block is freed and made again in a loop".to_string(),
        device: case.device.device,
        bytes: bytes.saturating_mul(count + 1),
        count: count + 1,
        bytes_per_step: None,
        site,
        message: format!(
            "{} of {} were made and freed in a row at {}.",
            counted(count + 1, "block"),
            size(bytes),
            case.line(site)
        ),
        advice:
            "Make the tensor once before the loop and fill it (`out=`), or work on a whole batch."
                .to_string(),
        position: lives.born[life],
    })
}
