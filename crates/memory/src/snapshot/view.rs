//! The segments and blocks of an arena as plain data, taken at one moment: for snapshots, reports
//! and tests. Nothing here refers back to the arena.

use crate::allocator::arena::Arena;
use crate::allocator::pool_id::PoolId;
use crate::allocator::records::{BlockState, NONE};
use crate::allocator::state::State;
use crate::book::pool::Pool;
use crate::origin::intern::OriginId;
use crate::origin::kind::Kind;
use crate::platform::source::StreamId;

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockUse {
    /// Owned by the program.
    Allocated,
    /// Freed by its owner, still used by another stream.
    PendingFree,
    /// Free.
    Inactive,
}

/// A block within a segment. The last four figures are those of its last owner where it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockView {
    /// Where it starts.
    pub address: usize,
    /// What it takes.
    pub bytes: usize,
    /// What was asked for; 0 where it is free.
    pub requested_bytes: usize,
    /// What it is doing.
    pub state: BlockUse,
    /// Who asked for it.
    pub origin: OriginId,
    /// What for.
    pub kind: Kind,
    /// In which training step.
    pub step: u64,
}

/// A segment with its blocks, which tile it in order. Of an expandable segment each run of pages
/// with memory is one of these, as in PyTorch's snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentView {
    /// Where it starts.
    pub address: usize,
    /// Its size.
    pub bytes: usize,
    /// The stream that its blocks belong to.
    pub stream: StreamId,
    /// Whether its blocks are small or large ones.
    pub pool: Pool,
    /// The pool that its blocks belong to: the common one, a graph's or a user's.
    pub pool_id: PoolId,
    /// Whether it is part of an expandable segment.
    pub expandable: bool,
    /// Its number in the order of reservation.
    pub birth: u64,
    /// Who asked for the block that it was reserved for.
    pub origin: OriginId,
    /// The training step of its reservation.
    pub step: u64,
    /// Its blocks, in order of address.
    pub blocks: Vec<BlockView>,
}

impl Arena {
    /// Every segment with its blocks, in order of address.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, Kind, OriginId, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// let block = arena.allocate(&Request::new(1000, OriginId::UNKNOWN))?;
    /// let segments = arena.segments();
    /// assert_eq!((segments[0].bytes, segments[0].blocks.len()), (2 << 20, 2));
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn segments(&self) -> Vec<SegmentView> {
        self.state().segment_views()
    }
}

impl State {
    pub(crate) fn segment_views(&self) -> Vec<SegmentView> {
        let mut views = Vec::new();
        for (_, segment) in self.segments.iter() {
            let mut at = segment.first_block;
            while at != NONE {
                let (blocks, next) = self.block_views(at);
                at = next;
                let Some(first) = blocks.first() else { continue };
                views.push(SegmentView {
                    address: first.address,
                    bytes: blocks.iter().map(|block| block.bytes).sum(),
                    stream: segment.stream,
                    pool: segment.pool,
                    pool_id: self.lanes[segment.lane as usize].pool.whole(),
                    expandable: segment.expandable,
                    birth: segment.birth,
                    origin: segment.origin,
                    step: segment.step,
                    blocks,
                });
            }
        }
        views.sort_unstable_by_key(|view| view.address);
        views
    }

    /// The blocks from `first` on up to one without memory, and the block after that one.
    fn block_views(&self, first: u32) -> (Vec<BlockView>, u32) {
        let mut views = Vec::new();
        let mut at = first;
        while at != NONE {
            let block = &self.blocks[at];
            at = block.next;
            let state = match block.state {
                BlockState::Allocated => BlockUse::Allocated,
                BlockState::Pending => BlockUse::PendingFree,
                BlockState::Free | BlockState::Vacant => BlockUse::Inactive,
                BlockState::Unmapped | BlockState::Leaving => break,
            };
            views.push(BlockView {
                address: block.address,
                bytes: block.bytes,
                requested_bytes: block.requested_bytes(),
                state,
                origin: block.origin,
                kind: block.kind,
                step: block.step,
            });
        }
        (views, at)
    }
}
