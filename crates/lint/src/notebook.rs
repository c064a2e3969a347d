//! Notebooks: their code cells joined into one text, so that a name bound in one cell is known in
//! the next, and the way back from changed cells to the file, of which everything else stays as it
//! is. Cells in other languages (`%%bash` and the like) are left empty, but keep their number.

use std::borrow::Cow;
use std::ops::Range;

use ruff_text_size::{TextRange, TextSize};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::source::{Cell, Source};

/// The file behind a notebook's source.
#[derive(Clone, Debug)]
pub(crate) struct Notebook {
    pub(crate) json: String,
    /// For each code cell the place of the JSON value that holds its code.
    values: Vec<Range<usize>>,
}

#[derive(Deserialize)]
struct RawNotebook<'a> {
    #[serde(borrow, default)]
    cells: Vec<RawCell<'a>>,
    /// Format 3 and older keep cells here.
    #[serde(borrow, default)]
    worksheets: Vec<Worksheet<'a>>,
}

#[derive(Deserialize)]
struct Worksheet<'a> {
    #[serde(borrow, default)]
    cells: Vec<RawCell<'a>>,
}

/// Values are kept as they are written: most of them, outputs above all, are never looked at.
#[derive(Deserialize)]
struct RawCell<'a> {
    #[serde(borrow)]
    cell_type: Cow<'a, str>,
    #[serde(borrow, default)]
    source: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Whole(String),
    Lines(Vec<String>),
}

fn code_of(value: &RawValue) -> Result<String, String> {
    match serde_json::from_str(value.get()) {
        Ok(Text::Whole(text)) => Ok(text),
        Ok(Text::Lines(lines)) => Ok(lines.concat()),
        Err(_) => Err("not a notebook: a cell's source is no text".to_string()),
    }
}

/// The notebook's code as one source, or why it is none.
pub(crate) fn read(path: &str, json: impl Into<String>) -> Result<Source, String> {
    let json = json.into();
    if !json.trim_start().starts_with('{') {
        return Err("not a notebook: it is no JSON object".to_string());
    }
    let notebook: RawNotebook<'_> =
        serde_json::from_str(&json).map_err(|error| format!("not a notebook: {error}"))?;
    let raw =
        notebook.cells.into_iter().chain(notebook.worksheets.into_iter().flat_map(|w| w.cells));
    let (mut joined, mut cells, mut values) = (String::new(), Vec::new(), Vec::new());
    for cell in raw.filter(|cell| cell.cell_type == "code") {
        let mut value = cell.source;
        let mut code = value.map(code_of).transpose()?.unwrap_or_default();
        if let (true, Some(input)) = (code.is_empty(), cell.input) {
            (value, code) = (Some(input), code_of(input)?);
        }
        let start = TextSize::of(joined.as_str());
        if is_python(&code) {
            joined.push_str(without_end(&code));
        }
        let range = TextRange::new(start, TextSize::of(joined.as_str()));
        cells.push(Cell { number: cells.len() as u32 + 1, range });
        joined.push('\n');
        values.push(value.map_or(0..0, |value| place_in(&json, value.get())));
        if joined.len() > u32::MAX as usize / 2 {
            return Err("larger than 2 GiB".to_string());
        }
    }
    if cells.is_empty() {
        return Ok(Source::python(path, ""));
    }
    Ok(Source::with_cells(path.to_string(), joined, cells, Notebook { json, values }))
}

/// Where a part of a text, borrowed from it, lies in it.
fn place_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

fn without_end(code: &str) -> &str {
    code.trim_end_matches(['\n', '\r'])
}

/// A cell magic hands the whole cell to something else, except those that only time or capture
/// Python.
fn is_python(code: &str) -> bool {
    match code.trim_start().strip_prefix("%%") {
        Some(magic) => {
            let name = magic.split_whitespace().next().unwrap_or_default();
            matches!(name, "time" | "timeit" | "capture" | "prun")
        }
        None => true,
    }
}

impl Notebook {
    /// The file with other code in some cells: index from 0 among code cells, and the new code
    /// without the line ends that closed the old.
    pub(crate) fn with_code(&self, changed: &[(usize, String)]) -> Option<String> {
        let (mut json, mut at) = (String::with_capacity(self.json.len()), 0);
        for (cell, code) in changed {
            let place = self.values.get(*cell)?.clone();
            let value = self.json.get(place.clone())?;
            json.push_str(self.json.get(at..place.start)?);
            json.push_str(&replaced(value, code)?);
            at = place.end;
        }
        json.push_str(self.json.get(at..)?);
        Some(json)
    }
}

/// The JSON value of a cell's code with other code, in the same form: one string, or a list of
/// lines, of which those that stay are not written again.
fn replaced(value: &str, code: &str) -> Option<String> {
    let old = code_of(serde_json::from_str(value).ok()?).ok()?;
    let code = format!("{code}{}", &old[without_end(&old).len()..]);
    if value.starts_with('"') {
        return json_string(&code, value.is_ascii());
    }
    let elements: Vec<&RawValue> = serde_json::from_str(value).ok()?;
    let lines: Vec<&str> = code.split_inclusive('\n').collect();
    let places: Vec<Range<usize>> =
        elements.iter().map(|element| place_in(value, element.get())).collect();
    let (first, last) = (places.first()?, places.last()?);
    let between = places.get(1).map_or(", ", |second| &value[first.end..second.start]);
    let mut new = value[..first.start].to_string();
    for (number, line) in lines.iter().enumerate() {
        if number > 0 {
            new.push_str(between);
        }
        let same = elements.get(number).filter(|element| {
            serde_json::from_str::<String>(element.get()).is_ok_and(|text| text == *line)
        });
        match same {
            Some(element) => new.push_str(element.get()),
            None => new.push_str(&json_string(line, value.is_ascii())?),
        }
    }
    new.push_str(&value[last.end..]);
    Some(new)
}

/// A JSON string, with everything past ASCII escaped if the file does so.
fn json_string(text: &str, ascii: bool) -> Option<String> {
    let string = serde_json::to_string(text).ok()?;
    if !ascii || string.is_ascii() {
        return Some(string);
    }
    let mut escaped = String::with_capacity(string.len());
    for c in string.chars() {
        match c.is_ascii() {
            true => escaped.push(c),
            false => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }),
        }
    }
    Some(escaped)
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
        let number = r#"{"cells": [{"cell_type": "code", "source": 3}]}"#;
        assert!(read("n.ipynb", number).unwrap_err().contains("no text"));
        assert_eq!(read("n.ipynb", "{}").unwrap().text(), "");
    }

    #[test]
    fn old_notebooks_keep_their_code_elsewhere() {
        let text = r#"{"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}]}"#;
        let source = read("n.ipynb", text).unwrap();
        assert_eq!(source.text(), "x = 1\n");
        let new = source.notebook.unwrap().with_code(&[(0, "x = 2".to_string())]).unwrap();
        assert_eq!(new, text.replace("x = 1", "x = 2"));
    }

    #[test]
    fn changed_code_goes_back_in_the_form_that_it_had() {
        let lines = "[\n  \"a = '\\u00e9'\\n\",\n  \"b\\n\"\n ]";
        // One line changed: the other is kept as it was written.
        assert_eq!(replaced(lines, "a = 'é'\nc").unwrap(), lines.replace("\"b", "\"c"));
        // A new line, and one that went.
        assert_eq!(
            replaced(lines, "x = 'é'\nb\nc").unwrap(),
            "[\n  \"x = '\\u00e9'\\n\",\n  \"b\\n\",\n  \"c\\n\"\n ]"
        );
        assert_eq!(replaced(lines, "b").unwrap(), "[\n  \"b\\n\"\n ]");
        // One string, with its last line end; and one that does not escape.
        assert_eq!(replaced("\"a\\n\\n\"", "b\nc").unwrap(), "\"b\\nc\\n\\n\"");
        assert_eq!(replaced("\"é\"", "è").unwrap(), "\"è\"");
        assert_eq!(replaced("\"\"", "x").unwrap(), "\"x\"");
    }
}
