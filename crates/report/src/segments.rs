//! Segments and the blocks that tile them, as they were when the snapshot was taken.

use std::ops::Range;

use crate::kind::Kind;
use crate::stacks::StackId;
use crate::strings::TextId;

/// A range of memory that came from the driver at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// The device's index; -1 is pinned host memory.
    pub device: i32,
    /// Where it starts.
    pub address: u64,
    /// Its bytes.
    pub total_bytes: u64,
    /// The stream as the file names it.
    pub stream: u64,
    /// `small` or `large`; empty where the file does not say.
    pub pool: TextId,
    /// The private pool; (0, 0) is the default one.
    pub pool_id: (i64, i64),
    /// Whether pages can be mapped into it and out of it.
    pub is_expandable: bool,
    /// Who made it necessary.
    pub stack: StackId,
    /// Its blocks, a range of [`Snapshot::blocks`](crate::Snapshot::blocks).
    pub blocks: Range<usize>,
}

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// A tensor's.
    Allocated,
    /// Given back while another stream may still use it.
    PendingFree,
    /// Free.
    Inactive,
}

impl BlockState {
    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            BlockState::Allocated => "active_allocated",
            BlockState::PendingFree => "active_pending_free",
            BlockState::Inactive => "inactive",
        }
    }
}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Where it starts.
    pub address: u64,
    /// Its bytes, after rounding.
    pub bytes: u64,
    /// What was asked for; of a free block, by its last owner.
    pub requested_bytes: u64,
    /// What it is doing.
    pub state: BlockState,
    /// Who asked.
    pub stack: StackId,
    /// The kind, where the file says it.
    pub kind: Kind,
    /// The training step it was made in, where the file says it.
    pub step: Option<u64>,
}

impl Block {
    /// Whether it is not free.
    pub fn is_active(&self) -> bool {
        self.state != BlockState::Inactive
    }
}
