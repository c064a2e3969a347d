//! Bytes from the driver over time. The end is known (the final segments); the trace is walked back
//! from it, so that expandable segments, of which only pages come and go, need no special case.

use super::lives::Peak;
use crate::events::Action;
use crate::snapshot::Snapshot;

/// Reserved bytes of one device at the start and the end of its trace, and the most in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Before the first event.
    pub start_bytes: u64,
    /// When the snapshot was taken.
    pub end_bytes: u64,
    /// The most, and where.
    pub peak: Peak,
}

impl Reserved {
    /// The reserved bytes of a device.
    pub fn of(snapshot: &Snapshot, device: i32) -> Reserved {
        let end_bytes = snapshot
            .segments
            .iter()
            .filter(|segment| segment.device == device)
            .fold(0u64, |sum, segment| sum.saturating_add(segment.total_bytes));
        let changes = || changes(snapshot, device);
        let total = changes().fold(0i128, |sum, (_, change)| sum + change);
        // A trace that frees more than it shows would start below nothing; such a trace started at
        // nothing.
        let start = (i128::from(end_bytes) - total).max(0);
        let (mut now, mut highest) = (start, (start, 0));
        for (position, change) in changes() {
            now += change;
            if now > highest.0 {
                highest = (now, position);
            }
        }
        let bytes = |wide: i128| u64::try_from(wide).unwrap_or(u64::MAX);
        let peak = Peak { bytes: bytes(highest.0), position: highest.1 };
        Reserved { start_bytes: bytes(start), end_bytes, peak }
    }

    /// Reserved bytes at a position.
    pub fn at(&self, snapshot: &Snapshot, device: i32, position: u32) -> u64 {
        let until = changes(snapshot, device).take_while(|(at, _)| *at <= position);
        let now = until.fold(i128::from(self.start_bytes), |sum, (_, change)| sum + change);
        u64::try_from(now.max(0)).unwrap_or(u64::MAX)
    }
}

/// Positions at which the reserved bytes change, and by how many.
pub fn changes(snapshot: &Snapshot, device: i32) -> impl Iterator<Item = (u32, i128)> + '_ {
    let events = &snapshot.events;
    snapshot.rows_of(device).enumerate().filter_map(move |(index, row)| {
        let bytes = i128::from(events.size[row]);
        let change = match events.action[row] {
            Action::SegmentAlloc | Action::SegmentMap => bytes,
            Action::SegmentFree | Action::SegmentUnmap => -bytes,
            _ => return None,
        };
        Some((index as u32 + 1, change))
    })
}
