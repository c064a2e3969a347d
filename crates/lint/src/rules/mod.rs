//! The rules: one file each, listed once here. A rule reads the model of a file and reports through
//! `Check`; it fires only on evidence that a reader would accept, and its message says what it
//! relied on.

mod allocation_in_loop;
mod batchnorm_or_dropout_without_eval;
mod blocking_copy_from_pinned;
mod cache_on_method;
mod checkpoint_use_reentrant;
mod closure_keeps_self;
mod create_then_move;
mod data_parallel_device;
mod delete_before_backward;
mod deprecated_amp;
mod device_mismatch;
mod empty_cache_in_loop;
mod eval_without_no_grad;
mod evidence;
mod features_on_device;
mod gc_collect_in_loop;
mod generator_not_detached;
mod graph_kept;
mod hidden_state_not_detached;
mod hooks_in_loop;
mod inplace_on_grad_leaf;
mod inplace_on_saved;
mod list_dataset_workers;
mod loss_outside_autocast;
mod missing_zero_grad;
mod no_pin_memory;
mod non_contiguous_in_loop;
mod optimizer_in_loop;
mod reentrant_checkpoint;
mod retain_graph_in_loop;
mod retry_inside_except;
mod round_trip_to_host;
mod scaler_misuse;
mod set_to_none_default;
mod slice_keeps_storage;
mod sync_in_loop;
mod transfer_in_loop;
mod view_on_non_contiguous;

use ruff_text_size::{Ranged, TextRange};
use rustc_hash::FxHashSet;

use crate::finding::{Edit, Finding};
use crate::model::File;
use crate::source::Source;

/// A rule, as users see it.
#[derive(Debug)]
pub struct Rule {
    /// Its name, part of the interface.
    pub name: &'static str,
    /// Its code, which never changes.
    pub code: &'static str,
    /// What it finds, in one line.
    pub summary: &'static str,
    /// Runs only with `--pedantic` or when selected by name.
    pub pedantic: bool,
    /// Its page in the documentation.
    pub page: &'static str,
    check: fn(&mut Check<'_, '_>),
}

/// Every rule, in the order of their codes.
pub static RULES: &[&Rule] = &[
    &graph_kept::RULE,
    &missing_zero_grad::RULE,
    &hidden_state_not_detached::RULE,
    &eval_without_no_grad::RULE,
    &inplace_on_grad_leaf::RULE,
    &inplace_on_saved::RULE,
    &slice_keeps_storage::RULE,
    &closure_keeps_self::RULE,
    &loss_outside_autocast::RULE,
    &scaler_misuse::RULE,
    &empty_cache_in_loop::RULE,
    &gc_collect_in_loop::RULE,
    &allocation_in_loop::RULE,
    &create_then_move::RULE,
    &round_trip_to_host::RULE,
    &view_on_non_contiguous::RULE,
    &no_pin_memory::RULE,
    &data_parallel_device::RULE,
    &device_mismatch::RULE,
    &checkpoint_use_reentrant::RULE,
    &retain_graph_in_loop::RULE,
    &features_on_device::RULE,
    &hooks_in_loop::RULE,
    &cache_on_method::RULE,
    &list_dataset_workers::RULE,
    &batchnorm_or_dropout_without_eval::RULE,
    &delete_before_backward::RULE,
    &sync_in_loop::RULE,
    &transfer_in_loop::RULE,
    &non_contiguous_in_loop::RULE,
    &blocking_copy_from_pinned::RULE,
    &deprecated_amp::RULE,
    &reentrant_checkpoint::RULE,
    &set_to_none_default::RULE,
    &retry_inside_except::RULE,
    &optimizer_in_loop::RULE,
    &generator_not_detached::RULE,
];

/// The rule with this name or code.
///
/// ```
/// assert_eq!(plimsoll_lint::find("PLM001").unwrap().name, "graph-kept");
/// ```
pub fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.name == name || rule.code.eq_ignore_ascii_case(name))
}

/// What a rule sees and where it reports.
#[derive(Debug)]
pub(crate) struct Check<'a, 's> {
    pub(crate) file: &'s File<'a>,
    pub(crate) source: &'s Source,
    rule: &'static Rule,
    findings: Vec<Finding>,
    /// The places of the findings: one rule says one thing about a place.
    places: FxHashSet<TextRange>,
}

impl<'a, 's> Check<'a, 's> {
    pub(crate) fn report(&mut self, range: TextRange, message: String, advice: impl Into<String>) {
        self.report_fix(range, message, advice, Vec::new());
    }

    pub(crate) fn report_fix(
        &mut self,
        range: TextRange,
        message: String,
        advice: impl Into<String>,
        edits: Vec<Edit>,
    ) {
        if !self.places.insert(range) {
            return;
        }
        let (start, end) = (self.source.position(range.start()), self.source.position(range.end()));
        self.findings.push(Finding {
            rule: self.rule.name,
            code: self.rule.code,
            path: self.source.path().to_string(),
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            cell: start.cell,
            message,
            advice: advice.into(),
            edits,
            range,
        });
    }

    /// The line of something, for messages.
    pub(crate) fn line(&self, place: &impl Ranged) -> u32 {
        self.source.position(place.start()).line
    }

    /// The text of something, for messages.
    pub(crate) fn quote(&self, place: &impl Ranged) -> String {
        self.source.quote(place.range()).into_owned()
    }
}

/// Everything that the rules find, in source order.
pub(crate) fn run(source: &Source, file: &File<'_>, rules: &[&'static Rule]) -> Vec<Finding> {
    let mut all = Vec::new();
    for rule in rules.iter().copied() {
        let mut check =
            Check { file, source, rule, findings: Vec::new(), places: FxHashSet::default() };
        (rule.check)(&mut check);
        all.append(&mut check.findings);
    }
    all.sort_by_key(|finding| (finding.range.start(), finding.code));
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_and_codes_are_unique_and_every_page_is_about_its_rule() {
        let names: HashSet<_> = RULES.iter().map(|rule| rule.name).collect();
        let codes: HashSet<_> = RULES.iter().map(|rule| rule.code).collect();
        assert_eq!((names.len(), codes.len()), (RULES.len(), RULES.len()));
        for rule in RULES {
            let head = format!("# {} ({})\n", rule.name, rule.code);
            assert!(rule.page.starts_with(&head), "{}", rule.name);
            for part in
                ["## What happens to memory", "## Wrong", "## Right", "## When to ignore it"]
            {
                assert!(rule.page.contains(part), "{} lacks `{part}`", rule.name);
            }
        }
    }
}
