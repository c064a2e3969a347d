//! How many bytes an arena may reserve. A hard limit, the memory fraction and the default cap
//! refuse; the soft limit and the garbage threshold only ask for cached memory back. `allocate.rs`
//! acts on them.

use crate::configuration::Configuration;
use crate::platform::source::{Room, Source};

/// Which rule refused a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitKind {
    /// The limit that the program set.
    Limit,
    /// The share of all memory that the program set.
    MemoryFraction,
    /// The share of all memory that is left to others unless the program says otherwise.
    DefaultCap,
}

#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) hard_bytes: Option<usize>,
    pub(crate) soft_bytes: Option<usize>,
    /// 1 is no limit.
    pub(crate) fraction: f64,
    pub(crate) garbage_threshold: Option<f64>,
    /// All the memory of the source, as it was when the arena was opened.
    total_bytes: Option<usize>,
    cap_bytes: Option<usize>,
}

impl Limits {
    pub(crate) fn new(configuration: &Configuration, source: &dyn Source) -> Limits {
        let Room { total_bytes, .. } = source.room();
        let share = |total: usize| (total as f64 * configuration.default_cap) as usize;
        Limits {
            hard_bytes: configuration.limit_bytes,
            soft_bytes: configuration.soft_limit_bytes,
            fraction: configuration.memory_fraction,
            garbage_threshold: configuration.garbage_collection_threshold,
            total_bytes,
            cap_bytes: total_bytes.filter(|_| source.overcommits()).map(share),
        }
    }

    /// The lowest bound on reserved bytes, and which rule sets it. A limit that the program set,
    /// even a higher one, takes the place of the default cap.
    pub(crate) fn lowest(&self) -> Option<(usize, LimitKind)> {
        let fraction = (self.fraction < 1.0).then_some(self.fraction);
        let fraction_bytes =
            fraction.zip(self.total_bytes).map(|(share, total)| (share * total as f64) as usize);
        let chosen = self.hard_bytes.is_some() || fraction_bytes.is_some();
        let bounds = [
            self.hard_bytes.map(|bytes| (bytes, LimitKind::Limit)),
            fraction_bytes.map(|bytes| (bytes, LimitKind::MemoryFraction)),
            self.cap_bytes.filter(|_| !chosen).map(|bytes| (bytes, LimitKind::DefaultCap)),
        ];
        bounds.into_iter().flatten().min_by_key(|(bytes, _)| *bytes)
    }

    /// Whether `bytes` more may be reserved beside `reserved_bytes`.
    pub(crate) fn allow(&self, reserved_bytes: usize, bytes: usize) -> bool {
        self.lowest().is_none_or(|(limit, _)| reserved_bytes.saturating_add(bytes) <= limit)
    }

    /// How many cached bytes should go back before `bytes` more are reserved: what lies above the
    /// soft limit, or above the threshold's share of the limit (without a limit, of all memory).
    pub(crate) fn excess(&self, reserved_bytes: usize, bytes: usize) -> usize {
        let after = reserved_bytes.saturating_add(bytes);
        let above_soft = self.soft_bytes.map_or(0, |soft| after.saturating_sub(soft));
        let whole = self.lowest().map(|(limit, _)| limit).or(self.total_bytes);
        let threshold =
            self.garbage_threshold.zip(whole).map(|(share, whole)| (share * whole as f64) as usize);
        above_soft.max(threshold.map_or(0, |threshold| reserved_bytes.saturating_sub(threshold)))
    }
}
