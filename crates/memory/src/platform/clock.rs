//! Times for history entries, cheap enough to take at every allocation: the processor's tick
//! counter where there is one (about a third of the cost of asking the system), turned into
//! microseconds only when entries are read. The rate comes from two readings of both clocks, one
//! when recording began and one now, so nothing is measured in advance and both ends are exact.

#[cfg(not(miri))]
use std::time::{SystemTime, UNIX_EPOCH};

/// When recording began, on both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    ticks: u64,
    time_ns: u64,
}

/// Two points that ticks are placed between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    began: Clock,
    ns_per_tick: f64,
}

impl Clock {
    /// Both clocks now. The thread may be interrupted between the two, so the closest of a few
    /// tries is taken.
    pub(crate) fn start() -> Clock {
        let attempt = || {
            let before = Clock::ticks();
            let time_ns = system_ns();
            let gap = Clock::ticks().saturating_sub(before);
            (gap, Clock { ticks: before + gap / 2, time_ns })
        };
        let mut best = attempt();
        for _ in 0..4 {
            let (gap, clock) = attempt();
            if gap < best.0 {
                best = (gap, clock);
            }
        }
        best.1
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(crate) fn ticks() -> u64 {
        // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    #[inline(always)]
    pub(crate) fn ticks() -> u64 {
        system_ns()
    }

    pub(crate) fn reading(&self) -> Reading {
        let now = Clock::start();
        let ticks = now.ticks.saturating_sub(self.ticks).max(1) as f64;
        let ns = now.time_ns.saturating_sub(self.time_ns) as f64;
        Reading { began: *self, ns_per_tick: ns / ticks }
    }
}

impl Reading {
    /// Microseconds since 1970 at a tick count.
    pub(crate) fn time_us(&self, ticks: u64) -> u64 {
        let since = ticks.saturating_sub(self.began.ticks) as f64 * self.ns_per_tick;
        (self.began.time_ns + since as u64) / 1000
    }
}

/// Nanoseconds since 1970; they fit a `u64` until the year 2554.
#[cfg(not(miri))]
pub(crate) fn system_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Miri keeps programs from the system's clock, but counts time of its own.
#[cfg(miri)]
pub(crate) fn system_ns() -> u64 {
    static BEGAN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGAN.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_microseconds_at_the_rate_between_two_readings() {
        let began = Clock { ticks: 1_000, time_ns: 5_000_000_000 };
        let reading = Reading { began, ns_per_tick: 0.5 };
        assert_eq!(reading.time_us(1_000), 5_000_000);
        assert_eq!(reading.time_us(5_000), 5_000_002);
        // Another processor's counter may be a little behind.
        assert_eq!(reading.time_us(900), 5_000_000);
    }

    #[test]
    fn both_ends_are_the_systems_times() {
        let began = Clock::start();
        let before_us = system_ns() / 1000;
        let reading = began.reading();
        assert_eq!(reading.time_us(began.ticks), began.time_ns / 1000);
        assert!(began.time_ns / 1000 <= before_us);
        assert!(reading.ns_per_tick >= 0.0);
    }
}
