//! The name of a pool: the common one, or a private one of a graph or a user (`private_pool.rs`).

use std::sync::atomic::{AtomicU32, Ordering};

/// Which pool blocks come from and go back to. As PyTorch's `segment_pool_id` it is a pair: the
/// number of a graph's pool, or of a user's; the common pool has neither.
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

impl PoolId {
    /// The pool that everybody shares.
    pub const COMMON: PoolId = PoolId { graph: 0, user: 0 };

    /// The two numbers, a graph's first.
    pub const fn pair(self) -> (u64, u64) {
        (self.graph as u64, self.user as u64)
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

/// Whom a private pool is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolPurpose {
    /// A captured graph.
    Graph,
    /// A part of a program.
    User,
}
