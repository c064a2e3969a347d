//! Applying safe edits: those that overlap wait for the next round, and rounds go on until nothing changes. A result that does
//! not parse, though no rule should produce one, is thrown away.

use crate::check::check;
use crate::finding::{Edit, Finding};
use crate::selection::Selection;
use crate::source::Source;

/// More rounds than edits can nest.
const ROUNDS: usize = 10;

/// The text with every fix applied, and how many there were; nothing if there is nothing to fix.
pub fn fixed(source: &Source, selection: &Selection) -> Option<(String, usize)> {
    if source.is_notebook() {
        return None;
    }
    let (mut text, mut count) = (source.text().to_string(), 0);
    for _ in 0..ROUNDS {
        let now = Source::python(source.path(), text.as_str());
        let findings = check(&now, selection).ok()?;
        let (next, applied) = apply(&text, &findings);
        if applied == 0 {
            break;
        }
        // What an edit broke must never be written.
        if check(&Source::python(source.path(), next.as_str()), selection).is_err() {
            break;
        }
        (text, count) = (next, count + applied);
    }
    (count > 0).then_some((text, count))
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
    let (mut taken, mut count): (Vec<&Edit>, usize) = (Vec::new(), 0);
    for finding in findings.iter().filter(|finding| finding.fixable()) {
        let span = |edit: &Edit| (edit.start, edit.end);
        let start = finding.edits.iter().map(|edit| edit.start).min().unwrap_or_default();
        let end = finding.edits.iter().map(|edit| edit.end).max().unwrap_or_default();
        // The edits of one finding belong together: nothing may come between them.
        let free = taken.iter().all(|edit| span(edit).1 < start || span(edit).0 > end);
        if free {
            taken.extend(&finding.edits);
            count += 1;
        }
    }
    taken.sort_by_key(|edit| (edit.start, edit.end));
    let (mut result, mut at) = (String::with_capacity(text.len()), 0);
    for edit in taken {
        let (Some(before), true) = (text.get(at..edit.start), text.is_char_boundary(edit.end))
        else {
            return (text.to_string(), 0);
        };
        result.push_str(before);
        result.push_str(&edit.text);
        at = edit.end;
    }
    result.push_str(text.get(at..).unwrap_or_default());
    (result, count)
}
