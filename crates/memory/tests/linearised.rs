//! Four threads take a million random steps on one arena; a naive model then replays the event log, in
//! its order, and must arrive at every counter: current, peak and totals, of both pools, and the
//! breakdown now and at the peak. The model knows addresses and sizes from the log, nothing else.

mod support;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use plimsoll_memory::{
    Action, Arena, Block, Configuration, Entry, Event, HistoryLevel, Kind, OriginId, Pool,
    PoolStat, Request, Row, Site, Stat, StreamId,
};
use support::{Helm, MIB, arena};

const THREADS: u64 = 4;
const ROUNDS: u64 = if cfg!(miri) { 1 } else { 20 };
const STEPS: u64 = if cfg!(miri) { 40 } else { 12_500 };

/// Counters as PyTorch's documentation defines them, one plain sum each.
#[derive(Default)]
struct Sums(BTreeMap<(&'static str, &'static str), Stat>);

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

struct Segment {
    bytes: usize,
    pool: Pool,
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
        if bytes == 0 || bytes == self.bytes { (0, 0) } else { (1, bytes as i64) }
    }
}

#[derive(Default)]
struct Model {
    sums: Sums,
    segments: BTreeMap<usize, Segment>,
    rows: BTreeMap<(OriginId, Kind), (usize, usize)>,
    rows_at_peak: BTreeMap<(OriginId, Kind), (usize, usize)>,
    events: u64,
}

impl Model {
    fn replay(&mut self, entry: &Entry) {
        let event = &entry.event;
        self.events += 1;
        match event.action {
            Action::SegmentReserved => {
                let (bytes, pool) = (event.allocated_bytes, event.pool);
                let segment = Segment { bytes, pool, blocks: BTreeMap::new() };
                assert!(self.segments.insert(event.address, segment).is_none());
                self.sums.change("segment", pool, 1);
                self.sums.change("reserved_bytes", pool, bytes as i64);
            }
            Action::SegmentReleased => {
                let segment = self.segments.remove(&event.address).expect("it was reserved");
                assert!(segment.blocks.is_empty(), "a segment left with blocks in it");
                assert_eq!(segment.bytes, event.allocated_bytes);
                self.sums.change("segment", segment.pool, -1);
                self.sums.change("reserved_bytes", segment.pool, -(segment.bytes as i64));
            }
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
            other => panic!("{other:?} does not happen here"),
        }
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

    fn agree(&self, arena: &Arena) {
        let stats = arena.stats();
        for (name, counter) in stats.pool_stats() {
            assert_eq!(*counter, self.sums.get(name), "{name}");
        }
        let reserved = stats.segment.all;
        assert_eq!(
            (stats.num_device_alloc, stats.num_device_free),
            (reserved.allocated, reserved.freed)
        );
        let rows = |rows: Vec<Row>| -> BTreeMap<_, _> {
            rows.into_iter().map(|row| ((row.origin, row.kind), (row.bytes, row.count))).collect()
        };
        assert_eq!(rows(arena.live_by_origin()), self.rows);
        assert_eq!(rows(arena.peak_by_origin()), self.rows_at_peak);
        arena.check_balanced().unwrap();
    }
}

/// A small generator, so that each thread's program repeats: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

fn program(
    arena: &'static Arena,
    helm: &Helm,
    seed: u64,
    held: &mut Vec<Block>,
    others: &Mutex<Vec<Block>>,
) {
    let mut random = Random(seed);
    for _ in 0..STEPS {
        match random.below(20) {
            0..9 => {
                let bytes = match random.below(20) {
                    0 => random.below(15 << 20),
                    1..5 => random.below(1 << 20),
                    _ => random.below(20_000),
                } as usize;
                let origin = OriginId::intern("program", Site::Foreign(random.below(5) as u32));
                let kind = Kind::ALL[random.below(8) as usize];
                let stream = StreamId(random.below(2));
                held.push(arena.allocate(&Request { bytes, origin, kind, stream }).unwrap());
            }
            9..16 if !held.is_empty() => {
                let place = random.below(held.len() as u64) as usize;
                drop(held.swap_remove(place));
            }
            16 if !held.is_empty() => others.lock().unwrap().extend(held.pop()),
            17 => {
                let taken = others.lock().unwrap().pop();
                drop(taken);
            }
            18 if !held.is_empty() => {
                let block = &held[random.below(held.len() as u64) as usize];
                block.set_kind(Kind::ALL[random.below(8) as usize]);
                block.record_use(StreamId(random.below(2)));
            }
            _ => helm.pass(StreamId(random.below(2))),
        }
        if held.len() > 300 {
            held.truncate(150);
        }
        if random.below(5000) == 0 {
            arena.trim(8 * MIB);
        }
    }
}

#[test]
fn a_million_steps_of_four_threads_replay_to_every_counter() {
    let (arena, helm) = arena(None, &Configuration::default());
    helm.slow_streams.store(true, Ordering::SeqCst);
    let mut model = Model::default();
    let others = Mutex::new(Vec::new());
    let mut held: Vec<Vec<Block>> = (0..THREADS).map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        arena.record_history(HistoryLevel::All, usize::MAX);
        std::thread::scope(|scope| {
            for (thread, held) in held.iter_mut().enumerate() {
                let (helm, others) = (&*helm, &others);
                let seed = round * THREADS + thread as u64;
                scope.spawn(move || program(arena, helm, seed, held, others));
            }
        });
        // The threads are gone, so nothing happens between the log and the counters.
        arena.history().iter().for_each(|entry| model.replay(entry));
        model.agree(arena);
        arena.record_history(HistoryLevel::Off, 0);
        if round % 5 == 4 {
            arena.reset_peak_stats();
            model.sums.0.values_mut().for_each(|stat| stat.peak = stat.current);
            model.rows_at_peak = model.rows.clone();
            model.agree(arena);
        }
    }
    arena.record_history(HistoryLevel::All, usize::MAX);
    drop((held, others));
    (0..2).for_each(|stream| helm.pass(StreamId(stream)));
    arena.empty_cache();
    arena.history().iter().for_each(|entry| model.replay(entry));
    model.agree(arena);
    assert_eq!(arena.stats().reserved_bytes.all.current, 0);
    assert!(model.events >= ROUNDS * STEPS * THREADS, "most steps are events");
}
