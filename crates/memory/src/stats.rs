//! The counters: the types that the ledger keeps, and the report made of them under PyTorch's names.
//! Only the ledger changes them (`ledger.rs`).

use crate::size_class::Pool;

/// A counter with its history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Now.
    pub current: i64,
    /// The most there was since the peaks were reset.
    pub peak: i64,
    /// All that was added since the totals were reset.
    pub allocated: i64,
    /// All that was taken away since the totals were reset.
    pub freed: i64,
}

/// A counter over both pools and of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStat {
    /// Both pools.
    pub all: Stat,
    /// The small pool.
    pub small_pool: Stat,
    /// The large pool.
    pub large_pool: Stat,
}

/// A counter as the ledger keeps it: `freed` and the figures over both pools follow from the rest, so
/// that an event writes as little as possible.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    current: [i64; 2],
    peak: [i64; 2],
    added: [i64; 2],
    /// `current` when the totals were last reset: added - freed = current - base.
    base: [i64; 2],
    peak_all: i64,
}

impl Counter {
    #[inline]
    pub(crate) fn add(&mut self, pool: Pool, amount: i64) {
        let pool = pool as usize;
        // Totals only grow; wrapping beats a panic in a program that runs for years.
        self.current[pool] = self.current[pool].wrapping_add(amount);
        self.added[pool] = self.added[pool].wrapping_add(amount);
        self.peak[pool] = self.peak[pool].max(self.current[pool]);
        self.peak_all = self.peak_all.max(self.current());
    }

    #[inline]
    pub(crate) fn subtract(&mut self, pool: Pool, amount: i64) {
        let current = &mut self.current[pool as usize];
        *current = current.wrapping_sub(amount);
    }

    /// Adds a positive amount or subtracts a negative one, as PyTorch books net changes.
    #[inline]
    pub(crate) fn change(&mut self, pool: Pool, amount: i64) {
        if amount > 0 {
            self.add(pool, amount);
        } else {
            self.subtract(pool, -amount);
        }
    }

    #[inline]
    pub(crate) fn current(&self) -> i64 {
        self.current[0].wrapping_add(self.current[1])
    }

    pub(crate) fn current_in(&self, pool: Pool) -> i64 {
        self.current[pool as usize]
    }

    #[inline]
    pub(crate) fn peak(&self) -> i64 {
        self.peak_all
    }

    pub(crate) fn reset_peak(&mut self) {
        self.peak = self.current;
        self.peak_all = self.current();
    }

    pub(crate) fn reset_totals(&mut self) {
        self.added = [0; 2];
        self.base = self.current;
    }

    pub(crate) fn report(&self) -> PoolStat {
        let of = |pool: usize| Stat {
            current: self.current[pool],
            peak: self.peak[pool],
            allocated: self.added[pool],
            freed: self.base[pool].wrapping_add(self.added[pool]).wrapping_sub(self.current[pool]),
        };
        let (small_pool, large_pool) = (of(0), of(1));
        let all = Stat {
            current: self.current(),
            peak: self.peak_all,
            allocated: small_pool.allocated.wrapping_add(large_pool.allocated),
            freed: small_pool.freed.wrapping_add(large_pool.freed),
        };
        PoolStat { all, small_pool, large_pool }
    }
}

/// Every counter of an arena at one moment.
///
/// `allocation`, `segment`, `active` and `inactive_split` count blocks or segments; the others are
/// bytes. Active blocks are the allocated ones and those whose free waits for another stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Blocks that are allocated.
    pub allocation: PoolStat,
    /// Segments that are reserved.
    pub segment: PoolStat,
    /// Blocks that are allocated or wait for another stream.
    pub active: PoolStat,
    /// Free blocks that are parts of a split segment.
    pub inactive_split: PoolStat,
    /// Bytes of allocated blocks, after rounding.
    pub allocated_bytes: PoolStat,
    /// Bytes of reserved segments.
    pub reserved_bytes: PoolStat,
    /// Bytes of active blocks, after rounding.
    pub active_bytes: PoolStat,
    /// Bytes of free blocks that are parts of a split segment.
    pub inactive_split_bytes: PoolStat,
    /// Bytes of active blocks, as asked for.
    pub requested_bytes: PoolStat,
    /// Blocks that are too large to split.
    pub oversize_allocations: Stat,
    /// Segments that are too large to split.
    pub oversize_segments: Stat,
    /// Allocations that succeeded only after cached segments were released.
    pub num_alloc_retries: i64,
    /// Allocations that failed.
    pub num_ooms: i64,
    /// The size from which blocks are not split; -1 where there is none.
    pub max_split_size: i64,
    /// Times that all streams had to be waited for.
    pub num_sync_all_streams: i64,
    /// Segments taken from the source.
    pub num_device_alloc: i64,
    /// Segments given back to the source.
    pub num_device_free: i64,
    /// Allocations refused before the source was asked. Always 0: the limit is checked inside the
    /// ladder, so a refusal still tries to take memory back.
    pub num_oom_rejections: i64,
    /// Foreign bytes in the book (NumPy, DLPack, mapped files). Not one of PyTorch's keys.
    pub external_bytes: Stat,
}

impl Stats {
    /// The counters under PyTorch's 123 names, sorted by name.
    ///
    /// ```
    /// use plimsoll_memory::Stats;
    /// let entries = Stats::default().entries();
    /// assert_eq!(entries.len(), 123);
    /// assert_eq!(entries[0].0, "active.all.allocated");
    /// ```
    pub fn entries(&self) -> Vec<(String, i64)> {
        let mut entries = Vec::with_capacity(123);
        let mut stat = |name: String, stat: &Stat| {
            entries.push((format!("{name}.allocated"), stat.allocated));
            entries.push((format!("{name}.current"), stat.current));
            entries.push((format!("{name}.freed"), stat.freed));
            entries.push((format!("{name}.peak"), stat.peak));
        };
        for (name, counter) in self.pool_stats() {
            stat(format!("{name}.all"), &counter.all);
            stat(format!("{name}.large_pool"), &counter.large_pool);
            stat(format!("{name}.small_pool"), &counter.small_pool);
        }
        stat("oversize_allocations".to_string(), &self.oversize_allocations);
        stat("oversize_segments".to_string(), &self.oversize_segments);
        let scalars = [
            ("max_split_size", self.max_split_size),
            ("num_alloc_retries", self.num_alloc_retries),
            ("num_device_alloc", self.num_device_alloc),
            ("num_device_free", self.num_device_free),
            ("num_oom_rejections", self.num_oom_rejections),
            ("num_ooms", self.num_ooms),
            ("num_sync_all_streams", self.num_sync_all_streams),
        ];
        entries.extend(scalars.map(|(name, value)| (name.to_string(), value)));
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        entries
    }

    /// The counters that are kept for each pool, under PyTorch's names.
    pub fn pool_stats(&self) -> [(&'static str, &PoolStat); 9] {
        [
            ("active", &self.active),
            ("active_bytes", &self.active_bytes),
            ("allocated_bytes", &self.allocated_bytes),
            ("allocation", &self.allocation),
            ("inactive_split", &self.inactive_split),
            ("inactive_split_bytes", &self.inactive_split_bytes),
            ("requested_bytes", &self.requested_bytes),
            ("reserved_bytes", &self.reserved_bytes),
            ("segment", &self.segment),
        ]
    }

    /// One counter by its name in PyTorch.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.entries().into_iter().find(|(entry, _)| entry == name).map(|(_, value)| value)
    }

    /// Bytes reserved but not allocated.
    pub fn cached_bytes(&self) -> i64 {
        self.reserved_bytes.all.current - self.allocated_bytes.all.current
    }

    /// Bytes whose owner let go of them but that another stream still uses.
    pub fn pending_bytes(&self) -> i64 {
        self.active_bytes.all.current - self.allocated_bytes.all.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_books_like_four_separate_sums() {
        let mut counter = Counter::default();
        counter.add(Pool::Small, 10);
        counter.add(Pool::Large, 5);
        counter.subtract(Pool::Small, 4);
        counter.reset_totals();
        counter.add(Pool::Small, 1);
        counter.subtract(Pool::Large, 5);
        let report = counter.report();
        assert_eq!(report.all, Stat { current: 7, peak: 15, allocated: 1, freed: 5 });
        assert_eq!(report.small_pool, Stat { current: 7, peak: 10, allocated: 1, freed: 0 });
        counter.reset_peak();
        assert_eq!(counter.report().all.peak, 7);
        assert_eq!(counter.report().large_pool.peak, 0);
    }

    #[test]
    fn names_are_unique_sorted_and_found() {
        let stats = Stats { num_ooms: 3, ..Stats::default() };
        let entries = stats.entries();
        assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(stats.get("num_ooms"), Some(3));
        assert_eq!(stats.get("reserved_bytes.small_pool.peak"), Some(0));
        assert_eq!(stats.get("nonsense"), None);
    }
}
