//! The counters: the types that the ledger keeps, and the report made of them under PyTorch's
//! names. Only the ledger changes them (`ledger.rs`).

use crate::book::pool::Pool;

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

/// What the ledger counts for each pool, as a place in its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Metric {
    Allocation = 0,
    Active = 1,
    AllocatedBytes = 2,
    ActiveBytes = 3,
    RequestedBytes = 4,
    InactiveSplit = 5,
    InactiveSplitBytes = 6,
    ReservedBytes = 7,
    Segment = 8,
    OversizeAllocations = 9,
    OversizeSegments = 10,
    ExternalBytes = 11,
}

/// How many metrics the tables have room for: two cache lines, of which an allocation and its free
/// touch only the first.
const METRICS: usize = 16;

/// One figure for each metric.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Figures([i64; METRICS]);

/// The counters as the ledger keeps them: by figure first and metric second, so that one event
/// writes few cache lines. Lines that two threads take from each other in turn are most of what
/// contention costs. `freed` and the figures over both pools follow from the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// By pool, as are the next two.
    current: [Figures; 2],
    peak: [Figures; 2],
    added: [Figures; 2],
    /// Over both pools.
    peak_all: Figures,
    /// `current` when the totals were last reset: added - freed = current - base.
    base: [Figures; 2],
}

impl Counters {
    #[inline]
    pub(crate) fn add(&mut self, metric: Metric, pool: Pool, amount: i64) {
        let (pool, at) = (pool as usize, metric as usize);
        // Totals only grow; wrapping beats a panic in a program that runs for years.
        let current = self.current[pool].0[at].wrapping_add(amount);
        self.current[pool].0[at] = current;
        self.added[pool].0[at] = self.added[pool].0[at].wrapping_add(amount);
        // Peaks are written only when they rise, so that their lines stay with both threads.
        if current > self.peak[pool].0[at] {
            self.peak[pool].0[at] = current;
        }
        let all = current.wrapping_add(self.current[1 - pool].0[at]);
        if all > self.peak_all.0[at] {
            self.peak_all.0[at] = all;
        }
    }

    #[inline]
    pub(crate) fn subtract(&mut self, metric: Metric, pool: Pool, amount: i64) {
        let current = &mut self.current[pool as usize].0[metric as usize];
        *current = current.wrapping_sub(amount);
    }

    /// Adds a positive amount or subtracts a negative one, as PyTorch books net changes.
    #[inline]
    pub(crate) fn change(&mut self, metric: Metric, pool: Pool, amount: i64) {
        if amount > 0 {
            self.add(metric, pool, amount);
        } else {
            self.subtract(metric, pool, -amount);
        }
    }

    #[inline]
    pub(crate) fn current(&self, metric: Metric) -> i64 {
        let [small, large] = self.current_by_pool(metric);
        small.wrapping_add(large)
    }

    #[inline]
    pub(crate) fn current_by_pool(&self, metric: Metric) -> [i64; 2] {
        [self.current[0].0[metric as usize], self.current[1].0[metric as usize]]
    }

    #[inline]
    pub(crate) fn peak(&self, metric: Metric) -> i64 {
        self.peak_all.0[metric as usize]
    }

    pub(crate) fn reset_peaks(&mut self) {
        self.peak = self.current;
        for at in 0..METRICS {
            self.peak_all.0[at] = self.current[0].0[at].wrapping_add(self.current[1].0[at]);
        }
    }

    pub(crate) fn reset_totals(&mut self) {
        self.added = Default::default();
        self.base = self.current;
    }

    pub(crate) fn report(&self, metric: Metric) -> PoolStat {
        let at = metric as usize;
        let of = |pool: usize| {
            let (current, allocated) = (self.current[pool].0[at], self.added[pool].0[at]);
            let freed = self.base[pool].0[at].wrapping_add(allocated).wrapping_sub(current);
            Stat { current, peak: self.peak[pool].0[at], allocated, freed }
        };
        let (small_pool, large_pool) = (of(0), of(1));
        let all = Stat {
            current: self.current(metric),
            peak: self.peak_all.0[at],
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
    /// Segments that are reserved, expandable ones not counted.
    pub segment: PoolStat,
    /// Blocks that are allocated or wait for another stream.
    pub active: PoolStat,
    /// Free blocks that are parts of a split segment; pages of an expandable one can leave by
    /// themselves, so none of its blocks count.
    pub inactive_split: PoolStat,
    /// Bytes of allocated blocks, after rounding.
    pub allocated_bytes: PoolStat,
    /// Bytes of reserved segments, and of the pages that expandable ones have memory for.
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
    /// Segments taken from the source, and times that pages were mapped.
    pub num_device_alloc: i64,
    /// Segments given back to the source, and times that pages were unmapped.
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
        let mut counters = Counters::default();
        let metric = Metric::RequestedBytes;
        counters.add(metric, Pool::Small, 10);
        counters.add(metric, Pool::Large, 5);
        counters.subtract(metric, Pool::Small, 4);
        counters.reset_totals();
        counters.add(metric, Pool::Small, 1);
        counters.subtract(metric, Pool::Large, 5);
        let report = counters.report(metric);
        assert_eq!(report.all, Stat { current: 7, peak: 15, allocated: 1, freed: 5 });
        assert_eq!(report.small_pool, Stat { current: 7, peak: 10, allocated: 1, freed: 0 });
        counters.reset_peaks();
        assert_eq!(counters.report(metric).all.peak, 7);
        assert_eq!(counters.report(metric).large_pool.peak, 0);
        assert_eq!(counters.report(Metric::Active), PoolStat::default());
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
