//! Ratchets: how often a rule that came late is still broken, by part of the tree, in
//! `xtask/ratchets.toml`. More than written there breaks the rule; less is told, so that the number
//! is lowered. It is never raised.

use std::collections::BTreeMap;

use crate::run;

/// The allowed numbers: table, part of the tree, how many.
pub(crate) struct Ratchets(toml::Table);

impl Ratchets {
    pub(crate) fn read() -> Result<Ratchets, String> {
        let path = "xtask/ratchets.toml";
        let text = std::fs::read_to_string(run::root().join(path));
        let text = text.map_err(|e| format!("{path}: {e}"))?;
        text.parse().map(Ratchets).map_err(|e| format!("{path}: {e}"))
    }

    fn most(&self, table: &str, part: &str) -> usize {
        let number = self.0.get(table).and_then(|table| table.get(part));
        number.and_then(toml::Value::as_integer).and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
    }

    /// Compares what was found with what is allowed; the places are named where there are too many.
    pub(crate) fn check(
        &self,
        table: &str,
        found: &BTreeMap<String, Vec<String>>,
        broken: &mut Vec<String>,
    ) {
        for (part, places) in found {
            let most = self.most(table, part);
            if places.len() > most {
                let count = places.len();
                let places = places.join("\n  ");
                broken.push(format!(
                    "{part}: {count} {table}, and {most} are the most allowed:\n  {places}"
                ));
            } else if places.len() < most {
                println!("{part}: {} {table} of {most}; lower the number", places.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_allowed_breaks_and_names_the_places() {
        let ratchets = Ratchets("[long]\n\"crates/a\" = 1".parse().unwrap());
        let found = |part: &str, places: &[&str]| {
            BTreeMap::from([(part.to_string(), places.iter().map(|p| p.to_string()).collect())])
        };
        let mut broken = Vec::new();
        ratchets.check("long", &found("crates/a", &["a.rs:1"]), &mut broken);
        ratchets.check("long", &found("crates/a", &[]), &mut broken);
        assert!(broken.is_empty(), "{broken:?}");
        ratchets.check("long", &found("crates/a", &["a.rs:1", "a.rs:7"]), &mut broken);
        assert!(broken[0].contains("2 long, and 1 are") && broken[0].contains("a.rs:7"));
        // A part that nobody wrote down has none.
        ratchets.check("long", &found("crates/b", &["b.rs:3"]), &mut broken);
        assert_eq!(broken.len(), 2);
    }
}
