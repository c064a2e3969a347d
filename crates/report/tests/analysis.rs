//! What is computed from samples equals what PyTorch's viewer would draw (figures by `make_golden.py`).

mod support;

use plimsoll_report::{DeviceAnalysis, Kind, Lines, open};
use support::{golden, samples};

#[test]
fn peaks_are_those_of_the_viewer() {
    for (path, snapshot) in samples() {
        let lines = Lines::of(&snapshot);
        for device in golden(&path)["devices"].as_array().unwrap() {
            let index = device["device"].as_i64().unwrap() as i32;
            let found = DeviceAnalysis::of(&snapshot, &lines, index);
            let last = found.lives.last_position();
            let live =
                [found.lives.bytes_before, found.lives.peak.bytes, found.lives.bytes_at(last)];
            assert_eq!(device["live"], serde_json::to_value(live).unwrap(), "{path:?}");
            assert_eq!(found.lives.bytes_at(found.lives.peak.position), found.lives.peak.bytes);
            assert_eq!(found.at_peak.total.bytes, found.lives.peak.bytes);
            let by_site: u64 = found.at_peak.by_site.iter().map(|(_, amount)| amount.bytes).sum();
            let by_kind: u64 = found.at_peak.by_kind.iter().map(|(_, amount)| amount.bytes).sum();
            assert_eq!((by_site, by_kind), (found.lives.peak.bytes, found.lives.peak.bytes));
            if let Some(expected) = device.get("reserved") {
                let r = found.reserved;
                let reserved = [r.start_bytes, r.peak.bytes, r.end_bytes];
                assert_eq!(*expected, serde_json::to_value(reserved).unwrap(), "{path:?}");
                assert_eq!(r.at(&snapshot, index, r.peak.position), r.peak.bytes);
            }
        }
    }
}

/// The programs make eight and twelve steps; the first or the last of each has only one bound.
#[test]
fn steps_of_samples_are_found() {
    for (name, steps) in [("clean_training", 7), ("leak_losses_keep_graph", 11)] {
        let snapshot = open(support::sample(name)).unwrap();
        let found = DeviceAnalysis::of(&snapshot, &Lines::of(&snapshot), 0);
        assert_eq!(found.steps[0].count(), steps, "{name}: {:?}", found.steps);
    }
}

#[test]
fn kinds_of_clean_training_are_told_apart() {
    let snapshot = open(support::sample("clean_training")).unwrap();
    let found = DeviceAnalysis::of(&snapshot, &Lines::of(&snapshot), 0);
    let bytes = |kind: Kind| {
        let amount = found.at_peak.by_kind.iter().find(|(k, _)| *k == kind);
        amount.map_or(0, |(_, amount)| amount.bytes)
    };
    // Linear(512, 1024), Linear(1024, 1024), Linear(1024, 10) with biases, four bytes each.
    let parameters = 4 * (512 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10);
    assert_eq!(bytes(Kind::Parameter), parameters);
    assert_eq!(bytes(Kind::OptimizerState), 2 * parameters, "Adam keeps two of each");
    // Two workspaces of the matrix library, one a thread.
    assert_eq!(bytes(Kind::Unknown), 2 * 33_554_432);
}
