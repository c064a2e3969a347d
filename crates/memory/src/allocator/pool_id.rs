//! The name of a pool: the common one, or a private one of a graph or a user (`private_pool.rs`).

use std::sync::atomic::{AtomicU32, Ordering};

/// Which pool blocks come from and go back to. As PyTorch's `segment_pool_id` it is a pair: the
/// number of a graph's pool, or of a user's; the common pool has neither.
///
/// A private pool has two parts that share nothing: what captures allocate from, which replays
/// write to at any time, and what everybody else does. Both have the same pair.
///
/// ```
/// use plimsoll_memory::PoolId;
/// assert_eq!(PoolId::COMMON.pair(), (0, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId {
    graph: u32,
    user: u32,
}

/// The flag of the part that captures allocate from; no program opens as many pools.
const CAPTURED: u32 = 1 << 31;

impl PoolId {
    /// The pool that everybody shares.
    pub const COMMON: PoolId = PoolId { graph: 0, user: 0 };

    /// The two numbers, a graph's first.
    pub const fn pair(self) -> (u64, u64) {
        ((self.graph & !CAPTURED) as u64, (self.user & !CAPTURED) as u64)
    }

    /// The part of the pool that captures allocate from. The common pool has none.
    ///
    /// ```
    /// # use plimsoll_core::Device;
    /// # use plimsoll_memory::{Arena, Configuration, HostSource, OriginId, PoolPurpose, Request};
    /// # let configuration = Configuration::default();
    /// # let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    /// let pool = arena.open_pool(PoolPurpose::Graph);
    /// let request = Request::new(1000, OriginId::UNKNOWN);
    /// let from = |pool| arena.allocate(&Request { pool, ..request });
    /// let captured = from(pool.id().captured())?.address(); // and freed again
    /// let beside = from(pool.id())?;
    /// assert_ne!(beside.address(), captured);
    /// assert_eq!(pool.usage().segments, 2);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    #[must_use]
    pub const fn captured(self) -> PoolId {
        PoolId { graph: captured(self.graph), user: captured(self.user) }
    }

    /// The whole pool, whichever part this is.
    pub(crate) const fn whole(self) -> PoolId {
        PoolId { graph: self.graph & !CAPTURED, user: self.user & !CAPTURED }
    }

    /// An id that no other pool of the process has.
    pub(crate) fn fresh(purpose: PoolPurpose) -> PoolId {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        match purpose {
            PoolPurpose::Graph => PoolId { graph: number, user: 0 },
            PoolPurpose::User => PoolId { graph: 0, user: number },
        }
    }
}

const fn captured(number: u32) -> u32 {
    if number == 0 { 0 } else { number | CAPTURED }
}

/// Whom a private pool is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolPurpose {
    /// A captured graph.
    Graph,
    /// A part of a program.
    User,
}
