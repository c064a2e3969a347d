//! Moments of the picture, against counting everything: what is alive, the segments and the
//! reserved bytes at a position.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use plimsoll_report::view::{Scene, SegmentNow};
use plimsoll_report::{Block, LiveSet, Report, placement};
use support::samples;
use support::scenes::for_each_device;

/// Segments that a moment lists at most.
const LISTED: usize = 256;

/// Address, bytes, and what lies in a segment.
type Figures<T> = (u64, u64, T);

/// Those that are listed of all segments: the largest, of equals the first by address.
fn listed<T>(mut all: Vec<Figures<T>>) -> Vec<Figures<T>> {
    all.sort_by_key(|(address, bytes, _)| (std::cmp::Reverse(*bytes), *address));
    all.truncate(LISTED);
    all
}

fn address(segment: &SegmentNow) -> u64 {
    u64::from_str_radix(&segment.address, 16).unwrap()
}

#[test]
fn a_moment_has_what_is_alive_at_it() {
    for_each_device(|lines, analysis, device| {
        let last = analysis.lives.last_position();
        for at in (0..=last).step_by((last / 50).max(1) as usize).chain([last]) {
            let set = LiveSet::at(&analysis.lives, &lines.sites, at);
            let found = device.moment(at);
            assert_eq!((found.live_bytes, found.live_count), (set.total.bytes, set.total.count));
            let stacks: Vec<_> = found.stacks.iter().map(|s| (s.stack, s.bytes, s.count)).collect();
            let expected: Vec<_> =
                set.by_stack.iter().map(|(s, amount)| (s.0, amount.bytes, amount.count)).collect();
            assert_eq!(stacks, expected);
            for (kind, amount) in &set.by_kind {
                assert_eq!(found.kinds[kind.index()], amount.bytes);
            }
        }
    });
}

#[test]
fn the_last_moment_has_the_segments_of_the_file() {
    for (path, snapshot) in samples() {
        let report = Report::of(snapshot, "");
        let scene = Scene::of(&report);
        for device in &scene.devices {
            let found = device.moment(u32::MAX);
            let mut expected = Vec::new();
            for segment in report.snapshot.segments.iter().filter(|s| s.device == device.device) {
                // Where a block is larger than its request rounded to 512, the trace cannot know.
                let rounded = |block: &Block| block.requested_bytes.max(1).next_multiple_of(512);
                let active = report.snapshot.blocks_of(segment).iter().filter(|b| b.is_active());
                let (bytes, count) =
                    active.fold((0, 0), |sum, block| (sum.0 + rounded(block), sum.1 + 1));
                expected.push((segment.address, segment.total_bytes, (bytes, count)));
            }
            assert_eq!(found.segment_count, expected.len(), "{path:?}");
            let reserved: u64 = expected.iter().map(|segment| segment.1).sum();
            assert_eq!(found.reserved_bytes, reserved);
            let used: u64 = expected.iter().map(|segment| segment.2.0).sum();
            assert_eq!(found.used_bytes, used, "{path:?}");
            let figures = found.segments.iter();
            let figures: Vec<_> =
                figures.map(|s| (address(s), s.bytes, (s.used_bytes, s.used_count))).collect();
            assert_eq!(figures, listed(expected), "{path:?}");
            for segment in &found.segments {
                let counted: u32 = segment.runs.iter().map(|run| run.count).sum();
                assert_eq!(counted as usize, segment.used_count);
                assert!(segment.runs.windows(2).all(|r| r[0].start + r[0].bytes <= r[1].start));
            }
        }
    }
}

/// The same as walking the trace back for each position.
#[test]
fn segments_are_those_of_the_placement_at_every_moment() {
    for (path, snapshot) in samples() {
        let report = Report::of(snapshot, "");
        let scene = Scene::of(&report);
        for (analysis, device) in report.devices.iter().zip(&scene.devices) {
            let last = analysis.lives.last_position();
            for at in (0..=last).step_by((last / 60).max(1) as usize) {
                let placed = placement(&report.snapshot, device.device, &analysis.lives, at);
                let expected: Vec<_> = placed
                    .iter()
                    .map(|s| (s.range.start, s.total_bytes(), s.lives.len()))
                    .collect();
                let found = device.moment(at);
                assert_eq!(found.segment_count, placed.len(), "{path:?} at {at}");
                let used: u64 = placed.iter().map(|s| s.used_bytes).sum();
                assert_eq!(found.used_bytes, used, "{path:?} at {at}");
                let figures = found.segments.iter();
                let figures: Vec<_> =
                    figures.map(|s| (address(s), s.bytes, s.used_count)).collect();
                assert_eq!(figures, listed(expected), "{path:?} at {at}");
            }
        }
    }
}

#[test]
fn reserved_bytes_are_those_of_the_trace_at_every_moment() {
    for (path, snapshot) in samples() {
        let report = Report::of(snapshot, "");
        let scene = Scene::of(&report);
        for (analysis, device) in report.devices.iter().zip(&scene.devices) {
            for at in 0..=analysis.lives.last_position() {
                let expected = analysis.reserved.at(&report.snapshot, device.device, at);
                assert_eq!(device.moment(at).reserved_bytes, expected, "{path:?} at {at}");
            }
        }
    }
}
