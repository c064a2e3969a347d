//! Out of memory: the report that the error carries. It says what was asked, what fills the memory
//! and who put it there, and what could help, computed from the state at that moment (`advice.rs`).

use std::error::Error as StdError;
use std::fmt;

use plimsoll_core::{ByteSize, Device, Error, ErrorKind};

use crate::advice::Advice;
use crate::allocate::Refusal;
use crate::arena::Arena;
use crate::breakdown::{Moment, Row};
use crate::context::current_step;
use crate::event::{Action, Event, SplitChange};
use crate::limits::LimitKind;
use crate::origin::OriginId;
use crate::records::BlockState;
use crate::request::Request;
use crate::size_class::Fit;
use crate::source::{Room, StreamId};
use crate::stamp::Stamp;
use crate::state::State;

/// How many origins a report names.
const TOP_ORIGINS: usize = 8;

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
    pub by_kind: Vec<Row>,
    /// The origins with most live bytes, largest first.
    pub top_origins: Vec<Row>,
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

impl Arena {
    /// The error for a request that found no memory; books it and tells the observers.
    #[cold]
    pub(crate) fn out_of_memory(&self, fit: &Fit, request: &Request, refusal: Refusal) -> Error {
        let room = self.source().room();
        let source_reason = refusal.source.map(|full| full.reason);
        let mut report = {
            let mut state = self.state();
            state.ledger.apply(&Event {
                action: Action::OutOfMemory,
                pool: fit.pool,
                kind: request.kind,
                origin: request.origin,
                address: room.free_bytes.unwrap_or(0),
                requested_bytes: request.bytes,
                allocated_bytes: fit.segment_bytes,
                stream: request.stream,
                step: current_step(),
                split: SplitChange::default(),
                stamp: Stamp::default(),
            });
            self.report(&state, fit, request, room, source_reason)
        };
        report.advice = Advice::for_report(&report, self.rules(), self.has_reclaimer());
        self.observe(&report);
        let message = report.headline();
        let operation = request.origin.get().operation;
        Error::new(ErrorKind::OutOfMemory, message).in_operation(operation).because(report)
    }

    fn report(
        &self,
        state: &State,
        fit: &Fit,
        request: &Request,
        room: Room,
        source_reason: Option<String>,
    ) -> OutOfMemory {
        let ledger = &state.ledger;
        let allocated_bytes = ledger.allocated_bytes();
        let own = state
            .lanes
            .iter()
            .find(|lane| lane.stream == request.stream && lane.pool == request.pool);
        let free_elsewhere = state.blocks.iter().filter(|(_, block)| {
            block.state == BlockState::Free
                && state.segments[block.segment].stream != request.stream
        });
        let mut top_origins = ledger.by_origin(Moment::Now);
        let origins = top_origins.len();
        top_origins.truncate(TOP_ORIGINS);
        OutOfMemory {
            device: self.device(),
            arena: self.name(),
            origin: request.origin,
            stream: request.stream,
            step: current_step(),
            requested_bytes: request.bytes,
            rounded_bytes: fit.block_bytes,
            segment_bytes: fit.segment_bytes,
            tight_segment_bytes: fit.tight_segment_bytes,
            allocated_bytes,
            reserved_bytes: ledger.reserved_bytes(),
            cached_bytes: ledger.reserved_bytes() - allocated_bytes,
            pending_bytes: ledger.active_bytes() - allocated_bytes,
            external_bytes: ledger.external_bytes(),
            split_bytes: ledger.inactive_split_bytes(),
            largest_free_bytes: own.map_or(0, |lane| lane.largest_bytes(fit.pool)),
            other_streams_free_bytes: free_elsewhere.map(|(_, block)| block.bytes).sum(),
            limit: state.limits.lowest(),
            room,
            source_reason,
            by_kind: ledger.by_kind(Moment::Now),
            top_origins,
            origins,
            advice: Vec::new(),
        }
    }
}

impl OutOfMemory {
    fn headline(&self) -> String {
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

impl OutOfMemory {
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
