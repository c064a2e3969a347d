//! Failures that no sample has: requests that are tried again, and large requests beside free
//! pieces.

use plimsoll_report::{Finding, FindingKind, Report, read};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

/// A segment of 100 MiB in which `live` of ten blocks of 10 MiB are in use, and failures for so
/// many MiB each.
fn failures(live: usize, asked: &[u64]) -> Vec<Finding> {
    let frames = json!([{"filename": "train.py", "name": "main", "line": 7}]);
    let place = |block: u64| 4096 * MIB + block * 10 * MIB;
    let mut events: Vec<Value> =
        vec![json!({"action": "segment_alloc", "addr": place(0), "size": 100 * MIB, "stream": 0})];
    let event = |action: &str, block: u64| json!({"action": action, "addr": place(block), "size": 10 * MIB, "stream": 0, "frames": frames});
    events.extend((0..10).map(|block| event("alloc", block)));
    // Those that stay are spread over the segment.
    let stays = |block: u64| (block + 1) * live as u64 / 10 > block * live as u64 / 10;
    for block in (0..10).filter(|block| !stays(*block)) {
        events.push(event("free_requested", block));
        events.push(event("free_completed", block));
    }
    for size in asked {
        events.push(json!({"action": "oom", "device_free": 0, "size": size * MIB, "stream": 0, "frames": frames}));
    }
    let blocks: Vec<Value> = (0..10)
        .map(|block| {
            let state = if stays(block) { "active_allocated" } else { "inactive" };
            json!({"address": place(block), "size": 10 * MIB, "requested_size": 10 * MIB, "state": state,
                "frames": frames})
        })
        .collect();
    let segment = json!({"device": 0, "address": place(0), "total_size": 100 * MIB, "stream": 0, "blocks": blocks});
    let file = json!({"segments": [segment], "device_traces": [events]});
    let found = Report::of(read(file.to_string().as_bytes()).unwrap(), "made").findings;
    found.into_iter().filter(|finding| finding.kind == FindingKind::OutOfMemory).collect()
}

#[test]
fn tries_of_one_request_are_one_failure() {
    let found = failures(10, &[80, 40, 20]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].message.starts_with("20.00 MiB were asked for at train.py:7"),
        "{}",
        found[0].message
    );
}

#[test]
fn many_free_pieces_beside_a_large_request_are_told() {
    let found = &failures(2, &[500])[0];
    assert!(found.cause.contains("a single request"), "{}", found.cause);
    assert!(
        found.message.contains("80.00 MiB were free inside segments in use"),
        "{}",
        found.message
    );
    assert!(found.advice.contains("expandable_segments"), "{}", found.advice);
    // With nearly everything in use there is nothing to win.
    let found = &failures(9, &[500])[0];
    assert!(!found.message.contains("were free inside"), "{}", found.message);
    assert!(found.advice.starts_with("Make that one tensor smaller"), "{}", found.advice);
}

#[test]
fn pieces_explain_a_failure_if_together_they_would_have_served_it() {
    // 50 MiB in pieces of 10 would have served 30; 10 MiB would not have.
    assert_eq!(failures(5, &[30])[0].cause, "fragmentation");
    assert!(failures(9, &[30])[0].cause.ends_with("fills the device"), "{:?}", failures(9, &[30]));
}
