//! When each range of memory was held from the driver. The end is known (the final segments); the
//! trace is walked back from it, so that expandable segments, of which only pages come and go, need
//! no special case. `analysis::Reserved` has the totals; here are the places.

use std::collections::BTreeMap;

use crate::analysis::ALIVE;
use crate::events::Action;
use crate::snapshot::Snapshot;

/// A range that was held from one position to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) addr: u64,
    pub(crate) bytes: u64,
    /// The position at which it appears; 0 if it was there before the trace.
    pub(crate) born: u32,
    /// The position at which it is gone, or [`ALIVE`].
    pub(crate) died: u32,
    /// A place in `Events::streams`, or [`ALIVE`] where no event says.
    pub(crate) stream: u32,
    /// Whether it is part of a segment that grows by pages.
    pub(crate) is_expandable: bool,
}

/// What is held at the position that the walk has come back to.
struct Held {
    end: u64,
    died: u32,
    stream: u32,
    is_expandable: bool,
}

#[derive(Default)]
struct Walk {
    held: BTreeMap<u64, Held>,
    pieces: Vec<Piece>,
}

/// Every range of a device, by address and then by birth.
pub(crate) fn pieces(snapshot: &Snapshot, device: i32) -> Vec<Piece> {
    let events = &snapshot.events;
    let mut walk = Walk::default();
    for segment in snapshot.segments.iter().filter(|segment| segment.device == device) {
        let named = events.streams.iter().position(|stream| *stream == segment.stream);
        let stream = named.map_or(ALIVE, |at| at as u32);
        walk.hold(segment.address, segment.total_bytes, ALIVE, stream, segment.is_expandable);
    }
    for (index, row) in snapshot.rows_of(device).enumerate().rev() {
        let (addr, bytes, stream) = (events.addr[row], events.size[row], events.stream[row]);
        let position = index as u32 + 1;
        match events.action[row] {
            Action::SegmentAlloc | Action::SegmentMap => walk.release(addr, bytes, position),
            Action::SegmentFree => walk.hold(addr, bytes, position, stream, false),
            Action::SegmentUnmap => walk.hold(addr, bytes, position, stream, true),
            _ => {}
        }
    }
    let held = std::mem::take(&mut walk.held);
    for (addr, held) in held {
        walk.end_piece(addr, held.end, 0, &held);
    }
    walk.pieces.sort_unstable_by_key(|piece| (piece.addr, piece.born));
    walk.pieces
}

impl Walk {
    fn hold(&mut self, addr: u64, bytes: u64, died: u32, stream: u32, is_expandable: bool) {
        let end = addr.saturating_add(bytes);
        // Later knowledge wins: a file that contradicts itself must not count a byte twice.
        if end > addr && self.overlapping(addr, end).next().is_none() {
            self.held.insert(addr, Held { end, died, stream, is_expandable });
        }
    }

    /// The start of what is held and overlaps a range.
    fn overlapping(&self, addr: u64, end: u64) -> impl Iterator<Item = u64> + '_ {
        let before = self.held.range(..addr).next_back().filter(|(_, held)| held.end > addr);
        before.into_iter().chain(self.held.range(addr..end)).map(|(start, _)| *start)
    }

    /// Before `position` the range was not held: what is held of it began there.
    fn release(&mut self, addr: u64, bytes: u64, position: u32) {
        let end = addr.saturating_add(bytes);
        let starts: Vec<u64> = self.overlapping(addr, end).collect();
        for start in starts {
            let Some(held) = self.held.remove(&start) else { continue };
            self.end_piece(start.max(addr), held.end.min(end), position, &held);
            if start < addr {
                self.held.insert(start, Held { end: addr, ..held });
            }
            if end < held.end {
                self.held.insert(end, Held { ..held });
            }
        }
    }

    fn end_piece(&mut self, addr: u64, end: u64, born: u32, held: &Held) {
        self.pieces.push(Piece {
            addr,
            bytes: end - addr,
            born,
            died: held.died,
            stream: held.stream,
            is_expandable: held.is_expandable,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_pages_have_their_spans_of_time() {
        let json = br#"{"segments": [
            {"device": 0, "address": 4096, "total_size": 1024, "stream": 0, "blocks": []},
            {"device": 0, "address": 65536, "total_size": 300, "stream": 0, "is_expandable": true,
             "blocks": []}],
          "device_traces": [[
            {"action": "segment_free", "addr": 8192, "size": 10, "stream": 0, "frames": []},
            {"action": "segment_alloc", "addr": 4096, "size": 1024, "stream": 0, "frames": []},
            {"action": "segment_map", "addr": 65536, "size": 400, "stream": 0, "frames": []},
            {"action": "segment_unmap", "addr": 65836, "size": 100, "stream": 0, "frames": []}]]}"#;
        let snapshot = crate::read(json).unwrap();
        let found: Vec<(u64, u64, u32, u32)> =
            pieces(&snapshot, 0).iter().map(|p| (p.addr, p.bytes, p.born, p.died)).collect();
        let expected =
            [(4096, 1024, 2, ALIVE), (8192, 10, 0, 1), (65536, 300, 3, ALIVE), (65836, 100, 3, 4)];
        assert_eq!(found, expected);
    }
}
