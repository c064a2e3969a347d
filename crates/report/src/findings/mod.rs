//! Findings: what is wrong, in plain words, each with its cause, the evidence, the line and the
//! remedy. One question a file; this one holds what they share and asks them all.

mod cache;
mod churn;
mod filling;
mod fragmentation;
mod gradients;
mod graph;
mod idle;
mod leak;
mod out_of_memory;
mod words;

use std::fmt;

use crate::analysis::{DeviceAnalysis, Lines, SiteId};
use crate::snapshot::Snapshot;

/// What sort of trouble a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// An allocation failed.
    OutOfMemory,
    /// Each step leaves something behind.
    Leak,
    /// Memory is free, but in pieces too small to serve.
    Fragmentation,
    /// A small block keeps a segment from going back.
    PinnedSegment,
    /// Far more is reserved than is used since.
    OversizedCache,
    /// The same memory is freed and made again at once.
    Churn,
}

impl FindingKind {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            FindingKind::OutOfMemory => "out-of-memory",
            FindingKind::Leak => "leak",
            FindingKind::Fragmentation => "fragmentation",
            FindingKind::PinnedSegment => "pinned-segment",
            FindingKind::OversizedCache => "oversized-cache",
            FindingKind::Churn => "churn",
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What sort.
    pub kind: FindingKind,
    /// Why, in a few words.
    pub cause: String,
    /// The device's index.
    pub device: i32,
    /// The bytes that it is about.
    pub bytes: u64,
    /// How many allocations, segments or repetitions.
    pub count: u64,
    /// For leaks, bytes that each step leaves behind.
    pub bytes_per_step: Option<u64>,
    /// The line.
    pub site: SiteId,
    /// What was seen, with the figures.
    pub message: String,
    /// What to do.
    pub advice: String,
    /// Where in the trace it shows.
    pub position: u32,
}

/// What the questions look at.
pub(crate) struct Case<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) lines: &'a Lines,
    pub(crate) device: &'a DeviceAnalysis,
}

/// Everything that is found on one device, the gravest first.
pub fn findings(snapshot: &Snapshot, lines: &Lines, device: &DeviceAnalysis) -> Vec<Finding> {
    let case = Case { snapshot, lines, device };
    let leaks = leak::find(&case);
    let mut found = out_of_memory::find(&case, &leaks);
    found.extend(leaks);
    found.extend(fragmentation::find(&case));
    found.extend(cache::find(&case));
    found.extend(churn::find(&case));
    found.sort_by(|a, b| (a.kind, b.bytes, a.site).cmp(&(b.kind, a.bytes, b.site)));
    found
}
