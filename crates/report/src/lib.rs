//! Reads memory snapshots, PyTorch's and Plimsoll's own, and says where the memory went. Pure
//! functions of a file: no tensor code, no GPU, no network.
//!
//! ```text
//! bytes -> read/ -> Snapshot (columns) -> analysis -> Report -> text, JSON, HTML, flame, trace
//! ```
//!
//! Start at [`Snapshot`] for what is in a file and at [`open`] for reading one.

#![forbid(unsafe_code)]

mod analysis;
mod diff;
mod events;
mod findings;
mod kind;
mod moment;
mod read;
mod render;
mod report;
mod segments;
mod snapshot;
mod stacks;
mod strings;
pub mod view;
mod write;

pub use analysis::{
    ALIVE, Amount, Change, CountedBy, DeviceAnalysis, Grown, Growth, Held, Lines, LiveSet, Lives,
    Peak, Phase, Phases, PlacedSegment, Reserved, SiteId, Sites, Steps, changes, growth,
    highest_by_bucket, placement, reserved_changes,
};
pub use diff::{Diff, KindChange, SiteChange};
pub use events::{Action, Events, Extras, TraceEvent};
pub use findings::{Finding, FindingKind, findings};
pub use kind::Kind;
pub use moment::Moment;
pub use read::{Limits, open, read, read_with};
pub use render::{flame::flame, html::html, json::json, text::text, trace::trace};
pub use report::Report;
pub use segments::{Block, BlockState, Segment};
pub use snapshot::{Annotation, Snapshot, Trace, Writer};
pub use stacks::{Frame, FrameId, StackId, Stacks};
pub use strings::{Strings, TextId};
pub use write::{write_json, write_pickle};

/// The end of a path, enough to know the file by: its folder and its name.
pub(crate) fn short_path(path: &str) -> &str {
    let mut parts = path.rmatch_indices('/').map(|(at, _)| at + 1);
    match (parts.next(), parts.next()) {
        (Some(_), Some(folder)) => &path[folder..],
        _ => path,
    }
}
