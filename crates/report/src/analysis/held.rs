//! Free memory at the end that cannot go back to the driver: it lies in segments in which
//! something is still alive. Whether it is a loss is another question, which
//! `findings/fragmentation.rs` asks; the next step may fill it again.

use std::collections::{BTreeMap, BTreeSet};

use super::live_set::Amount;
use super::sites::{SiteId, Sites};
use crate::segments::{Block, BlockState, Segment};
use crate::snapshot::Snapshot;

/// Below this, free bytes beside live ones are part of normal work.
const TOLERATED_BYTES: u64 = 24 << 20;
/// They are worth a word from this share of what is reserved on, in percent.
const TOLD_PERCENT: u128 = 20;

/// Free bytes inside segments that live blocks hold when the snapshot was taken. Segments that can
/// be unmapped page by page do not count: their free pages can go back.
///
/// ```
/// use plimsoll_report::{DeviceAnalysis, Lines, read};
/// let snapshot = read(br#"{"device_traces": [[]], "segments": [
///     {"device": 0, "address": 4096, "total_size": 2048, "stream": 0, "blocks": [
///         {"address": 4096, "size": 512, "requested_size": 500, "state": "active_allocated"},
///         {"address": 4608, "size": 1536, "requested_size": 0, "state": "inactive"}]}]}"#)?;
/// let held = DeviceAnalysis::of(&snapshot, &Lines::of(&snapshot), 0).held;
/// assert_eq!((held.bytes, held.segments), (1536, 1));
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The free bytes.
    pub bytes: u64,
    /// The segments that they lie in.
    pub segments: u64,
    /// The lines whose live blocks hold those segments, with the free bytes and the number of the
    /// segments that each holds, the most first. A segment counts for every line that holds it.
    pub by_site: Vec<(SiteId, Amount)>,
}

impl Held {
    /// What one device holds at the end, by the blocks of its segments.
    pub fn of(snapshot: &Snapshot, device: i32, sites: &Sites) -> Held {
        let mut held = Held::default();
        let mut by_site: BTreeMap<SiteId, Amount> = BTreeMap::new();
        let here = |segment: &&Segment| segment.device == device && !segment.is_expandable;
        for segment in snapshot.segments.iter().filter(here) {
            let blocks = &snapshot.blocks[segment.blocks.clone()];
            // A block that waits for another stream is free once `empty_cache` has waited too.
            let allocated = |block: &&Block| block.state == BlockState::Allocated;
            let live: Vec<&Block> = blocks.iter().filter(allocated).collect();
            let used = live.iter().fold(0, |sum: u64, block| sum.saturating_add(block.bytes));
            let free = segment.total_bytes.saturating_sub(used);
            if live.is_empty() || free == 0 {
                continue;
            }
            held.bytes = held.bytes.saturating_add(free);
            held.segments += 1;
            let holders: BTreeSet<SiteId> =
                live.iter().map(|block| sites.of_stack(block.stack)).collect();
            for site in holders {
                let amount = by_site.entry(site).or_default();
                amount.bytes = amount.bytes.saturating_add(free);
                amount.count += 1;
            }
        }
        held.by_site = by_site.into_iter().collect();
        held.by_site.sort_by_key(|(site, amount)| (std::cmp::Reverse(amount.bytes), *site));
        held
    }

    /// Whether it is a large part of what is reserved.
    pub fn is_large(&self, reserved_bytes: u64) -> bool {
        self.bytes >= TOLERATED_BYTES
            && u128::from(self.bytes) * 100 >= u128::from(reserved_bytes) * TOLD_PERCENT
    }
}
