//! Every knob of Plimsoll, typed, in one place. A configuration comes from a builder, a TOML file
//! or the environment variable `PLIMSOLL_CONF`; nothing else in the workspace reads settings.
//!
//! A key that is unknown, out of range or without effect given the others is an error that names
//! it: a knob that does nothing in silence is worse than none (`configuration/inert.rs`). The list
//! of keys with units and defaults is `configuration/keys.rs`; how text becomes values is
//! `configuration/text.rs`; which one the process uses is `configuration/process.rs`. What the
//! knobs do is written where they are used.

mod builder;
mod history_level;
mod inert;
mod keys;
mod process;
mod provenance;
mod text;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use plimsoll_core::{Error, Result};

pub use builder::ConfigurationBuilder;
pub use history_level::HistoryLevel;
pub use keys::Key;
pub use provenance::{GivenBy, Setting};

/// The environment variable: `key:value,key:value`, or the path of a file that ends in `.toml`.
pub const CONFIGURATION_VARIABLE: &str = "PLIMSOLL_CONF";

pub(crate) const MIB: usize = 1 << 20;

/// Power-of-two size classes from 1 MiB (slot 0) to 32 GiB and more (slot 15).
pub(crate) const ROUNDUP_SLOTS: usize = 16;

/// All settings, with where each came from.
///
/// ```
/// use plimsoll_memory::Configuration;
/// let given = Configuration::parse("max_split_size_mb:64,memory_limit:4GiB").unwrap();
/// assert_eq!(given.memory_limit_bytes(), Some(4 << 30));
///
/// let error = Configuration::parse("max_split_size:64").unwrap_err();
/// assert!(error.to_string().contains("max_split_size_mb"));
/// ```
#[derive(Clone, Debug)]
pub struct Configuration {
    pub(crate) caching: bool,
    pub(crate) large_segment_bytes: usize,
    /// `None` when blocks of any size may be split.
    pub(crate) max_split_bytes: Option<usize>,
    /// Follows `large_segment_bytes` unless it is given.
    pub(crate) max_non_split_rounding_bytes: usize,
    /// Per slot of `log2(size) - 20`; 0 and 1 are off.
    pub(crate) roundup_power2_divisions: [u32; ROUNDUP_SLOTS],
    /// For arenas whose source has addresses apart from its memory.
    pub(crate) expandable_segments: bool,
    /// Share of the limit, or of all memory where there is none; `None` is off.
    pub(crate) garbage_collection_threshold: Option<f64>,
    pub(crate) limit_bytes: Option<usize>,
    pub(crate) soft_limit_bytes: Option<usize>,
    pub(crate) memory_fraction: f64,
    /// Share of the memory of a source that overcommits, for when there is no limit.
    pub(crate) default_cap: f64,
    pub(crate) huge_pages: bool,
    pub(crate) pinned_limit_bytes: Option<usize>,
    pub(crate) history_level: HistoryLevel,
    pub(crate) history_entries: usize,
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) simd: Option<SimdLevel>,
    pub(crate) spill: bool,
    pub(crate) dry_upper_bounds: bool,
    pub(crate) chaos_seed: Option<u64>,
    pub(crate) chunk_size: Option<NonZeroUsize>,
    pub(crate) prefetch_buffers: usize,
    pub(crate) cleanup_every: Option<NonZeroUsize>,
    pub(crate) final_cleanup: bool,
    given_by: [GivenBy; keys::COUNT],
}

/// The most that kernels may use of the processor's vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimdLevel {
    /// What every processor of the architecture has.
    Scalar,
    /// Up to AVX2 and FMA.
    Avx2,
    /// Up to AVX-512.
    Avx512,
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration {
            caching: true,
            large_segment_bytes: 20 * MIB,
            max_split_bytes: None,
            max_non_split_rounding_bytes: 20 * MIB,
            roundup_power2_divisions: [0; ROUNDUP_SLOTS],
            expandable_segments: false,
            garbage_collection_threshold: None,
            limit_bytes: None,
            soft_limit_bytes: None,
            memory_fraction: 1.0,
            default_cap: 0.9,
            huge_pages: true,
            pinned_limit_bytes: None,
            history_level: HistoryLevel::Off,
            history_entries: 100_000,
            threads: None,
            simd: None,
            spill: false,
            dry_upper_bounds: false,
            chaos_seed: None,
            chunk_size: None,
            prefetch_buffers: 2,
            cleanup_every: None,
            final_cleanup: false,
            given_by: std::array::from_fn(|_| GivenBy::Default),
        }
    }
}

impl Configuration {
    /// A builder that starts from the defaults.
    pub fn builder() -> ConfigurationBuilder {
        ConfigurationBuilder::default()
    }

    /// Reads `key:value,key:value`, the form of `PLIMSOLL_CONF`.
    pub fn parse(text: &str) -> Result<Configuration> {
        let pairs = text::pairs(text)?;
        Configuration::from_pairs(
            pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())),
            &GivenBy::Text,
        )
    }

    /// Reads TOML text of flat `key = value` lines.
    ///
    /// ```
    /// use plimsoll_memory::Configuration;
    /// let given = Configuration::parse_toml("memory_limit = \"2 GiB\"\nthreads = 4").unwrap();
    /// assert_eq!(given.threads().map(|n| n.get()), Some(4));
    /// ```
    pub fn parse_toml(text: &str) -> Result<Configuration> {
        Configuration::from_toml(text, GivenBy::File(PathBuf::from("configuration text")))
    }

    /// Reads a TOML file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Configuration> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|cause| {
            Error::configuration(format!("cannot read the file `{}`", path.display()))
                .because(cause)
        })?;
        Configuration::from_toml(&text, GivenBy::File(path.to_path_buf()))
    }

    /// What `PLIMSOLL_CONF` says: settings, or the path of a `.toml` file; the defaults if it is
    /// not set. An error here is the user's typing mistake and should be shown, not ignored.
    pub fn from_environment() -> Result<Configuration> {
        match std::env::var(CONFIGURATION_VARIABLE) {
            Ok(value) if text::is_file_name(&value) => Configuration::from_file(value.trim()),
            Ok(value) => Configuration::parse(&value),
            Err(std::env::VarError::NotPresent) => Ok(Configuration::default()),
            Err(std::env::VarError::NotUnicode(_)) => Err(Error::configuration(format!(
                "{CONFIGURATION_VARIABLE} is not valid UTF-8; write `key:value,key:value`"
            ))),
        }
    }

    fn from_toml(text: &str, given_by: GivenBy) -> Result<Configuration> {
        let pairs = text::toml_pairs(text)?;
        Configuration::from_pairs(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())), &given_by)
    }

    fn from_pairs<'a>(
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
        given_by: &GivenBy,
    ) -> Result<Configuration> {
        let mut configuration = Configuration::default();
        for (name, value) in pairs {
            configuration.set(name, value, given_by.clone())?;
        }
        configuration.checked()
    }

    /// Sets one key from text; what it means together with the others is checked by `checked`.
    fn set(&mut self, name: &str, value: &str, given_by: GivenBy) -> Result<()> {
        let at = keys::find(name)?;
        if self.given_by[at] != GivenBy::Default {
            return Err(Error::configuration(format!("`{name}` is given twice; keep one of them")));
        }
        let key = &keys::KEYS[at];
        (key.set)(self, value.trim()).map_err(|expected| {
            Error::configuration(format!("`{name}` cannot be `{value}`: {expected}"))
        })?;
        self.given_by[at] = given_by;
        Ok(())
    }

    /// All keys that exist, with units, defaults and what they do.
    pub fn keys() -> &'static [Key] {
        &keys::KEYS
    }

    /// The same settings with caching on or off.
    #[must_use]
    pub fn with_caching(mut self, caching: bool) -> Configuration {
        self.caching = caching;
        self.given_by[keys::position("caching")] = GivenBy::Builder;
        self
    }

    /// The same settings with another hard limit.
    #[must_use]
    pub fn with_limit(mut self, bytes: Option<usize>) -> Configuration {
        self.limit_bytes = bytes;
        self.given_by[keys::position("memory_limit")] = GivenBy::Builder;
        self
    }

    /// Whether freed blocks are kept for reuse.
    pub fn caching(&self) -> bool {
        self.caching
    }

    /// The same settings with expandable segments on or off.
    ///
    /// ```
    /// use plimsoll_memory::Configuration;
    /// let given = Configuration::default().with_expandable_segments(true);
    /// assert_eq!(given.to_text(), "expandable_segments:true");
    /// ```
    #[must_use]
    pub fn with_expandable_segments(mut self, on: bool) -> Configuration {
        self.expandable_segments = on;
        self.given_by[keys::position("expandable_segments")] = GivenBy::Builder;
        self
    }

    /// The same settings with expandable segments on every device that can have them, if nothing
    /// was said of them: a program's choice for its users, like that of `plimsoll train`. It is no
    /// error where a device has none, unlike a setting that was given. Limits to what is split say
    /// that segments are to stay as they are.
    ///
    /// ```
    /// use plimsoll_memory::Configuration;
    /// let chosen = Configuration::default().preferring_expandable_segments();
    /// assert!(chosen.expandable_segments() && !chosen.requires_expandable_segments());
    /// let refused = Configuration::parse("expandable_segments:False")?;
    /// assert!(!refused.preferring_expandable_segments().expandable_segments());
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    #[must_use]
    pub fn preferring_expandable_segments(mut self) -> Configuration {
        let said = ["expandable_segments", "max_split_size_mb", "max_non_split_rounding_mb"];
        // Without caching there are no segments to grow.
        if self.caching && !said.into_iter().any(|key| self.is_given(key)) {
            self.given_by[keys::position("expandable_segments")] = GivenBy::Program;
            self.expandable_segments = true;
        }
        self
    }

    /// Whether segments of devices grow and shrink by pages, where they can.
    pub fn expandable_segments(&self) -> bool {
        self.expandable_segments
    }

    /// Whether a device that cannot have expandable segments is an error.
    pub fn requires_expandable_segments(&self) -> bool {
        let given_by = &self.given_by[keys::position("expandable_segments")];
        self.expandable_segments && *given_by != GivenBy::Program
    }

    /// The hard limit on reserved bytes, if one is set.
    pub fn memory_limit_bytes(&self) -> Option<usize> {
        self.limit_bytes
    }

    /// The soft limit on reserved bytes, if one is set.
    pub fn memory_soft_limit_bytes(&self) -> Option<usize> {
        self.soft_limit_bytes
    }

    /// The share of the device's memory that may be reserved; 1 is no limit.
    pub fn memory_fraction(&self) -> f64 {
        self.memory_fraction
    }

    /// Whether host segments ask for transparent huge pages.
    pub fn huge_pages(&self) -> bool {
        self.huge_pages
    }

    /// The most bytes of pinned host memory, if a cap is set.
    pub fn pinned_limit_bytes(&self) -> Option<usize> {
        self.pinned_limit_bytes
    }

    /// What the history records from the start.
    pub fn history(&self) -> HistoryLevel {
        self.history_level
    }

    /// How many history entries are kept.
    pub fn history_entries(&self) -> usize {
        self.history_entries
    }

    /// Threads for kernels; `None` means one for each physical core that the process may use.
    pub fn threads(&self) -> Option<NonZeroUsize> {
        self.threads
    }

    /// The most that kernels may use of the processor's vector instructions; `None` is all it has.
    pub fn simd(&self) -> Option<SimdLevel> {
        self.simd
    }

    /// Whether storages may be spilled to slower memory under a limit.
    pub fn spill(&self) -> bool {
        self.spill
    }

    /// Whether the dry run takes an upper bound where a size depends on data.
    pub fn dry_upper_bounds(&self) -> bool {
        self.dry_upper_bounds
    }

    /// For tests: the seed by which memory of storages that nobody uses is taken away between
    /// operations.
    pub fn chaos_seed(&self) -> Option<u64> {
        self.chaos_seed
    }

    /// Rows that `process_in_chunks` takes at a time; `None` is all of them.
    pub fn chunk_size(&self) -> Option<NonZeroUsize> {
        self.chunk_size
    }

    /// How many batches a prefetcher has on a device at once, from 1 to 3.
    pub fn prefetch_buffers(&self) -> usize {
        self.prefetch_buffers
    }

    /// After how many chunks or batches of an evaluation cached memory is given back; `None` is
    /// never.
    pub fn cleanup_every(&self) -> Option<NonZeroUsize> {
        self.cleanup_every
    }

    /// Whether cached memory is given back at the end of an evaluation.
    pub fn final_cleanup(&self) -> bool {
        self.final_cleanup
    }
}

#[cfg(test)]
mod tests;
