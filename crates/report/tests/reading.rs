//! What is read equals what PyTorch's own tool reads: figures of `_memory_viz.py` are in
//! `data/*/golden.json`, written by `make_golden.py`.

mod support;

use std::collections::BTreeMap;

use plimsoll_report::{Action, BlockState, Snapshot, open};
use serde_json::Value;
use support::{golden, samples};

#[test]
fn segments_have_the_figures_of_memory_viz() {
    for (path, snapshot) in samples() {
        let golden = golden(&path);
        let mut found = Vec::new();
        let (mut reserved, mut requested, mut internal) = (0, 0, 0);
        for segment in snapshot.segments.iter().filter(|segment| segment.device >= 0) {
            let live =
                snapshot.blocks_of(segment).iter().filter(|b| b.state == BlockState::Allocated);
            let (allocated, wanted) =
                live.fold((0, 0), |sum, b| (sum.0 + b.bytes, sum.1 + b.requested_bytes));
            found.push(vec![segment.address, segment.total_bytes, allocated, wanted]);
            reserved += segment.total_bytes;
            requested += wanted;
            internal += allocated - wanted;
        }
        let totals = &golden["totals"];
        assert_eq!(totals["segments"], serde_json::to_value(&found).unwrap(), "{path:?}");
        assert_eq!(totals["reserved"], reserved, "{path:?}");
        assert_eq!(totals["requested"], requested, "{path:?}");
        assert_eq!(totals["free_internal"], internal, "{path:?}");
        assert_eq!(totals["free_external"], reserved - requested - internal, "{path:?}");
    }
}

#[test]
fn bytes_by_stack_are_those_of_memory_viz() {
    for (path, snapshot) in samples() {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for segment in snapshot.segments.iter().filter(|segment| segment.device >= 0) {
            for block in snapshot.blocks_of(segment) {
                if block.state == BlockState::Allocated {
                    *found.entry(innermost(&snapshot, block.stack)).or_default() +=
                        block.requested_bytes;
                }
            }
        }
        assert_eq!(
            golden(&path)["by_innermost_frame"],
            serde_json::to_value(&found).unwrap(),
            "{path:?}"
        );
    }
}

/// As `_memory_viz.py` writes a stack's last frame; it leaves out those of the recorder itself.
fn innermost(snapshot: &Snapshot, stack: plimsoll_report::StackId) -> String {
    const LEFT_OUT: [&str; 3] = ["unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp"];
    let shown = |function: &str| !LEFT_OUT.iter().any(|name| function.contains(name));
    match snapshot.frames_of(stack).find(|(function, ..)| shown(function)) {
        Some((function, file, line)) => {
            format!("{}:{line}:{function}", file.rsplit('/').next().unwrap_or(file))
        }
        None => "<non-python>".to_string(),
    }
}

#[test]
fn every_event_is_there() {
    for (path, snapshot) in samples() {
        for device in golden(&path)["devices"].as_array().unwrap() {
            let rows = snapshot.rows_of(device["device"].as_i64().unwrap() as i32);
            let mut found: BTreeMap<&str, u64> = BTreeMap::new();
            for action in &snapshot.events.action[rows] {
                *found.entry(action.word()).or_default() += 1;
            }
            assert!(!found.contains_key(Action::Other.word()), "{path:?}");
            assert_eq!(device["events"], serde_json::to_value(&found).unwrap(), "{path:?}");
        }
    }
}

#[test]
fn an_event_has_all_its_fields() {
    let snapshot = open(support::sample("oom_activations")).unwrap();
    let event = snapshot.events.get(614);
    assert_eq!(event.action, Action::Oom);
    assert_eq!(event.size, 16_777_216);
    let frames: Vec<_> = snapshot.frames_of(event.stack).collect();
    assert_eq!(frames[0], ("relu", "site-packages/torch/nn/functional.py", 1723));
    assert_eq!(frames.last(), Some(&("<module>", "train/scenarios.py", 49)));
    assert!(snapshot.settings.contains(&("expandable_segments".into(), "false".into())));
    assert!(snapshot.settings.contains(&("roundup_power2_divisions.32768".into(), "0".into())));
    let trained = open(support::sample("clean_training")).unwrap();
    let first = trained.annotations[0];
    assert_eq!(trained.strings.get(first.name), "Optimizer.zero_grad#Adam.zero_grad");
    assert!(first.is_start && first.time_us == 1_794_707_676_073_658);
}

#[test]
fn the_golden_files_name_their_version() {
    for (path, _) in samples() {
        assert!(
            matches!(&golden(&path)["torch"], Value::String(version) if version.starts_with("2."))
        );
    }
}
