//! Any text as a Python file and as a notebook: never a panic, places that lie inside the text, and
//! fixes that parse and are stable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_lint::{Configuration, Selection, Source, check, fixed, unified_diff};

fuzz_target!(|text: &str| {
    let _ = Configuration::parse(text);
    let selection = Selection::new(true);
    if let Ok(notebook) = Source::notebook("fuzz.ipynb", text) {
        let _ = check(&notebook, &selection);
        if let Some((mended, _)) = fixed(&notebook, &selection) {
            assert!(Source::notebook("fuzz.ipynb", &mended).is_ok(), "{mended}");
        }
    }
    let source = Source::python("fuzz.py", text);
    let Ok(findings) = check(&source, &selection) else { return };
    let lines = text.split('\n').count() as u32;
    for finding in &findings {
        assert!(
            finding.line >= 1 && finding.line <= lines && finding.end_line <= lines,
            "{finding:?}"
        );
        assert!(
            finding.column >= 1
                && (finding.line, finding.column) <= (finding.end_line, finding.end_column)
        );
    }
    if let Some((mended, count)) = fixed(&source, &selection) {
        assert!(count > 0);
        check(&Source::python("fuzz.py", mended.as_str()), &selection).expect("a fix must parse");
        assert!(!unified_diff("fuzz.py", text, &mended).is_empty() || mended == text);
    }
});
