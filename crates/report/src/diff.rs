//! Two snapshots side by side: what is alive at the peak of each, by line and by kind. Lines are
//! compared by file, function and line, so snapshots of two versions of a program show moved lines
//! as gone and added.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::analysis::Amount;
use crate::kind::Kind;
use crate::render::text::size;
use crate::report::Report;

/// What changed from one report to another. A file compared with itself changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Peak bytes of the first and of the second, each of its busiest device.
    pub peak_bytes: (u64, u64),
    /// Changes by line, the largest first.
    pub by_site: Vec<SiteChange>,
    /// Changes by kind, in the order of kinds.
    pub by_kind: Vec<KindChange>,
}

/// How one line's bytes changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SiteChange {
    /// Whether it is new, gone, or holds more or less.
    pub change: &'static str,
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The function.
    pub function: String,
    /// Bytes before.
    pub before_bytes: u64,
    /// Bytes after.
    pub after_bytes: u64,
}

/// How one kind's bytes changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KindChange {
    /// The kind's word in files.
    pub kind: &'static str,
    /// Bytes before.
    pub before_bytes: u64,
    /// Bytes after.
    pub after_bytes: u64,
}

type SourceLine = (String, String, u32);

impl Diff {
    /// Compares the peaks of the busiest devices.
    pub fn of(before: &Report, after: &Report) -> Diff {
        let (sites_before, sites_after) = (sites(before), sites(after));
        let mut by_site: Vec<SiteChange> = sites_before
            .keys()
            .chain(sites_after.keys().filter(|place| !sites_before.contains_key(*place)))
            .filter_map(|place| site_change(place, sites_before.get(place), sites_after.get(place)))
            .collect();
        by_site.sort_by_key(|change| {
            let moved = change.after_bytes.abs_diff(change.before_bytes);
            (std::cmp::Reverse(moved), change.file.clone(), change.line, change.function.clone())
        });
        let kinds = Kind::ALL.into_iter().filter_map(|kind| {
            let (before_bytes, after_bytes) = (kind_bytes(before, kind), kind_bytes(after, kind));
            (before_bytes != after_bytes).then_some(KindChange {
                kind: kind.category(),
                before_bytes,
                after_bytes,
            })
        });
        let peak = |report: &Report| report.busiest().map_or(0, |device| device.lives.peak.bytes);
        Diff { peak_bytes: (peak(before), peak(after)), by_site, by_kind: kinds.collect() }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.peak_bytes.0 == self.peak_bytes.1 && self.by_site.is_empty() && self.by_kind.is_empty()
    }

    /// Bytes by which the peak grew; 0 if it shrank.
    pub fn peak_growth(&self) -> u64 {
        self.peak_bytes.1.saturating_sub(self.peak_bytes.0)
    }

    /// The changes for people; nothing if there are none.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if self.is_empty() {
            return out;
        }
        let _ = writeln!(out, "peak live bytes {}", arrow(self.peak_bytes.0, self.peak_bytes.1));
        if !self.by_kind.is_empty() {
            out.push_str("\nby kind\n");
        }
        for change in &self.by_kind {
            let moved = arrow(change.before_bytes, change.after_bytes);
            let _ = writeln!(out, "  {:16} {moved}", change.kind);
        }
        if !self.by_site.is_empty() {
            out.push_str("\nby line\n");
        }
        for change in &self.by_site {
            let moved = arrow(change.before_bytes, change.after_bytes);
            let file = match change.file.as_str() {
                "" => "(no Python frames)",
                file => crate::short_path(file),
            };
            let _ =
                writeln!(out, "  {:7} {file}:{} {}", change.change, change.line, change.function);
            let _ = writeln!(out, "          {moved}");
        }
        out
    }

    /// The changes for programs.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

fn site_change(
    place: &SourceLine,
    before: Option<&Amount>,
    after: Option<&Amount>,
) -> Option<SiteChange> {
    let bytes = |amount: Option<&Amount>| amount.map_or(0, |amount| amount.bytes);
    let (before_bytes, after_bytes) = (bytes(before), bytes(after));
    let change = match (before, after) {
        (None, _) => "added",
        (_, None) => "gone",
        _ if after_bytes > before_bytes => "grown",
        _ if after_bytes < before_bytes => "shrunk",
        _ => return None,
    };
    let (file, function, line) = place.clone();
    Some(SiteChange { change, file, line, function, before_bytes, after_bytes })
}

fn sites(report: &Report) -> BTreeMap<SourceLine, Amount> {
    let strings = &report.snapshot.strings;
    let by_site = report.busiest().map_or(&[][..], |device| &device.at_peak.by_site);
    by_site
        .iter()
        .map(|(site, amount)| {
            let frame = report.lines.sites.frame(*site);
            let place = (strings.get(frame.file), strings.get(frame.function), frame.line);
            ((place.0.to_string(), place.1.to_string(), place.2), *amount)
        })
        .collect()
}

fn kind_bytes(report: &Report, wanted: Kind) -> u64 {
    let kinds = report.busiest().map_or(&[][..], |device| &device.at_peak.by_kind);
    kinds.iter().find(|(kind, _)| *kind == wanted).map_or(0, |(_, amount)| amount.bytes)
}

/// `1.00 MiB -> 3.00 MiB (+2.00 MiB)`.
fn arrow(before: u64, after: u64) -> String {
    let sign = if after >= before { '+' } else { '-' };
    format!("{} -> {} ({sign}{})", size(before), size(after), size(after.abs_diff(before)))
}
