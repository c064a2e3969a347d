//! Notebooks: their code cells joined into one text, so that a name bound in one cell is known in the next. Cells in other
//! languages (`%%bash` and the like) are left empty, but keep their number.

use ruff_text_size::{TextRange, TextSize};
use serde::Deserialize;

use crate::source::{Cell, Source};

#[derive(Deserialize)]
struct Notebook {
    #[serde(default)]
    cells: Vec<RawCell>,
    /// Format 3 and older keep cells here.
    #[serde(default)]
    worksheets: Vec<Worksheet>,
}

#[derive(Deserialize)]
struct Worksheet {
    #[serde(default)]
    cells: Vec<RawCell>,
}

#[derive(Deserialize)]
struct RawCell {
    cell_type: String,
    #[serde(default)]
    source: Text,
    #[serde(default)]
    input: Text,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Whole(String),
    Lines(Vec<String>),
}

impl Default for Text {
    fn default() -> Text {
        Text::Whole(String::new())
    }
}

impl Text {
    fn join(self) -> String {
        match self {
            Text::Whole(text) => text,
            Text::Lines(lines) => lines.concat(),
        }
    }
}

/// The notebook's code as one source, or why it is none.
pub(crate) fn read(path: &str, text: &str) -> Result<Source, String> {
    // By way of a map: a list would be taken for the fields in order.
    let fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).map_err(|error| format!("not a notebook: {error}"))?;
    let notebook: Notebook = serde_json::from_value(fields.into())
        .map_err(|error| format!("not a notebook: {error}"))?;
    let raw =
        notebook.cells.into_iter().chain(notebook.worksheets.into_iter().flat_map(|w| w.cells));
    let (mut joined, mut cells) = (String::new(), Vec::new());
    for cell in raw.filter(|cell| cell.cell_type == "code") {
        let source = cell.source.join();
        let code = if source.is_empty() { cell.input.join() } else { source };
        let start = TextSize::of(joined.as_str());
        if is_python(&code) {
            joined.push_str(code.trim_end_matches(['\n', '\r']));
        }
        let range = TextRange::new(start, TextSize::of(joined.as_str()));
        cells.push(Cell { number: cells.len() as u32 + 1, range });
        joined.push('\n');
    }
    if joined.len() > u32::MAX as usize / 2 {
        return Err("larger than 2 GiB".to_string());
    }
    if cells.is_empty() {
        return Ok(Source::python(path, ""));
    }
    Ok(Source::with_cells(path.to_string(), joined, cells))
}

/// A cell magic hands the whole cell to something else, except those that only time or capture Python.
fn is_python(code: &str) -> bool {
    match code.trim_start().strip_prefix("%%") {
        Some(magic) => {
            let name = magic.split_whitespace().next().unwrap_or_default();
            matches!(name, "time" | "timeit" | "capture" | "prun")
        }
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_joined_and_numbered_among_code_cells() {
        let text = r##"{"cells": [
            {"cell_type": "markdown", "source": ["# title"]},
            {"cell_type": "code", "source": ["x = 1\n", "y = 2"]},
            {"cell_type": "code", "source": "%%bash\nls"},
            {"cell_type": "code", "source": "z = 3"}]}"##;
        let source = read("n.ipynb", text).unwrap();
        assert_eq!(source.text(), "x = 1\ny = 2\n\nz = 3\n");
        let place = source.position(TextSize::new(13));
        assert_eq!((place.cell, place.line, place.column), (Some(3), 1, 1));
        let place = source.position(TextSize::new(6));
        assert_eq!((place.cell, place.line), (Some(1), 2));
    }

    #[test]
    fn broken_notebooks_are_refused() {
        assert!(read("n.ipynb", "{").is_err());
        assert!(read("n.ipynb", "[]").is_err());
        assert_eq!(read("n.ipynb", "{}").unwrap().text(), "");
    }
}
