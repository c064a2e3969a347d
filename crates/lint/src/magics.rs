//! The lines of a notebook that are IPython's own: `%matplotlib inline`, `!pip install x`, `files =
//! !ls`, `model?`. Each is blanked out for the parser by a name and spaces of the same length, so
//! that every place in the text stays where it is. The parser has a mode for such lines, but gives
//! up on some broken cells in it (tried: it panics on `f(\n?`).

use std::borrow::Cow;

use crate::nesting::{end_of_line, end_of_string};
use crate::source::Source;

/// The text for the parser: that of the source, without IPython's lines if it is a notebook.
pub(crate) fn blanked(source: &Source) -> Cow<'_, str> {
    let text = source.text();
    let ranges = source.cells.iter().map(|cell| cell.range.to_std_range());
    let found: Vec<_> = ranges
        .flat_map(|cell| {
            let inside = lines(text.get(cell.clone()).unwrap_or_default());
            inside.into_iter().map(move |(start, end)| (cell.start + start, cell.start + end))
        })
        .collect();
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut blanked, mut at) = (String::with_capacity(text.len()), 0);
    for (start, end) in found {
        blanked.push_str(&text[at..start]);
        blanked.push('_');
        // Line ends stay, so that lines are counted as before.
        let rest = text[start..end].bytes().skip(1);
        blanked.extend(
            rest.map(|byte| if matches!(byte, b'\n' | b'\r') { byte as char } else { ' ' }),
        );
        at = end;
    }
    blanked.push_str(&text[at..]);
    Cow::Owned(blanked)
}

/// The places of such lines in one cell.
fn lines(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    // Open brackets, and the first character of the present logical line.
    let (mut open, mut start): (usize, Option<usize>) = (0, None);
    let mut before = b'\n';
    while at < bytes.len() {
        let byte = bytes[at];
        let first = start.is_none() && !byte.is_ascii_whitespace();
        if first {
            start = Some(at);
        }
        let begins = first && matches!(byte, b'%' | b'!' | b'?' | b'/' | b',' | b';');
        let assigned = open == 0 && before == b'=' && matches!(byte, b'%' | b'!');
        if begins || assigned {
            let end = end_of_command(bytes, at);
            found.push((at, end));
            (at, before) = (end, b' ');
            continue;
        }
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            // `model?` and `model.fit??` at the end of a line.
            b'?' if open == 0 && is_last(bytes, at) => {
                let end = end_of_line(bytes, at);
                found.push((start.unwrap_or(at), end));
                (at, before) = (end, b' ');
                continue;
            }
            b'\n' if open == 0 && before != b'\\' => start = None,
            _ => {}
        }
        if !matches!(byte, b' ' | b'\t') {
            // `==`, `!=`, `<=` and their like assign nothing.
            let compares = byte == b'=' && matches!(before, b'=' | b'!' | b'<' | b'>');
            before = if compares { b' ' } else { byte };
        }
        at = match byte {
            b'#' => end_of_line(bytes, at),
            b'\'' | b'"' => end_of_string(bytes, at),
            _ => at + 1,
        };
    }
    found
}

/// The end of a command that begins here: of its line, or of the last of the lines that backslashes
/// join.
fn end_of_command(bytes: &[u8], at: usize) -> usize {
    let mut end = end_of_line(bytes, at);
    while end < bytes.len() && bytes[end - 1] == b'\\' {
        end = end_of_line(bytes, end + 1);
    }
    end
}

fn is_last(bytes: &[u8], at: usize) -> bool {
    bytes[at..end_of_line(bytes, at)].iter().all(|byte| matches!(byte, b'?' | b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blanked_cell(code: &str) -> String {
        let json = serde_json::json!({"cells": [{"cell_type": "code", "source": code}]});
        let source = crate::notebook::read("n.ipynb", json.to_string()).unwrap();
        assert_eq!(blanked(&source).len(), source.text().len());
        let text = blanked(&source).into_owned();
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn commands_are_blanked() {
        assert_eq!(blanked_cell("%matplotlib inline\nx = 1"), "_\nx = 1");
        assert_eq!(blanked_cell("if x:\n    !ls \\\n  é\ny"), "if x:\n    _\n\ny");
        assert_eq!(blanked_cell("files = !ls\ny = %time f(x)"), "files = _\ny = _");
        assert_eq!(blanked_cell("model.fit??\n?model\nx"), "_\n_\nx");
        assert_eq!(blanked_cell("%%time\nx = 1"), "_\nx = 1");
    }

    #[test]
    fn python_stays() {
        for code in [
            "x = (a\n  % b\n  / c)",
            "x = a \\\n  % b",
            "x = '''\n%magic\n!ls\n'''",
            "assert a != b\nx == y  # really?",
            "x = f(\n    a\n    , b)",
            "x = 'why?'",
        ] {
            assert_eq!(blanked_cell(code), code);
        }
    }
}
