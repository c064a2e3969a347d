//! SARIF 2.1.0: one run, the rules that fired with their pages, results with regions, and what
//! could not be checked as notifications.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::finding::{Finding, Problem};
use crate::rules::{RULES, Rule};
use crate::source::Source;

pub(super) fn render(found: &[(&Source, &Finding)], problems: &[Problem]) -> String {
    let fired: BTreeSet<&str> = found.iter().map(|(_, finding)| finding.code).collect();
    let rules: Vec<Value> =
        RULES.iter().filter(|rule| fired.contains(rule.code)).map(|r| describe(r)).collect();
    let results: Vec<Value> = found.iter().map(|(_, finding)| result(finding)).collect();
    let notes: Vec<Value> = problems.iter().map(note).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "plimsoll lint",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [{
                "executionSuccessful": problems.is_empty(),
                "toolExecutionNotifications": notes,
            }],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

fn describe(rule: &Rule) -> Value {
    json!({
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"level": if rule.pedantic { "note" } else { "warning" }},
    })
}

fn result(finding: &Finding) -> Value {
    // The last column of an empty region would lie before its first.
    let end_column = match finding.end_line == finding.line {
        true => finding.end_column.max(finding.column),
        false => finding.end_column,
    };
    let mut result = json!({
        "ruleId": finding.code,
        "level": "warning",
        "message": {"text": format!("{}. {}", finding.message, finding.advice)},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&finding.path)},
            "region": {
                "startLine": finding.line,
                "startColumn": finding.column,
                "endLine": finding.end_line,
                "endColumn": end_column,
            },
        }}],
    });
    if let Some(cell) = finding.cell {
        result["properties"] = json!({"cell": cell});
    }
    result
}

fn note(problem: &Problem) -> Value {
    json!({
        "level": "error",
        "message": {"text": problem.message},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri(&problem.path)}}}],
    })
}

/// A path as a relative reference: percent signs for what may not stand in one.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.replace('\\', "/").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(byte))
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}
