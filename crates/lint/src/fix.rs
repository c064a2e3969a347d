//! Applying safe edits: those that overlap wait for the next round, and rounds go on until nothing
//! changes. A result that does not parse, though no rule should produce one, is thrown away. Of a
//! notebook the cells are edited and the rest stays.

use crate::check::inspect;
use crate::finding::{Edit, Finding};
use crate::notebook;
use crate::selection::Selection;
use crate::source::Source;

/// More rounds than edits can nest.
const ROUNDS: usize = 10;

/// The file's text with every fix applied, and how many there were; nothing if there is nothing to
/// fix.
///
/// ```
/// use plimsoll_lint::{Selection, Source, fixed};
///
/// let text = r#"{"cells": [{"cell_type": "code", "source":
///     "import torch\nx = torch.zeros(9, 9).cuda()"}]}"#;
/// let notebook = Source::notebook("n.ipynb", text).unwrap();
/// let (mended, count) = fixed(&notebook, &Selection::default()).unwrap();
/// assert_eq!((mended, count), (text.replace(").cuda()", r#", device=\"cuda\")"#), 1));
/// ```
pub fn fixed(source: &Source, selection: &Selection) -> Option<(String, usize)> {
    let (mut now, mut count) = (source.clone(), 0);
    let (mut findings, problems) = inspect(&now, selection);
    for _ in 0..ROUNDS {
        let Some((next, applied)) = edited(&now, &findings) else { break };
        let (next_findings, next_problems) = inspect(&next, selection);
        // What an edit broke must never be written. Of a notebook some cells may be broken before.
        if next_problems.len() > problems.len() {
            break;
        }
        (now, findings, count) = (next, next_findings, count + applied);
    }
    (count > 0).then(|| (now.file_text().to_string(), count))
}

/// The source after the edits of as many findings as do not overlap, and their number.
fn edited(source: &Source, findings: &[Finding]) -> Option<(Source, usize)> {
    let (edits, count) = compatible(findings);
    if count == 0 {
        return None;
    }
    let Some(notebook) = &source.notebook else {
        let text = spliced(source.text(), 0, &edits)?;
        return Some((Source::python(source.path(), text), count));
    };
    let mut changed = Vec::new();
    for (number, cell) in source.cells.iter().enumerate() {
        let (start, end) = (cell.range.start().to_usize(), cell.range.end().to_usize());
        let inside = |edit: &&&Edit| edit.start >= start && edit.end <= end;
        let edits: Vec<&Edit> = edits.iter().filter(inside).copied().collect();
        if !edits.is_empty() {
            changed.push((number, spliced(source.text().get(start..end)?, start, &edits)?));
        }
    }
    let json = notebook.with_code(&changed)?;
    notebook::read(source.path(), json).ok().map(|source| (source, count))
}

/// The text after the edits of as many findings as do not overlap, and their number.
///
/// ```
/// use plimsoll_lint::{Selection, Source, apply, check};
///
/// let text = "import torch\nx = torch.zeros(4, 4).cuda()\n";
/// let found = check(&Source::python("x.py", text), &Selection::default()).unwrap();
/// assert_eq!(apply(text, &found).0, "import torch\nx = torch.zeros(4, 4, device=\"cuda\")\n");
/// ```
pub fn apply(text: &str, findings: &[Finding]) -> (String, usize) {
    let (edits, count) = compatible(findings);
    spliced(text, 0, &edits).map_or_else(|| (text.to_string(), 0), |text| (text, count))
}

/// Edits that do not overlap, in the order of their places, and the number of findings that they
/// belong to.
fn compatible(findings: &[Finding]) -> (Vec<&Edit>, usize) {
    let (mut taken, mut count): (Vec<&Edit>, usize) = (Vec::new(), 0);
    // Findings come in order, so that only the furthest end so far matters.
    let mut reached: Option<usize> = None;
    let mut fixable: Vec<&Finding> = findings.iter().filter(|finding| finding.fixable()).collect();
    let start = |finding: &Finding| finding.edits.iter().map(|edit| edit.start).min();
    fixable.sort_by_key(|finding| start(finding));
    for finding in fixable {
        let end = finding.edits.iter().map(|edit| edit.end).max();
        // The edits of one finding belong together: nothing may come between them.
        if reached.is_none_or(|reached| start(finding).is_some_and(|start| start > reached)) {
            taken.extend(&finding.edits);
            (reached, count) = (end, count + 1);
        }
    }
    taken.sort_by_key(|edit| (edit.start, edit.end));
    (taken, count)
}

/// The text with edits whose places count from `offset`; nothing if they do not fit it.
fn spliced(text: &str, offset: usize, edits: &[&Edit]) -> Option<String> {
    let (mut result, mut at) = (String::with_capacity(text.len()), 0);
    for edit in edits {
        let (start, end) = (edit.start.checked_sub(offset)?, edit.end.checked_sub(offset)?);
        result.push_str(text.get(at..start)?);
        result.push_str(&edit.text);
        at = end;
    }
    result.push_str(text.get(at..)?);
    Some(result)
}
