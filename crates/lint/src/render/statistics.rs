//! How often each rule fired, most frequent first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Format;
use crate::finding::Finding;
use crate::rules::find;
use crate::source::Source;

pub(crate) fn statistics(found: &[(&Source, &Finding)], format: Format) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, finding) in found {
        *counts.entry(finding.rule).or_default() += 1;
    }
    let mut rows: Vec<(&str, usize)> = counts.into_iter().collect();
    rows.sort_by_key(|(rule, count)| (std::cmp::Reverse(*count), *rule));
    if format == Format::Json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(rule, count)| json!({"rule": rule, "code": find(rule).map(|r| r.code), "count": count}))
            .collect();
        return format!("{:#}\n", Value::Array(rows));
    }
    let mut text = String::new();
    for (rule, count) in &rows {
        let code = find(rule).map_or("", |rule| rule.code);
        let _ = writeln!(text, "{count:6}  {code}  {rule}");
    }
    let _ = writeln!(text, "{:6}  in all", found.len());
    text
}
