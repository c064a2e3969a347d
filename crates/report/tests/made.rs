//! Files that no machine here could record: several devices in one file, and pinned host memory
//! (2.14 and later). They are made by `make_made.py` from recorded parts, so each part has a truth
//! of its own; the figures of `_memory_viz.py` are checked with those of all samples (`reading.rs`,
//! `analysis.rs`).

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use plimsoll_report::view::Scene;
use plimsoll_report::{BlockState, Report, open, text, trace};
use serde_json::Value;
use support::sample;

fn report(name: &str) -> Report {
    Report::of(open(sample(name)).unwrap(), name)
}

#[test]
fn each_of_several_devices_is_as_in_its_own_file() {
    let together = report("made_several_devices");
    let devices: Vec<i32> = together.devices.iter().map(|device| device.device).collect();
    assert_eq!(devices, [0, 2], "device 1 has no memory");
    for (device, name) in together.devices.iter().zip(["leak_cache", "clean_mlp"]) {
        let alone = report(name);
        let own = &alone.devices[0];
        assert_eq!(device.lives.peak, own.lives.peak, "{name}");
        assert_eq!((&device.steps, device.reserved), (&own.steps, own.reserved), "{name}");
        assert_eq!(device.at_peak.by_kind, own.at_peak.by_kind, "{name}");
        let amounts = |d: &plimsoll_report::DeviceAnalysis| {
            d.at_peak.by_site.iter().map(|(_, amount)| *amount).collect::<Vec<_>>()
        };
        assert_eq!(amounts(device), amounts(own), "{name}");
        let messages = |r: &Report, device: i32| {
            let of = r.findings.iter().filter(|finding| finding.device == device);
            of.map(|finding| finding.message.clone()).collect::<Vec<_>>()
        };
        assert_eq!(messages(&together, device.device), messages(&alone, 0), "{name}");
    }
    assert_eq!(together.busiest().unwrap().device, 2);
    let words = text(&together);
    assert!(words.contains("cuda:0") && words.contains("cuda:2") && !words.contains("cuda:1"));
}

#[test]
fn pinned_host_memory_is_a_device_of_its_own() {
    let report = report("made_pinned_host");
    let [device, host] = &report.devices[..] else { panic!("a device and the host") };
    assert_eq!((device.device, host.device), (0, -1));
    assert_eq!(report.snapshot.device_name(-1), "pinned host");
    // The kept 96,000 bytes and the last batch, each rounded to a power of two. A copy still reads
    // the batch, which the program has let go of: it is in use until that is done.
    assert_eq!(host.lives.bytes_at(host.lives.last_position()), (128 << 10) + (4 << 20));
    let pending = report.snapshot.blocks.iter().filter(|b| b.state == BlockState::PendingFree);
    assert_eq!(pending.map(|block| block.bytes).collect::<Vec<_>>(), [4 << 20]);
    // One of 2 and one of 4 MiB are read by copies while the next one is filled.
    assert_eq!(host.lives.peak.bytes, (128 << 10) + (4 << 20) + (4 << 20));
    let site = report.lines.sites.frame(host.at_peak.by_site[0].0);
    assert_eq!(report.snapshot.strings.get(site.file), "programs/pinned_host.py");
    assert_eq!(site.line, 16);
    assert_eq!(report.findings, []);
    assert!(text(&report).contains("pinned host"));
    assert_eq!(Scene::of(&report).devices[1].device, -1);
    let mut perfetto = Vec::new();
    trace(&report, &mut perfetto).unwrap();
    let events: Value = serde_json::from_slice(&perfetto).unwrap();
    let names = events["traceEvents"].as_array().unwrap().iter().map(|e| &e["args"]["name"]);
    assert!(names.into_iter().any(|name| name == "pinned host"));
}
