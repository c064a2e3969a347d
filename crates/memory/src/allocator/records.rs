//! The records behind blocks and segments, kept in slabs inside the arena's state. A record's
//! number is what a `Block` handle holds; links between records are numbers too, so nothing here is
//! a pointer.
//!
//! ```text
//! segment   |<------------------------ bytes ------------------------>|
//! blocks    | allocated | free | allocated | pending |      free      |
//!           `- previous/next link neighbours in address order; two free neighbours never touch
//! ```
//! An expandable segment is a range of addresses. Of some of its pages the memory is not there;
//! they belong to blocks of their own:
//! ```text
//! pages     |         |         |         |         |         |         |
//! blocks    | allocated | free  | unmapped|  leaving|all.| fr.| unmapped|
//! ```

use crate::book::pool::Pool;
use crate::origin::intern::OriginId;
use crate::origin::kind::Kind;
use crate::platform::source::StreamId;

/// The number of no record.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockState {
    /// The record describes nothing; `next` links the free records.
    Vacant,
    Free,
    Allocated,
    /// Freed by its owner, still used by another stream.
    Pending,
    /// Whole pages of an expandable segment without memory.
    Unmapped,
    /// The same, on their way there: booked as given back, and the source is still at it.
    Leaving,
}

impl BlockState {
    /// Whether there is memory that the book counts as reserved.
    #[inline]
    pub(crate) fn is_mapped(self) -> bool {
        matches!(self, BlockState::Free | BlockState::Allocated | BlockState::Pending)
    }
}

/// One cache line: threads that free and allocate in turn take each other's records, line by line.
/// What all blocks of a segment share (stream, birth) is in the segment's record, which hardly
/// changes.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct BlockRecord {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    /// What was asked for while it has an owner or is pending; while it is free, when it became so.
    /// Read it by [`BlockRecord::requested_bytes`] and [`BlockRecord::freed_at`].
    pub(crate) requested_or_freed_at: u64,
    /// The training step of its allocation.
    pub(crate) step: u64,
    pub(crate) segment: u32,
    pub(crate) previous: u32,
    pub(crate) next: u32,
    pub(crate) origin: OriginId,
    /// Of a free block. An allocated one is in no heap, and keeps its owner's number in the first
    /// link: see [`BlockRecord::owner`].
    pub(crate) links: HeapLinks,
    pub(crate) state: BlockState,
    pub(crate) pool: Pool,
    pub(crate) kind: Kind,
    /// Whether streams other than its own use it (`deferred.rs` knows which).
    pub(crate) shared: bool,
}

const _: () = assert!(size_of::<BlockRecord>() == 64, "a record is a cache line");

/// Links of a free block among those of its size; see `bin_heap.rs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapLinks {
    pub(crate) child: u32,
    pub(crate) sibling: u32,
    /// The sibling before it or, of a first child, the parent.
    pub(crate) back: u32,
}

impl HeapLinks {
    pub(crate) const NONE: HeapLinks = HeapLinks { child: NONE, sibling: NONE, back: NONE };
}

impl BlockRecord {
    /// Whether it is a part of its segment and not the whole.
    #[inline]
    pub(crate) fn is_split(&self) -> bool {
        self.previous != NONE || self.next != NONE
    }

    /// Bytes that its owner asked for; 0 where it has none.
    #[inline]
    pub(crate) fn requested_bytes(&self) -> usize {
        match self.state {
            BlockState::Allocated | BlockState::Pending => self.requested_or_freed_at as usize,
            _ => 0,
        }
    }

    /// The number of who owns an allocated block; [`NONE`] where nobody said.
    #[inline]
    pub(crate) fn owner(&self) -> u32 {
        debug_assert_eq!(self.state, BlockState::Allocated, "only an allocated block has an owner");
        self.links.child
    }

    /// Sets what [`BlockRecord::owner`] gives.
    #[inline]
    pub(crate) fn set_owner(&mut self, owner: u32) {
        self.links.child = owner;
    }

    /// The arena's tick when this free block became free.
    #[inline]
    pub(crate) fn freed_at(&self) -> u64 {
        debug_assert_eq!(self.state, BlockState::Free, "only a free block has been freed");
        self.requested_or_freed_at
    }
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct SegmentRecord {
    pub(crate) address: usize,
    /// 0 marks a vacant record.
    pub(crate) bytes: usize,
    pub(crate) stream: StreamId,
    /// Number of the pools of its stream.
    pub(crate) lane: u32,
    pub(crate) pool: Pool,
    /// Whether it is a range of addresses of which only some pages have memory.
    pub(crate) expandable: bool,
    /// Its number in the order of reservation: decides between free blocks of equal size.
    pub(crate) birth: u64,
    pub(crate) first_block: u32,
    pub(crate) origin: OriginId,
    pub(crate) step: u64,
}

/// Block records with reuse of vacant ones.
#[derive(Debug)]
pub(crate) struct BlockSlab {
    records: Vec<BlockRecord>,
    vacant: u32,
}

impl BlockSlab {
    pub(crate) fn new() -> BlockSlab {
        BlockSlab { records: Vec::new(), vacant: NONE }
    }

    #[inline]
    pub(crate) fn insert(&mut self, record: BlockRecord) -> u32 {
        if self.vacant == NONE {
            self.records.push(record);
            // 2^32 records are 256 GiB of them: memory ends first.
            return (self.records.len() - 1) as u32;
        }
        let index = self.vacant;
        let place = &mut self.records[index as usize];
        self.vacant = place.next;
        *place = record;
        index
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        let record = &mut self.records[index as usize];
        record.state = BlockState::Vacant;
        record.next = self.vacant;
        self.vacant = index;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &BlockRecord)> {
        let numbered = self.records.iter().enumerate();
        numbered
            .filter(|(_, record)| record.state != BlockState::Vacant)
            .map(|(index, record)| (index as u32, record))
    }
}

impl std::ops::Index<u32> for BlockSlab {
    type Output = BlockRecord;

    #[inline]
    fn index(&self, index: u32) -> &BlockRecord {
        &self.records[index as usize]
    }
}

impl std::ops::IndexMut<u32> for BlockSlab {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut BlockRecord {
        &mut self.records[index as usize]
    }
}

/// Segment records with reuse of vacant ones.
#[derive(Debug, Default)]
pub(crate) struct SegmentSlab {
    records: Vec<SegmentRecord>,
    vacant: Vec<u32>,
}

impl SegmentSlab {
    pub(crate) fn insert(&mut self, record: SegmentRecord) -> u32 {
        if let Some(index) = self.vacant.pop() {
            self.records[index as usize] = record;
            return index;
        }
        self.records.push(record);
        (self.records.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, index: u32) -> SegmentRecord {
        let record = &mut self.records[index as usize];
        let removed = *record;
        record.bytes = 0;
        self.vacant.push(index);
        removed
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &SegmentRecord)> {
        let numbered = self.records.iter().enumerate();
        numbered
            .filter(|(_, record)| record.bytes != 0)
            .map(|(index, record)| (index as u32, record))
    }
}

impl std::ops::Index<u32> for SegmentSlab {
    type Output = SegmentRecord;

    #[inline]
    fn index(&self, index: u32) -> &SegmentRecord {
        &self.records[index as usize]
    }
}

impl std::ops::IndexMut<u32> for SegmentSlab {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut SegmentRecord {
        &mut self.records[index as usize]
    }
}
