//! Many threads on one arena: no two live blocks overlap, memory holds what was written to it, and
//! the book balances at the end and in between.

mod random;

use std::sync::Mutex;

use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, Block, Configuration, HistoryLevel, HostSource, Kind, OriginId, Request, Site, StreamId,
};
use random::Random;

const THREADS: u64 = 4;
const ROUNDS: usize = if cfg!(miri) { 60 } else { 20_000 };

/// Writes a mark at both ends of a block (of 16 bytes at least); whoever overlaps it overwrites
/// one.
fn mark(block: &Block, value: u64) {
    let last = block.requested_bytes() - 8;
    for place in [0, last] {
        let at = std::ptr::with_exposed_provenance_mut::<u64>(block.address() + place);
        // SAFETY: the block is live and owned by the caller, and has at least 8 bytes from `at`.
        unsafe { at.write_unaligned(value) };
    }
}

fn marks(block: &Block) -> [u64; 2] {
    let last = block.requested_bytes() - 8;
    [0, last].map(|place| {
        let at = std::ptr::with_exposed_provenance::<u64>(block.address() + place);
        // SAFETY: as in `mark`, which has written these bytes.
        unsafe { at.read_unaligned() }
    })
}

fn hammer(arena: &'static Arena, thread: u64, passed_on: &Mutex<Vec<(Block, u64)>>) {
    let mut random = Random(thread);
    let mut held: Vec<(Block, u64)> = Vec::new();
    for round in 0..ROUNDS {
        match random.below(8) {
            0..4 => {
                let bytes = match random.below(100) {
                    0 => 16 + random.below(3 << 20),
                    1..20 => 16 + random.below(200_000),
                    _ => 16 + random.below(4000),
                } as usize;
                let origin = OriginId::intern("hammer", Site::Foreign(thread as u32));
                let kind = Kind::ALL[random.below(8) as usize];
                let stream = StreamId(random.below(2));
                let block = arena
                    .allocate(&Request { kind, stream, ..Request::new(bytes, origin) })
                    .unwrap();
                let value = random.next();
                mark(&block, value);
                held.push((block, value));
            }
            4..6 if !held.is_empty() => {
                let (block, value) = held.swap_remove(random.below(held.len() as u64) as usize);
                assert_eq!(marks(&block), [value, value], "somebody else wrote there");
                block.set_kind(Kind::Temporary);
                block.record_use(StreamId(random.below(3)));
            }
            // Freed by another thread than the one that allocated it.
            6 if !held.is_empty() => passed_on.lock().unwrap().extend(held.pop()),
            _ => {
                let taken = passed_on.lock().unwrap().pop();
                if let Some((block, value)) = taken {
                    assert_eq!(marks(&block), [value, value], "somebody else wrote there");
                }
            }
        }
        if held.len() > 200 {
            held.truncate(100);
        }
        if round % 4000 == 3999 {
            arena.check_balanced().unwrap();
            if thread == 0 {
                arena.empty_cache();
            }
        }
    }
}

fn hammered(configuration: &Configuration, level: HistoryLevel) {
    let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), configuration);
    arena.record_history(level, 1000);
    let passed_on = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let passed_on = &passed_on;
            scope.spawn(move || hammer(arena, thread, passed_on));
        }
    });
    drop(passed_on);
    arena.check_balanced().unwrap();
    let stats = arena.stats();
    assert_eq!(arena.live_bytes(), 0);
    assert_eq!(stats.active.all.current, 0);
    assert_eq!(stats.allocation.all.allocated, stats.allocation.all.freed);
    assert_eq!(stats.inactive_split.all.current, 0, "with nothing live every segment is whole");
    arena.empty_cache();
    assert_eq!(arena.stats().reserved_bytes.all.current, 0);
    assert_eq!(arena.stats().num_device_alloc, arena.stats().num_device_free);
}

#[test]
fn four_threads_on_one_arena() {
    hammered(&Configuration::default(), HistoryLevel::Off);
}

#[test]
fn four_threads_with_history() {
    hammered(&Configuration::default(), HistoryLevel::All);
}

#[test]
fn four_threads_without_caching() {
    hammered(&Configuration::default().with_caching(false), HistoryLevel::Off);
}
