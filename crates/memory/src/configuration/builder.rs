//! Settings from code: the same keys as typed calls. `build` checks them exactly as text is
//! checked.

use std::num::NonZeroUsize;

use plimsoll_core::{Error, Result};

use super::{Configuration, GivenBy, keys};
use crate::configuration::HistoryLevel;

/// Collects settings; errors wait for [`ConfigurationBuilder::build`].
///
/// ```
/// use plimsoll_memory::{Configuration, HistoryLevel};
/// let configuration = Configuration::builder()
///     .memory_limit_bytes(1 << 30)
///     .history(HistoryLevel::All)
///     .history_entries(5_000)
///     .build()
///     .unwrap();
/// assert_eq!(configuration.memory_limit_bytes(), Some(1 << 30));
///
/// let inert = Configuration::builder().history_entries(5_000).build().unwrap_err();
/// assert!(inert.is_configuration());
/// ```
#[derive(Debug, Default)]
pub struct ConfigurationBuilder {
    configuration: Configuration,
    refused: Option<Error>,
}

impl ConfigurationBuilder {
    /// Sets any key by its name from text, as `PLIMSOLL_CONF` would.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl ToString) -> ConfigurationBuilder {
        // The last call on a key wins in code; only text refuses a repetition.
        if let Ok(at) = keys::find(key) {
            self.configuration.given_by[at] = GivenBy::Default;
        }
        let outcome = self.configuration.set(key, &value.to_string(), GivenBy::Builder);
        self.refused = self.refused.or(outcome.err());
        self
    }

    /// Whether freed blocks are kept for reuse; `false` reserves every allocation by itself.
    #[must_use]
    pub fn caching(self, on: bool) -> ConfigurationBuilder {
        self.set("caching", on)
    }

    /// The hard limit on reserved bytes.
    #[must_use]
    pub fn memory_limit_bytes(self, bytes: usize) -> ConfigurationBuilder {
        self.set("memory_limit", bytes)
    }

    /// Past this many reserved bytes, cached memory is given back before more is reserved.
    #[must_use]
    pub fn memory_soft_limit_bytes(self, bytes: usize) -> ConfigurationBuilder {
        self.set("memory_soft_limit", bytes)
    }

    /// Share of the device's memory that may be reserved.
    #[must_use]
    pub fn memory_fraction(self, share: f64) -> ConfigurationBuilder {
        self.set("per_process_memory_fraction", share)
    }

    /// Cached blocks of this many MiB and more are not split.
    #[must_use]
    pub fn max_split_size_mb(self, mebibytes: usize) -> ConfigurationBuilder {
        self.set("max_split_size_mb", mebibytes)
    }

    /// Whether segments of devices grow and shrink by pages.
    #[must_use]
    pub fn expandable_segments(self, on: bool) -> ConfigurationBuilder {
        self.set("expandable_segments", on)
    }

    /// Share of the limit past which the oldest cached blocks are released.
    #[must_use]
    pub fn garbage_collection_threshold(self, share: f64) -> ConfigurationBuilder {
        self.set("garbage_collection_threshold", share)
    }

    /// What the history records from the start.
    #[must_use]
    pub fn history(self, level: HistoryLevel) -> ConfigurationBuilder {
        self.set("history", level)
    }

    /// How many history entries are kept.
    #[must_use]
    pub fn history_entries(self, entries: usize) -> ConfigurationBuilder {
        self.set("history_entries", entries)
    }

    /// Threads for kernels.
    #[must_use]
    pub fn threads(self, threads: NonZeroUsize) -> ConfigurationBuilder {
        self.set("threads", threads)
    }

    /// Whether storages may be spilled to slower memory under a limit.
    #[must_use]
    pub fn spill(self, on: bool) -> ConfigurationBuilder {
        self.set("spill", on)
    }

    /// Rows that `process_in_chunks` takes at a time where the call does not say.
    #[must_use]
    pub fn chunk_size(self, rows: NonZeroUsize) -> ConfigurationBuilder {
        self.set("chunk_size", rows)
    }

    /// Batches that are on a device at once, from 1 to 3.
    #[must_use]
    pub fn prefetch_buffers(self, buffers: usize) -> ConfigurationBuilder {
        self.set("prefetch_buffers", buffers)
    }

    /// After how many chunks or batches of an evaluation cached memory is given back.
    #[must_use]
    pub fn cleanup_every(self, every: NonZeroUsize) -> ConfigurationBuilder {
        self.set("cleanup_every", every)
    }

    /// Whether cached memory is given back at the end of an evaluation.
    #[must_use]
    pub fn final_cleanup(self, on: bool) -> ConfigurationBuilder {
        self.set("final_cleanup", on)
    }

    /// The configuration, or the first setting that cannot be used.
    pub fn build(self) -> Result<Configuration> {
        match self.refused {
            Some(error) => Err(error),
            None => self.configuration.checked(),
        }
    }
}
