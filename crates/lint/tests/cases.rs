//! The cases under `cases/RULE/`: small programs with `# expect: rule` on the lines where a rule
//! must fire, and nothing anywhere else. Every case runs against all default rules and its own, so
//! a case without marks is a look-alike that must stay silent. Fixes are held to three promises:
//! they parse, they remove the finding, and a second run changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plimsoll_lint::{Finding, RULES, Selection, Source, check, fixed};

struct Case {
    rule: String,
    path: PathBuf,
    text: String,
}

fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases = Vec::new();
    for folder in std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()) {
        let rule = folder.file_name().unwrap().to_string_lossy().into_owned();
        for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let text = std::fs::read_to_string(&file).unwrap();
            cases.push(Case { rule: rule.clone(), path: file, text });
        }
    }
    cases.sort_by(|a, b| a.path.cmp(&b.path));
    cases
}

/// The default rules and the one that the case is about.
fn selection(case: &Case) -> Selection {
    let mut names: Vec<&str> =
        RULES.iter().filter(|rule| !rule.pedantic).map(|rule| rule.name).collect();
    names.push(&case.rule);
    Selection::default().select(&names).unwrap()
}

fn found(case: &Case, text: &str) -> Vec<Finding> {
    check(&Source::python(case.path.to_string_lossy(), text), &selection(case)).unwrap()
}

fn expected(text: &str) -> BTreeSet<(u32, String)> {
    let mut expected = BTreeSet::new();
    for (at, line) in text.lines().enumerate() {
        let Some((_, rules)) = line.split_once("# expect: ") else { continue };
        expected.extend(rules.split(", ").map(|rule| (at as u32 + 1, rule.trim().to_string())));
    }
    expected
}

#[test]
fn every_case_is_found_where_it_says_and_nowhere_else() {
    let mut wrong = Vec::new();
    for case in cases() {
        let found: BTreeSet<(u32, String)> =
            found(&case, &case.text).iter().map(|f| (f.line, f.rule.to_string())).collect();
        let expected = expected(&case.text);
        if found != expected {
            wrong.push(format!(
                "{}\n  expected {expected:?}\n  found    {found:?}",
                case.path.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_rule_has_cases_of_both_kinds_and_there_are_many() {
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let all = cases();
    for case in &all {
        let kind = kinds.entry(case.rule.clone()).or_default();
        match expected(&case.text).iter().any(|(_, rule)| *rule == case.rule) {
            true => kind.0 += 1,
            false => kind.1 += 1,
        }
    }
    for rule in RULES {
        let (wrong, right) = kinds.get(rule.name).copied().unwrap_or_default();
        assert!(wrong >= 1 && right >= 1, "{}: {wrong} wrong, {right} right", rule.name);
    }
    assert!(all.len() >= 200, "{}", all.len());
}

#[test]
fn fixes_parse_remove_their_finding_and_are_stable() {
    let mut count = 0;
    for case in cases() {
        let fixable = found(&case, &case.text).iter().filter(|finding| finding.fixable()).count();
        let source = Source::python(case.path.to_string_lossy(), case.text.as_str());
        let result = fixed(&source, &selection(&case));
        assert_eq!(result.is_some(), fixable > 0, "{}", case.path.display());
        let Some((text, _)) = result else { continue };
        let left = found(&case, &text).iter().filter(|finding| finding.fixable()).count();
        assert_eq!(left, 0, "{}:\n{text}", case.path.display());
        let again = fixed(&Source::python("again.py", text.as_str()), &selection(&case));
        assert!(again.is_none(), "{}:\n{text}", case.path.display());
        count += fixable;
    }
    assert!(count >= 30, "only {count} fixable findings in the cases");
}

/// The same program as a file and as a cell is mended to the same text.
#[test]
fn notebooks_are_fixed_as_files_are() {
    for case in cases() {
        let file = Source::python("case.py", case.text.as_str());
        let lines: Vec<&str> = case.text.split_inclusive('\n').collect();
        let json = serde_json::json!({"cells": [
            {"cell_type": "code", "source": lines, "outputs": []},
            {"cell_type": "markdown", "source": lines},
        ]});
        let notebook = Source::notebook("case.ipynb", &json.to_string()).unwrap();
        let mended = fixed(&file, &selection(&case));
        let mended_cell = fixed(&notebook, &selection(&case));
        assert_eq!(mended.is_some(), mended_cell.is_some(), "{}", case.path.display());
        let (Some((text, count)), Some((cells, count_in_cell))) = (mended, mended_cell) else {
            continue;
        };
        let cells = Source::notebook("case.ipynb", &cells).unwrap();
        assert_eq!(cells.text().trim_end(), text.trim_end(), "{}", case.path.display());
        assert_eq!(count_in_cell, count, "{}", case.path.display());
    }
}

#[test]
fn findings_say_what_and_what_to_do_in_few_words() {
    for case in cases() {
        for finding in found(&case, &case.text) {
            assert!(
                finding.message.len() > 40 && finding.message.len() < 400,
                "{}",
                finding.message
            );
            assert!(finding.advice.len() > 8 && finding.advice.len() < 200, "{}", finding.advice);
            let whole = format!("{} {}", finding.message, finding.advice);
            assert!(!whole.contains("  ") && !whole.contains('\n'), "{whole:?}");
            assert!((finding.line, finding.column) < (finding.end_line, finding.end_column));
        }
    }
}
