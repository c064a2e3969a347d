//! A snapshot as read: plain columns and tables, no analysis. Readers are in `read/`, writers in
//! `write/`, and what can be asked of one in `analysis/`.

use std::ops::Range;

use crate::events::Events;
use crate::segments::{Block, Segment};
use crate::stacks::{StackId, Stacks};
use crate::strings::{Strings, TextId};

/// Everything that a snapshot file says.
///
/// ```
/// let json = br#"{"segments": [], "device_traces": [[{"action": "alloc", "addr": 4096,
///     "size": 100, "stream": 0, "time_us": 7, "frames": []}]]}"#;
/// let snapshot = plimsoll_report::read(json)?;
/// assert_eq!(snapshot.events.size, [100]);
/// assert_eq!(snapshot.traces[0].rows, 0..1);
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Every text.
    pub strings: Strings,
    /// Every frame and stack.
    pub stacks: Stacks,
    /// Every segment, device by device in the file's order.
    pub segments: Vec<Segment>,
    /// Every block; segments hold ranges of this.
    pub blocks: Vec<Block>,
    /// Every event.
    pub events: Events,
    /// One trace a device; a device without events has an empty one.
    pub traces: Vec<Trace>,
    /// Named spans that the program or its libraries marked.
    pub annotations: Vec<Annotation>,
    /// The allocator's settings, flattened, in the file's order.
    pub settings: Vec<(String, String)>,
    /// Who wrote it, and how.
    pub writer: Writer,
}

/// The events of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The device's index; -1 is pinned host memory.
    pub device: i32,
    /// Its rows of [`Snapshot::events`], oldest first.
    pub rows: Range<usize>,
}

/// A start or an end of a named span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The span's name.
    pub name: TextId,
    /// Whether this is its start.
    pub is_start: bool,
    /// The device's index.
    pub device: i32,
    /// Microseconds since the epoch.
    pub time_us: u64,
}

/// Who wrote a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    /// Whether Plimsoll did; then kinds are facts and not inferred.
    pub is_plimsoll: bool,
    /// Names of the devices, where the file says them.
    pub device_names: Vec<String>,
    /// How it was written, as in `pickle 4` or `json, gzip`.
    pub format: String,
}

impl Snapshot {
    /// The blocks of a segment.
    pub fn blocks_of(&self, segment: &Segment) -> &[Block] {
        self.blocks.get(segment.blocks.clone()).unwrap_or_default()
    }

    /// Every device with a segment or a trace, in order; pinned host memory (-1) comes last.
    pub fn devices(&self) -> Vec<i32> {
        let mut devices: Vec<i32> = self.segments.iter().map(|segment| segment.device).collect();
        devices.extend(self.traces.iter().filter(|t| !t.rows.is_empty()).map(|t| t.device));
        devices.sort_unstable_by_key(|device| (*device < 0, *device));
        devices.dedup();
        devices
    }

    /// The rows of a device's events.
    pub fn rows_of(&self, device: i32) -> Range<usize> {
        self.traces.iter().find(|t| t.device == device).map_or(0..0, |t| t.rows.clone())
    }

    /// A device's name: as the file says it, or as PyTorch would.
    pub fn device_name(&self, device: i32) -> String {
        let said = usize::try_from(device).ok().and_then(|at| self.writer.device_names.get(at));
        match said {
            Some(name) => name.clone(),
            None if device < 0 => "pinned host".to_string(),
            None => format!("cuda:{device}"),
        }
    }

    /// The frames of a stack as text, innermost first: function, file and line.
    pub fn frames_of(&self, stack: StackId) -> impl Iterator<Item = (&str, &str, u32)> + '_ {
        self.stacks
            .frames(stack)
            .map(|f| (self.strings.get(f.function), self.strings.get(f.file), f.line))
    }
}
