//! The setting of how much the history records. The history itself is `book/history.rs`.

use std::fmt;

/// How much the history records, in PyTorch's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum HistoryLevel {
    /// Nothing, and what was recorded is forgotten. Live blocks have their origins all the same.
    #[default]
    Off,
    /// No events: snapshots show the state alone.
    State,
    /// Events, each with the origin of its allocation.
    Alloc,
    /// Events; frees also say where they happened.
    All,
}

impl HistoryLevel {
    /// The level numbered `number`; numbers past the last one are the last.
    #[inline]
    pub(crate) const fn from_number(number: u8) -> HistoryLevel {
        match number {
            0 => HistoryLevel::Off,
            1 => HistoryLevel::State,
            2 => HistoryLevel::Alloc,
            _ => HistoryLevel::All,
        }
    }
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
