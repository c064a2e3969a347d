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
    /// Rows and columns of a tile: results, and channels of them.
    pub(super) rows: usize,
    pub(super) columns: usize,
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
        let strips = of.results_each.div_ceil(columns).max(1);
        let [_, high, wide] = of.dimensions.map(|dimension| dimension.longest().max(1));
        let most_taps: usize =
            of.dimensions.iter().map(|dimension| dimension.most_taps()).product();
        let taps: usize = of.dimensions.iter().map(|dimension| dimension.all_taps()).product();
        let slices = (of.operands_each * most_taps).div_ceil(SLICE_STEPS).max(1);
        let slice = of.operands_each.div_ceil(slices).max(1);
        let slices = of.operands_each.div_ceil(slice).max(1);
        let wide_blocks = wide.div_ceil(WIDEST);
        let wide_each = wide.div_ceil(wide_blocks);
        let depth = of.dimensions[0].longest().max(1);
        let outer = of.result.batch * of.groups * depth * wide_blocks;
        let threads = parallel::threads();
        // As many rows as fit, as long as every thread has a few blocks.
        let fits = SUMS_BYTES / size_of::<E::Sum>() / (wide_each * strips * columns).max(1);
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
            rows,
            columns,
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
        self.taps * operands * self.strips * self.columns
    }

    /// Sums of a thread's packed windows, a whole number of cache lines.
    pub(super) fn tile_len(&self) -> usize {
        (self.slice * self.most_taps * self.rows + SLACK).next_multiple_of(16)
    }

    /// Sums of a thread's block.
    pub(super) fn block_len(&self) -> usize {
        self.high * self.wide * self.block_strips * self.columns
    }

    pub(super) fn strip_blocks(&self) -> usize {
        self.strips.div_ceil(self.block_strips)
    }
}
