//! The report for programs. The keys are a contract: see `docs/snapshot-format.md`.

use serde::Serialize;

use crate::analysis::{Amount, CountedBy, DeviceAnalysis, SiteId};
use crate::report::Report;

#[derive(Serialize)]
struct Whole<'a> {
    source: &'a str,
    devices: Vec<Device<'a>>,
    peak_bytes: u64,
    peak_by_site: Vec<SiteBytes<'a>>,
    findings: Vec<Found<'a>>,
}

#[derive(Serialize)]
struct Device<'a> {
    device: i32,
    name: String,
    events: usize,
    peak_bytes: u64,
    peak_reserved_bytes: u64,
    end_bytes: u64,
    end_reserved_bytes: u64,
    steps: usize,
    steps_counted_by: Option<&'static str>,
    kinds_inferred: bool,
    peak_by_kind: Vec<KindBytes>,
    peak_by_site: Vec<SiteBytes<'a>>,
    leaked_bytes_per_step: Option<u64>,
    end_held_bytes: u64,
    end_held_segments: u64,
    end_held_by_site: Vec<SiteBytes<'a>>,
}

#[derive(Serialize)]
struct KindBytes {
    kind: &'static str,
    bytes: u64,
    count: u64,
}

#[derive(Serialize)]
struct SiteBytes<'a> {
    #[serde(flatten)]
    site: Site<'a>,
    bytes: u64,
    count: u64,
}

#[derive(Serialize)]
struct Site<'a> {
    file: &'a str,
    line: u32,
    function: &'a str,
}

#[derive(Serialize)]
struct Found<'a> {
    kind: &'static str,
    cause: &'a str,
    bytes: u64,
    count: u64,
    site: Site<'a>,
    message: &'a str,
    advice: &'a str,
}

/// The report as JSON, indented, with a line end.
pub fn json(report: &Report) -> String {
    let busiest = report.busiest();
    let whole = Whole {
        source: &report.source,
        devices: report.devices.iter().map(|d| device(report, d)).collect(),
        peak_bytes: busiest.map_or(0, |d| d.lives.peak.bytes),
        peak_by_site: busiest.map_or_else(Vec::new, |d| sites(report, &d.at_peak.by_site)),
        findings: report
            .findings
            .iter()
            .map(|finding| Found {
                kind: finding.kind.word(),
                cause: &finding.cause,
                bytes: finding.bytes,
                count: finding.count,
                site: site(report, finding.site),
                message: &finding.message,
                advice: &finding.advice,
            })
            .collect(),
    };
    // Strings and numbers only: this cannot fail.
    serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
}

fn device<'a>(report: &'a Report, device: &'a DeviceAnalysis) -> Device<'a> {
    let lives = &device.lives;
    let steps = device.steps.first();
    let leak = report
        .findings
        .iter()
        .find(|finding| finding.device == device.device && finding.bytes_per_step.is_some());
    Device {
        device: device.device,
        name: report.snapshot.device_name(device.device),
        events: lives.rows.len(),
        peak_bytes: lives.peak.bytes,
        peak_reserved_bytes: device.reserved.peak.bytes,
        end_bytes: lives.bytes_at(lives.last_position()),
        end_reserved_bytes: device.reserved.end_bytes,
        steps: steps.map_or(0, |steps| steps.count()),
        steps_counted_by: steps.map(|steps| counted_by(steps.counted_by)),
        kinds_inferred: device.kinds_inferred,
        peak_by_kind: device
            .at_peak
            .by_kind
            .iter()
            .map(|(kind, amount)| KindBytes {
                kind: kind.category(),
                bytes: amount.bytes,
                count: amount.count,
            })
            .collect(),
        peak_by_site: sites(report, &device.at_peak.by_site),
        leaked_bytes_per_step: leak.and_then(|leak| leak.bytes_per_step),
        end_held_bytes: device.held.bytes,
        end_held_segments: device.held.segments,
        end_held_by_site: sites(report, &device.held.by_site),
    }
}

fn sites<'a>(report: &'a Report, by_site: &[(SiteId, Amount)]) -> Vec<SiteBytes<'a>> {
    by_site
        .iter()
        .map(|(id, amount)| SiteBytes {
            site: site(report, *id),
            bytes: amount.bytes,
            count: amount.count,
        })
        .collect()
}

fn site(report: &Report, site: SiteId) -> Site<'_> {
    let frame = report.lines.sites.frame(site);
    let strings = &report.snapshot.strings;
    Site { file: strings.get(frame.file), line: frame.line, function: strings.get(frame.function) }
}

/// What told the steps, in a word.
pub(crate) fn counted_by(counted_by: CountedBy) -> &'static str {
    match counted_by {
        CountedBy::Nothing => "nothing",
        CountedBy::Annotations => "annotations",
        CountedBy::Optimizer => "optimizer",
        CountedBy::Lines => "lines",
        CountedBy::Pattern => "pattern",
    }
}
