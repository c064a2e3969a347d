//! What the picture is drawn from, against counting everything: columns of the timeline and
//! rectangles, on real snapshots and on made ones of tens of thousands of events. Moments are in
//! `view_moments.rs`.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_report::view::{By, Scene, Window};
use plimsoll_report::{Action, FindingKind, Kind, LiveSet, Report, Snapshot, Trace, TraceEvent};
use support::samples;
use support::scenes::{Dice, for_each_device};

const KINDS: usize = Kind::ALL.len();

/// Windows of every width, aligned and not, with few and with many columns.
fn spans(last: u32) -> Vec<(u32, u32, u32)> {
    let mut dice = Dice(9);
    let mut spans =
        vec![(0, last, 7), (0, last, 100), (0, last, 100_000), (last, last, 5), (0, 0, 1)];
    for _ in 0..40 {
        let width = 1u64 << dice.below(17);
        let from = dice.below(u64::from(last) + 1);
        let to = (from + width).min(u64::from(last));
        spans.push((from as u32, to as u32, 1 + dice.below(1500) as u32));
    }
    spans
}

#[test]
fn columns_hold_the_highest_and_the_lowest_state_of_their_positions() {
    for_each_device(|_, analysis, device| {
        let lives = &analysis.lives;
        let last = lives.last_position();
        // Totals by kind at every position, counted event by event.
        let mut changes: BTreeMap<u32, Vec<(usize, i64)>> = BTreeMap::new();
        for life in 0..lives.len() {
            let (kind, bytes) = (lives.kind[life].index(), lives.bytes[life] as i64);
            changes.entry(lives.born[life]).or_default().push((kind, bytes));
            changes.entry(lives.died[life]).or_default().push((kind, -bytes));
        }
        let mut now = [0i64; KINDS];
        let states: Vec<[i64; KINDS]> = (0..=last)
            .map(|position| {
                for (kind, bytes) in changes.get(&position).into_iter().flatten() {
                    now[*kind] += bytes;
                }
                now
            })
            .collect();
        let total = |at: usize| states[at].iter().sum::<i64>();
        for (from, to, columns) in spans(last) {
            let answer = device.timeline(By::Kind, from, to, columns);
            assert!(answer.from <= from && answer.step.is_power_of_two());
            assert!(answer.at.len() <= columns as usize + 1, "{} of {columns}", answer.at.len());
            assert!(answer.from + answer.at.len() as u32 * answer.step > to, "{from}..{to}");
            for column in 0..answer.at.len() {
                let start = (answer.from + column as u32 * answer.step) as usize;
                let end = (start + answer.step as usize).min(last as usize + 1);
                let highest = (start..end).map(total).max().unwrap();
                let at = answer.at[column] as usize;
                assert!((start..end).contains(&at));
                assert_eq!(total(at), highest, "{from}..{to} in {columns}, column {column}");
                assert_eq!(answer.low[column] as i64, (start..end).map(total).min().unwrap());
                let parts: Vec<i64> =
                    answer.parts[column * KINDS..][..KINDS].iter().map(|p| *p as i64).collect();
                assert_eq!(parts, states[at]);
            }
        }
    });
}

#[test]
fn columns_by_line_add_up_to_the_columns_by_kind() {
    for_each_device(|lines, analysis, device| {
        let last = analysis.lives.last_position();
        for (from, to, columns) in spans(last) {
            let by_kind = device.timeline(By::Kind, from, to, columns);
            let by_site = device.timeline(By::Site, from, to, columns);
            assert_eq!((&by_kind.at, &by_kind.low), (&by_site.at, &by_site.low));
            for column in 0..by_kind.at.len() {
                let sum = |parts: &[u64]| parts.iter().sum::<u64>();
                let of_kind = sum(&by_kind.parts[column * by_kind.series..][..by_kind.series]);
                let of_site = sum(&by_site.parts[column * by_site.series..][..by_site.series]);
                assert_eq!(of_kind, of_site);
            }
        }
        // The largest line at the peak has a part of its own.
        let peak = analysis.lives.peak.position;
        let answer = device.timeline(By::Site, peak, peak, 1);
        let set = LiveSet::at(&analysis.lives, &lines.sites, peak);
        assert!(answer.parts.contains(&set.by_site[0].1.bytes));
    });
}

#[test]
fn every_allocation_that_can_be_seen_is_drawn() {
    for_each_device(|lines, analysis, device| {
        let lives = &analysis.lives;
        let last = lives.last_position();
        let all = device.shapes(&Window {
            from: 0,
            to: last,
            low: 0,
            high: u64::MAX / 4,
            columns: 8000,
            rows: 8000,
            site: None,
        });
        assert_eq!(all.alive, lives.len());
        let height = (0..lives.len() as u32)
            .map(|life| device.allocation(life).unwrap())
            .map(|shape| shape.offset + shape.bytes)
            .max()
            .unwrap();
        let mut dice = Dice(4);
        for (from, to, columns) in spans(last) {
            let zoom = 1 << dice.below(12);
            let low = dice.below(height);
            let site = (dice.below(3) == 0).then(|| {
                lines.sites.of_stack(lives.stack[dice.below(lives.len() as u64) as usize]).0
            });
            let rows = 1 + dice.below(600) as u32;
            let high = low + height / zoom + 1;
            let window = Window { from, to, low, high, columns, rows, site };
            // No screen has more pixels, so no more are answered.
            let across = f64::from(to - from + 1) / f64::from(columns.min(8192));
            let up = (high - low) as f64 / f64::from(rows);
            let mut expected = BTreeSet::new();
            for life in 0..lives.len() as u32 {
                let shape = device.allocation(life).unwrap();
                let is_wanted = site
                    .is_none_or(|site| lines.sites.of_stack(lives.stack[life as usize]).0 == site);
                let width = f64::from(shape.died.min(to + 1)) - f64::from(shape.born.max(from));
                let top = (shape.offset + shape.bytes).min(high) as f64;
                let height = top - shape.offset.max(low) as f64;
                if is_wanted && width / across >= 0.75 && height / up >= 0.75 {
                    expected.insert(life);
                }
            }
            let answer = device.shapes(&window);
            let found: BTreeSet<u32> = answer.shapes.iter().map(|shape| shape.life).collect();
            assert_eq!(found.len(), answer.shapes.len());
            if expected.len() <= 3000 {
                assert_eq!(found, expected, "{window:?}");
            } else {
                assert_eq!(found.len(), 3000);
                assert!(found.is_subset(&expected));
            }
            let alive = (0..lives.len()).filter(|l| lives.born[*l] <= to && lives.died[*l] > from);
            assert_eq!(answer.alive, alive.count());
        }
    });
}

#[test]
fn rectangles_never_overlap() {
    for_each_device(|_, analysis, device| {
        let count = analysis.lives.len() as u32;
        let shapes: Vec<_> = (0..count).map(|life| device.allocation(life).unwrap()).collect();
        for position in (0..=analysis.lives.last_position()).step_by(97) {
            let alive = shapes.iter().filter(|s| s.born <= position && position < s.died);
            let mut alive: Vec<(u64, u64)> =
                alive.map(|s| (s.offset, s.offset + s.bytes)).collect();
            alive.sort_unstable();
            for pair in alive.windows(2) {
                assert!(pair[0].1 <= pair[1].0, "{pair:?} at {position}");
            }
        }
        assert_eq!(device.allocation(count), None);
    });
}

#[test]
fn what_is_too_small_to_draw_is_counted_in_the_density() {
    // A thousand blocks of one byte beside one of a mebibyte.
    let mut snapshot = Snapshot::default();
    for row in 0..1001u64 {
        let size = if row == 0 { 1 << 20 } else { 1 };
        snapshot.events.push(TraceEvent {
            action: Action::Alloc,
            addr: (row + 1) << 24,
            size,
            stream: 0,
            time_us: 0,
            stack: Default::default(),
            kind: Kind::Unknown,
        });
    }
    snapshot.traces.push(Trace { device: 0, rows: 0..1001 });
    let report = Report::of(snapshot, "");
    let scene = Scene::of(&report);
    let window =
        Window { from: 0, to: 1001, low: 0, high: 1_100_000, columns: 600, rows: 300, site: None };
    let answer = scene.devices[0].shapes(&window);
    assert_eq!(answer.shapes.len(), 1);
    assert_eq!((answer.cells_across, answer.rest.len()), (100, 5000));
    let row_of = |byte: f64| (byte / 1_100_000.0 * 300.0 / 6.0) as usize;
    let filled: BTreeSet<usize> =
        (0..5000).filter(|cell| answer.rest[*cell] > 0).map(|cell| cell / 100).collect();
    assert_eq!(filled, BTreeSet::from([row_of((1 << 20) as f64)]));
}

#[test]
fn findings_are_marked_where_they_are_seen() {
    let mut marked = 0;
    for (path, snapshot) in samples() {
        let report = Report::of(snapshot, "");
        let scene = Scene::of(&report);
        assert_eq!(scene.marks.len(), report.findings.len());
        for (mark, finding) in scene.marks.iter().zip(&report.findings) {
            let device = report.devices.iter().find(|d| d.device == mark.device).unwrap();
            let lives = &device.lives;
            assert!(mark.span.0 <= mark.span.1 && mark.span.1 <= lives.last_position(), "{path:?}");
            assert_eq!((&mark.message, mark.bytes), (&finding.message, finding.bytes));
            if finding.kind == FindingKind::Leak {
                assert!(lives.peak.bytes >= mark.bytes, "{path:?}");
                assert!(lives.bytes_at(mark.span.0) < lives.bytes_at(mark.span.1), "{path:?}");
            }
            marked += 1;
        }
    }
    assert!(marked > 1, "no sample has findings");
}

#[test]
fn sizes_beyond_all_numbers_do_no_harm() {
    let mut snapshot = Snapshot::default();
    for row in 0..6u64 {
        let action = if row % 3 == 2 { Action::FreeCompleted } else { Action::Alloc };
        let addr = u64::MAX - row % 3;
        let event = TraceEvent {
            action,
            addr,
            size: u64::MAX - row,
            stream: 7,
            time_us: u64::MAX - row,
            stack: Default::default(),
            kind: Kind::Input,
        };
        snapshot.events.push(event);
        snapshot.events.push(TraceEvent { action: Action::SegmentAlloc, ..event });
    }
    snapshot.traces.push(Trace { device: 0, rows: 0..12 });
    let report = Report::of(snapshot, "");
    let scene = Scene::of(&report);
    let device = &scene.devices[0];
    for at in 0..14 {
        device.moment(at);
        device.timeline(By::Site, at, 20, at);
        let (low, high) = (u64::MAX - u64::from(at), u64::from(at));
        let window = Window { from: at, to: 3, low, high, columns: at, rows: 0, site: None };
        assert!(device.shapes(&window).shapes.len() <= 6);
    }
    assert!(plimsoll_report::view::html(&scene, "huge").is_ok());
}
