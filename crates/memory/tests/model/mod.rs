//! A naive model of an arena: it replays the event log, in its order, and must arrive at every
//! counter: current, peak and totals, of both pools, and the breakdown now and at the peak. It
//! knows addresses and sizes from the log, nothing else. Also used by the tensor crate's random
//! programs.

#![allow(unreachable_pub)]

use std::collections::BTreeMap;

use plimsoll_memory::{
    Action, Arena, BreakdownRow, Entry, Event, Kind, OriginId, Pool, PoolStat, Stat,
};

/// Counters as PyTorch's documentation defines them, one plain sum each.
#[derive(Default)]
pub struct Sums(pub BTreeMap<(&'static str, &'static str), Stat>);

impl Sums {
    fn change(&mut self, name: &'static str, pool: Pool, amount: i64) {
        let of_pool = if pool == Pool::Small { "small" } else { "large" };
        for part in ["all", of_pool] {
            let stat = self.0.entry((name, part)).or_default();
            stat.current += amount;
            stat.peak = stat.peak.max(stat.current);
            match amount > 0 {
                true => stat.allocated += amount,
                false => stat.freed -= amount,
            }
        }
    }

    fn get(&self, name: &'static str) -> PoolStat {
        let part = |part| self.0.get(&(name, part)).copied().unwrap_or_default();
        PoolStat { all: part("all"), small_pool: part("small"), large_pool: part("large") }
    }
}

/// A segment; of an expandable one, a run of pages that are mapped.
struct Segment {
    bytes: usize,
    pool: Pool,
    expandable: bool,
    /// Blocks in use, by address: bytes, and whether only another stream still uses them.
    blocks: BTreeMap<usize, (usize, bool)>,
}

impl Segment {
    /// The free range of `segment` around `at`, as (start, end).
    fn gap(&self, start: usize, at: usize) -> (usize, usize) {
        let before = self.blocks.range(..at).next_back();
        let after = self.blocks.range(at..).next();
        let from = before.map_or(start, |(address, (bytes, _))| address + bytes);
        (from, after.map_or(start + self.bytes, |(address, _)| *address))
    }

    /// Number and bytes of a free range, if it is a part of the segment and not the whole.
    fn split(&self, (from, to): (usize, usize)) -> (i64, i64) {
        let bytes = to - from;
        let whole = bytes == 0 || bytes == self.bytes || self.expandable;
        if whole { (0, 0) } else { (1, bytes as i64) }
    }
}

#[derive(Default)]
pub struct Model {
    pub sums: Sums,
    segments: BTreeMap<usize, Segment>,
    pub rows: BTreeMap<(OriginId, Kind), (usize, usize)>,
    pub rows_at_peak: BTreeMap<(OriginId, Kind), (usize, usize)>,
    pub events: u64,
    maps: i64,
    unmaps: i64,
}

impl Model {
    pub fn replay(&mut self, entry: &Entry) {
        let event = &entry.event;
        self.events += 1;
        match event.action {
            Action::SegmentReserved => {
                let (bytes, pool) = (event.allocated_bytes, event.pool);
                let blocks = BTreeMap::new();
                let segment = Segment { bytes, pool, expandable: false, blocks };
                assert!(self.segments.insert(event.address, segment).is_none());
                self.sums.change("segment", pool, 1);
                self.sums.change("reserved_bytes", pool, bytes as i64);
            }
            Action::SegmentReleased => {
                let segment = self.segments.remove(&event.address).expect("it was reserved");
                assert!(segment.blocks.is_empty(), "a segment left with blocks in it");
                assert_eq!(segment.bytes, event.allocated_bytes);
                assert!(!segment.expandable);
                self.sums.change("segment", segment.pool, -1);
                self.sums.change("reserved_bytes", segment.pool, -(segment.bytes as i64));
            }
            Action::SegmentMapped => self.mapped(event),
            Action::SegmentUnmapped => self.unmapped(event),
            Action::Allocated => self.allocated(event),
            Action::FreeRequested => {
                let (_, segment) = self.segments.range_mut(..=event.address).next_back().unwrap();
                let block = segment.blocks.get_mut(&event.address).expect("it is allocated");
                assert_eq!(*block, (event.allocated_bytes, false));
                block.1 = true;
                self.sums.change("allocation", event.pool, -1);
                self.sums.change("allocated_bytes", event.pool, -(event.allocated_bytes as i64));
                self.row(event.origin, event.kind, event.allocated_bytes, false);
            }
            Action::FreeCompleted => self.free_completed(event),
            Action::KindChanged { from } => {
                self.row(event.origin, from, event.allocated_bytes, false);
                self.row(event.origin, event.kind, event.allocated_bytes, true);
            }
            Action::OriginChanged => {
                let from = entry.origin_before.expect("a change says what was before");
                self.row(from, event.kind, event.allocated_bytes, false);
                self.row(event.origin, event.kind, event.allocated_bytes, true);
            }
            other => panic!("{other:?} does not happen here"),
        }
    }

    /// Pages join the runs that they touch. Ranges of different pools and streams never do: their
    /// addresses are far apart.
    fn mapped(&mut self, event: &Event) {
        let (mut start, mut end) = (event.address, event.address + event.allocated_bytes);
        let mut blocks = BTreeMap::new();
        let before = self.segments.range(..start).next_back();
        let touches = |(at, run): (&usize, &Segment)| (at + run.bytes == start).then_some(*at);
        for at in [before.and_then(touches), Some(end)].into_iter().flatten() {
            if self.segments.get(&at).is_some_and(|run| run.expandable) {
                let mut run = self.segments.remove(&at).unwrap();
                (start, end) = (start.min(at), end.max(at + run.bytes));
                blocks.append(&mut run.blocks);
            }
        }
        let run = Segment { bytes: end - start, pool: event.pool, expandable: true, blocks };
        assert!(self.segments.range(start..end).next().is_none(), "pages are mapped once");
        self.segments.insert(start, run);
        self.maps += 1;
        self.sums.change("reserved_bytes", event.pool, event.allocated_bytes as i64);
    }

    /// Pages leave their run, which they may cut in two.
    fn unmapped(&mut self, event: &Event) {
        let (from, to) = (event.address, event.address + event.allocated_bytes);
        let (&start, _) = self.segments.range(..=from).next_back().unwrap();
        let mut run = self.segments.remove(&start).unwrap();
        let end = start + run.bytes;
        assert!(run.expandable && to <= end);
        assert_eq!(run.gap(start, from).0.max(from), from, "the pages are free");
        assert!(run.gap(start, from).1 >= to, "the pages are free");
        let behind = run.blocks.split_off(&to);
        let parts = [(start, from, run.blocks), (to, end, behind)];
        for (start, end, blocks) in parts.into_iter().filter(|(start, end, _)| start < end) {
            let part = Segment { bytes: end - start, pool: event.pool, expandable: true, blocks };
            self.segments.insert(start, part);
        }
        self.unmaps += 1;
        self.sums.change("reserved_bytes", event.pool, -(event.allocated_bytes as i64));
    }

    fn row(&mut self, origin: OriginId, kind: Kind, bytes: usize, add: bool) {
        let row = self.rows.entry((origin, kind)).or_default();
        *row = if add { (row.0 + bytes, row.1 + 1) } else { (row.0 - bytes, row.1 - 1) };
        if row.1 == 0 {
            self.rows.remove(&(origin, kind));
        }
    }

    fn allocated(&mut self, event: &Event) {
        let (&start, segment) = self.segments.range_mut(..=event.address).next_back().unwrap();
        let (from, to) = segment.gap(start, event.address);
        assert_eq!(event.address, from, "a block is cut from the front of a free one");
        assert!(event.address + event.allocated_bytes <= to, "it overlaps another");
        assert!(event.requested_bytes <= event.allocated_bytes);
        let before = segment.split((from, to));
        segment.blocks.insert(event.address, (event.allocated_bytes, false));
        let after = segment.split((event.address + event.allocated_bytes, to));
        let (pool, bytes) = (event.pool, event.allocated_bytes as i64);
        assert_eq!(pool, segment.pool);
        self.split(pool, before, after);
        let peak = self.sums.get("allocated_bytes").all.peak;
        self.sums.change("allocation", pool, 1);
        self.sums.change("active", pool, 1);
        self.sums.change("allocated_bytes", pool, bytes);
        self.sums.change("active_bytes", pool, bytes);
        self.sums.change("requested_bytes", pool, event.requested_bytes as i64);
        self.row(event.origin, event.kind, event.allocated_bytes, true);
        if self.sums.get("allocated_bytes").all.peak > peak {
            self.rows_at_peak = self.rows.clone();
        }
    }

    fn free_completed(&mut self, event: &Event) {
        let (&start, segment) = self.segments.range_mut(..=event.address).next_back().unwrap();
        let end = event.address + event.allocated_bytes;
        let left = segment.split((segment.gap(start, event.address).0, event.address));
        let right = segment.split((end, segment.gap(start, end).1));
        assert_eq!(segment.blocks.remove(&event.address), Some((event.allocated_bytes, true)));
        let after = segment.split(segment.gap(start, event.address));
        self.split(event.pool, (left.0 + right.0, left.1 + right.1), after);
        self.sums.change("active", event.pool, -1);
        self.sums.change("active_bytes", event.pool, -(event.allocated_bytes as i64));
        self.sums.change("requested_bytes", event.pool, -(event.requested_bytes as i64));
    }

    fn split(&mut self, pool: Pool, before: (i64, i64), after: (i64, i64)) {
        self.sums.change("inactive_split", pool, after.0 - before.0);
        self.sums.change("inactive_split_bytes", pool, after.1 - before.1);
    }

    pub fn agree(&self, arena: &Arena) {
        let stats = arena.stats();
        for (name, counter) in stats.pool_stats() {
            assert_eq!(*counter, self.sums.get(name), "{name}");
        }
        let reserved = stats.segment.all;
        assert_eq!(
            (stats.num_device_alloc, stats.num_device_free),
            (reserved.allocated + self.maps, reserved.freed + self.unmaps)
        );
        let rows = |rows: Vec<BreakdownRow>| -> BTreeMap<_, _> {
            rows.into_iter().map(|row| ((row.origin, row.kind), (row.bytes, row.count))).collect()
        };
        assert_eq!(rows(arena.live_by_origin()), self.rows);
        assert_eq!(rows(arena.peak_by_origin()), self.rows_at_peak);
        arena.check_balanced().unwrap();
    }
}
