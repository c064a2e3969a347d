//! What went wrong over thousands of instances, told so that a person can read it: one line a row
//! of the case list, with the first instance that failed and how many did.

use std::collections::BTreeMap;

use crate::cases::Instance;

/// Failures by row.
#[derive(Debug, Default)]
pub struct Failures {
    rows: BTreeMap<(&'static str, String), (usize, String)>,
    checked: usize,
}

impl Failures {
    /// Notes that `instance` was checked, and what is wrong with it, if anything.
    pub fn note(&mut self, instance: &Instance<'_>, wrong: Option<String>) {
        self.checked += 1;
        if let Some(how) = wrong {
            let row = (instance.case.op, instance.case.torch.clone());
            let first = || (0, format!("{}: {how}", instance.name()));
            self.rows.entry(row).or_insert_with(first).0 += 1;
        }
    }

    /// Panics if anything failed, or if fewer than `at_least` instances were checked.
    pub fn assert_none(&self, at_least: usize) {
        let failed: usize = self.rows.values().map(|(count, _)| count).sum();
        let lines: Vec<String> =
            self.rows.values().map(|(count, first)| format!("{count} x {first}")).collect();
        let checked = self.checked;
        assert!(failed == 0, "{failed} of {checked} instances fail:\n{}", lines.join("\n"));
        assert!(checked >= at_least, "only {checked} instances were checked");
    }
}
