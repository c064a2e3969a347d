//! What an allocation lacks, and who owns the blocks that could make room for it. Whoever gives
//! live memory back is told the shortage; which blocks would have to go is worked out in
//! `evict.rs`.

use crate::allocator::records::NONE;
use crate::allocator::request::Request;
use crate::allocator::size_class::Fit;
use crate::book::pool::Pool;
use crate::platform::source::StreamId;

/// Who would have to give a block up: a number that its owner chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(pub(crate) u32);

impl Owner {
    /// The owner numbered `number`. The highest number means nobody and is taken as the one before
    /// it.
    pub const fn new(number: u32) -> Owner {
        Owner(if number == NONE { NONE - 1 } else { number })
    }
}

/// What an allocation lacks.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Shortage {
    /// How much should become free in all.
    pub wanted_bytes: usize,
    /// The block that waits for it, if one does.
    pub(crate) block: Option<WantedBlock>,
}

/// The block that there is no room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedBlock {
    pub(crate) block_bytes: usize,
    pub(crate) segment_bytes: usize,
    pub(crate) pool: Pool,
    pub(crate) stream: StreamId,
}

impl Shortage {
    /// Anything will do.
    pub(crate) fn of_bytes(wanted_bytes: usize) -> Shortage {
        Shortage { wanted_bytes, block: None }
    }

    pub(crate) fn of_block(fit: &Fit, request: &Request) -> Shortage {
        let block = WantedBlock {
            block_bytes: fit.block_bytes,
            segment_bytes: fit.tight_segment_bytes,
            pool: fit.pool,
            stream: request.stream,
        };
        Shortage { wanted_bytes: fit.segment_bytes, block: Some(block) }
    }
}
