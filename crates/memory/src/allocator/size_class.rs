//! From a size asked for to the sizes used: the block's rounded size, its pool, and the segment
//! that is reserved, or the pages that are mapped, if no free block fits. The rules are PyTorch's,
//! so that figures compare; see `configuration.rs` for the knobs.

use crate::book::pool::Pool;
use crate::configuration::Configuration;

/// Every block is a multiple of this.
pub(crate) const BLOCK_UNIT_BYTES: usize = 512;
/// Blocks up to this (inclusive) live in the small pool.
pub(crate) const SMALL_BYTES_MAX: usize = 1 << 20;
/// A segment of the small pool.
pub(crate) const SMALL_SEGMENT_BYTES: usize = 2 << 20;
/// Blocks of at least this get a segment of their own.
const OWN_SEGMENT_BYTES: usize = 10 << 20;
/// Own segments are multiples of this.
const SEGMENT_UNIT_BYTES: usize = 2 << 20;
/// Small segments that are cut to size when memory is tight are multiples of this.
const TIGHT_SMALL_UNIT_BYTES: usize = 64 << 10;

/// No request is larger: it is all the address space that a process has. The bound also keeps sums
/// of sizes far from overflow.
const REQUEST_BYTES_MAX: usize = 1 << 47;

/// Addresses of an expandable segment where a device's memory has no end.
const UNBOUNDED_RANGE_BYTES: usize = 1 << 40;

/// The sizes that one request leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// The block's size, at least what was asked for.
    pub(crate) block_bytes: usize,
    pub(crate) pool: Pool,
    /// The segment reserved if no free block fits; where segments expand, the most that is mapped.
    pub(crate) segment_bytes: usize,
    /// The smallest segment that would do, tried before giving up.
    pub(crate) tight_segment_bytes: usize,
}

/// The rules in force in one arena.
#[derive(Clone, Debug)]
pub(crate) struct SizeRules {
    pub(crate) caching: bool,
    /// Whether segments grow and shrink by pages.
    pub(crate) expandable: bool,
    /// Addresses that an expandable segment is given at its birth.
    range_bytes: usize,
    large_segment_bytes: usize,
    /// Blocks of this size and more are not split ("oversize"); `usize::MAX` where splitting has no
    /// limit.
    pub(crate) max_split_bytes: usize,
    /// How much larger than asked for an oversize block may be.
    max_non_split_rounding_bytes: usize,
    /// For sizes from 2^(20 + slot): into how many steps a power of two is divided; 0 and 1 turn it
    /// off.
    power2_divisions: [u32; 16],
}

impl SizeRules {
    pub(crate) fn new(configuration: &Configuration) -> SizeRules {
        SizeRules {
            caching: configuration.caching,
            expandable: false,
            range_bytes: 0,
            large_segment_bytes: configuration.large_segment_bytes,
            max_split_bytes: configuration.max_split_bytes.unwrap_or(usize::MAX),
            max_non_split_rounding_bytes: configuration.max_non_split_rounding_bytes,
            power2_divisions: configuration.roundup_power2_divisions,
        }
    }

    /// The same rules with expandable segments, on a device of `total_bytes`. A segment is given
    /// 9/8 of that in addresses, as in PyTorch: all memory fits, and holes do little harm.
    pub(crate) fn expanding(mut self, total_bytes: Option<usize>) -> SizeRules {
        self.expandable = true;
        self.range_bytes = total_bytes.map_or(UNBOUNDED_RANGE_BYTES, |all| all + all / 8);
        self
    }

    /// A page of an expandable segment. Drivers map multiples of 2 MiB.
    #[inline]
    pub(crate) fn page_bytes(&self, pool: Pool) -> usize {
        match pool {
            Pool::Small => SMALL_SEGMENT_BYTES,
            Pool::Large => self.large_segment_bytes.next_multiple_of(SEGMENT_UNIT_BYTES),
        }
    }

    /// The addresses for a new expandable segment, in which `fit` finds room.
    pub(crate) fn range_bytes(&self, fit: &Fit) -> usize {
        self.range_bytes.max(fit.block_bytes).next_multiple_of(self.page_bytes(fit.pool))
    }

    /// The sizes for a request of `bytes` (not 0); `None` where no address space could hold them.
    #[inline]
    pub(crate) fn fit(&self, bytes: usize) -> Option<Fit> {
        if bytes > REQUEST_BYTES_MAX {
            return None;
        }
        let block_bytes = self.round(bytes);
        let pool = if block_bytes <= SMALL_BYTES_MAX { Pool::Small } else { Pool::Large };
        if !self.caching {
            return Some(Fit {
                block_bytes,
                pool,
                segment_bytes: block_bytes,
                tight_segment_bytes: block_bytes,
            });
        }
        let (segment_bytes, tight_segment_bytes) = if pool == Pool::Small {
            (SMALL_SEGMENT_BYTES, block_bytes.next_multiple_of(TIGHT_SMALL_UNIT_BYTES))
        } else {
            let own = block_bytes.next_multiple_of(SEGMENT_UNIT_BYTES);
            let usual =
                if block_bytes < OWN_SEGMENT_BYTES { self.large_segment_bytes } else { own };
            (usual, own.min(usual))
        };
        let segment_bytes = match self.expandable {
            true => block_bytes.next_multiple_of(self.page_bytes(pool)),
            false => segment_bytes,
        };
        Some(Fit { block_bytes, pool, segment_bytes, tight_segment_bytes })
    }

    #[inline]
    fn round(&self, bytes: usize) -> usize {
        let divisions = self.power2_divisions[division_slot(bytes)] as usize;
        if divisions > 1 && bytes > BLOCK_UNIT_BYTES * divisions {
            return round_to_division(bytes, divisions).next_multiple_of(BLOCK_UNIT_BYTES);
        }
        bytes.next_multiple_of(BLOCK_UNIT_BYTES)
    }

    /// Whether a free block of `free_bytes` may serve a request rounded to `block_bytes`.
    pub(crate) fn may_serve(&self, free_bytes: usize, block_bytes: usize) -> bool {
        if block_bytes < self.max_split_bytes {
            return free_bytes < self.max_split_bytes;
        }
        free_bytes < block_bytes.saturating_add(self.max_non_split_rounding_bytes)
    }

    /// Whether a block of `free_bytes` is split when `block_bytes` of it are handed out. In the
    /// large pool a remainder of 1 MiB or less is not worth it: nothing in that pool would fit it;
    /// where segments expand it is, because it grows together with the page behind it.
    #[inline]
    pub(crate) fn splits(&self, pool: Pool, free_bytes: usize, block_bytes: usize) -> bool {
        let remaining = free_bytes - block_bytes;
        match pool {
            Pool::Small => remaining >= BLOCK_UNIT_BYTES,
            Pool::Large if self.expandable => remaining >= BLOCK_UNIT_BYTES,
            Pool::Large => block_bytes < self.max_split_bytes && remaining > SMALL_BYTES_MAX,
        }
    }
}

/// The slot of the division table for `bytes`: 1 MiB and below, 2 MiB, ... 32 GiB and above.
#[inline]
fn division_slot(bytes: usize) -> usize {
    (bytes.max(1).ilog2() as usize).saturating_sub(20).min(15)
}

/// `bytes` rounded up to the next of `divisions` (a power of two, 2 at least) equal steps between
/// its neighbouring powers of two.
fn round_to_division(bytes: usize, divisions: usize) -> usize {
    if bytes.is_power_of_two() {
        return bytes;
    }
    let floor = 1_usize << bytes.ilog2();
    match floor >> divisions.ilog2() {
        0 => floor * 2,
        step => bytes.next_multiple_of(step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn rules() -> SizeRules {
        SizeRules::new(&Configuration::default())
    }

    #[test]
    fn sizes_follow_the_published_table() {
        let cases = [
            (1, 512, Pool::Small, 2 * MIB),
            (512, 512, Pool::Small, 2 * MIB),
            (513, 1024, Pool::Small, 2 * MIB),
            (MIB, MIB, Pool::Small, 2 * MIB),
            (MIB + 1, MIB + 512, Pool::Large, 20 * MIB),
            (10 * MIB - 512, 10 * MIB - 512, Pool::Large, 20 * MIB),
            (10 * MIB, 10 * MIB, Pool::Large, 10 * MIB),
            (10 * MIB + 1, 10 * MIB + 512, Pool::Large, 12 * MIB),
            (100 * MIB, 100 * MIB, Pool::Large, 100 * MIB),
        ];
        for (asked, block_bytes, pool, segment_bytes) in cases {
            let fit = rules().fit(asked).unwrap();
            assert_eq!(
                (fit.block_bytes, fit.pool, fit.segment_bytes),
                (block_bytes, pool, segment_bytes)
            );
            assert!(fit.tight_segment_bytes >= fit.block_bytes);
            assert!(fit.tight_segment_bytes <= fit.segment_bytes);
        }
        assert_eq!(rules().fit(usize::MAX), None);
        assert_eq!(rules().fit(REQUEST_BYTES_MAX + 1), None);
        assert!(rules().fit(REQUEST_BYTES_MAX).is_some());
    }

    #[test]
    fn powers_of_two_are_divided() {
        let mut rules = rules();
        rules.power2_divisions = [4; 16];
        // PyTorch's own example: 1200 with 4 divisions lies between 1024 and 2048, steps of 256,
        // but 1200 <= 512 * 4 keeps to multiples of 512.
        assert_eq!(rules.round(1200), 1536);
        assert_eq!(rules.round(2049), 2560);
        assert_eq!(rules.round(5 * MIB + 1), 6 * MIB);
        assert_eq!(rules.round(8 * MIB), 8 * MIB);
        // One division is off, as in PyTorch.
        rules.power2_divisions = [1; 16];
        assert_eq!(rules.round(5 * MIB + 1), 5 * MIB + 512);
        // Each slot of the table has its own range.
        rules.power2_divisions = [0; 16];
        rules.power2_divisions[3] = 2;
        assert_eq!(rules.round(9 * MIB), 12 * MIB);
        assert_eq!(rules.round(17 * MIB), 17 * MIB);
        assert_eq!(division_slot(MIB - 1), 0);
        assert_eq!(division_slot(2 * MIB), 1);
        assert_eq!(division_slot(usize::MAX), 15);
    }

    #[test]
    fn oversize_blocks_are_neither_split_nor_lent_to_small_requests() {
        let mut rules = rules();
        rules.max_split_bytes = 64 * MIB;
        assert!(rules.may_serve(32 * MIB, 16 * MIB));
        assert!(!rules.may_serve(64 * MIB, 16 * MIB));
        assert!(rules.may_serve(80 * MIB, 64 * MIB));
        assert!(!rules.may_serve(84 * MIB, 64 * MIB));
        assert!(!rules.splits(Pool::Large, 100 * MIB, 64 * MIB));
        assert!(rules.splits(Pool::Large, 20 * MIB, 2 * MIB));
        assert!(!rules.splits(Pool::Large, 3 * MIB, 2 * MIB));
        assert!(rules.splits(Pool::Small, 1024, 512));
        assert!(!rules.splits(Pool::Small, 512, 512));
    }

    #[test]
    fn expandable_segments_take_whole_pages_of_nine_eighths_of_the_device() {
        let rules = rules().expanding(Some(1 << 30));
        let fit = |bytes| rules.fit(bytes).unwrap();
        // PyTorch's pages: 2 MiB in the small pool, 20 MiB in the large one.
        assert_eq!((rules.page_bytes(Pool::Small), fit(1).segment_bytes), (2 * MIB, 2 * MIB));
        assert_eq!(rules.page_bytes(Pool::Large), 20 * MIB);
        let large = fit(25 * MIB);
        assert_eq!((large.segment_bytes, large.tight_segment_bytes), (40 * MIB, 26 * MIB));
        assert_eq!(rules.range_bytes(&fit(1)), 1152 * MIB);
        assert_eq!(rules.range_bytes(&large), 1160 * MIB);
        assert_eq!(rules.range_bytes(&fit(3 << 30)), 3080 * MIB);
        // A remainder of any size is kept apart, whatever the limit on splitting.
        assert!(rules.splits(Pool::Large, 3 * MIB, 2 * MIB));
        assert!(rules.splits(Pool::Large, 2 * MIB + 512, 2 * MIB));
        assert!(!rules.splits(Pool::Large, 2 * MIB, 2 * MIB));
        // A page is one that drivers can map.
        let text = "large_segment_size_mb:21,max_split_size_mb:21";
        let odd = SizeRules::new(&Configuration::parse(text).unwrap()).expanding(None);
        assert_eq!(odd.page_bytes(Pool::Large), 22 * MIB);
        assert!(odd.splits(Pool::Large, 100 * MIB, 64 * MIB));
        assert_eq!(odd.range_bytes(&odd.fit(1).unwrap()), 1 << 40);
    }

    #[test]
    fn without_caching_a_segment_is_its_block() {
        let rules = SizeRules { caching: false, ..rules() };
        let fit = rules.fit(700).unwrap();
        assert_eq!((fit.segment_bytes, fit.tight_segment_bytes), (1024, 1024));
    }
}
