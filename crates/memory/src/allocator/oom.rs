//! Out of memory: the report that the error carries. It says what was asked, what fills the memory
//! and who put it there, and what could help, computed from the state at that moment (`advice.rs`).

use std::error::Error as StdError;
use std::fmt;

use plimsoll_core::{ByteSize, Device};

use crate::allocator::advice::Advice;
use crate::allocator::limits::LimitKind;
use crate::book::breakdown::{BreakdownRow, Share};
use crate::origin::context::ModulePath;
use crate::origin::intern::OriginId;
use crate::platform::source::{Room, StreamId};

/// What an out-of-memory error says. Found with `error.detail::<OutOfMemory>()`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OutOfMemory {
    /// The device that ran out.
    pub device: Device,
    /// The arena that ran out: the device's name, or its own where the device has several.
    pub arena: String,
    /// Who asked.
    pub origin: OriginId,
    /// The stream it was for.
    pub stream: StreamId,
    /// The training step in force.
    pub step: u64,
    /// What was asked for.
    pub requested_bytes: usize,
    /// The block that would have been handed out.
    pub rounded_bytes: usize,
    /// The segment that would have been reserved for it.
    pub segment_bytes: usize,
    /// The least that had to be reserved, and was tried last.
    pub tight_segment_bytes: usize,
    /// Bytes of live blocks.
    pub allocated_bytes: usize,
    /// Bytes taken from the source.
    pub reserved_bytes: usize,
    /// Reserved and not allocated.
    pub cached_bytes: usize,
    /// Freed by their owner, still used by another stream.
    pub pending_bytes: usize,
    /// Foreign memory in the book.
    pub external_bytes: usize,
    /// Free bytes that are parts of split segments and so cannot go back to the source.
    pub split_bytes: usize,
    /// The largest free block in this pool and stream.
    pub largest_free_bytes: usize,
    /// Free bytes in blocks of other streams, which this one must not use.
    pub other_streams_free_bytes: usize,
    /// The bound on reserved bytes in force, and which rule sets it.
    pub limit: Option<(usize, LimitKind)>,
    /// What the source has in all.
    pub room: Room,
    /// What the source said, where it was the source that refused.
    pub source_reason: Option<String>,
    /// Live bytes by kind, largest first.
    pub by_kind: Vec<BreakdownRow>,
    /// Live bytes by module, largest first; empty if nothing ran in a module.
    pub by_module: Vec<Share<ModulePath>>,
    /// The origins with most live bytes, largest first.
    pub top_origins: Vec<BreakdownRow>,
    /// How many origins have live bytes.
    pub origins: usize,
    /// What could help.
    pub advice: Vec<Advice>,
}

impl OutOfMemory {
    /// The share of free bytes that the largest free block does not cover, from 0 (one block, or
    /// none) to nearly 1 (many small ones).
    pub fn fragmentation(&self) -> f64 {
        match self.cached_bytes.saturating_sub(self.pending_bytes) {
            0 => 0.0,
            free => 1.0 - self.largest_free_bytes as f64 / free as f64,
        }
    }
}

impl OutOfMemory {
    pub(crate) fn headline(&self) -> String {
        let asked = ByteSize(self.requested_bytes);
        match (&self.source_reason, self.limit) {
            (None, Some((limit, kind))) => {
                let rule = match kind {
                    LimitKind::Limit => "the limit",
                    LimitKind::MemoryFraction => "the memory fraction",
                    LimitKind::DefaultCap => "the default cap",
                };
                let (limit, live) = (ByteSize(limit), ByteSize(self.allocated_bytes));
                format!(
                    "out of memory on {}: {asked} more would pass {rule} of {limit} ({live} are live)",
                    self.arena
                )
            }
            _ => format!("out of memory on {}: no room for {asked} more", self.arena),
        }
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = ByteSize;
        writeln!(
            f,
            "  asked for   {} by {} (step {}); as a block {}, in a segment of {}{}",
            size(self.requested_bytes),
            self.origin,
            self.step,
            size(self.rounded_bytes),
            size(self.segment_bytes),
            match self.tight_segment_bytes < self.segment_bytes {
                true => format!(", at least {}", size(self.tight_segment_bytes)),
                false => String::new(),
            },
        )?;
        writeln!(
            f,
            "  in use      {} allocated, {} reserved, {} cached, {} pending on other streams, {} external",
            size(self.allocated_bytes),
            size(self.reserved_bytes),
            size(self.cached_bytes),
            size(self.pending_bytes),
            size(self.external_bytes),
        )?;
        writeln!(
            f,
            "  free inside {} in the largest block of this pool, {} in split segments, {} of other streams; fragmentation {:.0}%",
            size(self.largest_free_bytes),
            size(self.split_bytes),
            size(self.other_streams_free_bytes),
            self.fragmentation() * 100.0,
        )?;
        self.write_room(f)?;
        if !self.by_kind.is_empty() {
            write!(f, "  by kind    ")?;
            for (place, row) in self.by_kind.iter().enumerate() {
                let comma = if place == 0 { "" } else { "," };
                write!(f, "{comma} {} {} ({})", row.kind, size(row.bytes), row.count)?;
            }
            writeln!(f)?;
        }
        self.write_modules(f)?;
        for (place, row) in self.top_origins.iter().enumerate() {
            let label = if place == 0 { "top origins" } else { "" };
            let (bytes, count) = (size(row.bytes), row.count);
            let blocks = if count == 1 { "block" } else { "blocks" };
            writeln!(f, "  {label:<11} {bytes} in {count} {blocks}, {}: {}", row.kind, row.origin)?;
        }
        if self.origins > self.top_origins.len() {
            writeln!(
                f,
                "              and {} more origins",
                self.origins - self.top_origins.len()
            )?;
        }
        for (place, advice) in self.advice.iter().enumerate() {
            let label = if place == 0 { "what helps" } else { "" };
            let end = if place + 1 == self.advice.len() { "" } else { "\n" };
            write!(f, "  {label:<11} {advice}{end}")?;
        }
        Ok(())
    }
}

/// Modules named at most.
const TOP_MODULES: usize = 5;

impl OutOfMemory {
    fn write_modules(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.by_module.is_empty() {
            return Ok(());
        }
        write!(f, "  by module  ")?;
        for (place, share) in self.by_module.iter().take(TOP_MODULES).enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let name = if share.part.is_root() { "none".into() } else { share.part.to_string() };
            write!(f, "{comma} {name} {}", ByteSize(share.bytes))?;
        }
        match self.by_module.get(TOP_MODULES..).filter(|rest| !rest.is_empty()) {
            Some(rest) => {
                let bytes = rest.iter().map(|share| share.bytes).sum();
                writeln!(f, ", {} more {}", rest.len(), ByteSize(bytes))
            }
            None => writeln!(f),
        }
    }

    fn write_room(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bytes: Option<usize>| match bytes {
            Some(bytes) => ByteSize(bytes).to_string(),
            None => "unknown".to_string(),
        };
        write!(
            f,
            "  device      {} in all, {} free, {} used by others",
            shown(self.room.total_bytes),
            shown(self.room.free_bytes),
            shown(self.room.used_by_others_bytes),
        )?;
        if let Some((limit, _)) = self.limit {
            write!(f, "; limit {}", ByteSize(limit))?;
        }
        match self.source_reason.as_deref() {
            None | Some("") => writeln!(f),
            Some(reason) => writeln!(f, "; the source said: {reason}"),
        }
    }
}

impl StdError for OutOfMemory {}
