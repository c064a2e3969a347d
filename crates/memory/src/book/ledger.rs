//! The book of one arena. Every change arrives as an [`Event`]; this file is the only one that
//! writes counters, breakdowns and scoped peaks, and it hands each event on to the history.
//!
//! What the counters mean is in `stats.rs`, how the breakdown remembers the peak in `breakdown.rs`.

use plimsoll_core::Device;

use crate::book::breakdown::{Breakdown, BreakdownRow, Moment};
use crate::book::event::{Action, Event};
use crate::book::history::History;
use crate::book::pool::Pool;
use crate::book::stats::{Counters, Metric, Stats};
use crate::book::watch::{self, BookChange};
use crate::origin::intern::OriginId;
use crate::origin::kind::Kind;

#[derive(Debug)]
pub(crate) struct Ledger {
    counters: Counters,
    num_alloc_retries: i64,
    num_ooms: i64,
    num_sync_all_streams: i64,
    num_device_alloc: i64,
    num_device_free: i64,
    max_split_bytes: usize,
    /// Number of the newest peak of allocated bytes. See Note [Peaks by epochs].
    peak_epoch: u64,
    blocks: Breakdown,
    external: Breakdown,
    /// Open peak scopes, oldest first.
    scopes: Vec<ScopePeaks>,
    next_scope: u64,
    /// Whose book it is, for observers.
    pub(crate) owner: (Device, Option<&'static str>),
    pub(crate) history: History,
}

/// The most there was while a scope was the newest one. The peak of a scope is the most over it and
/// all newer ones, so an event updates one entry only; closing a scope folds it into the one
/// before.
#[derive(Clone, Copy, Debug)]
struct ScopePeaks {
    id: u64,
    allocated_bytes: i64,
    reserved_bytes: i64,
}

impl Ledger {
    pub(crate) fn new(max_split_bytes: usize) -> Ledger {
        Ledger {
            counters: Counters::default(),
            num_alloc_retries: 0,
            num_ooms: 0,
            num_sync_all_streams: 0,
            num_device_alloc: 0,
            num_device_free: 0,
            max_split_bytes,
            peak_epoch: 1,
            blocks: Breakdown::default(),
            external: Breakdown::default(),
            scopes: Vec::new(),
            next_scope: 0,
            owner: (Device::CPU, None),
            history: History::default(),
        }
    }

    /// Books a block handed out.
    #[inline]
    pub(crate) fn allocated(&mut self, event: &Event) {
        let (pool, bytes) = (event.pool, event.allocated_bytes as i64);
        self.blocks.change((event.origin, event.kind), bytes, 1, self.peak_epoch);
        self.counters.add(Metric::Allocation, pool, 1);
        self.counters.add(Metric::Active, pool, 1);
        self.counters.add(Metric::RequestedBytes, pool, event.requested_bytes as i64);
        self.counters.add(Metric::ActiveBytes, pool, bytes);
        let peak = self.counters.peak(Metric::AllocatedBytes);
        self.counters.add(Metric::AllocatedBytes, pool, bytes);
        if self.counters.peak(Metric::AllocatedBytes) > peak {
            self.peak_epoch += 1;
        }
        if event.allocated_bytes >= self.max_split_bytes {
            self.counters.add(Metric::OversizeAllocations, Pool::Large, 1);
        }
        self.split_changed(event);
        if let Some(scope) = self.scopes.last_mut() {
            scope.allocated_bytes =
                scope.allocated_bytes.max(self.counters.current(Metric::AllocatedBytes));
        }
        self.tell(event);
        self.history.record(event);
    }

    /// Books that a block's owner let go of it and that nothing else uses it: both events below at
    /// once.
    #[inline]
    pub(crate) fn freed(&mut self, event: &Event) {
        self.let_go(event);
        self.unused(event);
        self.tell(event);
        self.history.record_freed(event);
    }

    /// Books that a block's owner let go of it.
    pub(crate) fn free_requested(&mut self, event: &Event) {
        self.let_go(event);
        self.tell(event);
        self.history.record(event);
    }

    /// Tells observers, if there are any.
    #[inline(always)]
    fn tell(&self, event: &Event) {
        if watch::is_on() {
            let (device, arena) = self.owner;
            watch::tell(&BookChange {
                device,
                arena,
                event: *event,
                allocated_bytes: self.allocated_bytes(),
                reserved_bytes: self.reserved_bytes(),
            });
        }
    }

    /// Books that nothing uses a block any more.
    pub(crate) fn free_completed(&mut self, event: &Event) {
        self.unused(event);
        self.history.record(event);
    }

    #[inline]
    fn let_go(&mut self, event: &Event) {
        let (pool, bytes) = (event.pool, event.allocated_bytes as i64);
        self.blocks.change((event.origin, event.kind), -bytes, -1, self.peak_epoch);
        self.counters.subtract(Metric::Allocation, pool, 1);
        self.counters.subtract(Metric::AllocatedBytes, pool, bytes);
        if event.allocated_bytes >= self.max_split_bytes {
            self.counters.subtract(Metric::OversizeAllocations, Pool::Large, 1);
        }
    }

    #[inline]
    fn unused(&mut self, event: &Event) {
        let (pool, bytes) = (event.pool, event.allocated_bytes as i64);
        self.counters.subtract(Metric::Active, pool, 1);
        self.counters.subtract(Metric::ActiveBytes, pool, bytes);
        self.counters.subtract(Metric::RequestedBytes, pool, event.requested_bytes as i64);
        self.split_changed(event);
    }

    /// Books a live block's change of kind.
    pub(crate) fn kind_changed(&mut self, event: &Event, from: Kind) {
        let bytes = event.allocated_bytes as i64;
        self.blocks.change((event.origin, from), -bytes, -1, self.peak_epoch);
        self.blocks.change((event.origin, event.kind), bytes, 1, self.peak_epoch);
        self.history.record(event);
    }

    /// Books that a live block belongs to another origin.
    pub(crate) fn origin_changed(&mut self, event: &Event) {
        let from = event.stamp.other_origin.unwrap_or(OriginId::UNKNOWN);
        let bytes = event.allocated_bytes as i64;
        self.blocks.change((from, event.kind), -bytes, -1, self.peak_epoch);
        self.blocks.change((event.origin, event.kind), bytes, 1, self.peak_epoch);
        self.history.record(event);
    }

    /// Books whatever concerns no single block of ours.
    pub(crate) fn apply(&mut self, event: &Event) {
        let (pool, bytes) = (event.pool, event.allocated_bytes as i64);
        let oversize = event.allocated_bytes >= self.max_split_bytes;
        match event.action {
            Action::SegmentReserved => {
                self.num_device_alloc += 1;
                self.counters.add(Metric::Segment, pool, 1);
                self.counters.add(Metric::ReservedBytes, pool, bytes);
                if oversize {
                    self.counters.add(Metric::OversizeSegments, Pool::Large, 1);
                }
                self.note_reserved();
            }
            // Pages are bytes and calls of the source, and no segments: as PyTorch counts them.
            Action::SegmentMapped => {
                self.num_device_alloc += 1;
                self.counters.add(Metric::ReservedBytes, pool, bytes);
                self.note_reserved();
            }
            Action::SegmentUnmapped => {
                self.num_device_free += 1;
                self.counters.subtract(Metric::ReservedBytes, pool, bytes);
            }
            Action::SegmentReleased => {
                self.num_device_free += 1;
                self.counters.subtract(Metric::Segment, pool, 1);
                self.counters.subtract(Metric::ReservedBytes, pool, bytes);
                if oversize {
                    self.counters.subtract(Metric::OversizeSegments, Pool::Large, 1);
                }
            }
            Action::ExternalAdded | Action::ExternalRemoved => {
                let added = event.action == Action::ExternalAdded;
                let (bytes, count) = if added { (bytes, 1) } else { (-bytes, -1) };
                let row = (event.origin, event.kind);
                self.external.change(row, bytes, count, self.peak_epoch);
                self.counters.change(Metric::ExternalBytes, Pool::Large, bytes);
            }
            Action::OutOfMemory => self.num_ooms += 1,
            // These have functions of their own, above: they happen all the time.
            Action::Allocated
            | Action::FreeRequested
            | Action::FreeCompleted
            | Action::KindChanged { .. }
            | Action::OriginChanged => {
                debug_assert!(false, "{:?} has a function of its own", event.action);
            }
        }
        self.tell(event);
        self.history.record(event);
    }

    /// Tells the newest scope how much is reserved now.
    fn note_reserved(&mut self) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.reserved_bytes =
                scope.reserved_bytes.max(self.counters.current(Metric::ReservedBytes));
        }
    }

    #[inline]
    fn split_changed(&mut self, event: &Event) {
        if event.split.blocks != 0 {
            self.counters.change(Metric::InactiveSplit, event.pool, event.split.blocks);
        }
        if event.split.bytes != 0 {
            self.counters.change(Metric::InactiveSplitBytes, event.pool, event.split.bytes);
        }
    }

    /// Counts an allocation that succeeded only after cached segments were released.
    pub(crate) fn retried(&mut self) {
        self.num_alloc_retries += 1;
    }

    /// Counts a wait for all streams.
    pub(crate) fn synchronized(&mut self) {
        self.num_sync_all_streams += 1;
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.counters.current(Metric::AllocatedBytes) as usize
    }

    pub(crate) fn active_bytes(&self) -> usize {
        self.counters.current(Metric::ActiveBytes) as usize
    }

    pub(crate) fn reserved_bytes(&self) -> usize {
        self.counters.current(Metric::ReservedBytes) as usize
    }

    pub(crate) fn external_bytes(&self) -> usize {
        self.counters.current(Metric::ExternalBytes) as usize
    }

    pub(crate) fn inactive_split_bytes(&self) -> usize {
        self.counters.current(Metric::InactiveSplitBytes) as usize
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            allocation: self.counters.report(Metric::Allocation),
            segment: self.counters.report(Metric::Segment),
            active: self.counters.report(Metric::Active),
            inactive_split: self.counters.report(Metric::InactiveSplit),
            allocated_bytes: self.counters.report(Metric::AllocatedBytes),
            reserved_bytes: self.counters.report(Metric::ReservedBytes),
            active_bytes: self.counters.report(Metric::ActiveBytes),
            inactive_split_bytes: self.counters.report(Metric::InactiveSplitBytes),
            requested_bytes: self.counters.report(Metric::RequestedBytes),
            oversize_allocations: self.counters.report(Metric::OversizeAllocations).all,
            oversize_segments: self.counters.report(Metric::OversizeSegments).all,
            num_alloc_retries: self.num_alloc_retries,
            num_ooms: self.num_ooms,
            // `usize::MAX` (no limit) shows as -1, as in PyTorch.
            max_split_size: self.max_split_bytes as i64,
            num_sync_all_streams: self.num_sync_all_streams,
            num_device_alloc: self.num_device_alloc,
            num_device_free: self.num_device_free,
            num_oom_rejections: 0,
            external_bytes: self.counters.report(Metric::ExternalBytes).all,
        }
    }

    /// Peaks start again from now; open scopes do not notice.
    pub(crate) fn reset_peaks(&mut self) {
        self.counters.reset_peaks();
        self.peak_epoch += 1;
    }

    /// Totals start again from zero.
    pub(crate) fn reset_totals(&mut self) {
        self.counters.reset_totals();
        self.num_alloc_retries = 0;
        self.num_ooms = 0;
        self.num_sync_all_streams = 0;
        self.num_device_alloc = 0;
        self.num_device_free = 0;
    }

    /// The newest peak of allocated bytes, as a moment for the breakdowns.
    pub(crate) fn peak(&self) -> Moment {
        Moment::Peak(self.peak_epoch)
    }

    pub(crate) fn by_origin(&self, moment: Moment) -> Vec<BreakdownRow> {
        self.blocks.by_origin(moment)
    }

    pub(crate) fn by_kind(&self, moment: Moment) -> Vec<BreakdownRow> {
        self.blocks.by_kind(moment)
    }

    pub(crate) fn external_by_origin(&self, moment: Moment) -> Vec<BreakdownRow> {
        self.external.by_origin(moment)
    }

    /// Opens a scope; its peaks start at what there is now.
    pub(crate) fn open_scope(&mut self) -> u64 {
        self.next_scope += 1;
        self.scopes.push(ScopePeaks {
            id: self.next_scope,
            allocated_bytes: self.counters.current(Metric::AllocatedBytes),
            reserved_bytes: self.counters.current(Metric::ReservedBytes),
        });
        self.next_scope
    }

    /// Peak allocated and reserved bytes of an open scope so far.
    pub(crate) fn scope_peaks(&self, id: u64) -> (usize, usize) {
        let since = self.scopes.iter().rev().take_while(|scope| scope.id >= id);
        let (allocated, reserved) = since.fold((0, 0), |(allocated, reserved), scope| {
            (scope.allocated_bytes.max(allocated), scope.reserved_bytes.max(reserved))
        });
        (allocated as usize, reserved as usize)
    }

    /// Closes a scope, which need not be the newest.
    pub(crate) fn close_scope(&mut self, id: u64) {
        let Some(place) = self.scopes.iter().rposition(|scope| scope.id == id) else { return };
        let closed = self.scopes.remove(place);
        if let Some(before) = place.checked_sub(1).map(|place| &mut self.scopes[place]) {
            before.allocated_bytes = before.allocated_bytes.max(closed.allocated_bytes);
            before.reserved_bytes = before.reserved_bytes.max(closed.reserved_bytes);
        }
    }

    /// Current values by name, for the audit.
    pub(crate) fn current(&self) -> LedgerCurrent {
        let both = |metric| self.counters.current_by_pool(metric);
        LedgerCurrent {
            allocation: both(Metric::Allocation),
            segment: both(Metric::Segment),
            active: both(Metric::Active),
            inactive_split: both(Metric::InactiveSplit),
            allocated_bytes: both(Metric::AllocatedBytes),
            reserved_bytes: both(Metric::ReservedBytes),
            active_bytes: both(Metric::ActiveBytes),
            inactive_split_bytes: both(Metric::InactiveSplitBytes),
            requested_bytes: both(Metric::RequestedBytes),
            oversize: [
                self.counters.current(Metric::OversizeAllocations),
                self.counters.current(Metric::OversizeSegments),
            ],
        }
    }
}

/// What the counters say there is now, [small pool, large pool]; `audit.rs` computes the same from
/// the blocks themselves and compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LedgerCurrent {
    pub(crate) allocation: [i64; 2],
    pub(crate) segment: [i64; 2],
    pub(crate) active: [i64; 2],
    pub(crate) inactive_split: [i64; 2],
    pub(crate) allocated_bytes: [i64; 2],
    pub(crate) reserved_bytes: [i64; 2],
    pub(crate) active_bytes: [i64; 2],
    pub(crate) inactive_split_bytes: [i64; 2],
    pub(crate) requested_bytes: [i64; 2],
    /// [allocations, segments]
    pub(crate) oversize: [i64; 2],
}

/// The kind number is part of a row's place, so it must stay below the number of kinds.
const _: () = assert!((Kind::Unknown as usize) < Kind::COUNT);
