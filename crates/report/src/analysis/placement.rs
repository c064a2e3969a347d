//! Where everything lies at one position: the segments of then, the blocks in use inside them, and
//! the holes between. The final segments are walked back along the trace. Sizes of blocks are
//! rounded as the allocator rounds them, to 512 bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use super::lives::Lives;
use crate::events::Action;
use crate::snapshot::Snapshot;

/// One segment at one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedSegment {
    /// Its addresses.
    pub range: Range<u64>,
    /// The lives inside it, in order of address.
    pub lives: Vec<u32>,
    /// Bytes in use, after rounding.
    pub used_bytes: u64,
    /// The largest range without a life.
    pub largest_hole_bytes: u64,
    /// How many ranges have no life.
    pub holes: u32,
    /// The range after the last life: a segment's tail, which the next allocation may take.
    pub tail_bytes: u64,
}

impl PlacedSegment {
    /// Its bytes.
    pub fn total_bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Bytes not in use.
    pub fn free_bytes(&self) -> u64 {
        self.total_bytes().saturating_sub(self.used_bytes)
    }

    /// Bytes not in use that lie before a live block.
    pub fn enclosed_bytes(&self) -> u64 {
        self.free_bytes().saturating_sub(self.tail_bytes)
    }

    /// Whether nothing is in it: such a segment is cache, not fragmentation.
    pub fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }
}

/// The segments at a position, in order of address, with what lies in each.
pub fn placement(
    snapshot: &Snapshot,
    device: i32,
    lives: &Lives,
    position: u32,
) -> Vec<PlacedSegment> {
    let mut alive: Vec<u32> = lives.alive_at(position).map(|life| life as u32).collect();
    alive.sort_unstable_by_key(|life| (lives.addr[*life as usize], *life));
    let mut next = alive.into_iter().peekable();
    let mut placed = Vec::new();
    for (start, end) in segments_at(snapshot, device, lives, position) {
        let mut segment = PlacedSegment {
            range: start..end,
            lives: Vec::new(),
            used_bytes: 0,
            largest_hole_bytes: 0,
            holes: 0,
            tail_bytes: 0,
        };
        let mut free_from = start;
        let hole = |until: u64, from: u64, segment: &mut PlacedSegment| {
            if until > from {
                segment.holes += 1;
                segment.largest_hole_bytes = segment.largest_hole_bytes.max(until - from);
            }
        };
        while let Some(life) = next.peek().copied() {
            let addr = lives.addr[life as usize];
            if addr >= end {
                break;
            }
            next.next();
            if addr < start {
                continue;
            }
            hole(addr, free_from, &mut segment);
            let until = lives.end(life as usize).min(end);
            segment.used_bytes += until.saturating_sub(addr.max(free_from));
            free_from = free_from.max(until);
            segment.lives.push(life);
        }
        hole(end, free_from, &mut segment);
        segment.tail_bytes = end.saturating_sub(free_from);
        placed.push(segment);
    }
    placed
}

/// Start and end of each segment at a position.
fn segments_at(
    snapshot: &Snapshot,
    device: i32,
    lives: &Lives,
    position: u32,
) -> BTreeMap<u64, u64> {
    let mut segments = BTreeMap::new();
    for segment in snapshot.segments.iter().filter(|segment| segment.device == device) {
        segments.insert(segment.address, segment.address + segment.total_bytes);
    }
    let events = &snapshot.events;
    let after = lives.rows.start + (position as usize).min(lives.rows.len());
    for row in (after..lives.rows.end).rev() {
        let range = events.addr[row]..events.addr[row] + events.size[row];
        match events.action[row] {
            Action::SegmentAlloc | Action::SegmentMap => remove(&mut segments, range),
            Action::SegmentFree => {
                segments.insert(range.start, range.end);
            }
            Action::SegmentUnmap => add_pages(&mut segments, range),
            _ => {}
        }
    }
    segments
}

/// Takes a range out, splitting what reaches beyond it.
fn remove(segments: &mut BTreeMap<u64, u64>, range: Range<u64>) {
    let touched: Vec<(u64, u64)> = segments
        .range(..range.end)
        .rev()
        .take_while(|(_, end)| **end > range.start)
        .map(|(start, end)| (*start, *end))
        .collect();
    for (start, end) in touched {
        segments.remove(&start);
        if start < range.start {
            segments.insert(start, range.start);
        }
        if end > range.end {
            segments.insert(range.end, end);
        }
    }
}

/// Puts pages back, joined with their neighbours: mapped runs of an expandable segment are one
/// segment.
fn add_pages(segments: &mut BTreeMap<u64, u64>, mut range: Range<u64>) {
    if let Some((start, end)) = segments.range(..range.start).next_back().map(|(s, e)| (*s, *e))
        && end == range.start
    {
        segments.remove(&start);
        range.start = start;
    }
    if let Some(end) = segments.remove(&range.end) {
        range.end = end;
    }
    segments.insert(range.start, range.end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join_and_split() {
        let mut segments = BTreeMap::from([(0, 10), (20, 30)]);
        add_pages(&mut segments, 10..20);
        assert_eq!(segments, BTreeMap::from([(0, 30)]));
        remove(&mut segments, 5..8);
        assert_eq!(segments, BTreeMap::from([(0, 5), (8, 30)]));
        remove(&mut segments, 0..100);
        assert!(segments.is_empty());
    }
}
