//! An array of objects, one a finding. The keys are part of the interface; notebooks add `cell`.

use serde_json::{Map, Value, json};

use crate::finding::Finding;
use crate::source::Source;

pub(super) fn render(found: &[(&Source, &Finding)]) -> String {
    let objects: Vec<Value> = found.iter().map(|(_, finding)| object(finding)).collect();
    format!("{:#}\n", Value::Array(objects))
}

fn object(finding: &Finding) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_string(), value);
    put("rule", json!(finding.rule));
    put("code", json!(finding.code));
    put("path", json!(finding.path));
    put("line", json!(finding.line));
    put("column", json!(finding.column));
    put("end_line", json!(finding.end_line));
    put("end_column", json!(finding.end_column));
    put("message", json!(finding.message));
    put("advice", json!(finding.advice));
    put("fixable", json!(finding.fixable()));
    if let Some(cell) = finding.cell {
        put("cell", json!(cell));
    }
    Value::Object(object)
}
