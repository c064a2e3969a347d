//! What a rule reports, and what kept a file from being checked.

use ruff_text_size::TextRange;

use crate::source::{Position, Source};

/// A mistake at a place.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// The rule's code, which never changes.
    pub code: &'static str,
    /// The file, as it was named.
    pub path: String,
    /// From 1; inside the cell for notebooks.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// The line of the end.
    pub end_line: u32,
    /// The column after the end.
    pub end_column: u32,
    /// Code cell of a notebook, from 1.
    pub cell: Option<u32>,
    /// What happens, and what the rule relied on.
    pub message: String,
    /// What to do.
    pub advice: String,
    /// A safe edit, empty if there is none.
    pub edits: Vec<Edit>,
    /// The place in the text.
    pub(crate) range: TextRange,
}

/// Text put in place of a range of the source, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// First byte replaced.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// What comes instead.
    pub text: String,
}

impl Edit {
    pub(crate) fn insert(at: usize, text: impl Into<String>) -> Edit {
        Edit { start: at, end: at, text: text.into() }
    }

    pub(crate) fn replace(range: TextRange, text: impl Into<String>) -> Edit {
        Edit { start: range.start().to_usize(), end: range.end().to_usize(), text: text.into() }
    }
}

impl Finding {
    /// Whether `--fix` would change the code.
    pub fn fixable(&self) -> bool {
        !self.edits.is_empty()
    }
}

/// Why a file, or a part of it, was not checked.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The file, as it was named.
    pub path: String,
    /// From 1, where it is known.
    pub line: Option<u32>,
    /// From 1.
    pub column: Option<u32>,
    /// Code cell of a notebook, from 1.
    pub cell: Option<u32>,
    /// What is wrong.
    pub message: String,
}

impl Problem {
    pub(crate) fn whole(path: impl Into<String>, message: impl Into<String>) -> Problem {
        let (path, message) = (path.into(), message.into());
        Problem { path, line: None, column: None, cell: None, message }
    }

    pub(crate) fn at(source: &Source, place: Position, message: String) -> Problem {
        let (line, column) = (Some(place.line), Some(place.column));
        Problem { path: source.path().to_string(), line, column, cell: place.cell, message }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(cell) = self.cell {
            write!(f, ":cell {cell}")?;
        }
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}
