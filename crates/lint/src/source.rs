//! One file to be checked: its text, where its lines begin, and for notebooks which lines belong to
//! which cell. It does not know Python; see `notebook` for how cells become text and `encoding` for
//! how bytes do.

use std::borrow::Cow;

use ruff_text_size::{TextRange, TextSize};

use crate::finding::Problem;
use crate::notebook::Notebook;

/// Text with a name.
#[derive(Clone, Debug)]
pub struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// First offset of each line.
    line_starts: Vec<u32>,
    /// Empty for plain files.
    pub(crate) cells: Vec<Cell>,
    pub(crate) notebook: Option<Notebook>,
}

/// A code cell of a notebook inside the joined text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    /// From 1, counting code cells.
    pub(crate) number: u32,
    /// Offsets of the cell's text, without the newline that ends it.
    pub(crate) range: TextRange,
}

/// A place that people can find: line and column from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) cell: Option<u32>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Source {
    /// A Python file with this text.
    pub fn python(path: impl Into<String>, text: impl Into<String>) -> Source {
        Source::new(path.into(), text.into())
    }

    /// The code cells of a notebook.
    ///
    /// ```
    /// use plimsoll_lint::Source;
    ///
    /// let text = r#"{"cells": [{"cell_type": "code", "source": ["x = 1"]}]}"#;
    /// assert_eq!(Source::notebook("n.ipynb", text).unwrap().text(), "x = 1\n");
    /// ```
    pub fn notebook(path: &str, text: &str) -> Result<Source, Problem> {
        crate::notebook::read(path, text).map_err(|message| Problem::whole(path, message))
    }

    pub(crate) fn with_cells(
        path: String,
        text: String,
        cells: Vec<Cell>,
        notebook: Notebook,
    ) -> Source {
        Source { cells, notebook: Some(notebook), ..Source::new(path, text) }
    }

    fn new(path: String, text: String) -> Source {
        let after_newline = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts =
            std::iter::once(0).chain(after_newline.map(|(at, _)| at as u32 + 1)).collect();
        Source { path, text, line_starts, cells: Vec::new(), notebook: None }
    }

    /// The name under which findings are reported.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The text that is checked; of a notebook its code cells.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the file holds: of a notebook the whole of it.
    pub fn file_text(&self) -> &str {
        self.notebook.as_ref().map_or(&self.text, |notebook| &notebook.json)
    }

    pub(crate) fn is_notebook(&self) -> bool {
        !self.cells.is_empty()
    }

    /// Index from 0 of the line that holds the offset.
    pub(crate) fn line_index(&self, offset: TextSize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset.to_u32()).saturating_sub(1)
    }

    /// The line's text without its end.
    pub(crate) fn line(&self, index: usize) -> &str {
        let Some(start) = self.line_starts.get(index) else { return "" };
        let end = self.line_starts.get(index + 1).map_or(self.text.len(), |next| *next as usize);
        self.text[*start as usize..end].trim_end_matches(['\n', '\r'])
    }

    pub(crate) fn position(&self, offset: TextSize) -> Position {
        let index = self.line_index(offset);
        let start = self.line_starts[index] as usize;
        let end = offset.to_usize().clamp(start, self.text.len());
        let before = self.text.get(start..end).map_or(0, |text| text.chars().count());
        let column = before as u32 + 1;
        let in_cell = self.cells.iter().rev().find(|cell| cell.range.start() <= offset);
        match in_cell {
            Some(cell) => {
                let first = self.line_index(cell.range.start());
                Position { cell: Some(cell.number), line: (index - first) as u32 + 1, column }
            }
            None => Position { cell: None, line: index as u32 + 1, column },
        }
    }

    /// The text of a range on one line, shortened, for messages.
    pub(crate) fn quote(&self, range: TextRange) -> Cow<'_, str> {
        quote(&self.text, range)
    }
}

/// The text of a range with line breaks and runs of blanks folded; past 40 characters it is cut.
pub(crate) fn quote(text: &str, range: TextRange) -> Cow<'_, str> {
    const LONGEST: usize = 40;
    let text = text.get(range.to_std_range()).unwrap_or_default();
    if text.len() <= LONGEST && !text.contains('\n') {
        return Cow::Borrowed(text);
    }
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.chars().count() <= LONGEST {
        return Cow::Owned(folded);
    }
    let cut: String = folded.chars().take(LONGEST - 3).collect();
    Cow::Owned(cut + "...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_may_end_in_either_way() {
        let source = Source::python("x.py", "a = 'é'; b\r\nc\n");
        let at = |offset: u32| source.position(TextSize::new(offset));
        let b = source.text().find('b').unwrap() as u32;
        assert_eq!((at(b).line, at(b).column), (1, 10));
        let c = source.text().find('c').unwrap() as u32;
        assert_eq!((at(c).line, at(c).column), (2, 1));
        assert_eq!(source.line(0), "a = 'é'; b");
        assert_eq!(source.line(7), "");
    }

    #[test]
    fn quotes_are_short_and_on_one_line() {
        let text = "f(a,\n  b)";
        assert_eq!(quote(text, TextRange::new(0.into(), 9.into())), "f(a, b)");
        let long = "x".repeat(60);
        assert_eq!(quote(&long, TextRange::new(0.into(), 60.into())).chars().count(), 40);
    }
}
