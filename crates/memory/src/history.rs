//! What is recorded of the past, and how much of it. The entries themselves are events of the ledger;
//! a snapshot carries them as its traces.

use std::fmt;

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
