//! What the history wants to know of an event beside the event: when it happened and, of a free,
//! where. Finding out takes as long as the rest of recording it, so it is done before the arena's
//! lock is taken. The entries themselves are in `history.rs`, the clock in `clock.rs`.

use crate::configuration::HistoryLevel;
use crate::origin::intern::OriginId;
use crate::origin::site::Site;
use crate::platform::clock::Clock;

/// When and where. The default is to find out when the event is recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    /// 0 is not known yet.
    pub(crate) ticks: u64,
    /// Of a free, where it happened; of a change of origin, the one before.
    pub(crate) other_origin: Option<OriginId>,
}

impl Stamp {
    #[inline]
    pub(crate) fn of_allocation(level: HistoryLevel) -> Stamp {
        let ticks = if level >= HistoryLevel::Alloc { Clock::ticks() } else { 0 };
        Stamp { ticks, other_origin: None }
    }

    #[inline]
    pub(crate) fn of_free(level: HistoryLevel) -> Stamp {
        match level {
            HistoryLevel::Off | HistoryLevel::State => Stamp::default(),
            HistoryLevel::Alloc => Stamp { ticks: Clock::ticks(), other_origin: None },
            HistoryLevel::All => {
                Stamp { ticks: Clock::ticks(), other_origin: Some(free_in_force()) }
            }
        }
    }
}

/// The origin of a free on this thread now.
#[inline]
pub(crate) fn free_in_force() -> OriginId {
    OriginId::intern("free", Site::in_force())
}
