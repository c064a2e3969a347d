//! Scenes of every sample and of a made snapshot, for what must hold whatever the trace.

use plimsoll_report::view::{DeviceScene, Scene};
use plimsoll_report::{
    Action, DeviceAnalysis, Frame, Kind, Lines, Report, Snapshot, Trace, TraceEvent,
};

use super::samples;

/// Calls `check` with every device of the samples and of a made snapshot.
pub(crate) fn for_each_device(check: impl Fn(&Lines, &DeviceAnalysis, &DeviceScene<'_>)) {
    let made = ("made".into(), made(30_000, 1));
    for (_, snapshot) in samples().into_iter().chain([made]) {
        let report = Report::of(snapshot, "");
        let scene = Scene::of(&report);
        assert!(!scene.devices.is_empty());
        for (analysis, device) in report.devices.iter().zip(&scene.devices) {
            check(&report.lines, analysis, device);
        }
    }
}

/// A linear congruential generator; enough to be different each time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A trace of `events` events: sizes over nine powers of ten, lives from one event to all of them.
fn made(events: usize, seed: u64) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut dice = Dice(seed);
    let file = snapshot.strings.intern("train.py");
    let function = snapshot.strings.intern("step");
    let frames: Vec<_> =
        (1..40).map(|line| snapshot.stacks.intern_frame(Frame { function, file, line })).collect();
    let stacks: Vec<_> = frames.iter().map(|f| snapshot.stacks.intern(&[*f, frames[0]])).collect();
    let mut live: Vec<(u64, u64)> = Vec::new();
    let mut next = 4096;
    for row in 0..events {
        let frees = live.len() > 3 && dice.below(100) < 49;
        let stack = stacks[dice.below(39) as usize];
        let (action, addr, size) = if frees {
            let newest = dice.below(4) > 0;
            let back = if newest { dice.below(3) } else { dice.below(live.len() as u64) };
            let (addr, size) = live.remove(live.len() - 1 - back as usize);
            (Action::FreeCompleted, addr, size)
        } else {
            let power = dice.below(9) as u32;
            let size = 1 + dice.below(10u64.pow(power));
            live.push((next, size));
            next += size.next_multiple_of(512);
            (Action::Alloc, live[live.len() - 1].0, size)
        };
        let kind = Kind::ALL[dice.below(8) as usize];
        let time_us = row as u64 * 3;
        snapshot.events.push(TraceEvent { action, addr, size, stream: 0, time_us, stack, kind });
    }
    snapshot.events.streams.push(0);
    snapshot.traces.push(Trace { device: 0, rows: 0..events });
    snapshot
}
