//! The free blocks of one stream in one pool (the common one or a private one), ordered for best
//! fit: the smallest that is large enough, of those the one from the oldest segment, of those the
//! lowest address (PyTorch's order; birth numbers instead of addresses first, so that runs repeat
//! exactly).
//!
//! Small blocks have a bin for each multiple of 512 bytes and a bitmap over the bins; large ones a
//! sorted list of the sizes there are. Each bin or size has a heap of its blocks (`bin_heap.rs`).
//! Where segments expand, pages without memory are kept here too, and a block in front of them is
//! as large as it could become: the tail of a segment is the last choice (PyTorch's rule).
//! Who may be handed out is decided here; splitting and merging are in `state.rs`.

use crate::allocator::bin_heap;
use crate::allocator::pool_id::PoolId;
use crate::allocator::records::{BlockSlab, BlockState, NONE, SegmentSlab};
use crate::allocator::size_class::{BLOCK_UNIT_BYTES, Fit, SMALL_SEGMENT_BYTES, SizeRules};
use crate::book::pool::Pool;
use crate::platform::source::StreamId;

/// A free block of the small pool is at most a whole segment; merged pages of an expandable one are
/// kept by size.
const BINS: usize = SMALL_SEGMENT_BYTES / BLOCK_UNIT_BYTES;
const WORDS: usize = BINS / 64;
const _: () = assert!(WORDS == 64, "one word summarises all the others");

/// The free blocks of one stream in one pool.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) stream: StreamId,
    pub(crate) pool: PoolId,
    /// Whether its pool still serves; see `private_pool.rs`.
    pub(crate) open: bool,
    small: SmallBins,
    /// Blocks of the small pool that no bin is large enough for.
    merged_small: LargeSizes,
    large: LargeSizes,
    /// The unmapped blocks of both pools, by birth of their segments and address. Few: one a
    /// segment, and a hole now and then.
    unmapped: Vec<u32>,
}

/// The sizes of which there are free large blocks, ascending, each with the root of its heap.
///
/// A program has few sizes at a time, so moving the entries behind one costs less than an ordered
/// set of the library, which an allocation that splits and its free ask four times (70 ns in all,
/// and it allocates). Ten thousand sizes would be some microseconds, as much as the source takes.
#[derive(Debug, Default)]
struct LargeSizes(Vec<(usize, u32)>);

/// One heap of free blocks for each multiple of 512 bytes.
#[derive(Debug)]
struct SmallBins {
    /// Root of each bin's heap; bin n holds blocks of (n + 1) * 512 bytes.
    roots: Box<[u32; BINS]>,
    /// Bit b of word w: bin 64 w + b is not empty.
    words: [u64; WORDS],
    /// Bit w: word w is not 0.
    summary: u64,
}

impl Lane {
    pub(crate) fn new(pool: PoolId, stream: StreamId, open: bool) -> Lane {
        let small = SmallBins { roots: Box::new([NONE; BINS]), words: [0; WORDS], summary: 0 };
        Lane {
            stream,
            pool,
            open,
            small,
            merged_small: LargeSizes::default(),
            large: LargeSizes::default(),
            unmapped: Vec::new(),
        }
    }

    /// Whether it belongs to the pool that everybody shares.
    pub(crate) fn is_common(&self) -> bool {
        self.pool == PoolId::COMMON
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, blocks: &mut BlockSlab, segments: &SegmentSlab, index: u32) {
        let (pool, bytes) = (blocks[index].pool, blocks[index].bytes);
        match pool {
            Pool::Small if bytes <= SMALL_SEGMENT_BYTES => {
                self.small.insert(blocks, segments, index, bytes);
            }
            Pool::Small => self.merged_small.insert(blocks, segments, index, bytes),
            Pool::Large => self.large.insert(blocks, segments, index, bytes),
        }
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, blocks: &mut BlockSlab, segments: &SegmentSlab, index: u32) {
        let (pool, bytes) = (blocks[index].pool, blocks[index].bytes);
        match pool {
            Pool::Small if bytes <= SMALL_SEGMENT_BYTES => {
                self.small.remove(blocks, segments, index, bytes);
            }
            Pool::Small => self.merged_small.remove(blocks, segments, index, bytes),
            Pool::Large => self.large.remove(blocks, segments, index, bytes),
        }
    }

    /// The best free block for `fit`, still in its pool.
    #[inline]
    pub(crate) fn best(
        &self,
        blocks: &BlockSlab,
        segments: &SegmentSlab,
        fit: &Fit,
        rules: &SizeRules,
    ) -> Option<u32> {
        if rules.expandable {
            let best = self.least_expandable(blocks, segments, fit)?;
            return rules.may_serve(blocks[best].bytes, fit.block_bytes).then_some(best);
        }
        match fit.pool {
            Pool::Small => self.small.best(fit.block_bytes),
            Pool::Large => {
                let place = self.large.find(fit.block_bytes).unwrap_or_else(|place| place);
                let &(bytes, root) = self.large.0.get(place)?;
                rules.may_serve(bytes, fit.block_bytes).then_some(root)
            }
        }
    }

    /// The best fit, by the size that a block can expand to: from the smallest that is large enough
    /// on, as long as the next one can become less than the one before.
    fn least_expandable(
        &self,
        blocks: &BlockSlab,
        segments: &SegmentSlab,
        fit: &Fit,
    ) -> Option<u32> {
        let mut best = self.first_from(fit.pool, fit.block_bytes)?;
        let mut best_bytes = expanded_bytes(blocks, best);
        while best_bytes > blocks[best].bytes
            && let Some(next) = self.after(blocks, segments, best)
            && expanded_bytes(blocks, next) < best_bytes
        {
            (best, best_bytes) = (next, expanded_bytes(blocks, next));
        }
        Some(best)
    }

    /// The first free block of at least `bytes`.
    fn first_from(&self, pool: Pool, bytes: usize) -> Option<u32> {
        let binned = pool == Pool::Small && bytes <= SMALL_SEGMENT_BYTES;
        let small = binned.then(|| self.small.best(bytes)).flatten();
        small.or_else(|| {
            let sizes = if pool == Pool::Small { &self.merged_small } else { &self.large };
            let place = sizes.find(bytes).unwrap_or_else(|place| place);
            sizes.0.get(place).map(|&(_, root)| root)
        })
    }

    /// The free block that comes right after `index` in the order of the pool.
    fn after(&self, blocks: &BlockSlab, segments: &SegmentSlab, index: u32) -> Option<u32> {
        let (pool, bytes) = (blocks[index].pool, blocks[index].bytes);
        let root = self.first_from(pool, bytes)?;
        let alike = bin_heap::after(blocks, segments, root, index);
        alike.or_else(|| self.first_from(pool, bytes + BLOCK_UNIT_BYTES))
    }

    /// Pages without memory, those of the oldest segment first, then by address.
    pub(crate) fn unmapped(&self) -> &[u32] {
        &self.unmapped
    }

    pub(crate) fn insert_unmapped(
        &mut self,
        blocks: &BlockSlab,
        segments: &SegmentSlab,
        index: u32,
    ) {
        let key = |at: u32| (segments[blocks[at].segment].birth, blocks[at].address);
        let place = self.unmapped.partition_point(|&at| key(at) < key(index));
        self.unmapped.insert(place, index);
    }

    pub(crate) fn remove_unmapped(&mut self, index: u32) {
        self.unmapped.retain(|&at| at != index);
    }

    /// Bytes of the largest free block in `pool`.
    pub(crate) fn largest_bytes(&self, pool: Pool) -> usize {
        match pool {
            Pool::Small => self.small.largest_bytes().max(self.merged_small.largest_bytes()),
            Pool::Large => self.large.largest_bytes(),
        }
    }

    /// How many blocks are in these pools, found by walking them as an allocation would, by the
    /// bitmap; for the audit.
    pub(crate) fn count(&self, blocks: &BlockSlab) -> usize {
        let words = (0..WORDS).filter(|&word| self.small.words[word] != 0);
        let bins = words.flat_map(|word| word * 64..word * 64 + 64);
        let small = bins.filter(|bin| self.small.words[bin / 64] >> (bin % 64) & 1 == 1);
        let small = small.map(|bin| self.small.roots[bin]);
        let large = self.large.0.iter().chain(&self.merged_small.0).map(|&(_, root)| root);
        small.chain(large).map(|root| bin_heap::members(blocks, root).len()).sum()
    }

    /// Free large blocks from `bytes` up, in their order.
    pub(crate) fn large_from(
        &self,
        blocks: &BlockSlab,
        segments: &SegmentSlab,
        bytes: usize,
    ) -> Vec<u32> {
        let from = self.large.find(bytes).unwrap_or_else(|place| place);
        let mut found = Vec::new();
        for &(_, root) in &self.large.0[from..] {
            let mut members = bin_heap::members(blocks, root);
            members.sort_unstable_by_key(|&index| {
                (segments[blocks[index].segment].birth, blocks[index].address)
            });
            found.append(&mut members);
        }
        found
    }
}

/// What a free block can expand to: its own size and that of the pages without memory behind it.
#[inline]
fn expanded_bytes(blocks: &BlockSlab, index: u32) -> usize {
    let next = blocks[index].next;
    let unmapped = next != NONE && blocks[next].state == BlockState::Unmapped;
    blocks[index].bytes + if unmapped { blocks[next].bytes } else { 0 }
}

impl LargeSizes {
    fn largest_bytes(&self) -> usize {
        self.0.last().map_or(0, |last| last.0)
    }

    /// Where the size is, or where it would be.
    #[inline]
    fn find(&self, bytes: usize) -> Result<usize, usize> {
        self.0.binary_search_by_key(&bytes, |&(size, _)| size)
    }

    fn insert(&mut self, blocks: &mut BlockSlab, segments: &SegmentSlab, index: u32, bytes: usize) {
        match self.find(bytes) {
            Ok(place) => {
                let root = &mut self.0[place].1;
                *root = bin_heap::insert(blocks, segments, *root, index);
            }
            Err(place) => {
                let root = bin_heap::insert(blocks, segments, NONE, index);
                self.0.insert(place, (bytes, root));
            }
        }
    }

    fn remove(&mut self, blocks: &mut BlockSlab, segments: &SegmentSlab, index: u32, bytes: usize) {
        let Ok(place) = self.find(bytes) else {
            debug_assert!(false, "a free block is in its pool");
            return;
        };
        let root = bin_heap::remove(blocks, segments, self.0[place].1, index);
        self.0[place].1 = root;
        if root == NONE {
            self.0.remove(place);
        }
    }
}

impl SmallBins {
    #[inline(always)]
    fn insert(&mut self, blocks: &mut BlockSlab, segments: &SegmentSlab, index: u32, bytes: usize) {
        let bin = bin_of(bytes);
        let root = &mut self.roots[bin];
        *root = bin_heap::insert(blocks, segments, *root, index);
        self.words[bin / 64] |= 1 << (bin % 64);
        self.summary |= 1 << (bin / 64);
    }

    #[inline(always)]
    fn remove(&mut self, blocks: &mut BlockSlab, segments: &SegmentSlab, index: u32, bytes: usize) {
        let bin = bin_of(bytes);
        let root = &mut self.roots[bin];
        *root = bin_heap::remove(blocks, segments, *root, index);
        if *root == NONE {
            let word = &mut self.words[bin / 64];
            *word &= !(1 << (bin % 64));
            if *word == 0 {
                self.summary &= !(1 << (bin / 64));
            }
        }
    }

    #[inline]
    fn best(&self, bytes: usize) -> Option<u32> {
        let bin = bin_of(bytes);
        let word = bin / 64;
        let here = self.words[word] & (!0 << (bin % 64));
        if here != 0 {
            return Some(self.roots[word * 64 + here.trailing_zeros() as usize]);
        }
        // Shifting twice keeps the shift below 64 where `word` is the last one.
        let above = self.summary & (!0 << word << 1);
        if above == 0 {
            return None;
        }
        let word = above.trailing_zeros() as usize;
        Some(self.roots[word * 64 + self.words[word].trailing_zeros() as usize])
    }

    fn largest_bytes(&self) -> usize {
        if self.summary == 0 {
            return 0;
        }
        let word = self.summary.ilog2() as usize;
        (word * 64 + self.words[word].ilog2() as usize + 1) * BLOCK_UNIT_BYTES
    }
}

#[inline]
fn bin_of(bytes: usize) -> usize {
    debug_assert!(
        bytes > 0 && bytes.is_multiple_of(BLOCK_UNIT_BYTES) && bytes <= SMALL_SEGMENT_BYTES,
        "a small block has 1 to {BINS} units of {BLOCK_UNIT_BYTES} bytes, not {bytes} bytes"
    );
    // No block reaches the mask; it tells the compiler that every bin exists.
    (bytes / BLOCK_UNIT_BYTES - 1) % BINS
}
