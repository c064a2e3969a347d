//! The report for people at a terminal: 80 columns, bars, colours as ANSI codes (whoever prints
//! strips them where there is no terminal).

use std::fmt::Write as _;

use plimsoll_core::ByteSize;

use super::json::counted_by;
use crate::analysis::{Amount, DeviceAnalysis, SiteId, Sites, highest_by_bucket};
use crate::findings::{Finding, FindingKind};
use crate::report::Report;

const COLUMNS: usize = 80;
const BAR: usize = 16;
const NAME: usize = 32;
/// Lines of a list before the rest is summed up.
const MOST_LINES: usize = 10;
/// Lines that are named as holders of free memory.
const MOST_HOLDERS: usize = 3;
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const CYAN: &str = "\x1b[36m";
const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

/// The report as text.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    heading(report, &mut out);
    report.devices.iter().for_each(|device| write_device(report, device, &mut out));
    write_findings(report, &mut out);
    out
}

fn heading(report: &Report, out: &mut String) {
    let snapshot = &report.snapshot;
    let writer = if snapshot.writer.is_plimsoll { "Plimsoll" } else { "PyTorch" };
    let _ = writeln!(out, "{BOLD}{}{PLAIN}", report.source);
    let _ = writeln!(
        out,
        "{DIM}{writer} snapshot ({}): {}, {}, {}{PLAIN}",
        snapshot.writer.format,
        counted(snapshot.events.len(), "event"),
        counted(snapshot.segments.len(), "segment"),
        counted(report.devices.len(), "device"),
    );
}

fn write_device(report: &Report, device: &DeviceAnalysis, out: &mut String) {
    let lives = &device.lives;
    let last = lives.last_position();
    let _ = writeln!(
        out,
        "\n{BOLD}{}{PLAIN}  peak {BOLD}{}{PLAIN} live, {} reserved",
        report.snapshot.device_name(device.device),
        size(lives.peak.bytes),
        size(device.reserved.peak.bytes),
    );
    let steps = device.steps.first().map_or_else(String::new, |steps| {
        format!("; {}, by {}", counted(steps.count(), "step"), counted_by(steps.counted_by))
    });
    let _ = writeln!(
        out,
        "  {DIM}at the end {} live, {} reserved{steps}{PLAIN}",
        size(lives.bytes_at(last)),
        size(device.reserved.end_bytes),
    );
    if device.held.is_large(device.reserved.end_bytes) {
        let told = held(report, device);
        let _ = write!(out, "{DIM}");
        wrapped(&told, "  ", out);
        let _ = write!(out, "{PLAIN}");
    }
    if last > 0 {
        sparkline(&highest_by_bucket(lives, COLUMNS - 4), out);
    }
    let total = device.at_peak.total.bytes;
    let inferred = if device.kinds_inferred { " (inferred)" } else { "" };
    let _ = writeln!(out, "\n  {BOLD}at the peak, by kind{PLAIN}{inferred}");
    for (kind, amount) in &device.at_peak.by_kind {
        row(&kind.to_string(), *amount, total, out);
    }
    let _ = writeln!(out, "\n  {BOLD}at the peak, by line{PLAIN}");
    let sites = &device.at_peak.by_site;
    for (site, amount) in sites.iter().take(MOST_LINES) {
        let name = site_name(report, *site);
        // Where there is no room for the folder, the file's name does.
        let short = name.rsplit('/').next().unwrap_or(&name);
        row(if name.chars().count() > NAME { short } else { &name }, *amount, total, out);
    }
    if sites.len() > MOST_LINES {
        let rest = sites[MOST_LINES..].iter().fold(Amount::default(), |sum, (_, amount)| Amount {
            bytes: sum.bytes.saturating_add(amount.bytes),
            count: sum.count + amount.count,
        });
        row(&counted(sites.len() - MOST_LINES, "other line"), rest, total, out);
    }
}

/// What is free at the end and cannot go back, and who holds it.
pub(crate) fn held(report: &Report, device: &DeviceAnalysis) -> String {
    let held = &device.held;
    let lines = held.by_site.iter().take(MOST_HOLDERS).map(|(site, amount)| {
        let segments = counted(amount.count as usize, "segment");
        format!("{} ({} free in {segments})", site_name(report, *site), size(amount.bytes))
    });
    let rest = match held.by_site.len().saturating_sub(MOST_HOLDERS) {
        0 => String::new(),
        rest => format!("; {}", counted(rest, "other line")),
    };
    let share = 100.0 * held.bytes as f64 / device.reserved.end_bytes.max(1) as f64;
    format!(
        "of what is reserved {} ({share:.0} %) are free inside {} that live blocks hold; \
         `empty_cache` cannot give them back. Held by blocks made at {}{rest}.",
        size(held.bytes),
        counted(held.segments as usize, "segment"),
        lines.collect::<Vec<_>>().join("; "),
    )
}

/// Name, bytes, share, count and bar in 80 columns.
fn row(name: &str, amount: Amount, total: u64, out: &mut String) {
    let share = amount.bytes as f64 / total.max(1) as f64;
    let _ = writeln!(
        out,
        "    {:NAME$} {:>11} {:>3.0} % {:>7}  {CYAN}{}{PLAIN}",
        shortened(name, NAME),
        size(amount.bytes),
        100.0 * share,
        amount.count,
        bar(share),
    );
}

/// Up to 16 columns, in eighths.
fn bar(share: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

fn sparkline(values: &[u64], out: &mut String) {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.iter().copied().max().unwrap_or(0).max(1);
    let line: String = values
        .iter()
        .map(|value| HEIGHTS[((u128::from(*value) * 7).div_ceil(u128::from(highest))) as usize])
        .collect();
    let _ = writeln!(out, "  {GREEN}{line}{PLAIN}");
}

fn write_findings(report: &Report, out: &mut String) {
    if report.findings.is_empty() {
        // Without events only the end is known: nothing can be said of what came before.
        let said = match report.snapshot.events.is_empty() {
            true => "no history was recorded: leaks cannot be found in it".to_string(),
            false => format!("{GREEN}nothing found{PLAIN}: no leak, no fragmentation, no failure"),
        };
        let _ = writeln!(out, "\n{said}");
        return;
    }
    let _ = writeln!(out, "\n{BOLD}{}{PLAIN}", counted(report.findings.len(), "finding"));
    for (index, finding) in report.findings.iter().enumerate() {
        write_finding(report, index + 1, finding, out);
    }
}

fn write_finding(report: &Report, number: usize, finding: &Finding, out: &mut String) {
    let colour = match finding.kind {
        FindingKind::OutOfMemory | FindingKind::Leak => RED,
        _ => YELLOW,
    };
    let _ = writeln!(out, "\n  {colour}{number}. {}{PLAIN}", finding.kind);
    wrapped(&finding.cause, "     ", out);
    let _ = writeln!(out, "     {BOLD}{}{PLAIN}", site_name(report, finding.site));
    wrapped(&finding.message, "     ", out);
    wrapped(&format!("Remedy: {}", finding.advice), "     ", out);
}

/// A site's line and function.
pub(crate) fn site_name(report: &Report, site: SiteId) -> String {
    if site == Sites::NOWHERE {
        return "(no Python frames)".to_string();
    }
    let frame = report.lines.sites.frame(site);
    let strings = &report.snapshot.strings;
    let file = crate::short_path(strings.get(frame.file));
    match strings.get(frame.function) {
        "" => format!("{file}:{}", frame.line),
        function => format!("{file}:{} {function}", frame.line),
    }
}

/// Breaks a text into lines of 80 columns.
fn wrapped(text: &str, indent: &str, out: &mut String) {
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column == 0 || column + 1 + width > COLUMNS {
            if column > 0 {
                out.push('\n');
            }
            out.push_str(indent);
            column = indent.len();
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
}

/// At most `width` columns, the end kept: that is where the line number is.
fn shortened(text: &str, width: usize) -> String {
    let count = text.chars().count();
    match count > width {
        true => format!("…{}", text.chars().skip(count - width + 1).collect::<String>()),
        false => text.to_string(),
    }
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    ByteSize(usize::try_from(bytes).unwrap_or(usize::MAX)).to_string()
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_at_80_columns() {
        let mut out = String::new();
        wrapped(&"word ".repeat(60), "     ", &mut out);
        assert!(
            out.lines().all(|line| line.chars().count() <= COLUMNS && line.starts_with("     w"))
        );
        assert_eq!(out.split_whitespace().count(), 60);
    }

    #[test]
    fn bars_grow_in_eighths() {
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(1.0).chars().count(), BAR);
        assert_eq!(bar(1.0 / 128.0), "▏");
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(shortened("abcdef", 4), "…def");
        assert_eq!(shortened("abc", 4), "abc");
    }
}
