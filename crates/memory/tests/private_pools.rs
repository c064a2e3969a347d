//! Private pools: who reuses their blocks, when their segments leave, and what snapshots say.

mod support;

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, Configuration, DrySource, PoolId, PoolPurpose, Reclaim, Request, Run, Shortage,
    Snapshot, StreamId,
};
use support::request;

const MIB: usize = 1 << 20;

fn arena(configuration: &Configuration) -> &'static Arena {
    Arena::open(Device::cpu(), Box::new(DrySource::new(Some(1 << 30))), configuration)
}

fn reserved(arena: &Arena) -> usize {
    arena.stats().reserved_bytes.all.current as usize
}

#[test]
fn blocks_are_reused_within_their_pool_and_stream_alone() {
    let arena = arena(&Configuration::default());
    let (one, two) = (arena.open_pool(PoolPurpose::User), arena.open_pool(PoolPurpose::Graph));
    let from = |pool: PoolId, stream: u64| {
        let request = Request { pool, stream: StreamId(stream), ..request(5 * MIB) };
        arena.allocate(&request).unwrap()
    };
    let addresses = [(PoolId::COMMON, 0), (one.id(), 0), (one.id(), 1), (two.id(), 0)]
        .map(|(pool, stream)| ((pool, stream), from(pool, stream).address()));
    for ((pool, stream), address) in addresses {
        assert_eq!(from(pool, stream).address(), address, "{pool:?} {stream}");
        let others = addresses.iter().filter(|((p, s), _)| (*p, *s) != (pool, stream));
        assert!(others.into_iter().all(|(_, other)| *other != address));
    }
    assert_eq!(reserved(arena), 4 * 20 * MIB);
    assert_eq!((one.usage().segments, two.usage().segments), (2, 1));
    arena.check_balanced().unwrap();
}

#[test]
fn an_open_pool_keeps_its_segments_whatever_is_short() {
    let arena = arena(&Configuration::default());
    let pool = arena.open_pool(PoolPurpose::Graph);
    drop(arena.allocate(&Request { pool: pool.id(), ..request(30 * MIB) }).unwrap());
    drop(arena.allocate(&request(30 * MIB)).unwrap());
    arena.set_limit(Some(100 * MIB));
    // The common pool's segment makes room, the graph's does not.
    let error = arena.allocate(&request(90 * MIB)).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!(reserved(arena), 30 * MIB);
    let block = arena.allocate(&request(70 * MIB)).unwrap();
    assert_eq!((arena.empty_cache(), arena.trim(0), arena.trim_idle()), (0, 0, 0));
    drop(block);
    drop(pool);
    arena.allocate(&request(90 * MIB)).unwrap();
    assert_eq!(reserved(arena), 90 * MIB);
    arena.check_balanced().unwrap();
}

#[test]
fn a_closed_pool_leaves_piece_by_piece_and_its_place_is_used_again() {
    let arena = arena(&Configuration::default());
    for _ in 0..100 {
        let pool = arena.open_pool(PoolPurpose::User);
        let from = |bytes| arena.allocate(&Request { pool: pool.id(), ..request(bytes) }).unwrap();
        let (small, large, gone) = (from(1000), from(30 * MIB), from(12 * MIB));
        drop(gone);
        let id = pool.id();
        drop(pool);
        assert_eq!(arena.pool_usage(id).reserved_bytes, 32 * MIB);
        let common = arena.allocate(&request(1000)).unwrap();
        drop(large);
        assert_eq!(arena.pool_usage(id).reserved_bytes, 2 * MIB);
        drop(common);
        drop(small);
        assert_eq!(arena.pool_usage(id).segments, 0);
        assert_eq!(reserved(arena), 2 * MIB, "the common pool's cache stays");
        arena.check_balanced().unwrap();
    }
}

#[test]
fn without_caching_a_pool_keeps_what_is_freed_until_it_closes() {
    let arena = arena(&Configuration::default().with_caching(false));
    let pool = arena.open_pool(PoolPurpose::Graph);
    let from = |bytes| arena.allocate(&Request { pool: pool.id(), ..request(bytes) }).unwrap();
    let (first, small) = (from(3 * MIB), from(MIB));
    let (address, small_address) = (first.address(), small.address());
    drop((first, small));
    // What a graph's replays write must stay the pool's, whoever allocates and frees beside it.
    drop(arena.allocate(&request(3 * MIB)).unwrap());
    assert_eq!((arena.empty_cache(), arena.trim(0), arena.trim_idle()), (0, 0, 0));
    assert_eq!((reserved(arena), pool.usage().reserved_bytes), (4 * MIB, 4 * MIB));
    let elsewhere = arena.allocate(&request(3 * MIB)).unwrap();
    assert_ne!(elsewhere.address(), address);
    assert_eq!(from(3 * MIB).address(), address);
    let part = from(1000);
    assert_eq!(part.address(), small_address, "a part of the small one");
    arena.check_balanced().unwrap();
    let id = pool.id();
    drop(pool);
    assert_eq!(arena.pool_usage(id).reserved_bytes, MIB, "the large one went");
    drop(part);
    assert_eq!(reserved(arena), 3 * MIB, "what lies elsewhere");
    drop(elsewhere);
    assert_eq!(reserved(arena), 0);
    arena.check_balanced().unwrap();
}

#[test]
fn memory_that_is_asked_of_a_closed_pool_leaves_when_it_is_free() {
    let arena = arena(&Configuration::default());
    let pool = arena.open_pool(PoolPurpose::User);
    let id = pool.id();
    drop(pool);
    for part in [id, id.captured()] {
        let late = arena.allocate(&Request { pool: part, ..request(30 * MIB) }).unwrap();
        assert_eq!(arena.pool_usage(id).active_bytes, 30 * MIB);
        drop(late);
        assert_eq!(reserved(arena), 0);
    }
    arena.check_balanced().unwrap();
}

#[test]
fn what_captures_allocate_serves_nobody_else_of_the_pool() {
    let arena = arena(&Configuration::default());
    let pool = arena.open_pool(PoolPurpose::Graph);
    let (captured, beside) = (pool.id().captured(), pool.id());
    assert_eq!((captured.pair(), captured.captured()), (beside.pair(), captured));
    assert_eq!(PoolId::COMMON.captured(), PoolId::COMMON);
    let from = |pool| arena.allocate(&Request { pool, ..request(5 * MIB) }).unwrap();
    let addresses = [captured, beside].map(|pool| from(pool).address());
    assert_ne!(addresses[0], addresses[1]);
    assert_eq!([captured, beside].map(|pool| from(pool).address()), addresses);
    assert_eq!((pool.usage().reserved_bytes, pool.usage().segments), (40 * MIB, 2));
    let ids: Vec<PoolId> = arena.segments().iter().map(|segment| segment.pool_id).collect();
    assert_eq!(ids, [beside; 2], "snapshots name one pool");
    drop(pool);
    assert_eq!(reserved(arena), 0);
    arena.check_balanced().unwrap();
}

#[test]
fn what_a_closed_pool_waits_for_leaves_with_the_next_allocation_or_free() {
    for text in ["", "expandable_segments:True", "caching:False"] {
        let (arena, helm) = support::arena(None, &Configuration::parse(text).unwrap());
        helm.slow_streams.store(true, Ordering::SeqCst);
        // What is found by a reading in between leaves too, and a cached block is enough to ask.
        for (by_free, read_before) in [(false, false), (false, true), (true, false), (true, true)] {
            let pool = arena.open_pool(PoolPurpose::User);
            let in_pool = arena.allocate(&Request { pool: pool.id(), ..request(20 * MIB) });
            let (in_pool, kept) = (in_pool.unwrap(), arena.allocate(&request(1000)).unwrap());
            in_pool.record_use(StreamId(1));
            let id = pool.id();
            drop((pool, in_pool));
            assert_eq!(arena.pool_usage(id).active_bytes, 20 * MIB, "another stream uses it");
            helm.pass(StreamId(1));
            if read_before {
                assert_eq!(arena.pending_bytes(), 0);
            }
            assert_eq!(arena.pool_usage(id).reserved_bytes, 20 * MIB);
            match by_free {
                true => drop(kept),
                false => drop((arena.allocate(&request(1000)).unwrap(), kept)),
            }
            assert_eq!(arena.pool_usage(id).reserved_bytes, 0, "{text} {by_free} {read_before}");
            arena.check_balanced().unwrap();
        }
    }
}

#[test]
fn snapshots_name_the_pool_of_a_segment() {
    let arena = arena(&Configuration::default());
    let pool = arena.open_pool(PoolPurpose::Graph);
    let _held = arena.allocate(&Request { pool: pool.id(), ..request(MIB) }).unwrap();
    let _common = arena.allocate(&request(MIB)).unwrap();
    let ids: Vec<PoolId> = arena.segments().iter().map(|segment| segment.pool_id).collect();
    assert_eq!(ids, [pool.id(), PoolId::COMMON]);
    let (graph, user) = pool.id().pair();
    assert!(graph > 0 && user == 0);
    let mut json = Vec::new();
    Snapshot::take(&[arena], &Configuration::default()).write_json(&mut json).unwrap();
    let json: String = String::from_utf8(json).unwrap().split_whitespace().collect();
    assert!(json.contains(&format!("\"segment_pool_id\":[{graph},0]")), "{json}");
    assert!(json.contains("\"segment_pool_id\":[0,0]"), "{json}");
}

/// Says which run of neighbours it was offered, and gives nothing up.
struct Asked(&'static Arena, Mutex<Vec<Option<Run>>>);

impl Reclaim for Asked {
    fn reclaim(&self, shortage: &Shortage) -> usize {
        let run = self.0.cheapest_run(shortage, |_| Some(1));
        self.1.lock().unwrap().push(run);
        0
    }
}

#[test]
fn room_is_not_looked_for_in_a_private_pool() {
    let arena = arena(&Configuration::default());
    let asked: &Asked = Box::leak(Box::new(Asked(arena, Mutex::default())));
    arena.set_reclaimer(asked);
    let pool = arena.open_pool(PoolPurpose::Graph);
    drop(arena.allocate(&Request { pool: pool.id(), ..request(30 * MIB) }).unwrap());
    arena.set_limit(Some(30 * MIB));
    // A free segment lies in the pool, which would cost nothing and help nobody.
    assert!(arena.allocate(&request(20 * MIB)).unwrap_err().is_out_of_memory());
    assert_eq!(*asked.1.lock().unwrap(), [None]);
}
