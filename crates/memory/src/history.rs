//! What is recorded of the past, and how much of it. The entries themselves are events of the ledger;
//! a snapshot carries them as its traces.

use std::collections::VecDeque;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::event::Event;

/// How much the history records, in PyTorch's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum HistoryLevel {
    /// Nothing.
    #[default]
    Off,
    /// No events; live blocks carry their origins into snapshots.
    State,
    /// Events, with the origin of the allocation on each.
    Alloc,
    /// Events; frees also carry where they were asked for.
    All,
}

impl fmt::Display for HistoryLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            HistoryLevel::Off => "off",
            HistoryLevel::State => "state",
            HistoryLevel::Alloc => "alloc",
            HistoryLevel::All => "all",
        })
    }
}

/// One recorded event.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its place in the arena's order of events.
    pub sequence: u64,
    /// When, in microseconds since 1970.
    pub time_us: u64,
    /// What.
    pub event: Event,
}

/// The recorder of one arena, written by its ledger under the arena's lock.
#[derive(Debug, Default)]
pub(crate) struct History {
    level: HistoryLevel,
    max_entries: usize,
    sequence: u64,
    ring: VecDeque<Entry>,
}

impl History {
    pub(crate) fn set(&mut self, level: HistoryLevel, max_entries: usize) -> HistoryLevel {
        self.max_entries = max_entries;
        std::mem::replace(&mut self.level, level)
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.ring.iter().copied().collect()
    }

    #[inline]
    pub(crate) fn record(&mut self, event: &Event) {
        if self.level >= HistoryLevel::Alloc {
            self.push(event);
        }
    }

    fn push(&mut self, event: &Event) {
        self.sequence += 1;
        if self.ring.len() >= self.max_entries {
            self.ring.pop_front();
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (sequence, time_us) = (self.sequence, time.as_micros() as u64);
        self.ring.push_back(Entry { sequence, time_us, event: *event });
    }
}
