//! Expandable segments, rule by rule: how they grow and shrink, what is counted, what limits and
//! failures do to them. That every block lies where PyTorch puts it is `replay.rs`'s to show; that
//! counters stay right in random programs, `programs.rs`' and `linearised.rs`'.

mod support;

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use plimsoll_memory::{
    Action, Advice, Arena, Block, BlockUse, Configuration, HistoryLevel, LimitKind, OutOfMemory,
    Owner, Pool, PoolPurpose, Reclaim, Request, Run, SegmentView, Shortage, Snapshot, StreamId,
};
use support::{Helm, MIB, arena, on, request};

fn expandable() -> Configuration {
    Configuration::default().with_expandable_segments(true)
}

fn reserved(arena: &Arena) -> usize {
    arena.stats().reserved_bytes.all.current as usize
}

/// Every page and address is back.
fn assert_nothing_left(arena: &Arena, helm: &Helm) {
    arena.check_balanced().unwrap();
    arena.empty_cache();
    assert_eq!(reserved(arena), 0);
    assert!(helm.pages.lock().unwrap().is_empty() && helm.ranges.lock().unwrap().is_empty());
    arena.check_balanced().unwrap();
}

#[test]
fn a_pool_of_a_stream_is_one_range_that_grows_by_pages_at_its_end() {
    let (arena, helm) = arena(Some(1 << 30), &expandable());
    let large: Vec<Block> = (0..5).map(|_| arena.allocate(&request(12 * MIB)).unwrap()).collect();
    let steps: Vec<usize> = large.windows(2).map(|p| p[1].address() - p[0].address()).collect();
    assert_eq!(steps, [12 * MIB; 4], "one behind the other, over the edges of pages");
    assert_eq!(reserved(arena), 60 * MIB, "three pages of 20 MiB and not five segments");
    let small = [arena.allocate(&request(MIB)).unwrap(), arena.allocate(&request(MIB)).unwrap()];
    assert_eq!(arena.stats().reserved_bytes.small_pool.current, 2 * MIB as i64);
    let third = arena.allocate(&request(1000)).unwrap();
    assert_eq!(third.address(), small[0].address() + 2 * MIB);
    assert_eq!(arena.stats().reserved_bytes.small_pool.current, 4 * MIB as i64);
    let other = arena.allocate(&on(1, 12 * MIB)).unwrap();
    let ranges: Vec<usize> = helm.ranges.lock().unwrap().values().copied().collect();
    // 9/8 of the device, in whole pages.
    assert_eq!(ranges, [1160 * MIB, 1152 * MIB, 1160 * MIB]);
    drop((large, small, third, other));
    assert_nothing_left(arena, &helm);
}

#[test]
fn counters_count_pages_as_bytes_and_calls_and_not_as_segments() {
    let (arena, helm) = arena(None, &expandable());
    let first = arena.allocate(&request(25 * MIB)).unwrap();
    drop(arena.allocate(&request(30 * MIB)).unwrap());
    let stats = arena.stats();
    assert_eq!(stats.reserved_bytes.large_pool.current, 60 * MIB as i64);
    assert_eq!((stats.num_device_alloc, stats.num_device_free), (2, 0));
    assert_eq!(stats.segment.all, Default::default());
    assert_eq!(stats.inactive_split.all, Default::default(), "free pages can always go");
    assert_eq!(stats.inactive_split_bytes.all, Default::default());
    let scope = arena.scoped_peak();
    assert_eq!(arena.empty_cache(), 20 * MIB, "the page between 20 and 40 MiB is partly in use");
    assert_eq!(arena.stats().num_device_free, 1);
    let again = arena.allocate(&request(70 * MIB)).unwrap();
    assert_eq!(scope.reserved_bytes_peak(), 100 * MIB);
    assert_eq!(again.address(), first.address() + 25 * MIB);
    drop((first, again));
    assert_nothing_left(arena, &helm);
}

#[test]
fn the_end_of_a_segment_is_the_last_choice() {
    let (arena, helm) = arena(None, &expandable());
    let blocks: Vec<Block> =
        [4, 2, 6, 2].map(|n| arena.allocate(&request(n * MIB)).unwrap()).into();
    let addresses: Vec<usize> = blocks.iter().map(Block::address).collect();
    let [first, second, third, fourth] = <[Block; 4]>::try_from(blocks).unwrap();
    drop((first, third));
    // Free: 4 MiB at 0, 6 MiB at 6, and 6 MiB at 14, behind which the segment expands.
    assert_eq!(arena.allocate(&request(3 * MIB)).unwrap().address(), addresses[0], "the best fit");
    // Of two that are as large, the one that cannot expand; and so where the other is smaller.
    assert_eq!(arena.allocate(&request(5 * MIB)).unwrap().address(), addresses[2]);
    let shortened = arena.allocate(&on(0, 6 * MIB)).unwrap();
    assert_eq!(shortened.address(), addresses[2]);
    let end = arena.allocate(&request(5 * MIB)).unwrap();
    assert_eq!(end.address(), fourth.address() + 2 * MIB, "nothing else is large enough");
    drop((second, fourth, shortened, end));
    assert_nothing_left(arena, &helm);
}

#[test]
fn any_remainder_of_512_bytes_is_split_off() {
    let text = "expandable_segments:True,max_split_size_mb:20";
    let (arena, helm) = arena(None, &Configuration::parse(text).unwrap());
    let held = arena.allocate(&request(20 * MIB - 512)).unwrap();
    assert_eq!(held.allocated_bytes(), 20 * MIB - 512, "a plain segment would be handed out whole");
    let next = arena.allocate(&request(2 * MIB)).unwrap();
    assert_eq!(next.address(), held.address() + 20 * MIB - 512);
    // Above the limit on splitting too: what is left over can expand.
    let large = arena.allocate(&request(30 * MIB)).unwrap();
    assert_eq!(large.allocated_bytes(), 30 * MIB);
    assert_eq!(arena.stats().oversize_allocations.current, 1);
    assert_eq!(arena.stats().oversize_segments.current, 0);
    drop((held, next, large));
    assert_nothing_left(arena, &helm);
}

#[test]
fn a_block_that_is_too_large_to_lend_is_cut_where_it_could_grow() {
    let text = "expandable_segments:True,max_split_size_mb:20";
    let (arena, helm) = arena(None, &Configuration::parse(text).unwrap());
    drop(arena.allocate(&request(40 * MIB)).unwrap());
    // Free blocks of 20 MiB and more are not for small requests, but this one is the place where
    // pages would be mapped: none has to be, whatever the limit is by now.
    arena.set_limit(Some(MIB));
    let held = arena.allocate(&request(5 * MIB)).unwrap();
    assert_eq!(held.address(), arena.segments()[0].address);
    assert_eq!((reserved(arena), arena.stats().num_device_alloc), (40 * MIB, 1));
    drop(held);
    assert_nothing_left(arena, &helm);
}

#[test]
fn whole_free_pages_leave_from_between_live_blocks_and_holes_are_filled_first() {
    let (arena, helm) = arena(None, &expandable());
    let mut blocks: Vec<Block> =
        (0..5).map(|_| arena.allocate(&request(20 * MIB)).unwrap()).collect();
    let start = blocks[0].address();
    assert_eq!(arena.empty_cache(), 0);
    drop(blocks.remove(3));
    drop(blocks.remove(1));
    assert_eq!(arena.empty_cache(), 40 * MIB);
    assert_eq!(reserved(arena), 60 * MIB);
    let runs = |arena: &Arena| -> Vec<(usize, usize)> {
        let place = |view: &SegmentView| ((view.address - start) / MIB, view.bytes / MIB);
        arena.segments().iter().map(place).collect()
    };
    assert_eq!(runs(arena), [(0, 20), (40, 20), (80, 20)], "one for each run of pages");
    let mut fill = |n: usize| {
        let block = arena.allocate(&request(n * MIB)).unwrap();
        let offset = (block.address() - start) / MIB;
        blocks.push(block);
        offset
    };
    assert_eq!(fill(30), 100, "no hole is long enough");
    assert_eq!(fill(15), 20, "the first hole");
    assert_eq!(fill(20), 60, "the second");
    assert_eq!(runs(arena), [(0, 140)]);
    drop(blocks);
    assert_eq!(arena.empty_cache(), 140 * MIB);
    assert_nothing_left(arena, &helm);
}

#[test]
fn a_block_spans_free_pages_and_holes() {
    let (arena, helm) = arena(None, &expandable());
    let blocks: Vec<Block> = (0..4).map(|_| arena.allocate(&request(20 * MIB)).unwrap()).collect();
    let [a, b, c, d] = <[Block; 4]>::try_from(blocks).unwrap();
    let start = a.address();
    drop(b);
    arena.empty_cache();
    drop((a, c));
    // free, unmapped, free, live
    let maps = arena.stats().num_device_alloc;
    let block = arena.allocate(&request(60 * MIB)).unwrap();
    assert_eq!((block.address(), reserved(arena)), (start, 80 * MIB));
    assert_eq!(arena.stats().num_device_alloc, maps + 1, "only the hole was mapped");
    drop((block, d));
    assert_nothing_left(arena, &helm);
}

#[test]
fn merged_small_pages_are_found_again() {
    let (arena, helm) = arena(None, &expandable());
    let blocks: Vec<Block> = (0..9).map(|_| arena.allocate(&request(MIB)).unwrap()).collect();
    let start = blocks[0].address();
    assert_eq!(arena.stats().reserved_bytes.small_pool.current, 10 * MIB as i64);
    drop(blocks);
    // One free block of 10 MiB in a pool whose blocks are 2 MiB at most elsewhere.
    assert_eq!(arena.segments()[0].blocks.len(), 1);
    let held = arena.allocate(&request(1000)).unwrap();
    assert_eq!(held.address(), start);
    assert_eq!(arena.empty_cache(), 8 * MIB);
    drop(held);
    assert_nothing_left(arena, &helm);
}

#[test]
fn trimming_goes_page_by_page_from_the_end() {
    let (arena, helm) = arena(None, &expandable());
    drop(arena.allocate(&request(100 * MIB)).unwrap());
    drop(arena.allocate(&request(1000)).unwrap());
    assert_eq!(arena.trim(50 * MIB), 60 * MIB, "40 MiB and the small page are left");
    let start = arena.segments()[0].address;
    assert_eq!(arena.segments()[0].bytes, 40 * MIB);
    assert_eq!((arena.trim(42 * MIB), arena.trim_idle()), (0, 0));
    let block = arena.allocate(&request(30 * MIB)).unwrap();
    assert_eq!(block.address(), start);
    drop(block);
    assert_eq!(arena.trim_idle(), 2 * MIB, "the small page, which nobody used since");
    assert_eq!(arena.trim_idle(), 40 * MIB);
    assert_nothing_left(arena, &helm);
}

#[test]
fn garbage_and_the_soft_limit_take_the_pages_they_need() {
    let text = "expandable_segments:True,garbage_collection_threshold:0.25,memory_limit:400MiB";
    let (arena, helm) = support::arena(None, &Configuration::parse(text).unwrap());
    let first = arena.allocate(&request(100 * MIB)).unwrap();
    let kept = arena.allocate(&request(20 * MIB)).unwrap();
    drop(first);
    // 120 MiB are reserved, 20 above a quarter of the limit: one page goes before 120 MiB come.
    let large = arena.allocate(&request(110 * MIB)).unwrap();
    assert_eq!(arena.stats().num_device_free, 1);
    assert_eq!(reserved(arena), 120 * MIB - 20 * MIB + 120 * MIB);
    drop((kept, large));
    assert_nothing_left(arena, &helm);

    let text = "expandable_segments:True,memory_soft_limit:100MiB";
    let (arena, helm) = support::arena(None, &Configuration::parse(text).unwrap());
    drop(arena.allocate(&on(1, 80 * MIB)).unwrap());
    let held = arena.allocate(&request(40 * MIB)).unwrap();
    assert_eq!(reserved(arena), 100 * MIB, "one page of the other stream went");
    drop(held);
    assert_nothing_left(arena, &helm);
}

/// Notes what it was asked for, and gives nothing up.
struct Asked(Mutex<Vec<usize>>);

impl Reclaim for Asked {
    fn reclaim(&self, shortage: &Shortage) -> usize {
        self.0.lock().unwrap().push(shortage.wanted_bytes);
        0
    }
}

#[test]
fn the_soft_limit_counts_the_pages_that_are_missing() {
    let asked: &Asked = Box::leak(Box::new(Asked(Mutex::default())));
    let text = "expandable_segments:True,memory_soft_limit:120MiB";
    let (arena, helm) = support::arena(None, &Configuration::parse(text).unwrap());
    arena.set_reclaimer(asked);
    let held = [45, 45, 25].map(|mib| arena.allocate(&request(mib * MIB)).unwrap());
    // 10 MiB of the fifth page were free, so that one more was enough.
    assert_eq!((reserved(arena), asked.0.lock().unwrap().len()), (120 * MIB, 0));
    let [first, second, last] = held;
    drop((first, last));
    // Two whole pages lie free at the start and one at the end, beside a part of one. To grow at
    // the end takes two pages more: 160 MiB. The pages at the start go, not what is live.
    let large = arena.allocate(&request(65 * MIB)).unwrap();
    assert_eq!((reserved(arena), asked.0.lock().unwrap().len()), (120 * MIB, 0));
    // One page above the limit, and nothing is cached.
    let over = arena.allocate(&request(20 * MIB)).unwrap();
    assert_eq!((reserved(arena), &asked.0.lock().unwrap()[..]), (140 * MIB, &[20 * MIB][..]));
    drop((second, large, over));
    assert_nothing_left(arena, &helm);
}

#[test]
fn limits_are_on_the_bytes_that_are_mapped() {
    let (arena, helm) = arena(None, &expandable().with_limit(Some(60 * MIB)));
    let first = arena.allocate(&request(25 * MIB)).unwrap();
    let second = arena.allocate(&request(15 * MIB)).unwrap();
    assert_eq!(reserved(arena), 40 * MIB, "the rest of the second page was enough");
    let third = arena.allocate(&request(20 * MIB)).unwrap();
    assert_eq!(reserved(arena), 60 * MIB);
    let error = arena.allocate(&request(512)).unwrap_err();
    let out = error.detail::<OutOfMemory>().unwrap();
    assert_eq!(out.limit, Some((60 * MIB, LimitKind::Limit)));
    assert_eq!((out.segment_bytes, out.tight_segment_bytes), (2 * MIB, 64 << 10));
    assert_eq!((out.reserved_bytes, out.split_bytes), (60 * MIB, 0));
    // A page of the first is given up for a page of the small pool.
    drop(first);
    let small = arena.allocate(&request(512)).unwrap();
    assert_eq!(reserved(arena), 42 * MIB);
    assert_eq!(arena.stats().num_alloc_retries, 1);
    drop((second, third, small));
    assert_nothing_left(arena, &helm);
}

#[test]
fn a_plain_segment_no_larger_than_needed_is_the_last_try() {
    let (arena, helm) = arena(Some(30 * MIB), &expandable());
    let first = arena.allocate(&request(15 * MIB)).unwrap();
    // 15 MiB need a page more, which is 20 MiB; as a segment of its own they fit no better.
    assert!(arena.allocate(&request(15 * MIB)).unwrap_err().is_out_of_memory());
    let second = arena.allocate(&request(9 * MIB)).unwrap();
    assert_eq!(reserved(arena), 30 * MIB);
    assert_eq!(arena.stats().segment.all.current, 1);
    let kinds: Vec<bool> = arena.segments().iter().map(|view| view.expandable).collect();
    assert_eq!(kinds, [true, false]);
    drop((first, second));
    assert_nothing_left(arena, &helm);
}

#[test]
fn pages_in_use_by_another_stream_stay_until_it_has_passed() {
    let (arena, helm) = arena(None, &expandable());
    helm.slow_streams.store(true, Ordering::SeqCst);
    let block = arena.allocate(&request(40 * MIB)).unwrap();
    block.record_use(StreamId(1));
    drop(block);
    assert_eq!(arena.trim(0), 0);
    let states: Vec<BlockUse> = arena.segments()[0].blocks.iter().map(|b| b.state).collect();
    assert_eq!(states, [BlockUse::PendingFree]);
    // What is pending is not grown over either.
    let next = arena.allocate(&request(10 * MIB)).unwrap();
    assert_eq!(reserved(arena), 60 * MIB);
    helm.pass(StreamId(1));
    arena.pending_bytes();
    assert_eq!(arena.trim(0), 40 * MIB);
    assert_eq!(*helm.synchronized.lock().unwrap(), [StreamId(0)], "its own stream was waited for");
    drop(next);
    assert_nothing_left(arena, &helm);
}

#[test]
fn pages_on_their_way_back_are_not_mapped_again_before_they_are_there() {
    let (arena, helm) = arena(Some(40 * MIB), &expandable());
    drop(arena.allocate(&request(40 * MIB)).unwrap());
    *helm.hold_releases.lock().unwrap() = true;
    let block = std::thread::scope(|scope| {
        let emptying = scope.spawn(|| arena.empty_cache());
        while helm.releases.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(reserved(arena), 0, "booked as gone");
        arena.check_balanced().unwrap();
        assert!(arena.segments().is_empty());
        let asking = scope.spawn(|| arena.allocate(&request(30 * MIB)));
        *helm.hold_releases.lock().unwrap() = false;
        helm.released.notify_all();
        assert_eq!(emptying.join().unwrap(), 40 * MIB);
        asking.join().unwrap().expect("it waits for the pages")
    });
    assert_eq!(reserved(arena), 40 * MIB);
    drop(block);
    assert_nothing_left(arena, &helm);
}

#[test]
fn private_pools_have_ranges_of_their_own_which_leave_with_them() {
    let (arena, helm) = arena(None, &expandable());
    let pool = arena.open_pool(PoolPurpose::Graph);
    let of_pool = |bytes| Request { pool: pool.id(), ..request(bytes) };
    let first = arena.allocate(&of_pool(15 * MIB)).unwrap();
    let common = arena.allocate(&request(15 * MIB)).unwrap();
    let second = arena.allocate(&of_pool(15 * MIB)).unwrap();
    assert_eq!(second.address(), first.address() + 15 * MIB);
    assert_eq!((pool.usage().reserved_bytes, pool.usage().segments), (40 * MIB, 1));
    assert_eq!(pool.usage().active_bytes, 30 * MIB);
    let ids: Vec<_> = arena.segments().iter().map(|view| (view.pool_id, view.expandable)).collect();
    assert!(ids.contains(&(pool.id(), true)) && ids.len() == 2);
    drop(second);
    assert_eq!((arena.empty_cache(), arena.trim(0)), (0, 0), "an open pool keeps its pages");
    let id = pool.id();
    drop(pool);
    assert_eq!(arena.pool_usage(id).reserved_bytes, 20 * MIB, "the free page went");
    drop(first);
    assert_eq!((arena.pool_usage(id).reserved_bytes, arena.pool_usage(id).segments), (0, 0));
    assert_eq!(helm.ranges.lock().unwrap().len(), 1, "its addresses went too");
    drop(common);
    assert_nothing_left(arena, &helm);
}

#[test]
fn snapshots_show_runs_of_pages_and_the_trace_their_coming_and_going() {
    let configuration = expandable();
    let (arena, helm) = arena(None, &configuration);
    arena.record_history(HistoryLevel::All, 100);
    let held = arena.allocate(&request(20 * MIB)).unwrap();
    drop(arena.allocate(&request(20 * MIB)).unwrap());
    arena.empty_cache();
    let events: Vec<(Action, usize, usize)> = (arena.history().iter())
        .map(|entry| entry.event)
        .filter(|event| !matches!(event.action, Action::FreeRequested | Action::FreeCompleted))
        .map(|event| (event.action, event.address - held.address(), event.allocated_bytes))
        .collect();
    let page = 20 * MIB;
    assert_eq!(
        events,
        [
            (Action::SegmentMapped, 0, page),
            (Action::Allocated, 0, page),
            (Action::SegmentMapped, page, page),
            (Action::Allocated, page, page),
            (Action::SegmentUnmapped, page, page),
        ]
    );
    let views = arena.segments();
    assert_eq!((views.len(), views[0].expandable, views[0].pool), (1, true, Pool::Large));
    let mut json = Vec::new();
    Snapshot::take(&[arena], &configuration).write_json(&mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["segments"][0]["is_expandable"], true);
    assert_eq!(json["segments"][0]["total_size"], page);
    assert_eq!(json["allocator_settings"]["expandable_segments"], true);
    let words: Vec<&str> = json["device_traces"][0]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["action"].as_str().unwrap())
        .collect();
    assert_eq!(
        words,
        [
            "segment_map",
            "alloc",
            "segment_map",
            "alloc",
            "free_requested",
            "free_completed",
            "segment_unmap"
        ]
    );
    assert_eq!(json["device_traces"][0][2]["addr"], held.address() + page);
    drop(held);
    assert_nothing_left(arena, &helm);
}

/// Every call of the source (for a range, for pages, for a last plain segment) fails in turn, alone
/// and with all after it.
#[test]
fn every_call_may_fail_and_nothing_is_lost() {
    for fail_after in [false, true] {
        for n in 1.. {
            let (arena, helm) = arena(Some(1 << 30), &expandable());
            helm.fail_after.store(fail_after, Ordering::SeqCst);
            helm.fail_at.store(n, Ordering::SeqCst);
            let mut held = Vec::new();
            let mut failed = 0;
            for bytes in [1000, 15, 30 * MIB, 3 * MIB, 70 * MIB, MIB, 5 * MIB, 90 * MIB] {
                match arena.allocate(&request(bytes)) {
                    Ok(block) => held.push(block),
                    Err(error) => {
                        assert!(error.is_out_of_memory(), "{error}");
                        failed += 1;
                    }
                }
                if held.len() % 3 == 2 {
                    drop(held.remove(0));
                    arena.empty_cache();
                }
                arena.check_balanced().unwrap();
                let pages = helm.pages.lock().unwrap().len();
                assert!(pages > 0 || reserved(arena) == 0 || arena.stats().segment.all.current > 0);
            }
            let reached = helm.reserves.load(Ordering::SeqCst) >= n;
            assert!(failed == 0 || (reached && fail_after), "one failure is made up for");
            helm.fail_at.store(0, Ordering::SeqCst);
            held.push(arena.allocate(&request(200 * MIB)).expect("the arena works on"));
            drop(held);
            assert_nothing_left(arena, &helm);
            if !reached {
                assert!(n > 8, "there are that many calls");
                break;
            }
        }
    }
}

#[test]
fn pages_that_came_before_a_refusal_are_cached() {
    let (arena, helm) = arena(None, &expandable());
    let blocks: Vec<Block> = (0..4).map(|_| arena.allocate(&request(20 * MIB)).unwrap()).collect();
    let [a, b, c, d] = <[Block; 4]>::try_from(blocks).unwrap();
    drop((a, c));
    arena.empty_cache();
    drop(b);
    // unmapped, free, unmapped, live: the first hole is mapped, the second fails, and so does all
    // that follows until nothing is left to release.
    helm.fail_at.store(helm.reserves.load(Ordering::SeqCst) + 2, Ordering::SeqCst);
    helm.fail_after.store(true, Ordering::SeqCst);
    let error = arena.allocate(&request(60 * MIB)).unwrap_err();
    assert_eq!(
        error.detail::<OutOfMemory>().unwrap().source_reason.as_deref(),
        Some("the test said so")
    );
    assert_eq!(arena.stats().num_ooms, 1);
    assert_eq!(reserved(arena), 20 * MIB, "what was cached was released, the live page stays");
    arena.check_balanced().unwrap();
    helm.fail_at.store(0, Ordering::SeqCst);
    let block = arena.allocate(&request(60 * MIB)).unwrap();
    assert_eq!(block.address() + 60 * MIB, d.address());
    drop((block, d));
    assert_nothing_left(arena, &helm);
}

#[test]
fn a_range_without_addresses_left_is_followed_by_another() {
    let (arena, helm) = arena(Some(160 * MIB), &expandable());
    // 180 MiB of addresses are nine pages. Holes of one page each leave no room for two.
    let mut blocks: Vec<Block> =
        (0..8).map(|_| arena.allocate(&request(20 * MIB)).unwrap()).collect();
    for place in [6, 4, 2, 0] {
        drop(blocks.remove(place));
    }
    let large = arena.allocate(&request(45 * MIB)).unwrap();
    assert_eq!(helm.ranges.lock().unwrap().len(), 2);
    assert_eq!(reserved(arena), 140 * MIB, "the cached pages made room");
    let filling = arena.allocate(&request(15 * MIB)).unwrap();
    assert_eq!(filling.address(), large.address() + 45 * MIB, "the best fit is in the second");
    let older = arena.allocate(&request(20 * MIB)).unwrap();
    assert!(older.address() < blocks[0].address(), "the first hole of the older range");
    drop((blocks, large, filling, older));
    assert_nothing_left(arena, &helm);
}

/// What expandable segments are for: sizes that grow, each a little more than what is cached.
#[test]
fn growing_sizes_reserve_what_the_largest_takes_and_not_the_sum() {
    let sizes = || (0..40).map(|step| (12 + 2 * step) * MIB);
    let peak = |configuration: &Configuration| {
        let (arena, _) = arena(None, configuration);
        sizes().for_each(|bytes| drop(arena.allocate(&request(bytes)).unwrap()));
        let stats = arena.stats();
        assert_eq!(stats.allocated_bytes.all.peak, 90 * MIB as i64);
        stats.reserved_bytes.all.peak as usize
    };
    assert_eq!(peak(&Configuration::default()), sizes().sum::<usize>());
    assert_eq!(sizes().sum::<usize>(), 2040 * MIB);
    assert_eq!(peak(&expandable()), 100 * MIB, "90 MiB in pages of 20");

    // Beside something that stays: a cache of keys and values that is copied into a larger one.
    let peak = |configuration: &Configuration| {
        let (arena, _) = arena(None, configuration);
        let mut cache = arena.allocate(&request(12 * MIB)).unwrap();
        let mut kept = Vec::new();
        for bytes in sizes().skip(1) {
            cache = arena.allocate(&request(bytes)).unwrap();
            kept.push(arena.allocate(&request(256 << 10)).unwrap());
        }
        drop(cache);
        arena.stats().reserved_bytes.large_pool.peak as usize / MIB
    };
    assert_eq!((peak(&Configuration::default()), peak(&expandable())), (2040, 260));
}

#[test]
fn an_out_of_memory_report_advises_expandable_segments_where_they_would_help() {
    let fill = |configuration: &Configuration| {
        let (arena, _) = arena(Some(100 * MIB), configuration);
        let blocks: Vec<Block> =
            (0..10).map(|_| arena.allocate(&request(10 * MIB - 512)).unwrap()).collect();
        let held: Vec<Block> = blocks.into_iter().step_by(2).collect();
        let error = arena.allocate(&request(30 * MIB)).map(drop);
        drop(held);
        error.err().map(|error| error.detail::<OutOfMemory>().unwrap().clone())
    };
    let out = fill(&Configuration::default()).expect("free memory is in pieces of 10 MiB");
    assert_eq!(out.split_bytes, 50 * MIB + 5 * 512);
    let advised = Advice::ExpandSegments { split_bytes: out.split_bytes };
    assert!(out.advice.contains(&advised), "{:?}", out.advice);
    assert!(advised.to_string().contains("expandable_segments:True"));
    let out = fill(&expandable()).expect("every page is in use");
    assert!(!out.advice.iter().any(|advice| matches!(advice, Advice::ExpandSegments { .. })));
    assert!(!out.advice.iter().any(|advice| matches!(advice, Advice::LimitSplitting { .. })));
}

struct Holder(&'static Arena, Mutex<Vec<Option<Block>>>, Mutex<Vec<Run>>);

impl Reclaim for Holder {
    fn reclaim(&self, shortage: &Shortage) -> usize {
        let Some(run) = self.0.cheapest_run(shortage, |_| Some(1)) else { return 0 };
        let mut held = self.1.lock().unwrap();
        for (number, block) in held.iter_mut().enumerate() {
            if run.owners.contains(&Owner::new(number as u32)) {
                *block = None;
            }
        }
        let bytes = run.bytes;
        self.2.lock().unwrap().push(run);
        bytes
    }
}

#[test]
fn room_is_made_of_whole_pages_of_any_stream() {
    let (arena, _) = arena(Some(100 * MIB), &expandable());
    let holder: &'static Holder =
        Box::leak(Box::new(Holder(arena, Mutex::default(), Mutex::default())));
    arena.set_reclaimer(holder);
    for number in 0..10 {
        let block = arena.allocate(&on(1, 10 * MIB)).unwrap();
        block.set_owner(Owner::new(number));
        holder.1.lock().unwrap().push(Some(block));
    }
    // 25 MiB need two pages: four neighbours of 10 MiB that begin where a page does.
    let block = arena.allocate(&request(25 * MIB)).unwrap();
    let runs = holder.2.lock().unwrap();
    assert_eq!((runs.len(), runs[0].bytes, runs[0].owners.len()), (1, 40 * MIB, 4));
    assert_eq!(reserved(arena), 100 * MIB);
    drop(block);
    arena.check_balanced().unwrap();
}
