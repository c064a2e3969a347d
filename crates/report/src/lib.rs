//! Reads memory snapshots, PyTorch's and Plimsoll's own, and says where the memory went. Pure functions of a file: no tensor
//! code, no GPU, no network.
//!
//! ```text
//! bytes -> read/ -> Snapshot (columns) -> analysis -> Report -> text, JSON, HTML, flame graph, trace
//! ```
//!
//! Start at [`Snapshot`] for what is in a file and at [`open`] for reading one.

#![forbid(unsafe_code)]

mod analysis;
mod events;
mod kind;
mod read;
mod segments;
mod snapshot;
mod stacks;
mod strings;

pub use analysis::{
    ALIVE, Amount, DeviceAnalysis, Lines, LiveSet, Lives, Peak, Phase, Phases, Reserved, SiteId,
    Sites, Steps, ToldBy, reserved_changes,
};
pub use events::{Action, Event, Events, Extras};
pub use kind::Kind;
pub use read::{Limits, open, read, read_with};
pub use segments::{Block, BlockState, Segment};
pub use snapshot::{Annotation, Snapshot, Trace, Writer};
pub use stacks::{Frame, FrameId, StackId, Stacks};
pub use strings::{Strings, TextId};
