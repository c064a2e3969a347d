//! The past of an arena: its last events, oldest dropped first. The ledger hands every event over
//! under the arena's lock, so the order here is the order in which they happened, and a snapshot
//! that holds the lock sees entries and blocks that agree.
//!
//! Rings for each thread, merged by a sequence number, were weighed and refused: an entry written
//! after the lock is gone can miss the snapshot that its block is in (PyTorch's viewer then fails),
//! and one written under the lock gains nothing from a ring of its own. What costs time is the
//! clock, not the ring: see `clock.rs`. So the moment, and where a free happens, are found out
//! before the lock (`stamp.rs`), and a free that nothing delays is one write.

use crate::book::event::{Action, Event, SplitChange};
use crate::book::pool::Pool;
use crate::book::stamp::{Stamp, free_in_force};
use crate::configuration::HistoryLevel;
use crate::origin::annotations;
use crate::origin::intern::OriginId;
use crate::origin::kind::Kind;
use crate::platform::clock::Clock;
use crate::platform::prefetch;
use crate::platform::source::StreamId;

/// One recorded event.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its place in the arena's order of recorded events, from 0. Numbers have no gaps, so the
    /// first one kept tells how many were dropped.
    pub sequence: u64,
    /// When, in microseconds since 1970. Never earlier than the entry before.
    pub time_us: u64,
    /// What.
    pub event: Event,
    /// Where a free happened, at [`HistoryLevel::All`]: the line in force, module and phase.
    pub freed_by: Option<OriginId>,
    /// Of a change of origin, the origin before.
    pub origin_before: Option<OriginId>,
}

/// An entry as it is kept: one cache line, so that recording touches one.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Stored {
    ticks: u64,
    address: usize,
    requested_bytes: usize,
    allocated_bytes: usize,
    step: u64,
    stream: StreamId,
    origin: OriginId,
    /// Of a free, where it happened; of a change of origin, the one before.
    other_origin: OriginId,
    action: Action,
    pool: Pool,
    kind: Kind,
    /// A free that nothing delays is two events at one moment, kept as one: this is the request,
    /// and the completion follows.
    completed: bool,
}

const _: () = assert!(size_of::<Stored>() == 64, "an entry fits a cache line");

/// The recorder of one arena, written by its ledger under the arena's lock. All but the clock is in
/// one cache line, away from what is read at every allocation and hardly ever written.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct History {
    level: HistoryLevel,
    max_entries: usize,
    /// Grows up to `max_entries`; from then on `oldest` goes round. What is kept as one may be two
    /// entries, so there may be more entries here than are given out.
    ring: Vec<Stored>,
    oldest: usize,
    /// How many were recorded since the history was last off.
    recorded: u64,
    clock: Clock,
}

impl History {
    /// Changes what is recorded from now on; returns the previous level. Entries past a smaller
    /// maximum are dropped, oldest first, and `Off` drops all.
    pub(crate) fn set(&mut self, level: HistoryLevel, max_entries: usize) -> HistoryLevel {
        let previous = std::mem::replace(&mut self.level, level);
        let (did, does) = (previous >= HistoryLevel::Alloc, level >= HistoryLevel::Alloc);
        if did != does {
            annotations::recording(does);
        }
        self.max_entries = max_entries;
        self.ring.rotate_left(self.oldest);
        self.oldest = 0;
        let excess = self.ring.len().saturating_sub(max_entries);
        self.ring.drain(..excess);
        if level == HistoryLevel::Off {
            self.ring = Vec::new();
            self.recorded = 0;
        }
        if does && !did && self.ring.is_empty() {
            self.clock = Clock::start();
        }
        previous
    }

    pub(crate) fn max_entries(&self) -> usize {
        self.max_entries
    }

    /// The entries kept, oldest first.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let reading = self.clock.reading();
        let (newer, older) = self.ring.split_at(self.oldest);
        let ordered = older.iter().chain(newer);
        let kept: usize = ordered.clone().map(|stored| 1 + usize::from(stored.completed)).sum();
        let excess = kept.saturating_sub(self.max_entries);
        let mut latest_us = 0;
        let mut entries = Vec::with_capacity(kept);
        for stored in ordered {
            let actions = [Some(stored.action), stored.completed.then_some(Action::FreeCompleted)];
            // Times are taken before the lock, and ticks of two processors may differ by a little;
            // the order is the sequence's.
            latest_us = reading.time_us(stored.ticks).max(latest_us);
            for action in actions.into_iter().flatten() {
                let sequence = self.recorded - (kept - entries.len()) as u64;
                entries.push(stored.entry(action, sequence, latest_us));
            }
        }
        entries.drain(..excess);
        entries
    }

    #[inline]
    pub(crate) fn record(&mut self, event: &Event) {
        if self.level >= HistoryLevel::Alloc {
            // Of a copy, so that the event itself need not be in memory while nothing is recorded.
            self.push(&{ *event }, false);
        }
    }

    /// Records the request of a free and its completion.
    #[inline]
    pub(crate) fn record_freed(&mut self, event: &Event) {
        if self.level >= HistoryLevel::Alloc {
            self.push(&{ *event }, true);
        }
    }

    #[inline(never)]
    fn push(&mut self, event: &Event, completed: bool) {
        let stored = self.stored(event, completed);
        if self.ring.len() < self.max_entries {
            self.ring.push(stored);
        } else if let Some(place) = self.ring.get_mut(self.oldest) {
            *place = stored;
            self.oldest = if self.oldest + 1 == self.ring.len() { 0 } else { self.oldest + 1 };
        }
        self.recorded += 1 + u64::from(completed);
        // The next entry's line was asked for by the one before.
        if let Some(coming) = self.ring.get(self.oldest + 1) {
            prefetch::for_write(coming);
        }
    }

    /// Asks for the line that the next entry will be written to. Unlocking waits until what was
    /// written has its line, so that must not be asked for only at the end.
    #[inline]
    pub(crate) fn prepare(&self) {
        if self.level >= HistoryLevel::Alloc
            && let Some(coming) = self.ring.get(self.oldest)
        {
            prefetch::for_write(coming);
        }
    }

    #[inline]
    fn stored(&self, event: &Event, completed: bool) -> Stored {
        let is_free = matches!(event.action, Action::FreeRequested | Action::FreeCompleted);
        let other_origin = match event.stamp.other_origin {
            Some(origin) => origin,
            None if is_free && self.level == HistoryLevel::All => free_in_force(),
            None => OriginId::UNKNOWN,
        };
        let ticks = if event.stamp.ticks != 0 { event.stamp.ticks } else { Clock::ticks() };
        Stored {
            ticks,
            address: event.address,
            requested_bytes: event.requested_bytes,
            allocated_bytes: event.allocated_bytes,
            step: event.step,
            stream: event.stream,
            origin: event.origin,
            other_origin,
            action: event.action,
            pool: event.pool,
            kind: event.kind,
            completed,
        }
    }
}

impl Stored {
    fn entry(&self, action: Action, sequence: u64, time_us: u64) -> Entry {
        let event = Event {
            action,
            pool: self.pool,
            kind: self.kind,
            origin: self.origin,
            address: self.address,
            requested_bytes: self.requested_bytes,
            allocated_bytes: self.allocated_bytes,
            stream: self.stream,
            step: self.step,
            split: SplitChange::default(),
            stamp: Stamp::default(),
        };
        let changed = action == Action::OriginChanged;
        let freed_by =
            (!changed && self.other_origin != OriginId::UNKNOWN).then_some(self.other_origin);
        let origin_before = changed.then_some(self.other_origin);
        Entry { sequence, time_us, event, freed_by, origin_before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::site::Site;

    fn event(action: Action, address: usize) -> Event {
        Event {
            action,
            pool: Pool::Small,
            kind: Kind::Activation,
            origin: OriginId::UNKNOWN,
            address,
            requested_bytes: 10,
            allocated_bytes: 512,
            stream: StreamId::DEFAULT,
            step: 3,
            split: SplitChange::default(),
            stamp: Stamp::default(),
        }
    }

    fn addresses(history: &History) -> Vec<usize> {
        history.entries().iter().map(|entry| entry.event.address).collect()
    }

    #[test]
    fn keeps_the_newest_in_order_and_numbers_without_gaps() {
        let mut history = History::default();
        history.record(&event(Action::Allocated, 99));
        assert!(history.entries().is_empty(), "nothing is recorded while off");
        history.set(HistoryLevel::State, 4);
        history.record(&event(Action::Allocated, 99));
        assert!(history.entries().is_empty(), "the state has no events");
        assert_eq!(history.set(HistoryLevel::Alloc, 4), HistoryLevel::State);
        (1..=3).for_each(|n| history.record(&event(Action::Allocated, n)));
        assert_eq!(addresses(&history), [1, 2, 3]);
        (4..=11).for_each(|n| history.record(&event(Action::Allocated, n)));
        assert_eq!(addresses(&history), [8, 9, 10, 11]);
        let entries = history.entries();
        assert_eq!(entries.iter().map(|e| e.sequence).collect::<Vec<_>>(), [7, 8, 9, 10]);
        assert!(entries.windows(2).all(|pair| pair[0].time_us <= pair[1].time_us));
        assert_eq!(entries[0].event.step, 3);
        assert_eq!(entries[0].event.kind, Kind::Activation);
    }

    #[test]
    fn a_smaller_maximum_drops_the_oldest_and_a_larger_one_goes_on() {
        let mut history = History::default();
        history.set(HistoryLevel::Alloc, 4);
        (1..=6).for_each(|n| history.record(&event(Action::Allocated, n)));
        history.set(HistoryLevel::Alloc, 2);
        assert_eq!(addresses(&history), [5, 6]);
        history.set(HistoryLevel::Alloc, 3);
        (7..=8).for_each(|n| history.record(&event(Action::Allocated, n)));
        assert_eq!(addresses(&history), [6, 7, 8]);
        assert_eq!(history.entries()[0].sequence, 5);
        history.set(HistoryLevel::Off, 3);
        assert!(history.entries().is_empty());
    }

    #[test]
    fn a_free_at_once_is_two_entries_and_counts_as_two() {
        let mut history = History::default();
        history.set(HistoryLevel::Alloc, 5);
        for n in 1..=4 {
            history.record(&event(Action::Allocated, n));
            history.record_freed(&event(Action::FreeRequested, n));
        }
        let entries = history.entries();
        // Twelve events, the last five of them: the one cut through is given by its second half.
        let seen: Vec<_> =
            entries.iter().map(|e| (e.sequence, e.event.address, e.event.action)).collect();
        assert_eq!(
            seen,
            [
                (7, 3, Action::FreeRequested),
                (8, 3, Action::FreeCompleted),
                (9, 4, Action::Allocated),
                (10, 4, Action::FreeRequested),
                (11, 4, Action::FreeCompleted),
            ]
        );
        history.set(HistoryLevel::Alloc, 1);
        assert_eq!(addresses(&history), [4]);
        assert_eq!(history.entries()[0].event.action, Action::FreeCompleted);
    }

    #[test]
    fn no_entries_at_most_is_no_entries() {
        let mut history = History::default();
        history.set(HistoryLevel::All, 0);
        history.record(&event(Action::Allocated, 1));
        assert!(history.entries().is_empty());
    }

    #[test]
    fn only_the_highest_level_says_where_a_free_happened() {
        for (level, known) in [(HistoryLevel::Alloc, false), (HistoryLevel::All, true)] {
            let mut history = History::default();
            history.set(level, 10);
            history.record(&event(Action::Allocated, 1));
            crate::origin::site::with_site(Site::Foreign(4), || {
                let stamp = Stamp::of_free(level);
                history.record(&Event { stamp, ..event(Action::FreeRequested, 1) });
                history.record(&Event { stamp, ..event(Action::FreeCompleted, 1) });
                history.record_freed(&event(Action::FreeRequested, 2));
            });
            let entries = history.entries();
            assert_eq!(entries[0].freed_by, None);
            for free in &entries[1..] {
                assert_eq!(
                    free.freed_by.map(|id| id.get().site),
                    known.then_some(Site::Foreign(4))
                );
            }
            assert_eq!(entries[1].time_us, entries[2].time_us);
            assert_eq!(entries[3].time_us, entries[4].time_us);
        }
    }
}
