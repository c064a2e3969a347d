//! How a product of windows and weights is cut: chosen from the sizes and the number of threads
//! alone, so that its workspace is known without running. `correlate.rs` runs it.

use super::Weights;
use super::correlate::Correlation;
use plimsoll_engine::pack::Factor;
use plimsoll_engine::parallel;
use plimsoll_engine::simd::{self, Isa};
use plimsoll_kernels_matmul::gemm::{Kernels, Micro};

/// How a correlation is cut. Counts of elements unless they say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) isa: Isa,
    /// Threads at most.
    pub(super) parts: usize,
    /// Whether a tile's results lie along the vectors and its channels down the rows, for channels
    /// too few to fill vectors.
    pub(super) flipped: bool,
    /// Results of a tile, and channels of them.
    pub(super) results: usize,
    pub(super) channels: usize,
    /// Strips that a group's channels are cut into, and how many of them a block has.
    pub(super) strips: usize,
    pub(super) block_strips: usize,
    /// Channels of the operand in a slice, and slices.
    pub(super) slice: usize,
    pub(super) slices: usize,
    /// Results of a block, of the longest phase: rows, and elements of a row.
    pub(super) high: usize,
    pub(super) wide: usize,
    /// Blocks that rows, and elements of a row, are cut into.
    pub(super) high_blocks: usize,
    pub(super) wide_blocks: usize,
    /// Taps of all phases and of the one that has most.
    pub(super) taps: usize,
    pub(super) most_taps: usize,
}

/// Steps of a slice: a tile's packed windows stay in the first-level cache.
const SLICE_STEPS: usize = 640;
/// Bytes of a block's sums, at most: they stay in the second-level cache.
const SUMS_BYTES: usize = 256 << 10;
/// Elements of a block's row, at most.
const WIDEST: usize = 448;
/// Sums behind the packed windows that packing may write over.
pub(super) const SLACK: usize = 16;

impl Plan {
    pub(super) fn new<E: Factor>(of: &Correlation) -> Plan
    where
        E::Sum: Kernels,
    {
        let isa = simd::isa();
        let Micro { rows, columns, .. } = E::Sum::micro(isa);
        let [_, high, wide] = of.dimensions.map(|dimension| dimension.longest().max(1));
        let most_taps: usize =
            of.dimensions.iter().map(|dimension| dimension.most_taps()).product();
        let taps: usize = of.dimensions.iter().map(|dimension| dimension.all_taps()).product();
        let slices = (of.operands_each * most_taps).div_ceil(SLICE_STEPS).max(1);
        let slice = of.operands_each.div_ceil(slices).max(1);
        let slices = of.operands_each.div_ceil(slice).max(1);
        let wide_blocks = wide.div_ceil(WIDEST);
        let wide_each = wide.div_ceil(wide_blocks);
        let channels = of.results_each.max(1);
        let flipped = is_flipped(channels, wide_each, rows, columns);
        let strips = channels.div_ceil(if flipped { rows } else { columns });
        let (results, channels) =
            if flipped { (columns, channels.div_ceil(strips)) } else { (rows, columns) };
        let depth = of.dimensions[0].longest().max(1);
        let outer = of.result.batch * of.groups * depth * wide_blocks;
        let threads = parallel::threads();
        // As many rows as fit, as long as every thread has a few blocks.
        let fits = SUMS_BYTES
            / size_of::<E::Sum>()
            / (slots(flipped, wide_each, results) * strips * channels).max(1);
        let wanted = (4 * threads).div_ceil(outer.max(1));
        let high_blocks = high.div_ceil(fits.max(1)).max(wanted).min(high);
        let high_each = high.div_ceil(high_blocks);
        let high_blocks = high.div_ceil(high_each);
        // Where images are small and channels many, threads share out the channels too.
        let strip_blocks = (2 * threads).div_ceil((outer * high_blocks).max(1)).min(strips);
        let block_strips = strips.div_ceil(strip_blocks);
        let units = outer * high_blocks * strips.div_ceil(block_strips);
        Plan {
            isa,
            parts: threads.min(units).max(1),
            flipped,
            results,
            channels,
            strips,
            block_strips,
            slice,
            slices,
            high: high_each,
            wide: wide_each,
            high_blocks,
            wide_blocks,
            taps,
            most_taps,
        }
    }

    /// Sums of one group's packed weights.
    pub(super) fn panel_len(&self, weights: &Weights, operands: usize) -> usize {
        debug_assert!(self.taps <= weights.taps(), "phases share out the taps");
        self.taps * operands * self.strips * self.channels
    }

    /// Sums of a thread's packed windows, a whole number of cache lines.
    pub(super) fn tile_len(&self) -> usize {
        // The inner kernel reads whole vectors of a last tile that is narrower.
        let slack = SLACK + if self.flipped { self.results } else { 0 };
        (self.slice * self.most_taps * self.results + slack).next_multiple_of(16)
    }

    /// Sums of a thread's block.
    pub(super) fn block_len(&self) -> usize {
        self.high * self.slots(self.wide) * self.block_strips * self.channels
    }

    /// Sums that a channel has for a row of `elements` results: whole vectors where they lie along
    /// them.
    pub(super) fn slots(&self, elements: usize) -> usize {
        slots(self.flipped, elements, self.results)
    }

    pub(super) fn strip_blocks(&self) -> usize {
        self.strips.div_ceil(self.block_strips)
    }
}

fn slots(flipped: bool, elements: usize, results: usize) -> usize {
    if flipped { elements.next_multiple_of(results) } else { elements }
}

/// Which way round wastes less: `channels` in vectors, or rows of `wide` results. Tiles of few rows
/// wait for the multipliers, as if there were two rows more.
fn is_flipped(channels: usize, wide: usize, rows: usize, columns: usize) -> bool {
    let high = channels.div_ceil(channels.div_ceil(rows));
    let upright = channels.next_multiple_of(columns) * wide * high;
    wide.next_multiple_of(columns) * channels * (high + 2) < upright
}
