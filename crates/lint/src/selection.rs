//! Which rules run: the default ones, with the pedantic ones if asked, or exactly those selected;
//! minus the ignored.

use crate::rules::{RULES, Rule, find};

/// A choice of rules.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    select: Vec<&'static str>,
    ignore: Vec<&'static str>,
    pedantic: bool,
}

impl Selection {
    /// The default rules, and the pedantic ones if asked.
    pub fn new(pedantic: bool) -> Selection {
        Selection { pedantic, ..Selection::default() }
    }

    /// Only these rules, by name or code; an error names the first that does not exist.
    pub fn select<S: AsRef<str>>(mut self, names: &[S]) -> Result<Selection, String> {
        self.select = known(names)?;
        Ok(self)
    }

    /// Without these rules.
    pub fn ignore<S: AsRef<str>>(mut self, names: &[S]) -> Result<Selection, String> {
        self.ignore = known(names)?;
        Ok(self)
    }

    pub(crate) fn rules(&self) -> Vec<&'static Rule> {
        let wanted = |rule: &&'static Rule| match self.select.is_empty() {
            true => self.pedantic || !rule.pedantic,
            false => self.select.contains(&rule.name),
        };
        RULES
            .iter()
            .copied()
            .filter(wanted)
            .filter(|rule| !self.ignore.contains(&rule.name))
            .collect()
    }
}

fn known<S: AsRef<str>>(names: &[S]) -> Result<Vec<&'static str>, String> {
    let split = names.iter().flat_map(|name| name.as_ref().split(','));
    let wanted = split.map(str::trim).filter(|name| !name.is_empty());
    wanted
        .map(|name| {
            find(name).map(|rule| rule.name).ok_or_else(|| format!("there is no rule `{name}`"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_chosen_by_name_and_code() {
        let names = |selection: Selection| {
            selection.rules().iter().map(|rule| rule.name).collect::<Vec<_>>()
        };
        assert!(!names(Selection::default()).contains(&"sync-in-loop"));
        assert!(names(Selection::new(true)).contains(&"sync-in-loop"));
        let some = Selection::default().select(&["PLM001,sync-in-loop"]).unwrap();
        assert_eq!(names(some), ["graph-kept", "sync-in-loop"]);
        assert!(
            !names(Selection::default().ignore(&["graph-kept"]).unwrap()).contains(&"graph-kept")
        );
        assert!(Selection::default().select(&["no-such"]).unwrap_err().contains("no-such"));
    }
}
