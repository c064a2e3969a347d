//! A trace for Perfetto and chrome://tracing: live bytes by kind and reserved bytes as counters,
//! named spans, steps and failures, a process for each device. Times are microseconds from the
//! snapshot's first event.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::text::site_name;
use crate::analysis::{DeviceAnalysis, changes, reserved_changes};
use crate::events::Action;
use crate::kind::Kind;
use crate::report::Report;
use crate::strings::TextId;

/// Counter values of one device. Larger traces keep the highest of each stretch, so that peaks
/// stay.
const MOST_SAMPLES: usize = 100_000;

/// Writes the trace as JSON.
pub fn trace(report: &Report, out: impl Write) -> io::Result<()> {
    let mut events = Events { out, first: true };
    events.out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let start = start_us(report);
    for (index, device) in report.devices.iter().enumerate() {
        // Perfetto takes process 0 for the idle task.
        let process = Process { report, device, pid: index + 1, start };
        process.name(&mut events)?;
        process.live_counters(&mut events)?;
        process.reserved_counter(&mut events)?;
        process.marks(&mut events)?;
    }
    spans(report, start, &mut events)?;
    events.out.write_all(b"\n]}\n")?;
    events.out.flush()
}

struct Events<W> {
    out: W,
    first: bool,
}

impl<W: Write> Events<W> {
    fn put(&mut self, event: Value) -> io::Result<()> {
        let comma: &[u8] = if std::mem::take(&mut self.first) { b"\n" } else { b",\n" };
        self.out.write_all(comma)?;
        serde_json::to_writer(&mut self.out, &event)?;
        Ok(())
    }
}

/// The time of the first event of all. Files without times count events instead.
fn start_us(report: &Report) -> u64 {
    let traces = report.snapshot.traces.iter().filter(|trace| !trace.rows.is_empty());
    let first = traces.map(|trace| report.snapshot.events.time_us[trace.rows.start]).min();
    let annotated = report.snapshot.annotations.iter().map(|annotation| annotation.time_us).min();
    first.into_iter().chain(annotated).min().unwrap_or(0)
}

/// One device, which Perfetto shows as a process.
struct Process<'a> {
    report: &'a Report,
    device: &'a DeviceAnalysis,
    pid: usize,
    /// The snapshot's first event, in microseconds since the epoch.
    start: u64,
}

impl Process<'_> {
    /// When a position is reached.
    fn time_of(&self, position: u32) -> u64 {
        let rows = &self.device.lives.rows;
        if rows.is_empty() {
            return 0;
        }
        let index = (position.max(1) as usize - 1).min(rows.len() - 1);
        match self.report.snapshot.events.time_us[rows.start + index] {
            0 => index as u64,
            time => time.saturating_sub(self.start),
        }
    }

    fn name<W: Write>(&self, events: &mut Events<W>) -> io::Result<()> {
        let name = self.report.snapshot.device_name(self.device.device);
        let args = json!({ "name": name });
        events.put(json!({
            "ph": "M", "pid": self.pid, "tid": 0, "ts": 0, "name": "process_name", "args": args
        }))
    }

    fn counter<W: Write>(
        &self,
        events: &mut Events<W>,
        position: u32,
        name: &str,
        args: Value,
    ) -> io::Result<()> {
        let ts = self.time_of(position);
        events.put(
            json!({"ph": "C", "pid": self.pid, "tid": 0, "ts": ts, "name": name, "args": args}),
        )
    }

    fn live_counters<W: Write>(&self, events: &mut Events<W>) -> io::Result<()> {
        let lives = &self.device.lives;
        let mut now = [0u64; Kind::ALL.len()];
        for life in lives.in_trace..lives.len() {
            let bytes = &mut now[lives.kind[life].index()];
            *bytes = bytes.saturating_add(lives.bytes[life]);
        }
        let changes = changes(lives);
        let stretch = changes.len().div_ceil(MOST_SAMPLES).max(1);
        let put = |events: &mut Events<W>, position: u32, now: &[u64]| {
            let kinds = Kind::ALL.into_iter().zip(now);
            let args: serde_json::Map<String, Value> =
                kinds.map(|(kind, bytes)| (kind.category().to_string(), json!(bytes))).collect();
            self.counter(events, position, "live bytes", Value::Object(args))
        };
        put(events, 0, &now)?;
        for part in changes.chunks(stretch) {
            let mut highest: Option<(u64, u32, [u64; Kind::ALL.len()])> = None;
            for change in part {
                let bytes = lives.bytes[change.life as usize];
                let kind = &mut now[lives.kind[change.life as usize].index()];
                *kind = match change.is_birth {
                    true => kind.saturating_add(bytes),
                    false => kind.saturating_sub(bytes),
                };
                let total = now.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
                if highest.is_none_or(|(most, ..)| total > most) {
                    highest = Some((total, change.position, now));
                }
            }
            if let Some((_, position, values)) = highest {
                put(events, position, &values)?;
            }
        }
        put(events, lives.last_position(), &now)
    }

    fn reserved_counter<W: Write>(&self, events: &mut Events<W>) -> io::Result<()> {
        let mut now = i128::from(self.device.reserved.start_bytes);
        let changes = reserved_changes(&self.report.snapshot, self.device.device);
        for (position, change) in std::iter::once((0, 0)).chain(changes) {
            now += change;
            let bytes = u64::try_from(now.max(0)).unwrap_or(u64::MAX);
            self.counter(events, position, "reserved bytes", json!({ "reserved": bytes }))?;
        }
        Ok(())
    }

    /// Steps and failures as marks.
    fn marks<W: Write>(&self, events: &mut Events<W>) -> io::Result<()> {
        let mark = |events: &mut Events<W>, position: u32, name: String| {
            let ts = self.time_of(position);
            events.put(
                json!({"ph": "i", "s": "p", "pid": self.pid, "tid": 0, "ts": ts, "name": name}),
            )
        };
        let bounds = self.device.steps.first().map_or(&[][..], |steps| &steps.bounds);
        for (step, bound) in bounds.iter().enumerate() {
            mark(events, *bound, format!("step {step}"))?;
        }
        let snapshot = &self.report.snapshot;
        for (index, row) in self.device.lives.rows.clone().enumerate() {
            if snapshot.events.action[row] == Action::Oom {
                let stack = snapshot.events.stack[row];
                let site = site_name(self.report, self.report.lines.sites.of_stack(stack));
                mark(events, index as u32 + 1, format!("out of memory at {site}"))?;
            }
        }
        Ok(())
    }
}

/// Named spans. They may overlap, which is why they are asynchronous: a start and an end with one
/// number.
fn spans<W: Write>(report: &Report, start: u64, events: &mut Events<W>) -> io::Result<()> {
    let mut open: HashMap<(TextId, i32), Vec<usize>> = HashMap::new();
    for (number, annotation) in report.snapshot.annotations.iter().enumerate() {
        let key = (annotation.name, annotation.device);
        let id = match annotation.is_start {
            true => {
                open.entry(key).or_default().push(number);
                number
            }
            false => match open.get_mut(&key).and_then(Vec::pop) {
                Some(start) => start,
                // Its start was before the trace.
                None => continue,
            },
        };
        let place = report.devices.iter().position(|device| device.device == annotation.device);
        events.put(json!({
            "ph": if annotation.is_start { "b" } else { "e" }, "cat": "span", "id": id,
            "pid": place.unwrap_or(0) + 1, "tid": 0, "ts": annotation.time_us.saturating_sub(start),
            "name": report.snapshot.strings.get(annotation.name),
        }))?;
    }
    // A start without its end is shown up to the end of the trace by Perfetto itself.
    Ok(())
}
