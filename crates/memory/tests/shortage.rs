//! When memory is short: limits, release, garbage, reclaim, the report, and going on afterwards.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_core::Device;
use plimsoll_memory::{
    Action, Advice, Arena, Block, Configuration, DrySource, HistoryLevel, HostSource, Kind,
    LimitKind, OriginId, OutOfMemory, Phase, Reclaim, Request, Shortage, Site, Source, StreamId,
    enter_phase,
};
use support::{MIB, arena, on, request};

fn report(error: &plimsoll_core::Error) -> OutOfMemory {
    assert!(error.is_out_of_memory(), "{error}");
    error.detail::<OutOfMemory>().unwrap().clone()
}

#[test]
fn the_limit_refuses_and_the_same_call_works_once_memory_is_free() {
    let (arena, _) = arena(None, &Configuration::default().with_limit(Some(40 * MIB)));
    let held = arena.allocate(&request(30 * MIB)).unwrap();
    let before = arena.stats();
    let out = report(&arena.allocate(&request(11 * MIB)).unwrap_err());
    assert_eq!(out.requested_bytes, 11 * MIB);
    assert_eq!(out.rounded_bytes, 11 * MIB);
    assert_eq!(out.segment_bytes, 12 * MIB);
    assert_eq!(out.allocated_bytes, 30 * MIB);
    assert_eq!(out.reserved_bytes, 30 * MIB);
    assert_eq!(out.limit, Some((40 * MIB, LimitKind::Limit)));
    assert_eq!(out.source_reason, None);
    let after = arena.stats();
    assert_eq!(after.num_ooms, before.num_ooms + 1);
    assert_eq!(after.allocated_bytes, before.allocated_bytes, "nothing was lost or gained");
    arena.check_balanced().unwrap();
    drop(held);
    let block = arena.allocate(&request(11 * MIB)).unwrap();
    assert_eq!(block.requested_bytes(), 11 * MIB);
    arena.check_balanced().unwrap();
}

#[test]
fn cached_segments_are_released_before_an_allocation_fails() {
    let (arena, _) = arena(Some(40 * MIB), &Configuration::default());
    drop(arena.allocate(&request(30 * MIB)).unwrap());
    let block = arena.allocate(&request(36 * MIB)).unwrap();
    let stats = arena.stats();
    assert_eq!(stats.num_alloc_retries, 1);
    assert_eq!(stats.num_device_free, 1);
    assert_eq!(stats.reserved_bytes.all.current, 36 * MIB as i64);
    drop(block);
    arena.check_balanced().unwrap();
}

#[test]
fn a_tight_segment_is_the_last_try() {
    // PyTorch asks for 20 MiB here and fails.
    let (arena, _) = arena(Some(5 * MIB), &Configuration::default());
    let block = arena.allocate(&request(3 * MIB)).unwrap();
    assert_eq!(arena.stats().reserved_bytes.all.current, 4 * MIB as i64);
    let small = arena.allocate(&request(700)).unwrap();
    assert_eq!(arena.stats().reserved_bytes.small_pool.current, 64 << 10);
    arena.check_balanced().unwrap();
    drop((block, small));
}

#[test]
fn pending_frees_are_waited_for_before_giving_up() {
    let (arena, helm) = arena(Some(20 * MIB), &Configuration::default());
    helm.slow_streams.store(true, Ordering::SeqCst);
    let block = arena.allocate(&on(0, 16 * MIB)).unwrap();
    block.record_use(StreamId(1));
    drop(block);
    let passer = {
        let helm = helm.clone();
        std::thread::spawn(move || {
            while helm.waiting(StreamId(1)) > 0 {
                helm.pass(StreamId(1));
            }
        })
    };
    let again = arena.allocate(&on(0, 18 * MIB)).unwrap();
    passer.join().unwrap();
    assert_eq!(again.requested_bytes(), 18 * MIB);
    arena.check_balanced().unwrap();
}

#[test]
fn the_memory_fraction_is_a_share_of_the_device_and_setters_return_what_was() {
    let (arena, _) = arena(Some(100 * MIB), &Configuration::default());
    assert_eq!(arena.set_memory_fraction(0.5), 1.0);
    assert_eq!(arena.set_memory_fraction(0.3), 0.5);
    let out = report(&arena.allocate(&request(40 * MIB)).unwrap_err());
    assert_eq!(out.limit, Some((30 * MIB, LimitKind::MemoryFraction)));
    assert_eq!(arena.set_limit(Some(20 * MIB)), None);
    let out = report(&arena.allocate(&request(25 * MIB)).unwrap_err());
    assert_eq!(out.limit, Some((20 * MIB, LimitKind::Limit)), "the lowest is the one in force");
    assert_eq!(arena.set_limit(None), Some(20 * MIB));
    assert_eq!(arena.set_memory_fraction(f64::NAN), 0.3);
    assert_eq!(arena.set_memory_fraction(7.0), 1.0);
    assert_eq!(arena.set_soft_limit(Some(1)), None);
    assert_eq!(arena.set_soft_limit(None), Some(1));
    assert!(arena.allocate(&request(100 * MIB)).is_ok());
}

#[test]
#[cfg(not(miri))]
fn host_memory_has_a_default_cap_which_a_limit_of_ones_own_replaces() {
    // Addresses without memory, with the room and the manners of the host.
    let host = HostSource::default();
    let total = host.room().total_bytes.unwrap();
    let source = Box::new(DrySource::imitating(&host));
    let arena = Arena::open(Device::cpu(), source, &Configuration::default());
    let cap = (total as f64 * 0.9) as usize;
    let out = report(&arena.allocate(&request(total / 20 * 19)).unwrap_err());
    assert_eq!(out.limit, Some((cap, LimitKind::DefaultCap)));
    assert!(matches!(out.advice[0], Advice::RaiseLimit { rule: LimitKind::DefaultCap, .. }));
    assert_eq!(out.room.total_bytes, Some(total));
    let fits = arena.allocate(&request(total / 20 * 17)).unwrap();
    drop(fits);
    arena.set_limit(Some(total));
    assert!(arena.allocate(&request(total / 20 * 19)).is_ok());
    // A device that says itself when it is full needs no cap.
    let device = Box::new(DrySource::new(Some(total)));
    let arena = Arena::open(Device::cpu(), device, &Configuration::default());
    assert!(arena.allocate(&request(total / 20 * 19)).is_ok());
}

#[test]
fn every_allocation_may_fail_and_nothing_is_lost() {
    // The same program with the n-th call of the source failing, for every n.
    let program = |arena: &'static Arena| -> Result<Vec<Block>, plimsoll_core::Error> {
        let mut blocks = Vec::new();
        for bytes in [100, 2 * MIB, 600 << 10, 900 << 10, 800 << 10, 30 * MIB, 512] {
            blocks.push(arena.allocate(&request(bytes))?);
            if blocks.len() == 4 {
                blocks.remove(1);
            }
        }
        Ok(blocks)
    };
    for caching in [true, false] {
        let configuration = Configuration::default().with_caching(caching);
        let (counting, helm) = arena(None, &configuration);
        drop(program(counting).unwrap());
        let calls = helm.reserves.load(Ordering::SeqCst);
        assert!(calls >= 3);
        let mut failures = 0;
        for n in 1..=calls {
            let (arena, helm) = arena(None, &configuration);
            helm.fail_at.store(n, Ordering::SeqCst);
            helm.fail_after.store(true, Ordering::SeqCst);
            let error = program(arena).unwrap_err();
            assert_eq!(report(&error).source_reason.as_deref(), Some("the test said so"));
            failures += 1;
            arena.check_balanced().unwrap();
            assert_eq!(arena.live_bytes(), 0, "what the program held was given back");
            helm.fail_at.store(0, Ordering::SeqCst);
            drop(program(arena).unwrap());
            arena.check_balanced().unwrap();
            arena.empty_cache();
            assert_eq!(arena.stats().reserved_bytes.all.current, 0);
        }
        assert_eq!(failures, calls);
    }
}

#[test]
fn a_single_failure_of_the_source_is_no_failure_if_something_could_be_released() {
    let (arena, helm) = arena(None, &Configuration::default());
    drop(arena.allocate(&request(2 * MIB)).unwrap());
    helm.fail_at.store(2, Ordering::SeqCst);
    assert!(arena.allocate(&request(30 * MIB)).is_ok());
    assert_eq!(helm.releases.load(Ordering::SeqCst), 1);
}

#[test]
fn a_thread_does_not_give_up_while_another_is_making_room() {
    let (arena, helm) = arena(Some(40 * MIB), &Configuration::default());
    drop(arena.allocate(&request(30 * MIB)).unwrap());
    *helm.hold_releases.lock().unwrap() = true;
    std::thread::scope(|scope| {
        let emptier = scope.spawn(|| arena.empty_cache());
        while helm.releases.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        // The segment is on its way: no block can be had from it, and the source still counts it.
        let asker = scope.spawn(|| arena.allocate(&request(36 * MIB)));
        while helm.reserves.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        *helm.hold_releases.lock().unwrap() = false;
        helm.released.notify_all();
        assert_eq!(emptier.join().unwrap(), 30 * MIB);
        assert!(asker.join().unwrap().is_ok());
    });
    arena.check_balanced().unwrap();
}

/// Gives back one held block a call.
struct Holder {
    held: Mutex<Vec<Block>>,
    calls: AtomicUsize,
}

impl Reclaim for Holder {
    fn reclaim(&self, shortage: &Shortage) -> usize {
        let wanted_bytes = shortage.wanted_bytes;
        assert!(wanted_bytes > 0);
        self.calls.fetch_add(1, Ordering::SeqCst);
        // Taken out first, so that the drop runs without this lock.
        let block = self.held.lock().unwrap().pop();
        block.map_or(0, |block| block.allocated_bytes())
    }
}

fn holder(arena: &'static Arena, bytes: usize, count: usize) -> &'static Holder {
    let held = (0..count).map(|_| arena.allocate(&request(bytes)).unwrap()).collect();
    Box::leak(Box::new(Holder { held: Mutex::new(held), calls: AtomicUsize::new(0) }))
}

#[test]
fn the_program_is_asked_for_live_memory_when_nothing_cached_helps() {
    let (arena, _) = arena(Some(60 * MIB), &Configuration::default());
    let holder = holder(arena, 20 * MIB, 3);
    arena.set_reclaimer(holder);
    let block = arena.allocate(&request(36 * MIB)).unwrap();
    assert_eq!(holder.calls.load(Ordering::SeqCst), 2, "one block a call, two were needed");
    assert_eq!(holder.held.lock().unwrap().len(), 1);
    let out = report(&arena.allocate(&request(50 * MIB)).unwrap_err());
    assert!(!out.advice.contains(&Advice::AllowSpilling), "it is allowed already");
    arena.check_balanced().unwrap();
    drop(block);
    holder.held.lock().unwrap().clear();
}

#[test]
fn the_soft_limit_gives_back_what_is_cached_then_what_is_held_and_never_fails() {
    let (arena, _) = arena(None, &Configuration::default());
    let holder = holder(arena, 20 * MIB, 2);
    arena.set_reclaimer(holder);
    drop(arena.allocate(&request(30 * MIB)).unwrap());
    arena.set_soft_limit(Some(80 * MIB));
    // 40 live and 30 cached; 24 more would be 94. What is cached is enough.
    let first = arena.allocate(&request(24 * MIB)).ok();
    assert_eq!(
        arena.stats().reserved_bytes.all.current,
        70 * MIB as i64,
        "a fit in what is cached"
    );
    let second = arena.allocate(&request(24 * MIB)).unwrap();
    assert_eq!(holder.calls.load(Ordering::SeqCst), 1);
    assert_eq!(arena.stats().reserved_bytes.all.current, (20 + 30 + 24) * MIB as i64);
    // Far above: everything is given back, and it succeeds.
    let third = arena.allocate(&request(200 * MIB)).unwrap();
    arena.check_balanced().unwrap();
    drop((first, second, third));
    holder.held.lock().unwrap().clear();
}

#[test]
fn garbage_is_collected_with_and_without_a_limit() {
    for limit in [None, Some(100 * MIB)] {
        let configuration = Configuration::parse("garbage_collection_threshold:0.5").unwrap();
        let total = if limit.is_some() { 1000 * MIB } else { 100 * MIB };
        let (arena, _) = arena(Some(total), &configuration.with_limit(limit));
        let sizes = [12 * MIB, 16 * MIB, 18 * MIB, 14 * MIB];
        let blocks = sizes.map(|bytes| arena.allocate(&request(bytes)).unwrap());
        blocks.into_iter().for_each(drop);
        assert_eq!(arena.stats().reserved_bytes.all.current, 60 * MIB as i64);
        // 60 of 100 are 10 above the half: the segment that was freed first repays them alone.
        let block = arena.allocate(&request(20 * MIB)).unwrap();
        assert_eq!(arena.stats().reserved_bytes.all.current, (60 - 12 + 20) * MIB as i64);
        arena.check_balanced().unwrap();
        drop(block);
    }
}

#[test]
fn trimming_keeps_what_it_is_told_to() {
    let (arena, _) = arena(None, &Configuration::default());
    let blocks = [12, 16, 30].map(|mib| arena.allocate(&request(mib * MIB)).unwrap());
    blocks.into_iter().for_each(drop);
    assert_eq!(arena.trim(usize::MAX), 0);
    assert_eq!(arena.trim(30 * MIB), 30 * MIB, "the largest goes first");
    assert_eq!(arena.trim(20 * MIB), 16 * MIB);
    assert_eq!(arena.trim(0), 12 * MIB);
    assert_eq!(arena.stats().reserved_bytes.all.current, 0);
}

#[test]
fn idle_trimming_spares_what_was_used_since_the_last_time() {
    let (arena, _) = arena(None, &Configuration::default());
    let (a, b) = (request(12 * MIB), request(30 * MIB));
    let (first, second) = (arena.allocate(&a).unwrap(), arena.allocate(&b).unwrap());
    drop((first, second));
    assert_eq!(arena.trim_idle(), 0, "all of it was used since the beginning");
    drop(arena.allocate(&a).unwrap());
    assert_eq!(arena.trim_idle(), 30 * MIB, "only the other one lay idle");
    assert_eq!(arena.trim_idle(), 12 * MIB);
    arena.check_balanced().unwrap();
}

#[test]
fn oversize_segments_go_first_where_splitting_has_a_limit() {
    let configuration = Configuration::parse("max_split_size_mb:32").unwrap();
    let (arena, _) = arena(Some(160 * MIB), &configuration);
    let sizes = [40 * MIB, 60 * MIB, 2 * MIB];
    let blocks = sizes.map(|bytes| arena.allocate(&request(bytes)).unwrap());
    assert_eq!(arena.stats().oversize_allocations.current, 2);
    assert_eq!(arena.stats().oversize_segments.current, 2);
    blocks.into_iter().for_each(drop);
    // 20 + 40 + 60 are cached. 90 fit neither an oversize block nor beside them: the 60 go (they do
    // not make room by themselves), then the 40; the 20 stay.
    let block = arena.allocate(&request(90 * MIB)).unwrap();
    assert_eq!(arena.stats().reserved_bytes.all.current, (20 + 90) * MIB as i64);
    drop(block);
    // A small request must not take an oversize block.
    let small = arena.allocate(&request(19 * MIB)).unwrap();
    let next = arena.allocate(&request(10 * MIB)).unwrap();
    assert_eq!(arena.stats().reserved_bytes.all.current, (20 + 90 + 10) * MIB as i64);
    arena.check_balanced().unwrap();
    drop((small, next));
}

#[test]
fn the_report_says_who_fills_the_memory_and_what_helps() {
    let (arena, _) = arena(Some(64 * MIB), &Configuration::default());
    let _phase = enter_phase(Phase::Forward);
    let of = |operation, kind, bytes| {
        let origin = OriginId::intern(operation, Site::caller());
        arena.allocate(&Request { kind, ..Request::new(bytes, origin) }).unwrap()
    };
    let weight = of("linear", Kind::Parameter, 12 * MIB);
    let saved = of("softmax", Kind::Activation, 40 * MIB);
    let error = arena
        .allocate(&Request::new(30 * MIB, OriginId::intern("matmul", Site::caller())))
        .unwrap_err();
    let out = report(&error);
    assert_eq!(out.by_kind[0].kind, Kind::Activation);
    assert_eq!(out.by_kind[0].bytes, 40 * MIB);
    assert_eq!(out.top_origins[0].origin.get().operation, "softmax");
    assert_eq!(out.origins, 2);
    assert_eq!(out.room.free_bytes, Some(12 * MIB));
    assert!(out.advice.contains(&Advice::FewerActivations { bytes: 40 * MIB }));
    assert!(out.advice.contains(&Advice::AllowSpilling));
    assert!(!out.advice.iter().any(|advice| matches!(advice, Advice::RaiseLimit { .. })));
    let text = error.to_string();
    let said = [
        "matmul: out of memory on cpu: no room for 30.00 MiB",
        "52.00 MiB allocated",
        "activation 40.00 MiB (1)",
        "shortage.rs:",
        "(forward)",
        "the source said: the imitated device has no more room",
        "checkpointing",
    ];
    for words in said {
        assert!(text.contains(words), "{words:?} is missing in:\n{text}");
    }
    drop((weight, saved));
}

#[test]
fn advice_fits_the_state() {
    // The program's own limit refused and the device has room.
    let (limited, _) = arena(Some(1 << 40), &Configuration::default().with_limit(Some(20 * MIB)));
    let held = limited.allocate(&request(12 * MIB)).unwrap();
    let out = report(&limited.allocate(&request(16 * MIB)).unwrap_err());
    let raise = Advice::RaiseLimit { rule: LimitKind::Limit, needed_bytes: 28 * MIB };
    assert_eq!(out.advice[0], raise);
    drop(held);

    // Larger than the device: nothing that is freed could help, so nothing else is advised.
    let (small, _) = arena(Some(20 * MIB), &Configuration::default());
    let out = report(&small.allocate(&request(50 * MIB)).unwrap_err());
    assert_eq!(out.advice, [Advice::RequestBeyondLimit { limit_bytes: 20 * MIB }]);

    // Free memory of another stream.
    let (streams, _) = arena(Some(40 * MIB), &Configuration::default());
    let pin = streams.allocate(&on(1, 2 * MIB)).unwrap();
    drop(streams.allocate(&on(1, 16 * MIB)).unwrap());
    let own = streams.allocate(&on(0, 18 * MIB)).unwrap();
    let out = report(&streams.allocate(&on(0, 14 * MIB)).unwrap_err());
    assert!(out.advice.contains(&Advice::ShareStreams { bytes: 18 * MIB }), "{out}");
    assert_eq!(out.other_streams_free_bytes, 18 * MIB);
    drop((pin, own));

    // Free memory in pieces: advised only while splitting has no limit.
    let pieces = |text: &str| {
        let (arena, _) = arena(Some(40 * MIB), &Configuration::parse(text).unwrap());
        let blocks: Vec<_> = (0..20).map(|_| arena.allocate(&request(2 * MIB)).unwrap()).collect();
        let kept: Vec<_> =
            blocks.into_iter().enumerate().filter(|(n, _)| n % 2 == 0).map(|(_, b)| b).collect();
        let out = report(&arena.allocate(&request(6 * MIB)).unwrap_err());
        assert_eq!(out.split_bytes, 20 * MIB);
        assert_eq!(out.largest_free_bytes, 2 * MIB);
        assert!((out.fragmentation() - 0.9).abs() < 1e-9);
        drop(kept);
        out.advice.contains(&Advice::LimitSplitting { split_bytes: 20 * MIB })
    };
    assert!(pieces(""));
    assert!(!pieces("max_split_size_mb:20"));
}

#[test]
fn observers_see_the_report_and_history_the_event() {
    let (arena, _) = arena(Some(20 * MIB), &Configuration::default());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    arena.add_oom_observer(Box::new(move |out| {
        // No lock of the arena is held: asking it something must not hang.
        sink.lock().unwrap().push((out.requested_bytes, arena.live_bytes()));
    }));
    arena.record_history(HistoryLevel::All, 100);
    arena.allocate(&request(30 * MIB)).unwrap_err();
    assert_eq!(*seen.lock().unwrap(), [(30 * MIB, 0)]);
    let last = arena.history().pop().unwrap();
    assert_eq!(last.event.action, Action::OutOfMemory);
    assert_eq!(last.event.requested_bytes, 30 * MIB);
}
