//! Free memory at the end that live blocks keep from going back: its bytes and segments are those
//! that PyTorch's own functions count (`make_golden.py`), and the report says it where it is much.

mod support;

use plimsoll_report::{Report, html, json, open, text};
use serde_json::Value;
use support::{golden, sample, samples};

#[test]
fn held_bytes_are_those_of_pytorch() {
    let mut compared = 0;
    for (path, snapshot) in samples() {
        // PyTorch's figures do not say which segments give pages back, and leave the host out.
        if snapshot.segments.iter().any(|s| s.is_expandable || s.device < 0) {
            continue;
        }
        let report = Report::of(snapshot, "sample");
        let golden = golden(&path);
        let (mut bytes, mut segments) = (0, 0);
        for segment in golden["totals"]["segments"].as_array().unwrap() {
            let figure = |at: usize| segment[at].as_u64().unwrap();
            let (total, active) = (figure(1), figure(2));
            if active > 0 && active < total {
                bytes += total - active;
                segments += 1;
            }
        }
        let held: u64 = report.devices.iter().map(|device| device.held.bytes).sum();
        let count: u64 = report.devices.iter().map(|device| device.held.segments).sum();
        assert_eq!((held, count), (bytes, segments), "{path:?}");
        compared += 1;
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn much_is_told_with_its_bytes_segments_and_lines() {
    let report = Report::of(open(sample("fragmented")).unwrap(), "fragmented");
    let (said, page) = (text(&report), html(&report));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in ["are free inside 26 segments that live blocks hold", "fragmented.py:", "(56 %)"] {
        assert!(said.contains(told), "{told}: {said}");
    }
    assert!(page.contains("are free inside 26 segments that live blocks hold"), "{page}");
    let parsed: Value = serde_json::from_str(&json(&report)).unwrap();
    let device = &parsed["devices"][0];
    assert_eq!(device["end_held_segments"], 26);
    assert_eq!(device["end_held_bytes"], report.devices[0].held.bytes);
    let lines = device["end_held_by_site"].as_array().unwrap();
    assert!(lines[0]["file"].as_str().unwrap().ends_with("fragmented.py"), "{lines:?}");
}

#[test]
fn little_is_not_told() {
    for name in ["clean_training", "checkerboard", "ok_resnet"] {
        let report = Report::of(open(sample(name)).unwrap(), name);
        assert!(!text(&report).contains("live blocks hold"), "{name}");
    }
}

#[test]
fn an_error_says_its_cause_once() {
    for (path, cause) in [
        (std::env::temp_dir().join("no-such-snapshot.pickle"), "No such file"),
        (std::path::PathBuf::from(file!()), "not a memory snapshot"),
    ] {
        // Tests run in the folder of their crate; `file!` starts at the workspace.
        let path = match path.strip_prefix("crates/report") {
            Ok(inside) => inside.to_path_buf(),
            Err(_) => path,
        };
        let said = open(&path).unwrap_err().to_string();
        assert_eq!(said.matches(cause).count(), 1, "{said}");
        assert!(said.starts_with("cannot read `"), "{said}");
    }
}
