//! Private pools: blocks that only one owner reuses, beside the pools of every stream. A captured
//! graph needs one, because its replays write to the addresses that it was recorded with; a program
//! may want one to keep a phase's memory apart.
//!
//! A pool's free blocks serve requests that name it and no others. While it is open its segments
//! stay, whatever is short, and with caching off too: a graph's replays write to blocks that were
//! freed while it was captured. It is released as a whole: dropping its [`PrivatePool`] gives back
//! the segments that are free, and the others as soon as they are; those that wait for another
//! stream, when the next allocation or free finds that it has passed them.

use crate::allocator::arena::Arena;
use crate::allocator::pool_id::{PoolId, PoolPurpose};
use crate::allocator::records::BlockState;
use crate::allocator::state::State;

/// What a pool holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUse {
    /// Bytes of blocks that somebody owns, or that a stream still uses.
    pub active_bytes: usize,
    /// Bytes of its segments; of expandable ones, of the pages that have memory.
    pub reserved_bytes: usize,
    /// How many segments.
    pub segments: usize,
}

/// A pool of one arena; released when it is dropped.
///
/// ```
/// # use plimsoll_core::Device;
/// # use plimsoll_memory::{Arena, Configuration, HostSource, OriginId, PoolPurpose, Request};
/// # let configuration = Configuration::default();
/// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
/// let pool = arena.open_pool(PoolPurpose::User);
/// let request = Request { pool: pool.id(), ..Request::new(1000, OriginId::UNKNOWN) };
/// drop(arena.allocate(&request)?);
/// assert_eq!(pool.usage().reserved_bytes, 2 << 20); // kept for the pool
/// assert_eq!(arena.empty_cache(), 0); // and for nobody else
/// drop(pool);
/// assert_eq!(arena.stats().reserved_bytes.all.current, 0);
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
#[derive(Debug)]
pub struct PrivatePool {
    arena: &'static Arena,
    id: PoolId,
}

impl PrivatePool {
    /// What requests name it by.
    pub fn id(&self) -> PoolId {
        self.id
    }

    /// The arena whose pool it is.
    pub fn arena(&self) -> &'static Arena {
        self.arena
    }

    /// What it holds now.
    pub fn usage(&self) -> PoolUse {
        self.arena.pool_usage(self.id)
    }
}

impl Drop for PrivatePool {
    fn drop(&mut self) {
        self.arena.state().close_pool(self.id);
        self.arena.release_closed();
    }
}

impl Arena {
    /// Opens a pool of its own for a graph or a part of a program.
    pub fn open_pool(&'static self, purpose: PoolPurpose) -> PrivatePool {
        let id = PoolId::fresh(purpose);
        self.state().open_pools.push(id);
        PrivatePool { arena: self, id }
    }

    /// What the pool `id` holds now, in both of its parts; the common pool's share is everything
    /// that no other has.
    pub fn pool_usage(&self, id: PoolId) -> PoolUse {
        self.state().pool_usage(id)
    }
}

impl State {
    /// From now on segments of the pool may leave.
    fn close_pool(&mut self, id: PoolId) {
        self.open_pools.retain(|open| *open != id);
        for lane in self.lanes.iter_mut().filter(|lane| lane.pool.whole() == id) {
            lane.open = false;
        }
        self.update_eager();
    }

    /// Whether frees must look for segments that leave at once.
    pub(crate) fn update_eager(&mut self) {
        let lanes = &self.lanes;
        let closed = |lane: u32| !lanes[lane as usize].open;
        let waits = self.segments.iter().any(|(_, segment)| closed(segment.lane));
        self.eager = !self.rules.caching || waits;
    }

    /// Whether free blocks of a lane are kept for reuse: those of a private pool always are.
    #[inline]
    pub(crate) fn caches(&self, lane: usize) -> bool {
        self.rules.caching || !self.lanes[lane].is_common()
    }

    /// Whether the segment around a block goes back as soon as it is free.
    #[cold]
    pub(crate) fn leaves_when_free(&self, block: u32) -> bool {
        let lane = self.segments[self.blocks[block].segment].lane as usize;
        !self.lanes[lane].open || !self.caches(lane)
    }

    /// Whether a segment may go back to the source while it is free: not while its pool is open.
    pub(crate) fn may_leave(&self, block: u32) -> bool {
        let lane = &self.lanes[self.segments[self.blocks[block].segment].lane as usize];
        lane.is_common() || !lane.open
    }

    fn pool_usage(&self, id: PoolId) -> PoolUse {
        let mut found = PoolUse::default();
        let ours = |lane: u32| self.lanes[lane as usize].pool.whole() == id.whole();
        for (_, segment) in self.segments.iter().filter(|(_, segment)| ours(segment.lane)) {
            found.reserved_bytes += self.reserved_in(segment);
            found.segments += 1;
        }
        let active = |state| matches!(state, BlockState::Allocated | BlockState::Pending);
        let blocks = self.blocks.iter().filter(|(_, block)| active(block.state));
        let blocks = blocks.filter(|(_, block)| ours(self.segments[block.segment].lane));
        found.active_bytes = blocks.map(|(_, block)| block.bytes).sum();
        found
    }
}
