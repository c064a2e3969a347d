//! Foreign memory in the book: bytes that a tensor uses but that the allocator did not give (NumPy,
//! DLPack, mapped files). They are counted, by origin and kind, and never cached, limited or
//! released.

use crate::allocator::arena::Arena;
use crate::book::event::{Action, Event, SplitChange};
use crate::book::pool::Pool;
use crate::book::stamp::Stamp;
use crate::origin::intern::OriginId;
use crate::origin::iteration::current_step;
use crate::origin::kind::Kind;
use crate::platform::source::StreamId;

/// A process has no more address space; the bound keeps sums of sizes far from overflow.
const EXTERNAL_BYTES_MAX: usize = 1 << 47;

/// Foreign bytes in the book, for as long as this lives.
#[derive(Debug)]
pub struct External {
    arena: &'static Arena,
    bytes: usize,
    origin: OriginId,
    kind: Kind,
}

impl Arena {
    /// Counts `bytes` of foreign memory until the guard drops. More than an address space holds
    /// (2^47) is counted as that.
    #[must_use = "the bytes are counted only while the guard lives"]
    pub fn external(&'static self, bytes: usize, origin: OriginId, kind: Kind) -> External {
        let bytes = bytes.min(EXTERNAL_BYTES_MAX);
        let external = External { arena: self, bytes, origin, kind };
        external.book(Action::ExternalAdded);
        external
    }
}

impl External {
    /// How many bytes are counted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts them as another kind from now on.
    pub fn set_kind(&mut self, kind: Kind) {
        if kind != self.kind {
            self.book(Action::ExternalRemoved);
            self.kind = kind;
            self.book(Action::ExternalAdded);
        }
    }

    fn book(&self, action: Action) {
        self.arena.state().ledger.apply(&Event {
            action,
            pool: Pool::Large,
            kind: self.kind,
            origin: self.origin,
            address: 0,
            requested_bytes: self.bytes,
            allocated_bytes: self.bytes,
            stream: StreamId::DEFAULT,
            step: current_step(),
            split: SplitChange::default(),
            stamp: Stamp::default(),
        });
    }
}

impl Drop for External {
    fn drop(&mut self) {
        self.book(Action::ExternalRemoved);
    }
}
