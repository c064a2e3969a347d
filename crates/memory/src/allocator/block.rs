//! The handle that owns allocated memory. Dropping it gives the memory back; there is no other way
//! to free, and no way to have two owners.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::allocator::arena::Arena;
use crate::allocator::records::NONE;
use crate::allocator::request::Request;
use crate::allocator::shortage::Owner;
use crate::allocator::state::Granted;
use crate::origin::intern::OriginId;
use crate::origin::kind::Kind;
use crate::platform::source::StreamId;

/// Where a block of 0 bytes is said to be: not null, aligned like every other, and never touched.
const EMPTY_ADDRESS: usize = 512;

/// Memory from an [`Arena`], owned until dropped.
pub struct Block {
    arena: &'static Arena,
    address: usize,
    requested_bytes: usize,
    allocated_bytes: usize,
    stream: StreamId,
    /// Number of its record; [`NONE`] for a block of 0 bytes, which is in no book.
    index: u32,
    /// The origin's number and the kind: copies of the record's, so that asking takes no lock.
    /// Written under the arena's lock only.
    origin: AtomicU32,
    kind: AtomicU8,
}

impl Block {
    #[inline]
    pub(crate) fn new(arena: &'static Arena, request: &Request, granted: Granted) -> Block {
        Block {
            arena,
            address: granted.address,
            requested_bytes: request.bytes,
            allocated_bytes: granted.bytes,
            stream: request.stream,
            index: granted.index,
            origin: AtomicU32::new(request.origin.number() as u32),
            kind: AtomicU8::new(request.kind as u8),
        }
    }

    /// A block of 0 bytes.
    pub(crate) fn empty(arena: &'static Arena, request: &Request) -> Block {
        Block {
            arena,
            address: EMPTY_ADDRESS,
            requested_bytes: 0,
            allocated_bytes: 0,
            stream: request.stream,
            index: NONE,
            origin: AtomicU32::new(request.origin.number() as u32),
            kind: AtomicU8::new(request.kind as u8),
        }
    }

    /// Where it starts: aligned to 64 bytes on a host, 512 on a device. For a block of 0 bytes an
    /// aligned address with nothing behind it.
    #[inline]
    pub fn address(&self) -> usize {
        self.address
    }

    /// How many bytes were asked for.
    #[inline]
    pub fn requested_bytes(&self) -> usize {
        self.requested_bytes
    }

    /// How many bytes it takes, after rounding.
    #[inline]
    pub fn allocated_bytes(&self) -> usize {
        self.allocated_bytes
    }

    /// The stream it was allocated for.
    #[inline]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Who asked for it, or whom it belongs to since.
    #[inline]
    pub fn origin(&self) -> OriginId {
        OriginId::from_number(self.origin.load(Ordering::Relaxed) as usize)
    }

    /// Has it belong to another origin from now on.
    pub fn set_origin(&self, origin: OriginId) {
        if self.origin() != origin {
            self.arena.change_origin(self.index, origin, &self.origin);
        }
    }

    /// What it is for.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_number(self.kind.load(Ordering::Relaxed))
    }

    /// Changes what it is for. Costs next to nothing if it is that already.
    #[inline]
    pub fn set_kind(&self, kind: Kind) {
        if self.kind() != kind {
            self.arena.change_kind(self.index, kind, &self.kind);
        }
    }

    /// Says that `stream` uses it as well: once dropped, it is not handed out again before that
    /// stream has passed the point of the drop.
    pub fn record_use(&self, stream: StreamId) {
        if stream != self.stream && self.index != NONE {
            self.arena.record_use(self.index, stream);
        }
    }

    /// Says who would have to give it up, for [`Arena::cheapest_run`]. It lasts until the block is
    /// dropped.
    pub fn set_owner(&self, owner: Owner) {
        if self.index != NONE {
            self.arena.set_owner(self.index, owner);
        }
    }

    /// The arena it came from.
    #[inline]
    pub fn arena(&self) -> &'static Arena {
        self.arena
    }
}

impl Drop for Block {
    #[inline]
    fn drop(&mut self) {
        if self.index != NONE {
            self.arena.free(self.index);
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("device", &self.arena.device())
            .field("address", &format_args!("{:#x}", self.address))
            .field("requested_bytes", &self.requested_bytes)
            .field("allocated_bytes", &self.allocated_bytes)
            .field("kind", &self.kind())
            .field("origin", &self.origin())
            .finish_non_exhaustive()
    }
}

// A block is a number with a place: which bytes lie there, and who may touch them, is decided by
// the storage above. The handle itself may go anywhere.
const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Block>();
};
