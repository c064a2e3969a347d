//! What is computed from samples equals what PyTorch's viewer would draw (figures by
//! `make_golden.py`).

mod support;

use plimsoll_report::{
    DeviceAnalysis, Diff, Kind, Lines, Report, flame, html, json, open, text, trace,
};
use serde_json::Value;
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
    assert_eq!(bytes(Kind::Workspace), 2 * 33_554_432);
    assert_eq!(bytes(Kind::Unknown), 0);
}

#[test]
fn reports_are_the_same_each_time_and_fit_80_columns() {
    for (path, snapshot) in samples() {
        let render = |snapshot| {
            let report = Report::of(snapshot, "sample.pickle");
            let mut perfetto = Vec::new();
            trace(&report, &mut perfetto).unwrap();
            let device = report.busiest().unwrap();
            let flame = flame(&report, device, device.lives.peak.position);
            (text(&report), json(&report), html(&report), flame, perfetto)
        };
        let first = render(snapshot);
        assert!(first == render(open(&path).unwrap()), "{path:?}");
        for line in plain(&first.0).lines() {
            assert!(line.chars().count() <= 80, "{path:?}: {line}");
        }
    }
}

/// Without the codes for colours.
fn plain(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |sum, part| sum + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn json_has_the_promised_keys_and_sums() {
    for (path, snapshot) in samples() {
        let report: Value = serde_json::from_str(&json(&Report::of(snapshot, "a.pickle"))).unwrap();
        let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            ["devices", "findings", "peak_by_site", "peak_bytes", "source"],
            "{path:?}"
        );
        let sites = report["peak_by_site"].as_array().unwrap();
        let sum: u64 = sites.iter().map(|site| site["bytes"].as_u64().unwrap()).sum();
        assert_eq!(report["peak_bytes"], sum, "{path:?}");
        for finding in report["findings"].as_array().unwrap() {
            let keys: Vec<&String> = finding.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["advice", "bytes", "cause", "count", "kind", "message", "site"]);
            let keys: Vec<&String> = finding["site"].as_object().unwrap().keys().collect();
            assert_eq!(keys, ["file", "function", "line"]);
        }
    }
}

#[test]
fn traces_are_valid_for_perfetto() {
    for (path, snapshot) in samples() {
        let report = Report::of(snapshot, "a.pickle");
        let mut out = Vec::new();
        trace(&report, &mut out).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let mut highest = 0;
        for event in events {
            let phase = event["ph"].as_str().unwrap();
            assert!(["C", "M", "i", "b", "e"].contains(&phase), "{path:?}: {event}");
            assert!(event["ts"].is_u64() && event["pid"].is_u64() && event["tid"].is_u64());
            assert!(
                event["name"].as_str().is_some_and(|name| !name.is_empty()),
                "{path:?}: {event}"
            );
            if phase == "C" {
                let values = event["args"].as_object().unwrap();
                assert!(
                    !values.is_empty() && values.values().all(Value::is_u64),
                    "{path:?}: {event}"
                );
                if event["name"] == "live bytes" && event["pid"] == 1 {
                    highest = highest.max(values.values().map(|v| v.as_u64().unwrap()).sum());
                }
            }
        }
        let count = |wanted: &str| events.iter().filter(|event| event["ph"] == wanted).count();
        assert!(count("b") >= count("e"), "{path:?}: an end without a start");
        assert_eq!(highest, report.devices[0].lives.peak.bytes, "{path:?}");
    }
}

#[test]
fn a_file_does_not_differ_from_itself() {
    for (path, snapshot) in samples() {
        let (a, b) = (Report::of(snapshot, "a"), Report::of(open(&path).unwrap(), "b"));
        let diff = Diff::of(&a, &b);
        assert!(diff.is_empty() && diff.text().is_empty(), "{path:?}: {}", diff.text());
    }
    let read = |name| Report::of(open(support::sample(name)).unwrap(), name);
    let (small, large) = (read("clean_mlp"), read("oom_batch"));
    let (grown, shrunk) = (Diff::of(&small, &large), Diff::of(&large, &small));
    assert_eq!(grown.peak_growth(), 1_041_334_276 - 100_387_020);
    assert_eq!(shrunk.peak_growth(), 0);
    assert_eq!(grown.by_site.len(), shrunk.by_site.len());
    for change in &grown.by_site {
        assert_eq!(change.change == "added", change.before_bytes == 0, "{change:?}");
    }
}
