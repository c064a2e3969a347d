//! Annotations that GitHub shows beside the changed lines: one command a line.

use std::fmt::Write as _;

use crate::finding::{Finding, Problem};
use crate::source::Source;

pub(super) fn render(found: &[(&Source, &Finding)], problems: &[Problem]) -> String {
    let mut text = String::new();
    for (_, finding) in found {
        let Finding { line, column, end_line, end_column, .. } = finding;
        let path = property(&finding.path);
        let title = property(&format!("{} ({})", finding.rule, finding.code));
        let body = data(&format!("{}. {}", finding.message, finding.advice));
        // A notebook's lines count from its cells, which no annotation can point at.
        let place = match finding.cell {
            Some(_) => String::new(),
            None => format!(",line={line},endLine={end_line},col={column},endColumn={end_column}"),
        };
        let _ = writeln!(text, "::warning file={path}{place},title={title}::{body}");
    }
    for problem in problems {
        let place = problem.line.map(|line| format!(",line={line}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "::error file={}{place}::{}",
            property(&problem.path),
            data(&problem.message)
        );
    }
    text
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
