//! One source through parser, model, rules and ignore comments.

use ruff_python_ast::PySourceType;
use ruff_python_parser::{ParseOptions, Parsed, parse_cells_unchecked, parse_unchecked_source};

use crate::finding::{Finding, Problem};
use crate::model::File;
use crate::selection::Selection;
use crate::source::Source;
use crate::{magics, nesting, rules, suppress};

/// The findings in a source, in order; an error if it could not be parsed.
///
/// ```
/// use plimsoll_lint::{Selection, Source, check};
///
/// let broken = Source::python("x.py", "def f(:\n");
/// assert_eq!(check(&broken, &Selection::default()).unwrap_err().line, Some(1));
/// ```
pub fn check(source: &Source, selection: &Selection) -> Result<Vec<Finding>, Problem> {
    let (findings, mut problems) = inspect(source, selection);
    match problems.is_empty() {
        true => Ok(findings),
        false => Err(problems.swap_remove(0)),
    }
}

/// The findings and what could not be checked. In a notebook one broken cell does not hide the
/// others.
pub(crate) fn inspect(source: &Source, selection: &Selection) -> (Vec<Finding>, Vec<Problem>) {
    if source.text().len() > u32::MAX as usize / 2 {
        return (Vec::new(), vec![Problem::whole(source.path(), "larger than 2 GiB")]);
    }
    if nesting::too_deep(source.text()) {
        let message =
            format!("nested more than {} deep; Python would refuse it too", nesting::DEEPEST);
        return (Vec::new(), vec![Problem::whole(source.path(), message)]);
    }
    let text = magics::blanked(source);
    let parsed = if source.is_notebook() {
        let ranges = source.cells.iter().map(|cell| cell.range);
        parse_cells_unchecked(&text, ranges, &ParseOptions::from(PySourceType::Python))
    } else {
        parse_unchecked_source(&text, PySourceType::Python)
    };
    let problems = syntax_errors(source, &parsed);
    if !problems.is_empty() && !source.is_notebook() {
        return (Vec::new(), problems);
    }
    if !is_about_torch(source.text()) {
        return (Vec::new(), problems);
    }
    let file = File::new(parsed.suite());
    let findings = rules::run(source, &file, &selection.rules());
    (suppress::kept(source, parsed.tokens(), findings), problems)
}

/// A file that imports other things and never says `torch` has no business with these rules.
fn is_about_torch(text: &str) -> bool {
    text.contains("torch") || !text.contains("import ")
}

fn syntax_errors<T>(source: &Source, parsed: &Parsed<T>) -> Vec<Problem> {
    // The parser goes on after an error and often reports what follows from it; the first is the
    // one to mend.
    let per_cell =
        parsed.errors().iter().map(|error| (source.position(error.location.start()), error));
    let mut problems: Vec<Problem> = Vec::new();
    for (place, error) in per_cell {
        if problems.last().is_some_and(|last| last.cell == place.cell) {
            continue;
        }
        let mut message = format!("syntax error: {}", error.error);
        if is_python_2(source.text()) {
            message.push_str(" (this looks like Python 2)");
        }
        problems.push(Problem::at(source, place, message));
    }
    problems
}

/// Statements that only Python 2 has.
fn is_python_2(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| {
        let printed = line.strip_prefix("print ").map(str::trim_start);
        printed.is_some_and(|rest| {
            rest.starts_with(['"', '\'']) || rest.starts_with(char::is_alphabetic)
        }) || line.starts_with("except ") && line.contains(", e:")
            || line.starts_with("exec \"")
            || line.starts_with("raise ") && line.contains("Error, ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_problem(text: &str) -> String {
        check(&Source::python("x.py", text), &Selection::default()).unwrap_err().to_string()
    }

    #[test]
    fn syntax_errors_have_a_place_and_python_2_is_named() {
        assert!(first_problem("x = 1\ny = = 2\n").starts_with("x.py:2:5: syntax error"));
        assert!(first_problem("import torch\nprint \"loss\"\n").contains("Python 2"));
        assert!(first_problem(&format!("x = {}\n", "(".repeat(5000))).contains("nested more than"));
    }

    #[test]
    fn a_cell_that_ends_in_a_question_is_only_broken() {
        let text = r#"{"cells": [{"cell_type": "code", "source": "import torch\nx = f(1,\n?"}]}"#;
        let source = crate::notebook::read("n.ipynb", text).unwrap();
        let (_, problems) = inspect(&source, &Selection::default());
        assert!(problems[0].message.contains("syntax error"), "{problems:?}");
    }

    #[test]
    fn a_broken_cell_does_not_hide_the_others() {
        let text = r#"{"cells": [
            {"cell_type": "code", "source": "import torch\n%matplotlib inline"},
            {"cell_type": "code", "source": "def ("},
            {"cell_type": "code", "source": "x = torch.zeros(64, 64).cuda()"}]}"#;
        let source = crate::notebook::read("n.ipynb", text).unwrap();
        let (findings, problems) = inspect(&source, &Selection::default());
        assert_eq!((problems.len(), problems[0].cell), (1, Some(2)));
        let places: Vec<_> =
            findings.iter().map(|f| (f.rule, f.cell, f.line, f.fixable())).collect();
        assert_eq!(places, [("create-then-move", Some(3), 1, true)]);
    }
}
