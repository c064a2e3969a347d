//! Private pools: who reuses their blocks, when their segments leave, and what snapshots say.

mod support;

use std::sync::Mutex;

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
fn without_caching_nothing_stays_in_a_pool() {
    let arena = arena(&Configuration::default().with_caching(false));
    let pool = arena.open_pool(PoolPurpose::User);
    drop(arena.allocate(&Request { pool: pool.id(), ..request(MIB) }).unwrap());
    assert_eq!(pool.usage().reserved_bytes, 0);
    arena.check_balanced().unwrap();
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
