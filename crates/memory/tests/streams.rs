//! Frees across streams: a block that another stream uses comes back when that stream has passed
//! it, not before, and no later because of a third.

mod support;

use std::sync::atomic::Ordering;

use plimsoll_memory::{BlockUse, Configuration, StreamId};
use support::{MIB, arena, on};

#[test]
fn a_block_in_use_elsewhere_is_pending_until_the_fence_passes() {
    let (arena, helm) = arena(None, &Configuration::default());
    helm.slow_streams.store(true, Ordering::SeqCst);
    let block = arena.allocate(&on(0, 2 * MIB)).unwrap();
    let address = block.address();
    block.record_use(StreamId(1));
    block.record_use(StreamId(1));
    block.record_use(StreamId(0));
    drop(block);
    assert_eq!(helm.waiting(StreamId(1)), 1, "one fence for each stream, none for its own");
    assert_eq!(arena.live_bytes(), 0);
    assert_eq!(arena.pending_bytes(), 2 * MIB);
    let stats = arena.stats();
    assert_eq!(stats.allocated_bytes.all.current, 0);
    assert_eq!(stats.active_bytes.all.current, 2 * MIB as i64);
    assert_eq!(stats.requested_bytes.all.current, 2 * MIB as i64);
    assert_eq!(arena.segments()[0].blocks[0].state, BlockUse::PendingFree);
    arena.check_balanced().unwrap();
    let other = arena.allocate(&on(0, 2 * MIB)).unwrap();
    assert_ne!(other.address(), address, "still in use");
    drop(other);
    helm.pass(StreamId(1));
    assert_eq!(arena.pending_bytes(), 0);
    assert_eq!(arena.allocate(&on(0, 2 * MIB)).unwrap().address(), address);
    arena.check_balanced().unwrap();
}

#[test]
fn a_slow_stream_holds_back_only_what_it_uses() {
    let (arena, helm) = arena(None, &Configuration::default());
    helm.slow_streams.store(true, Ordering::SeqCst);
    let take = || arena.allocate(&on(0, 4096)).unwrap();
    let (slow, quick, both) = (take(), take(), take());
    slow.record_use(StreamId(1));
    quick.record_use(StreamId(2));
    both.record_use(StreamId(1));
    both.record_use(StreamId(2));
    drop((slow, quick, both));
    assert_eq!(arena.pending_bytes(), 3 * 4096);
    helm.pass(StreamId(2));
    assert_eq!(arena.pending_bytes(), 2 * 4096, "only the quick one is back");
    arena.check_balanced().unwrap();
    helm.pass(StreamId(1));
    assert_eq!(arena.pending_bytes(), 0);
    arena.check_balanced().unwrap();
}

#[test]
fn passed_fences_free_at_once() {
    let (arena, _) = arena(None, &Configuration::default());
    let block = arena.allocate(&on(0, 4096)).unwrap();
    block.record_use(StreamId(9));
    drop(block);
    assert_eq!(arena.pending_bytes(), 0);
    arena.check_balanced().unwrap();
}

#[test]
fn reuse_of_a_block_forgets_who_used_it_before() {
    let (arena, helm) = arena(None, &Configuration::default());
    let first = arena.allocate(&on(0, 512)).unwrap();
    first.record_use(StreamId(1));
    drop(first);
    helm.slow_streams.store(true, Ordering::SeqCst);
    drop(arena.allocate(&on(0, 512)).unwrap());
    assert_eq!(helm.waiting(StreamId(1)), 0);
    assert_eq!(arena.pending_bytes(), 0);
}

#[test]
fn segments_leave_only_after_their_stream_has_drained() {
    let (arena, helm) = arena(None, &Configuration::default());
    drop(arena.allocate(&on(3, 2 * MIB)).unwrap());
    drop(arena.allocate(&on(5, 2 * MIB)).unwrap());
    let live = arena.allocate(&on(7, 2 * MIB)).unwrap();
    assert_eq!(arena.empty_cache(), 40 * MIB);
    assert_eq!(*helm.synchronized.lock().unwrap(), [StreamId(3), StreamId(5)]);
    drop(live);
    arena.check_balanced().unwrap();
}

#[test]
fn emptying_the_cache_waits_for_pending_frees() {
    let (arena, helm) = arena(None, &Configuration::default());
    helm.slow_streams.store(true, Ordering::SeqCst);
    let block = arena.allocate(&on(0, 2 * MIB)).unwrap();
    block.record_use(StreamId(1));
    drop(block);
    let passer = {
        let helm = helm.clone();
        std::thread::spawn(move || helm.pass(StreamId(1)))
    };
    assert_eq!(arena.empty_cache(), 20 * MIB);
    passer.join().unwrap();
    arena.check_balanced().unwrap();
}

#[test]
fn without_caching_a_pending_block_leaves_when_it_can() {
    let (arena, helm) = arena(None, &Configuration::default().with_caching(false));
    helm.slow_streams.store(true, Ordering::SeqCst);
    let block = arena.allocate(&on(0, 4096)).unwrap();
    block.record_use(StreamId(1));
    drop(block);
    assert_eq!(arena.stats().reserved_bytes.all.current, 4096);
    helm.pass(StreamId(1));
    let next = arena.allocate(&on(0, 512)).unwrap();
    assert_eq!(arena.stats().reserved_bytes.all.current, 512);
    drop(next);
    assert_eq!(arena.stats().reserved_bytes.all.current, 0);
    arena.check_balanced().unwrap();
}
