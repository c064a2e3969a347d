//! The report as one self-contained page: the same facts as the text, for mail and for archives. No
//! script and no network; the interactive page is `plimsoll view`.

use std::fmt::Write as _;

use super::text::{held, site_name, size};
use crate::analysis::{Amount, DeviceAnalysis, highest_by_bucket};
use crate::report::Report;

const STYLE: &str = include_str!("report.css");

/// The report as an HTML page.
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    let source = escaped(&report.source);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{source}: memory</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{source}</h1>\n\
         <p>{} events, {} segments, {}</p>\n",
        report.snapshot.events.len(),
        report.snapshot.segments.len(),
        escaped(&report.snapshot.writer.format),
    );
    write_findings(report, &mut out);
    report.devices.iter().for_each(|device| write_device(report, device, &mut out));
    out.push_str("</body>\n</html>\n");
    out
}

fn write_findings(report: &Report, out: &mut String) {
    out.push_str("<h2>Findings</h2>\n");
    if report.findings.is_empty() {
        out.push_str("<p>Nothing found: no leak, no fragmentation, no failure.</p>\n");
        return;
    }
    for finding in &report.findings {
        let _ = write!(
            out,
            "<section class=\"finding {kind}\">\n<h3>{kind}: {}</h3>\n<p class=\"site\">{}</p>\n<p>{}</p>\n\
             <p class=\"advice\">{}</p>\n</section>\n",
            escaped(&finding.cause),
            escaped(&site_name(report, finding.site)),
            escaped(&finding.message),
            escaped(&finding.advice),
            kind = finding.kind.word(),
        );
    }
}

fn write_device(report: &Report, device: &DeviceAnalysis, out: &mut String) {
    let lives = &device.lives;
    let _ = writeln!(
        out,
        "<h2>{}</h2>\n<p>Peak {} live, {} reserved.</p>",
        escaped(&report.snapshot.device_name(device.device)),
        size(lives.peak.bytes),
        size(device.reserved.peak.bytes),
    );
    if device.held.is_large(device.reserved.end_bytes) {
        let _ = writeln!(out, "<p>At the end, {}</p>", escaped(&held(report, device)));
    }
    if lives.last_position() > 0 {
        curve(&highest_by_bucket(lives, 400), out);
    }
    let total = device.at_peak.total.bytes;
    let inferred = if device.kinds_inferred { " (inferred)" } else { "" };
    let kinds = device.at_peak.by_kind.iter().map(|(kind, amount)| (kind.to_string(), *amount));
    table(&format!("At the peak, by kind{inferred}"), kinds, total, out);
    let sites = device.at_peak.by_site.iter();
    let sites = sites.map(|(site, amount)| (site_name(report, *site), *amount));
    table("At the peak, by line", sites, total, out);
}

fn table(
    caption: &str,
    rows: impl Iterator<Item = (String, Amount)>,
    total: u64,
    out: &mut String,
) {
    let _ = writeln!(
        out,
        "<table>\n<caption>{caption}</caption>\n\
         <tr><th>what</th><th>bytes</th><th>share</th><th>count</th><th></th></tr>"
    );
    for (name, amount) in rows {
        let share = 100.0 * amount.bytes as f64 / total.max(1) as f64;
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{share:.1} %</td><td>{}</td>\
             <td><span class=\"bar\" style=\"width:{share:.1}%\"></span></td></tr>",
            escaped(&name),
            size(amount.bytes),
            amount.count,
        );
    }
    out.push_str("</table>\n");
}

/// Live bytes over the trace, as a filled curve.
fn curve(values: &[u64], out: &mut String) {
    let highest = values.iter().copied().max().unwrap_or(0).max(1) as f64;
    let width = values.len().max(2) - 1;
    let mut points = String::from("0,100 ");
    for (x, value) in values.iter().enumerate() {
        let _ = write!(points, "{x},{:.2} ", 100.0 - 100.0 * *value as f64 / highest);
    }
    let _ = writeln!(
        out,
        "<svg role=\"img\" aria-label=\"live bytes over time\" viewBox=\"0 0 {width} 100\" \
         preserveAspectRatio=\"none\"><polygon points=\"{points}{width},100\"/></svg>"
    );
}

/// A text that cannot leave its element or attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Control characters are not allowed in XML, not even as references.
            c if c < ' ' && c != '\n' && c != '\t' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}
