//! `cargo xtask test licences`: every dependency may be used as `deny.toml` allows, and comes from
//! crates.io. The list is cargo-deny's own file; why this checks it too stands in
//! `docs/decisions.md`. Advisories need a database and are cargo-deny's alone.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::run;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Prints what breaks the rules; an error if anything does.
pub(crate) fn print() -> Result<(), String> {
    let allowed = allowed(&read("deny.toml")?)?;
    let output = run::command(env!("CARGO"), &["metadata", "--format-version", "1", "--locked"])
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("what cargo metadata printed: {e}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let broken: Vec<String> = packages.iter().filter_map(|p| fault(p, &allowed)).collect();
    println!("{} packages, {} licences allowed", packages.len(), allowed.len());
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(run::root().join(path)).map_err(|e| format!("{path}: {e}"))
}

/// The licences that `deny.toml` allows.
fn allowed(text: &str) -> Result<BTreeSet<String>, String> {
    let file: toml::Table = text.parse().map_err(|e| format!("deny.toml: {e}"))?;
    let list = file.get("licenses").and_then(|table| table.get("allow"));
    let list = list.and_then(toml::Value::as_array).ok_or("deny.toml has no `licenses.allow`")?;
    Ok(list.iter().filter_map(|name| Some(name.as_str()?.to_string())).collect())
}

/// What is wrong with one package, if something is.
fn fault(package: &Value, allowed: &BTreeSet<String>) -> Option<String> {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let name = format!("{} {}", text("name"), text("version"));
    // Without a source it is one of our own.
    if !package["source"].is_null() && text("source") != CRATES_IO {
        return Some(format!("{name} comes from {}, not from crates.io", text("source")));
    }
    let expression = text("license");
    if expression.is_empty() {
        return Some(format!("{name} names no licence; look at its files before you use it"));
    }
    match Expression::of(expression).any(allowed) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "{name} is under `{expression}`, which deny.toml does not allow; leave it out, or add the licence with a reason"
        )),
        Err(at) => Some(format!("{name}: `{expression}` cannot be read from `{at}` on")),
    }
}

/// A licence expression (SPDX) that is being read, from the left.
struct Expression {
    /// Its words, the last one first.
    words: Vec<String>,
}

/// Where an expression stops making sense.
type Unread = String;

impl Expression {
    fn of(text: &str) -> Expression {
        // Older crates write "MIT/Apache-2.0" and mean either.
        let spaced = text.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        Expression { words: spaced.split_whitespace().rev().map(str::to_string).collect() }
    }

    /// Whether the allowed licences satisfy it.
    fn any(mut self, allowed: &BTreeSet<String>) -> Result<bool, Unread> {
        let answer = self.alternatives(allowed)?;
        match self.words.pop() {
            None => Ok(answer),
            Some(word) => Err(word),
        }
    }

    fn alternatives(&mut self, allowed: &BTreeSet<String>) -> Result<bool, Unread> {
        let mut answer = self.together(allowed)?;
        while self.take("OR") {
            answer |= self.together(allowed)?;
        }
        Ok(answer)
    }

    fn together(&mut self, allowed: &BTreeSet<String>) -> Result<bool, Unread> {
        let mut answer = self.one(allowed)?;
        while self.take("AND") {
            answer &= self.one(allowed)?;
        }
        Ok(answer)
    }

    fn one(&mut self, allowed: &BTreeSet<String>) -> Result<bool, Unread> {
        if self.take("(") {
            let answer = self.alternatives(allowed)?;
            return if self.take(")") { Ok(answer) } else { Err("(".to_string()) };
        }
        let mut name = self.words.pop().ok_or("the end")?;
        if [")", "OR", "AND", "WITH"].contains(&name.as_str()) {
            return Err(name);
        }
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.words.pop().ok_or("WITH")?);
        }
        Ok(allowed.contains(&name))
    }

    fn take(&mut self, word: &str) -> bool {
        self.words.pop_if(|next| next == word).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn satisfied(expression: &str) -> Result<bool, Unread> {
        let allowed = allowed("[licenses]\nallow = ['MIT', 'Zlib', 'Apache-2.0 WITH X']").unwrap();
        Expression::of(expression).any(&allowed)
    }

    #[test]
    fn expressions_are_satisfied_as_spdx_says() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("MIT/GPL-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("MIT AND Zlib", true),
            // AND binds more closely than OR.
            ("GPL-3.0 AND MIT OR Zlib", true),
            ("GPL-3.0 AND (MIT OR Zlib)", false),
            ("(MIT OR GPL-3.0) AND Zlib", true),
            // An exception is part of the name.
            ("Apache-2.0 WITH X", true),
            ("Apache-2.0", false),
            ("MIT WITH X", false),
        ] {
            assert_eq!(satisfied(expression), Ok(expected), "{expression}");
        }
        for broken in ["", "MIT OR", "(MIT", "MIT)", "MIT Zlib", "AND MIT", "MIT WITH"] {
            assert!(satisfied(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_foreign_source_and_a_missing_licence_are_told() {
        let allowed = BTreeSet::from(["MIT".to_string()]);
        let package = |license: Value, source: Value| {
            let package = serde_json::json!({
                "name": "a", "version": "1.0.0", "license": license, "source": source,
            });
            fault(&package, &allowed)
        };
        assert_eq!(package("MIT".into(), Value::Null), None);
        assert_eq!(package("MIT".into(), CRATES_IO.into()), None);
        let git = package("MIT".into(), "git+https://example.org/a".into()).unwrap();
        assert!(git.contains("a 1.0.0 comes from git+https://example.org/a"), "{git}");
        assert!(package(Value::Null, CRATES_IO.into()).unwrap().contains("names no licence"));
        assert!(package("GPL-3.0".into(), CRATES_IO.into()).unwrap().contains("`GPL-3.0`"));
    }
}
