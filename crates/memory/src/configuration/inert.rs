//! Settings that contradict each other, and keys that would change nothing: both are errors. A knob
//! that does nothing in silence costs an afternoon (PyTorch's `garbage_collection_threshold`
//! without a memory fraction is one).

use plimsoll_core::{Error, Result};

use super::{Configuration, GivenBy, MIB, keys};
use crate::configuration::HistoryLevel;

impl Configuration {
    /// Refuses contradictions and keys that would have no effect.
    pub(super) fn checked(mut self) -> Result<Configuration> {
        if !self.is_given("max_non_split_rounding_mb") {
            self.max_non_split_rounding_bytes = self.large_segment_bytes;
        }
        match self.contradiction().or_else(|| self.inert()) {
            Some(message) => Err(Error::configuration(message)),
            None => Ok(self),
        }
    }

    pub(super) fn is_given(&self, name: &str) -> bool {
        self.given_by[keys::position(name)] != GivenBy::Default
    }

    fn contradiction(&self) -> Option<String> {
        if let Some(max_split) = self.max_split_bytes
            && max_split < self.large_segment_bytes
        {
            return Some(format!(
                "`max_split_size_mb` ({}) must be at least `large_segment_size_mb` ({}): otherwise a \
                 fresh segment could not be split",
                max_split / MIB,
                self.large_segment_bytes / MIB
            ));
        }
        None
    }

    /// The first key that was given and changes nothing, with the reason and the remedy.
    fn inert(&self) -> Option<String> {
        let given = |name: &str| self.is_given(name);
        let inert = |name: &str, why: &str| Some(format!("`{name}` has no effect: {why}"));
        if !self.caching {
            for name in keys::NEED_CACHING {
                if given(name) {
                    let why =
                        "`caching` is false, so no block of the common pool is cached or split";
                    return inert(name, why);
                }
            }
        }
        if given("max_non_split_rounding_mb") && self.max_split_bytes.is_none() {
            return inert("max_non_split_rounding_mb", "it needs `max_split_size_mb`");
        }
        if given("roundup_power2_divisions")
            && self.roundup_power2_divisions.iter().all(|&d| d <= 1)
        {
            return inert(
                "roundup_power2_divisions",
                "1 division changes nothing; use 2, 4, 8, ...",
            );
        }
        if let (Some(soft), Some(hard)) = (self.soft_limit_bytes, self.limit_bytes)
            && soft >= hard
        {
            return inert("memory_soft_limit", "`memory_limit` is reached first; make it smaller");
        }
        if given("default_cap_fraction") && self.limit_bytes.is_some() {
            return inert("default_cap_fraction", "`memory_limit` replaces the default cap");
        }
        if given("default_cap_fraction") && self.memory_fraction < 1.0 {
            return inert("default_cap_fraction", "`per_process_memory_fraction` replaces it");
        }
        if given("history_entries") && self.history_level < HistoryLevel::Alloc {
            return inert("history_entries", "`history` is below `alloc`, so no entry is kept");
        }
        None
    }
}
