//! What happens when a request found no memory: it is booked, the report is made from the state at
//! that moment with what could help, and the observers see it. Nothing is advised that is already
//! so, or that could not make room for this request. The report itself is `oom.rs`.

use plimsoll_core::{Error, ErrorKind};

use crate::allocator::advice::Advice;
use crate::allocator::allocate::Refusal;
use crate::allocator::arena::Arena;
use crate::allocator::oom::OutOfMemory;
use crate::allocator::records::BlockState;
use crate::allocator::request::Request;
use crate::allocator::size_class::{Fit, SizeRules};
use crate::allocator::state::State;
use crate::book::breakdown::{Moment, shares};
use crate::book::event::{Action, Event, SplitChange};
use crate::book::stamp::Stamp;
use crate::origin::iteration::current_step;
use crate::origin::kind::Kind;
use crate::platform::source::Room;

/// How many origins a report names.
const TOP_ORIGINS: usize = 8;

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
        let can_expand = self.source().address_space().is_ok();
        report.advice = Advice::for_report(&report, self.rules(), can_expand, self.has_reclaimer());
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
        let mut by_module = shares(&top_origins, |origin| origin.module);
        if by_module.iter().all(|share| share.part.is_root()) {
            by_module.clear();
        }
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
            by_module,
            top_origins,
            origins,
            advice: Vec::new(),
        }
    }
}

impl Advice {
    /// What could help in the state that `report` describes; the most useful first.
    pub(crate) fn for_report(
        report: &OutOfMemory,
        rules: &SizeRules,
        can_expand: bool,
        has_reclaimer: bool,
    ) -> Vec<Advice> {
        let mut advice = Vec::new();
        let needed = report.tight_segment_bytes;
        let total = report.room.total_bytes.unwrap_or(usize::MAX);
        let ceiling = report.limit.map_or(total, |(limit, _)| limit.min(total));
        if needed > total || (needed > ceiling && report.source_reason.is_some()) {
            return vec![Advice::RequestBeyondLimit { limit_bytes: ceiling }];
        }
        if let (None, Some((_, rule))) = (&report.source_reason, report.limit) {
            let needed_bytes = report.reserved_bytes.saturating_add(needed);
            if needed_bytes <= total {
                advice.push(Advice::RaiseLimit { rule, needed_bytes });
            }
        }
        if report.pending_bytes >= needed {
            advice.push(Advice::WaitForStreams { pending_bytes: report.pending_bytes });
        }
        if report.other_streams_free_bytes >= needed {
            advice.push(Advice::ShareStreams { bytes: report.other_streams_free_bytes });
        }
        if report.split_bytes >= needed && can_expand && rules.caching && !rules.expandable {
            advice.push(Advice::ExpandSegments { split_bytes: report.split_bytes });
        }
        if report.split_bytes >= needed && rules.max_split_bytes == usize::MAX {
            advice.push(Advice::LimitSplitting { split_bytes: report.split_bytes });
        }
        let of = |kind: Kind| {
            report.by_kind.iter().find(|row| row.kind == kind).map_or(0, |row| row.bytes)
        };
        if of(Kind::Activation) >= needed && of(Kind::Activation) * 2 >= report.allocated_bytes {
            advice.push(Advice::FewerActivations { bytes: of(Kind::Activation) });
        }
        let phase = report.origin.get().phase;
        if of(Kind::Gradient) >= needed && phase == crate::origin::context::Phase::Forward {
            advice.push(Advice::DropGradients { bytes: of(Kind::Gradient) });
        }
        if let Some(top) = report.top_origins.first()
            && report.origins > 1
            && top.bytes * 2 >= report.allocated_bytes
        {
            let share = top.bytes as f64 / report.allocated_bytes.max(1) as f64;
            advice.push(Advice::LookAtTopOrigin { share });
        }
        if !has_reclaimer && report.allocated_bytes >= needed {
            advice.push(Advice::AllowSpilling);
        }
        if let Some(bytes) = report.room.used_by_others_bytes
            && report.source_reason.is_some()
            && bytes >= needed
        {
            advice.push(Advice::OthersUseIt { bytes });
        }
        advice
    }
}
