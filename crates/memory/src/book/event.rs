//! A change in the book. Whatever reserves, allocates, frees or releases makes one of these, and
//! the ledger applies it (`ledger.rs`); nothing else changes a counter.

use crate::book::pool::Pool;
use crate::book::stamp::Stamp;
use crate::origin::intern::OriginId;
use crate::origin::kind::Kind;
use crate::platform::source::StreamId;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A segment came from the source.
    SegmentReserved,
    /// A segment went back to the source.
    SegmentReleased,
    /// Pages of an expandable segment got memory from the source.
    SegmentMapped,
    /// Memory of pages of an expandable segment went back to the source.
    SegmentUnmapped,
    /// A block was handed out.
    Allocated,
    /// A block's owner let go of it. Other streams may still use it.
    FreeRequested,
    /// Nothing uses the block any more; it can be handed out again.
    FreeCompleted,
    /// A live block changed its kind from this one.
    KindChanged {
        /// The kind before; the event carries the new one.
        from: Kind,
    },
    /// A live block came to belong to another origin; the event's stamp has the one before.
    OriginChanged,
    /// Foreign memory joined the book.
    ExternalAdded,
    /// Foreign memory left the book.
    ExternalRemoved,
    /// A request could not be served. The event's address is the source's free bytes, where known.
    OutOfMemory,
}

/// One change in the book.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// What happened.
    pub action: Action,
    /// The pool of the block or segment.
    pub pool: Pool,
    /// The kind of the block.
    pub kind: Kind,
    /// Who asked for the block. A segment has the origin of the block that it was reserved for, and
    /// so have pages.
    pub origin: OriginId,
    /// Start of the block, segment or pages.
    pub address: usize,
    /// What was asked for; of a segment or pages, their size.
    pub requested_bytes: usize,
    /// What it takes after rounding; of a segment or pages, their size.
    pub allocated_bytes: usize,
    /// The stream of the block or segment.
    pub stream: StreamId,
    /// The training step in force (of a free: that in force at the free).
    pub step: u64,
    /// How the free parts of split segments changed with it.
    pub(crate) split: SplitChange,
    /// For the history: when, and where a free happened, if that was found out before the lock.
    pub(crate) stamp: Stamp,
}

/// Change in the number and bytes of free blocks that are parts of a split segment: the ones that
/// cannot go back to the source by themselves (PyTorch's `inactive_split`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SplitChange {
    pub(crate) blocks: i64,
    pub(crate) bytes: i64,
}
