//! One snapshot in every form gives one and the same: all pickle protocols as CPython writes them,
//! JSON, gzip, the C++ writer's form, old layouts, and what our own writers make of it (files by
//! `make_layouts.py`).

mod support;

use std::path::{Path, PathBuf};

use plimsoll_report::{
    CountedBy, Diff, Kind, Report, Snapshot, open, read, text, write_json, write_pickle,
};
use proptest::prelude::*;
use support::{sample, samples, unpacked};

fn layout(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/layouts").join(name)
}

/// Everything that a snapshot says, in words: tables may number texts and stacks differently.
fn spelled(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    let stack =
        |id| snapshot.frames_of(id).map(|f| format!("{f:?}")).collect::<Vec<_>>().join(" < ");
    for segment in &snapshot.segments {
        let pool = snapshot.strings.get(segment.pool);
        out += &format!(
            "segment {} {:#x} {} {} {pool} {:?} {} {}\n",
            segment.device,
            segment.address,
            segment.total_bytes,
            segment.stream,
            segment.pool_id,
            segment.is_expandable,
            stack(segment.stack)
        );
        for b in snapshot.blocks_of(segment) {
            out += &format!(
                "  block {:#x} {} {} {:?} {:?} {:?} {}\n",
                b.address,
                b.bytes,
                b.requested_bytes,
                b.state,
                b.kind,
                b.step,
                stack(b.stack)
            );
        }
    }
    for trace in snapshot.traces.iter().filter(|trace| !trace.rows.is_empty()) {
        for row in trace.rows.clone() {
            let e = snapshot.events.get(row);
            let text = |id: Option<_>| id.map(|id| snapshot.strings.get(id));
            out += &format!(
                "event {} {:?} {:#x} {} {} {} {:?} {:?} {:?} {:?} {}\n",
                trace.device,
                e.action,
                e.addr,
                e.size,
                snapshot.events.streams[e.stream as usize],
                e.time_us,
                e.kind,
                text(snapshot.events.compile_context(row)),
                text(snapshot.events.user_metadata(row)),
                snapshot.events.pool_id(row),
                stack(e.stack)
            );
        }
    }
    for a in &snapshot.annotations {
        let name = snapshot.strings.get(a.name);
        out += &format!("annotation {name} {} {} {}\n", a.is_start, a.device, a.time_us);
    }
    out
}

#[test]
fn every_protocol_json_and_the_cpp_writer_say_the_same() {
    let expected = spelled(&open(sample("leak_cache")).unwrap());
    assert!(expected.lines().count() > 60);
    for protocol in 0..=5 {
        let path = layout(&format!("protocol{protocol}.pickle.gz"));
        assert_eq!(spelled(&open(&path).unwrap()), expected, "protocol {protocol}");
        assert_eq!(spelled(&read(&unpacked(&path)).unwrap()), expected, "protocol {protocol}");
    }
    for name in ["plain.json.gz", "cpp.pickle.gz"] {
        assert_eq!(spelled(&open(layout(name)).unwrap()), expected, "{name}");
    }
}

/// Written by the memory crate's example `write_snapshot`; the figures are those of its own
/// counters, which stand in the file.
#[test]
fn plimsolls_own_files_have_their_kinds_and_figures() {
    let report = Report::of(open(layout("plimsoll.pickle.gz")).unwrap(), "plimsoll");
    assert!(report.snapshot.writer.is_plimsoll && report.snapshot.device_name(0) == "cpu");
    let [device] = &report.devices[..] else { panic!("one device") };
    assert!(!device.kinds_inferred);
    assert_eq!(device.lives.peak.bytes, 52_543_040, "requested_bytes.all.peak");
    assert_eq!(device.reserved.peak.bytes, 69_206_016, "reserved_bytes.all.peak");
    assert_eq!(device.lives.bytes_at(device.lives.last_position()), 52_543_040);
    assert_eq!(device.steps[0].counted_by, CountedBy::Annotations);
    let kinds: Vec<Kind> = device.at_peak.by_kind.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [Kind::Parameter, Kind::Gradient, Kind::Temporary]);
    let site = report.lines.sites.frame(device.at_peak.by_site[0].0);
    assert!(report.snapshot.strings.get(site.file).ends_with("write_snapshot.rs"));
}

/// Sixteen steps of a PyTorch program that keeps its outputs, by `plimsoll watch --snapshot`: lines
/// where a window saw them, holders everywhere, and no history.
#[test]
fn a_watched_programs_file_says_what_lived() {
    let report = Report::of(open(layout("watched.json.gz")).unwrap(), "watched");
    let [device] = &report.devices[..] else { panic!("one device") };
    assert_eq!(report.snapshot.device_name(device.device), "cpu");
    assert_eq!(device.lives.peak.bytes, 24_832);
    let by_kind: Vec<_> = device.at_peak.by_kind.iter().map(|(k, sum)| (*k, sum.bytes)).collect();
    assert_eq!(
        by_kind,
        [(Kind::Parameter, 4_224), (Kind::Gradient, 4_224), (Kind::Unknown, 16_384)]
    );
    let line = device.at_peak.by_site.iter().find_map(|(site, sum)| {
        let frame = report.lines.sites.frame(*site);
        (report.snapshot.strings.get(frame.file) == "train.py").then_some((frame.line, sum.bytes))
    });
    assert_eq!(line, Some((7, 6_144)));
    let text = text(&report);
    assert!(text.contains("global `kept` -> list of 15"), "{text}");
    assert!(text.contains("no history was recorded") && !text.contains("nothing found"), "{text}");
}

#[test]
fn segments_alone_are_a_snapshot() {
    let whole = open(sample("leak_cache")).unwrap();
    let alone = open(layout("segments_only.pickle.gz")).unwrap();
    assert_eq!(
        (alone.segments.len(), alone.blocks.len()),
        (whole.segments.len(), whole.blocks.len())
    );
    assert!(alone.events.is_empty() && alone.devices() == [0]);
}

#[test]
fn blocks_with_a_history_have_their_stacks() {
    let (new, old) =
        (open(sample("leak_cache")).unwrap(), open(layout("history.pickle.gz")).unwrap());
    for (new_block, old_block) in new.blocks.iter().zip(&old.blocks).filter(|(b, _)| b.is_active())
    {
        assert_eq!(old_block.address, new_block.address);
        assert_eq!(old_block.requested_bytes, new_block.requested_bytes);
        let frames =
            |s: &Snapshot, id| s.frames_of(id).map(|f| format!("{f:?}")).collect::<Vec<_>>();
        assert_eq!(frames(&old, old_block.stack), frames(&new, new_block.stack));
    }
    assert!(old.events.time_us.iter().all(|time| *time == 0));
}

/// The layout of 2.1, made from a newer sample by leaving out what came later.
#[test]
fn without_times_and_contexts_the_findings_are_the_same() {
    let new = Report::of(open(sample("leak_cache")).unwrap(), "leak");
    let old = Report::of(open(layout("torch_2_1.pickle.gz")).unwrap(), "leak");
    assert!(old.snapshot.events.time_us.iter().all(|time| *time == 0));
    assert!(old.snapshot.settings.is_empty() && old.snapshot.annotations.is_empty());
    assert_eq!(old.snapshot.blocks.len(), new.snapshot.blocks.len());
    assert_eq!(old.devices[0].lives.peak, new.devices[0].lives.peak);
    assert_eq!(plimsoll_report::json(&old), plimsoll_report::json(&new));
    assert_eq!(old.findings.len(), 1);
}

#[test]
fn what_is_written_reads_back() {
    for (path, snapshot) in samples() {
        let (mut pickle, mut json) = (Vec::new(), Vec::new());
        write_pickle(&snapshot, &mut pickle).unwrap();
        write_json(&snapshot, &mut json).unwrap();
        let expected = spelled(&snapshot);
        assert!(spelled(&read(&pickle).unwrap()) == expected, "{path:?} as a pickle");
        assert!(spelled(&read(&json).unwrap()) == expected, "{path:?} as JSON");
    }
}

/// An event as JSON, with numbers up to the ends of their ranges.
fn event() -> impl Strategy<Value = String> {
    let action = prop::sample::select(vec![
        "alloc",
        "free_requested",
        "free_completed",
        "segment_alloc",
        "segment_free",
        "segment_map",
        "segment_unmap",
        "snapshot",
        "oom",
        "annotate",
    ]);
    let name = prop::sample::select(vec!["main", "é\\n\\\"x", "<module>", ""]);
    let number = prop_oneof![0..1000u64, any::<u32>().prop_map(u64::from), 0..=u64::MAX / 2];
    (action, number.clone(), number, 0..4u64, any::<u64>(), name, any::<u32>()).prop_map(
        |(action, addr, size, stream, time, name, line)| {
            let addr_key = if action == "oom" { "device_free" } else { "addr" };
            format!(
                "{{\"action\":\"{action}\",\"{addr_key}\":{addr},\"size\":{size},\"stream\":{stream},\
                 \"time_us\":{time},\"frames\":[{{\"name\":\"{name}\",\"filename\":\"a.py\",\"line\":{line}}}]}}"
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_trace_goes_through_json_and_pickle(events in prop::collection::vec(event(), 0..40)) {
        let text = format!("{{\"segments\":[],\"device_traces\":[[],[{}]]}}", events.join(","));
        let first = read(text.as_bytes()).unwrap();
        prop_assert_eq!(first.events.len(), events.len());
        let (mut pickle, mut json) = (Vec::new(), Vec::new());
        write_pickle(&first, &mut pickle).unwrap();
        write_json(&first, &mut json).unwrap();
        prop_assert_eq!(spelled(&read(&pickle).unwrap()), spelled(&first));
        prop_assert_eq!(spelled(&read(&json).unwrap()), spelled(&first));
        // Whatever a trace says, it can be reported.
        let report = Report::of(first, "random");
        prop_assert!(!plimsoll_report::text(&report).is_empty());
        prop_assert!(!plimsoll_report::json(&report).is_empty());
        let mut perfetto = Vec::new();
        plimsoll_report::trace(&report, &mut perfetto).unwrap();
        let device = report.busiest().map(|d| plimsoll_report::flame(&report, d, d.lives.peak.position));
        prop_assert!(device.is_none_or(|svg| svg.contains("</svg>")));
        let scene = plimsoll_report::view::Scene::of(&report);
        prop_assert!(plimsoll_report::view::html(&scene, "random").is_ok());
        for device in &scene.devices {
            let moments = (0..=events.len() as u32).map(|at| device.moment(at).segments.len());
            prop_assert!(moments.max() <= Some(2 * events.len()));
        }
        prop_assert!(!plimsoll_report::html(&report).is_empty());
        prop_assert!(Diff::of(&report, &report).is_empty());
    }
}
