//! Marks: what is said beside the picture and where in it. A finding becomes a mark with a line and
//! a span of time.

use serde::Serialize;

use crate::analysis::{DeviceAnalysis, Lines, Sites};
use crate::findings::{Finding, FindingKind};

/// Something worth looking at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// `leak`, `fragmentation` and so on; the word of the report.
    pub kind: String,
    /// Why, in a few words.
    pub cause: String,
    /// What was found, in words.
    pub message: String,
    /// What to do about it.
    pub advice: String,
    /// How much memory it is about.
    pub bytes: u64,
    /// How many allocations it is about.
    pub count: u64,
    /// The device's index.
    pub device: i32,
    /// The number of its site; none if it has no line.
    pub site: Option<u32>,
    /// The positions that it is about, both included.
    pub span: (u32, u32),
}

impl Mark {
    /// Where a finding is to be seen.
    pub fn of(finding: &Finding, device: &DeviceAnalysis, lines: &Lines) -> Mark {
        let site = (finding.site != Sites::NOWHERE).then_some(finding.site.0);
        Mark {
            kind: finding.kind.word().to_string(),
            cause: finding.cause.clone(),
            message: finding.message.clone(),
            advice: finding.advice.clone(),
            bytes: finding.bytes,
            count: finding.count,
            device: finding.device,
            site,
            span: span(finding, device, lines),
        }
    }
}

/// What grows or comes again is about all the time that its line was at it; the rest is about what
/// led to its position.
fn span(finding: &Finding, device: &DeviceAnalysis, lines: &Lines) -> (u32, u32) {
    let (lives, last) = (&device.lives, device.lives.last_position());
    let position = finding.position.min(last);
    let is_leak = finding.kind == FindingKind::Leak;
    let near = (position.saturating_sub(last / 4), position);
    if !is_leak && finding.kind != FindingKind::Churn {
        return near;
    }
    // What leaks is still there at the peak; some programs let go of it before they end.
    let peak = lives.peak.position;
    let of_line = |life: &usize| {
        let stack = lives.stack[*life];
        let is_its = lines.sites.of_stack(stack) == finding.site
            || lines.sites.caller_of_stack(stack) == finding.site;
        is_its && (!is_leak || lives.is_alive(*life, peak))
    };
    let its = || (0..lives.in_trace).filter(of_line);
    let Some(first) = its().map(|life| lives.born[life]).min() else { return near };
    let end = match is_leak {
        true if lives.bytes_at(last) >= lives.peak.bytes.saturating_sub(finding.bytes / 2) => last,
        true => peak,
        false => its().map(|life| lives.born[life]).max().unwrap_or(first),
    };
    (first, end)
}
