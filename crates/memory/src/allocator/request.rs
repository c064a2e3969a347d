//! What an allocation asks for.

use crate::allocator::pool_id::PoolId;
use crate::origin::intern::OriginId;
use crate::origin::kind::Kind;
use crate::platform::source::StreamId;

/// What an allocation asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// How many bytes; 0 is legal and takes no memory.
    pub bytes: usize,
    /// Who asks.
    pub origin: OriginId,
    /// What for.
    pub kind: Kind,
    /// The stream whose work will use it first. Reuse without waiting is only among blocks of one
    /// stream.
    pub stream: StreamId,
    /// The pool that it comes from: the common one, unless a graph or the program has its own.
    pub pool: PoolId,
}

impl Request {
    /// `bytes` on the default stream from the common pool, of unknown kind.
    pub fn new(bytes: usize, origin: OriginId) -> Request {
        let (kind, stream, pool) = (Kind::Unknown, StreamId::DEFAULT, PoolId::COMMON);
        Request { bytes, origin, kind, stream, pool }
    }
}
