//! What can be asked of a snapshot, one question a file. `DeviceAnalysis` answers the ones that
//! every report needs; findings are in `findings/`.

pub(crate) mod code;
mod growth;
mod held;
mod kinds;
mod line_loops;
mod live_set;
mod lives;
mod periods;
mod phases;
mod placement;
mod reserved;
mod sites;
mod steps;
mod timeline;

pub use growth::{Grown, Growth, growth};
pub use held::Held;
pub use live_set::{Amount, LiveSet};
pub use lives::{ALIVE, Lives, Peak};
pub use phases::{Phase, Phases};
pub use placement::{PlacedSegment, placement};
pub use reserved::{Reserved, changes as reserved_changes};
pub use sites::{SiteId, Sites};
pub use steps::{CountedBy, Steps};
pub use timeline::{Change, changes, highest_by_bucket};

use crate::snapshot::Snapshot;

/// What is true of the whole snapshot: sites and phases of its stacks.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// The site of each stack.
    pub sites: Sites,
    /// The phase of each stack.
    pub phases: Phases,
}

impl Lines {
    /// Reads every stack once.
    pub fn of(snapshot: &Snapshot) -> Lines {
        Lines { sites: Sites::of(snapshot), phases: Phases::of(snapshot) }
    }
}

/// One device: its allocations' lives, its steps, its reserved bytes and its peak.
///
/// ```
/// use plimsoll_report::{DeviceAnalysis, Lines, read};
/// let snapshot = read(br#"{"segments": [], "device_traces": [[
///     {"action": "alloc", "addr": 4096, "size": 100, "stream": 0},
///     {"action": "alloc", "addr": 8192, "size": 50, "stream": 0},
///     {"action": "free_completed", "addr": 4096, "size": 100, "stream": 0}]]}"#)?;
/// let device = DeviceAnalysis::of(&snapshot, &Lines::of(&snapshot), 0);
/// assert_eq!(device.lives.peak.bytes, 150);
/// assert_eq!(device.lives.bytes_at(3), 50);
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeviceAnalysis {
    /// The device's index; -1 is pinned host memory.
    pub device: i32,
    /// Every allocation.
    pub lives: Lives,
    /// Bytes from the driver.
    pub reserved: Reserved,
    /// Ways to cut the trace into steps, the best first; none if nothing repeats.
    pub steps: Vec<Steps>,
    /// What is alive at the peak.
    pub at_peak: LiveSet,
    /// Whether some kinds were inferred.
    pub kinds_inferred: bool,
    /// Free bytes at the end that live blocks keep from going back.
    pub held: Held,
}

impl DeviceAnalysis {
    /// Analyses one device.
    pub fn of(snapshot: &Snapshot, lines: &Lines, device: i32) -> DeviceAnalysis {
        let mut lives = Lives::of(snapshot, device);
        let steps = steps::find(snapshot, device, &lives, &lines.phases);
        // Plimsoll's files say kinds; what they leave open is not guessed at.
        let kinds_inferred = !snapshot.writer.is_plimsoll
            && kinds::infer(snapshot, &mut lives, &lines.phases, steps.first());
        let at_peak = LiveSet::at(&lives, &lines.sites, lives.peak.position);
        let reserved = Reserved::of(snapshot, device);
        let held = Held::of(snapshot, device, &lines.sites);
        DeviceAnalysis { device, lives, reserved, steps, at_peak, kinds_inferred, held }
    }
}
