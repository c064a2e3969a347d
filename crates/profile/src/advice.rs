//! Why a program is slow, drawn from a recording: what takes more than a tenth of the time, a loop
//! that waits for its loader, waits for a device, copies from memory that is not pinned, and memory
//! from the driver in the middle of training. Each says what to do.

use std::collections::HashMap;
use std::fmt;

use plimsoll_memory::Site;

use crate::event::{Event, EventKind};
use crate::figures::{format_bytes, format_time_us};
use crate::recording::Recording;

/// What costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// One operation takes over a tenth of the time.
    Operation,
    /// The loop waits for its loader.
    Loader,
    /// The host waits for a device.
    Synchronization,
    /// Copies from or to host memory that is not pinned.
    PageableCopy,
    /// The source of memory (a driver, the system) served allocations in the middle of training.
    SourceAllocation,
}

/// One thing to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Advice {
    /// What costs time.
    pub cause: Cause,
    /// Its share of the time: of the session, or of all kernels.
    pub share: f64,
    /// What to look at and what to do.
    pub text: String,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// An operation is named from this share of the time on.
const OPERATION_SHARE: f64 = 0.1;
/// Waits, for a loader or a device, from this share of the session on.
const WAIT_SHARE: f64 = 0.05;

/// Ranges of this beginning are a loop's waits for its next batch or the end of the epoch. Loaders
/// open them, in Rust and in Python, by PyTorch's names.
const LOADER: &str = "enumerate(DataLoader)#";

pub(crate) fn of(recording: &Recording) -> Vec<Advice> {
    let events = recording.events();
    let mut found = operations(events);
    found.extend(loader(recording));
    found.extend(waits(recording));
    found.extend(pageable(recording));
    found.extend(from_source(recording));
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

/// Time, calls and the costliest line of one name.
#[derive(Default)]
struct Sum<'a> {
    ns: u64,
    calls: u64,
    lines: HashMap<Site, u64>,
    name: &'a str,
}

impl Sum<'_> {
    fn line(&self) -> String {
        let known = self.lines.iter().filter(|(site, _)| **site != Site::Unknown);
        let costliest = known.max_by_key(|(site, ns)| (**ns, site.to_string()));
        costliest.map_or(String::new(), |(site, _)| format!(", most of it for {site}"))
    }
}

fn sums<'a>(
    events: &'a [Event],
    keep: impl Fn(&Event) -> bool,
    ns: impl Fn(&Event) -> u64,
) -> Vec<Sum<'a>> {
    let mut by_name: HashMap<&str, Sum<'a>> = HashMap::new();
    for event in events.iter().filter(|event| keep(event)) {
        let sum = by_name.entry(event.key()).or_default();
        sum.name = event.key();
        sum.ns += ns(event);
        sum.calls += 1;
        *sum.lines.entry(event.site).or_default() += ns(event);
    }
    by_name.into_values().collect()
}

fn operations(events: &[Event]) -> Vec<Advice> {
    let host: u64 = events.iter().map(|event| event.self_cpu_ns).sum();
    let is_kernel = |event: &Event| event.kind == EventKind::Kernel;
    let device: u64 = events.iter().filter(|e| is_kernel(e)).map(|e| e.self_device_ns).sum();
    // A kernel has no line of its own: the call that launched it has.
    let launches = |e: &Event| !is_kernel(e) && e.self_device_ns > 0;
    let on_host = sums(events, |e| e.kind == EventKind::Operation, |e| e.self_cpu_ns);
    let on_device = sums(events, launches, |e| e.self_device_ns);
    let over = |sums: Vec<Sum<'_>>, whole: u64, whose: &str| {
        let told = sums.into_iter().filter_map(move |sum| {
            let share = sum.ns as f64 / whole.max(1) as f64;
            let text = format!(
                "{} takes {:.0} % of {whose} time ({} in {} calls{}): make it smaller, rarer or faster first",
                sum.name,
                share * 100.0,
                format_time_us(sum.ns as f64 / 1e3),
                sum.calls,
                sum.line()
            );
            (share >= OPERATION_SHARE).then_some(Advice { cause: Cause::Operation, share, text })
        });
        told.collect::<Vec<_>>()
    };
    let mut found = over(on_host, host, "the host's");
    found.extend(over(on_device, device, "the device's"));
    found
}

/// Time of events of `kind` in which no other of them lies.
fn outermost(recording: &Recording, keep: impl Fn(&Event) -> bool) -> (u64, u64) {
    let events = recording.events();
    let inside = |event: &Event| {
        let mut next = event.parent;
        while let Some(parent) = next {
            if keep(&events[parent]) {
                return true;
            }
            next = events[parent].parent;
        }
        false
    };
    let counted = events.iter().filter(|event| keep(event) && !inside(event));
    counted.fold((0, 0), |(ns, count), event| (ns + event.cpu_ns(), count + 1))
}

fn share_of_session(recording: &Recording, ns: u64) -> f64 {
    ns as f64 / recording.duration_ns().max(1) as f64
}

fn loader(recording: &Recording) -> Option<Advice> {
    let is_wait = |e: &Event| e.kind == EventKind::Range && e.name.starts_with(LOADER);
    let (ns, count) = outermost(recording, is_wait);
    let share = share_of_session(recording, ns);
    let text = format!(
        "the loop waits for its loader for {:.0} % of the time ({} in {count} waits): give the loader more \
         workers, prefetch more batches, or do less for each sample",
        share * 100.0,
        format_time_us(ns as f64 / 1e3)
    );
    (share >= WAIT_SHARE).then_some(Advice { cause: Cause::Loader, share, text })
}

fn waits(recording: &Recording) -> Option<Advice> {
    let (ns, count) = outermost(recording, |event| event.kind == EventKind::Wait);
    let share = share_of_session(recording, ns);
    let events = recording.events();
    let mut lines: HashMap<Site, u64> = HashMap::new();
    for event in events.iter().filter(|event| event.kind == EventKind::Wait) {
        let asked = event.parent.map_or(event.site, |parent| events[parent].site);
        *lines.entry(asked).or_default() += event.cpu_ns();
    }
    let sum = Sum { lines, ..Sum::default() };
    let text = format!(
        "the host waits for the device for {:.0} % of the time ({} in {count} waits{}): read results (`item`, `to`, \
         printing) less often, or once for many steps",
        share * 100.0,
        format_time_us(ns as f64 / 1e3),
        sum.line()
    );
    (share >= WAIT_SHARE).then_some(Advice { cause: Cause::Synchronization, share, text })
}

fn pageable(recording: &Recording) -> Option<Advice> {
    // Results that are read are waited for, whatever memory they come to.
    let to_device = |e: &&Event| e.pageable && e.name.starts_with("Memcpy HtoD");
    let copies = recording.events().iter().filter(to_device);
    let (mut count, mut bytes, mut ns) = (0, 0, 0);
    for copy in copies {
        (count, bytes, ns) = (count + 1, bytes + copy.copied_bytes, ns + copy.self_device_ns);
    }
    let share = share_of_session(recording, ns);
    let text = format!(
        "{count} copies ({}, {}) are from host memory that is not pinned: pin it (`pin_memory`) and copy with \
         `non_blocking`, so that copies and computation overlap",
        format_bytes(bytes as i64),
        format_time_us(ns as f64 / 1e3)
    );
    (count > 0).then_some(Advice { cause: Cause::PageableCopy, share, text })
}

/// Training is in its middle from its second step on, or in the second half of a session without
/// steps: the first steps fill the cache.
fn from_source(recording: &Recording) -> Option<Advice> {
    let events = recording.events();
    let steps = events.iter().filter(|event| event.name.starts_with("ProfilerStep#"));
    let middle_ns = match steps.map(|step| step.start_ns).nth(1) {
        Some(second) => second,
        None => recording.duration_ns() / 2,
    };
    let late = events.iter().filter(|e| e.source_bytes > 0 && e.start_ns >= middle_ns);
    let (mut count, mut bytes, mut ns) = (0, 0, 0);
    let mut lines: HashMap<Site, u64> = HashMap::new();
    for event in late {
        (count, bytes, ns) = (count + 1, bytes + event.source_bytes, ns + event.self_cpu_ns);
        *lines.entry(event.site).or_default() += event.source_bytes;
    }
    let sum = Sum { lines, ..Sum::default() };
    let text = format!(
        "{count} allocations in the middle of training were served by the driver or the system, not the cache ({}{}): \
         sizes still change, or the cache was emptied; keep shapes alike and the cache full",
        format_bytes(bytes as i64),
        sum.line()
    );
    let share = share_of_session(recording, ns);
    (count > 0).then_some(Advice { cause: Cause::SourceAllocation, share, text })
}
