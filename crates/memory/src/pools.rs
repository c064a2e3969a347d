//! The free blocks of one stream, ordered for best fit: the smallest that is large enough, of those the
//! one from the oldest segment, of those the lowest address (PyTorch's order; birth numbers instead of
//! addresses first, so that runs repeat exactly).
//!
//! Small blocks have a bin for each multiple of 512 bytes and a bitmap over the bins; large ones an
//! ordered set. Who may be handed out is decided here; splitting and merging are in `state.rs`.

use std::collections::BTreeSet;

use crate::bin_heap;
use crate::records::{BlockSlab, NONE};
use crate::size_class::{BLOCK_UNIT_BYTES, Fit, Pool, SMALL_SEGMENT_BYTES, SizeRules};
use crate::source::StreamId;

/// A free block of the small pool is at most a whole segment.
const BINS: usize = SMALL_SEGMENT_BYTES / BLOCK_UNIT_BYTES;
const WORDS: usize = BINS / 64;
const _: () = assert!(WORDS == 64, "one word summarises all the others");

/// The free blocks of one stream.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) stream: StreamId,
    small: SmallBins,
    /// (bytes, birth number of the segment, address, record)
    large: BTreeSet<(usize, u64, usize, u32)>,
}

/// One heap of free blocks for each multiple of 512 bytes.
#[derive(Debug)]
struct SmallBins {
    /// Root of each bin's heap; bin n holds blocks of (n + 1) * 512 bytes.
    roots: Box<[u32]>,
    /// Bit b of word w: bin 64 w + b is not empty.
    words: [u64; WORDS],
    /// Bit w: word w is not 0.
    summary: u64,
}

impl Lane {
    pub(crate) fn new(stream: StreamId) -> Lane {
        let small =
            SmallBins { roots: vec![NONE; BINS].into_boxed_slice(), words: [0; WORDS], summary: 0 };
        Lane { stream, small, large: BTreeSet::new() }
    }

    #[inline]
    pub(crate) fn insert(&mut self, blocks: &mut BlockSlab, index: u32) {
        let block = &blocks[index];
        match block.pool {
            Pool::Small => {
                let bin = bin_of(block.bytes);
                self.small.roots[bin] = bin_heap::insert(blocks, self.small.roots[bin], index);
                self.small.words[bin / 64] |= 1 << (bin % 64);
                self.small.summary |= 1 << (bin / 64);
            }
            Pool::Large => {
                self.large.insert((block.bytes, block.birth, block.address, index));
            }
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, blocks: &mut BlockSlab, index: u32) {
        let block = &blocks[index];
        match block.pool {
            Pool::Small => {
                let bin = bin_of(block.bytes);
                let root = bin_heap::remove(blocks, self.small.roots[bin], index);
                self.small.roots[bin] = root;
                if root == NONE {
                    self.small.words[bin / 64] &= !(1 << (bin % 64));
                    if self.small.words[bin / 64] == 0 {
                        self.small.summary &= !(1 << (bin / 64));
                    }
                }
            }
            Pool::Large => {
                self.large.remove(&(block.bytes, block.birth, block.address, index));
            }
        }
    }

    /// The best free block for `fit`, still in its pool.
    #[inline]
    pub(crate) fn best(&self, fit: &Fit, rules: &SizeRules) -> Option<u32> {
        match fit.pool {
            Pool::Small => self.small.best(fit.block_bytes),
            Pool::Large => {
                let mut fitting = self.large.range((fit.block_bytes, 0, 0, 0)..);
                let &(bytes, _, _, index) = fitting.next()?;
                rules.may_serve(bytes, fit.block_bytes).then_some(index)
            }
        }
    }

    /// Bytes of the largest free block in `pool`.
    pub(crate) fn largest_bytes(&self, pool: Pool) -> usize {
        match pool {
            Pool::Small => self.small.largest_bytes(),
            Pool::Large => self.large.last().map_or(0, |last| last.0),
        }
    }

    /// How many blocks are in these pools, found by walking them; for the audit.
    pub(crate) fn count(&self, blocks: &BlockSlab) -> usize {
        let mut open: Vec<u32> = self.small.roots.iter().copied().filter(|&r| r != NONE).collect();
        let mut small = 0;
        while let Some(at) = open.pop() {
            small += 1;
            let links = blocks[at].links;
            open.extend([links.child, links.sibling].into_iter().filter(|&link| link != NONE));
        }
        small + self.large.len()
    }

    /// Free large blocks from `bytes` up, smallest first.
    pub(crate) fn large_from(&self, bytes: usize) -> impl DoubleEndedIterator<Item = u32> {
        self.large.range((bytes, 0, 0, 0)..).map(|entry| entry.3)
    }
}

impl SmallBins {
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
    bytes / BLOCK_UNIT_BYTES - 1
}
