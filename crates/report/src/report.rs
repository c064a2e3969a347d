//! A report: a snapshot with everything that was asked of it. Renderers only read it.

use crate::analysis::{DeviceAnalysis, Lines};
use crate::findings::{Finding, findings};
use crate::snapshot::Snapshot;

/// A snapshot, analysed.
///
/// ```
/// use plimsoll_report::{Report, json, read};
/// let snapshot = read(br#"{"segments": [], "device_traces": [[
///     {"action": "alloc", "addr": 4096, "size": 100, "stream": 0}]]}"#)?;
/// let report = Report::of(snapshot, "tiny.json");
/// assert!(report.findings.is_empty());
/// assert!(json(&report).contains("\"peak_bytes\": 100"));
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    /// Where the snapshot came from, as the user named it.
    pub source: String,
    /// What was read.
    pub snapshot: Snapshot,
    /// Sites and phases of its stacks.
    pub lines: Lines,
    /// Every device with memory, pinned host memory last.
    pub devices: Vec<DeviceAnalysis>,
    /// What is wrong, device by device, the gravest first.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Analyses a snapshot.
    pub fn of(snapshot: Snapshot, source: impl Into<String>) -> Report {
        let lines = Lines::of(&snapshot);
        let devices: Vec<DeviceAnalysis> = snapshot
            .devices()
            .into_iter()
            .map(|device| DeviceAnalysis::of(&snapshot, &lines, device))
            .collect();
        let findings = devices
            .iter()
            // Pinned host memory has no steps of its own and no driver to fill: it is only shown.
            .filter(|device| device.device >= 0)
            .flat_map(|device| findings(&snapshot, &lines, device))
            .collect();
        Report { source: source.into(), snapshot, lines, devices, findings }
    }

    /// The device with the highest peak, which stands for the whole where one figure is wanted.
    pub fn busiest(&self) -> Option<&DeviceAnalysis> {
        // The first of equals.
        self.devices.iter().rev().max_by_key(|device| device.lives.peak.bytes)
    }
}
