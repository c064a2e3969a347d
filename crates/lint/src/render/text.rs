//! For people: place and rule, the source line with a marker, the reason and the remedy, within 80
//! columns.

use std::fmt::Write as _;

use crate::finding::Finding;
use crate::source::Source;

const WIDTH: usize = 80;

pub(super) fn render(found: &[(&Source, &Finding)]) -> String {
    let mut text = String::new();
    for (source, finding) in found {
        one(&mut text, source, finding);
    }
    if !found.is_empty() {
        let fixable = found.iter().filter(|(_, finding)| finding.fixable()).count();
        let _ = write!(text, "{} found", found.len());
        if fixable > 0 {
            let _ = write!(text, ", {fixable} fixable with --fix");
        }
        text.push('\n');
    }
    text
}

fn one(text: &mut String, source: &Source, finding: &Finding) {
    let Finding { path, line, column, rule, code, .. } = finding;
    let cell = finding.cell.map(|cell| format!(":cell {cell}")).unwrap_or_default();
    let _ = writeln!(text, "{path}{cell}:{line}:{column}: {rule} ({code})");
    let index = source.line_index(finding.range.start());
    let (code, mark) = excerpt(source.line(index), finding);
    let margin = line.to_string().len();
    let _ = writeln!(text, " {line} | {code}");
    let _ = writeln!(text, " {:margin$} | {mark}", "");
    wrap(text, "why: ", &finding.message);
    wrap(text, "fix: ", &finding.advice);
    text.push('\n');
}

/// The line and the marker below it, both moved left where the finding would lie past the last
/// column.
fn excerpt(line: &str, finding: &Finding) -> (String, String) {
    let room = WIDTH - 4 - finding.line.to_string().len();
    let chars: Vec<char> =
        line.chars().map(|c| if c == '\t' || c.is_control() { ' ' } else { c }).collect();
    let start = (finding.column as usize - 1).min(chars.len());
    let end = match finding.end_line == finding.line {
        true => (finding.end_column as usize - 1).clamp(start, chars.len()),
        false => chars.len(),
    };
    let indent = chars.iter().take_while(|c| **c == ' ').count().min(start);
    let mut from = indent.min(4).max(indent.saturating_sub(4));
    if start - from + 12 > room {
        from = start.saturating_sub(room / 3);
    }
    let shown: String = chars.iter().skip(from).take(room).collect();
    let width = (end - start).max(1).min(room.saturating_sub(start - from).max(1));
    (shown.trim_end().to_string(), format!("{}{}", " ".repeat(start - from), "^".repeat(width)))
}

fn wrap(text: &mut String, head: &str, body: &str) {
    let mut line = format!("   {head}");
    let blank = line.len();
    let mut length = blank;
    for word in body.split_whitespace() {
        let width = word.chars().count();
        if length > blank && length + 1 + width > WIDTH {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(blank);
            length = blank;
        }
        if length > blank {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += width;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}
