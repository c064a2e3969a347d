//! Snapshots: blocks, events and counters of one moment agree, also while other threads allocate.
//! That PyTorch's own tools open the files is `viz.py`'s to show.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_core::{Device, DeviceKind};
use plimsoll_memory::{
    Action, Arena, BlockUse, Configuration, DeviceSnapshot, DrySource, HistoryLevel, Kind,
    OriginId, Phase, Request, Site, Snapshot, Stage, annotate, enter_module, enter_phase, set_step,
    with_site,
};

fn arena(configuration: &Configuration) -> &'static Arena {
    let device = Device::from_slot(0, DeviceKind::Cpu, 0, true);
    Arena::open(device, Box::new(DrySource::new(None)), configuration)
}

fn recording() -> Configuration {
    Configuration::builder()
        .history(HistoryLevel::All)
        .history_entries(1 << 20)
        .build()
        .expect("these settings fit")
}

fn request(operation: &'static str, bytes: usize, kind: Kind) -> Request {
    let origin = OriginId::intern(operation, Site::Foreign(12));
    Request { kind, ..Request::new(bytes, origin) }
}

/// The figures of the blocks, against the counters.
fn totals_agree(device: &DeviceSnapshot) {
    let stats = &device.stats;
    let blocks = || device.segments.iter().flat_map(|segment| &segment.blocks);
    let sum = |bytes: &mut dyn Iterator<Item = usize>| bytes.sum::<usize>() as i64;
    let allocated = || blocks().filter(|block| block.state == BlockUse::Allocated);
    assert_eq!(
        sum(&mut device.segments.iter().map(|segment| segment.bytes)),
        stats.reserved_bytes.all.current
    );
    assert_eq!(device.segments.len() as i64, stats.segment.all.current);
    assert_eq!(sum(&mut allocated().map(|block| block.bytes)), stats.allocated_bytes.all.current);
    assert_eq!(allocated().count() as i64, stats.allocation.all.current);
    let active = || blocks().filter(|block| block.state != BlockUse::Inactive);
    assert_eq!(
        sum(&mut active().map(|block| block.requested_bytes)),
        stats.requested_bytes.all.current
    );
    for segment in &device.segments {
        let end = segment.blocks.iter().fold(segment.address, |at, block| {
            assert_eq!(block.address, at, "blocks tile their segment");
            at + block.bytes
        });
        assert_eq!(end, segment.address + segment.bytes);
    }
}

/// The trace from the beginning must end in the blocks.
fn trace_ends_in_the_blocks(device: &DeviceSnapshot) {
    let mut live = HashMap::new();
    for (number, entry) in device.entries.iter().enumerate() {
        assert_eq!(entry.sequence, number as u64, "nothing was dropped");
        let event = &entry.event;
        match event.action {
            Action::Allocated => {
                assert_eq!(live.insert(event.address, event.requested_bytes), None);
            }
            Action::FreeRequested => {
                assert_eq!(live.remove(&event.address), Some(event.requested_bytes));
            }
            _ => {}
        }
    }
    let blocks = device.segments.iter().flat_map(|segment| &segment.blocks);
    let allocated: HashMap<usize, usize> = blocks
        .filter(|block| block.state == BlockUse::Allocated)
        .map(|block| (block.address, block.requested_bytes))
        .collect();
    assert_eq!(live, allocated);
}

fn churn(arena: &'static Arena, thread: usize) {
    let mut kept = Vec::new();
    // Miri is a thousand times slower.
    for turn in 0..if cfg!(miri) { 30 } else { 2000 } {
        let bytes = 100 + (turn * 7919 + thread * 104_729) % 3_000_000;
        kept.push(arena.allocate(&request("churn", bytes, Kind::Temporary)).unwrap());
        if kept.len() > 20 {
            kept.swap_remove(turn % 20);
        }
        if turn.is_multiple_of(50) {
            arena.empty_cache();
        }
    }
}

#[test]
fn a_snapshot_taken_while_threads_allocate_is_of_one_moment() {
    for caching in [true, false] {
        let configuration = recording().with_caching(caching);
        let arena = arena(&configuration);
        let running = AtomicUsize::new(3);
        let mut taken = 0;
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let running = &running;
                scope.spawn(move || {
                    churn(arena, thread);
                    running.fetch_sub(1, Ordering::Release);
                });
            }
            while running.load(Ordering::Acquire) > 0 || taken == 0 {
                let snapshot = Snapshot::take(&[arena], &configuration);
                totals_agree(&snapshot.devices[0]);
                trace_ends_in_the_blocks(&snapshot.devices[0]);
                taken += 1;
            }
        });
        assert_eq!(arena.live_bytes(), 0);
    }
}

#[test]
fn json_carries_frames_categories_steps_and_spans() {
    let configuration = recording();
    let arena = arena(&configuration);
    set_step(41);
    let _step = set_step(42);
    let block = {
        let _span = annotate("warm-up");
        let _phase = enter_phase(Phase::Forward);
        let _module = enter_module("encoder");
        let _layer = enter_module("0");
        arena.allocate(&request("matmul", 1000, Kind::Temporary)).unwrap()
    };
    block.set_kind(Kind::Activation);
    let gone = arena.allocate(&request("exp", 3 << 20, Kind::Unknown)).unwrap();
    with_site(Site::caller(), || drop(gone));
    let snapshot = Snapshot::take(&[arena], &configuration);
    let mut text = Vec::new();
    snapshot.write_json(&mut text).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();

    let first = &json["segments"][0]["blocks"][0];
    assert_eq!(first["requested_size"], 1000);
    assert_eq!(first["state"], "active_allocated");
    assert_eq!(first["category"], "activation");
    assert_eq!(first["step"], 42);
    let names: Vec<&str> =
        first["frames"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    // The foreign frame has no resolver in this test, so its line is left out.
    assert_eq!(names, ["matmul", "encoder.0", "forward"]);

    let trace = json["device_traces"][0].as_array().unwrap();
    let actions: Vec<&str> = trace.iter().map(|e| e["action"].as_str().unwrap()).collect();
    let expected = [
        "segment_alloc",
        "alloc",
        "annotate",
        "segment_alloc",
        "alloc",
        "free_requested",
        "free_completed",
    ];
    assert_eq!(actions, expected);
    assert_eq!(trace[1]["category"], "activation", "the kind that it became");
    assert_eq!(trace[1]["user_metadata"], "step 42");
    assert_eq!(trace[2]["user_metadata"], "temporary becomes activation");
    assert_eq!(trace[5]["frames"][0]["name"], "free");
    assert!(trace[5]["frames"][1]["filename"].as_str().unwrap().ends_with("snapshot.rs"));
    assert_eq!(json["allocator_settings"]["PLIMSOLL_CONF"], "history:all,history_entries:1048576");
    assert_eq!(json["plimsoll"]["devices"][0]["memory_stats"]["allocation.all.current"], 1);

    let spans: Vec<(&str, Stage)> = snapshot
        .annotations
        .iter()
        .filter(|span| ["warm-up", "step 41", "step 42"].contains(&&*span.name))
        .map(|span| (&*span.name, span.stage))
        .collect();
    let (start, end) = (Stage::Start, Stage::End);
    let expected = [
        ("step 41", start),
        ("step 41", end),
        ("step 42", start),
        ("warm-up", start),
        ("warm-up", end),
    ];
    assert_eq!(spans, expected);
}

#[test]
fn a_full_history_says_so_and_keeps_the_newest() {
    let configuration =
        Configuration::builder().history(HistoryLevel::Alloc).history_entries(10).build().unwrap();
    let arena = arena(&configuration);
    for bytes in 1..=50 {
        drop(arena.allocate(&request("loop", bytes, Kind::Temporary)).unwrap());
    }
    let snapshot = Snapshot::take(&[arena], &configuration);
    let entries = &snapshot.devices[0].entries;
    assert_eq!(entries.len(), 10);
    // One segment, then three events for each of fifty blocks.
    assert_eq!(entries[9].sequence, 150);
    assert_eq!(entries[9].event.requested_bytes, 50);
    let mut text = Vec::new();
    snapshot.write_json(&mut text).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("\"trace_alloc_overflowed\":true"));
}

// Miri keeps programs from files.
#[cfg(not(miri))]
#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let configuration = Configuration::default();
    let snapshot = Snapshot::take(&[], &configuration);
    let error = snapshot.save("/no/such/folder/snapshot.pickle").unwrap_err();
    assert!(error.to_string().contains("/no/such/folder/snapshot.pickle"), "{error}");
}
