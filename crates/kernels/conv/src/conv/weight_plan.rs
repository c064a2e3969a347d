//! How the weight's derivative is cut: chosen from the sizes and the number of threads alone, so
//! that its workspace is known without running. `weight.rs` runs it.

use super::line::Line;
use super::weight::WeightGradient;
use plimsoll_engine::pack::Factor;
use plimsoll_engine::parallel;
use plimsoll_engine::simd::{self, Isa};
use plimsoll_kernels_matmul::gemm::{Kernels, Micro};

/// How it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) isa: Isa,
    /// Threads at most.
    pub(super) parts: usize,
    /// Whether threads share out tiles, or chunks.
    pub(super) share_tiles: bool,
    /// Shares that the chunks are cut into, each with sums of its own; one where tiles are shared.
    pub(super) shares: usize,
    /// Chunks of a group.
    pub(super) chunks: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) strips: usize,
    /// Rows and elements of a chunk, and chunks of an image's plane.
    pub(super) high: usize,
    pub(super) wide: usize,
    pub(super) high_blocks: usize,
    pub(super) wide_blocks: usize,
    /// Rows and elements of x that a chunk sees.
    pub(super) x_high: usize,
    pub(super) x_wide: usize,
    /// Elements that a run of taps and channels has, and runs.
    pub(super) run: usize,
    pub(super) runs: usize,
}

/// Bytes of a chunk's copy of x and of its gradient, at most where a row allows.
const CHUNK_BYTES: usize = 512 << 10;
/// Pixels of a chunk's row, at most.
const WIDEST: usize = 448;
/// Pixels whose elements are packed at once.
pub(super) const SLICE_STEPS: usize = 512;
/// Tiles that are enough for threads to share them out.
const ENOUGH_TILES: usize = 24;
/// Shares of the chunks, at most.
const MOST_SHARES: usize = 16;
/// Sums behind the packed elements that packing may write over.
const SLACK: usize = 16;

impl Plan {
    pub(super) fn new<E: Factor>(of: &WeightGradient) -> Plan
    where
        E::Sum: Kernels,
    {
        let isa = simd::isa();
        let Micro { rows, columns, .. } = E::Sum::micro(isa);
        let strips = of.grads_each.div_ceil(columns).max(1);
        let [depth, height, width] = of.lines;
        let [high, wide] = [of.grad.sizes[1].max(1), of.grad.sizes[2].max(1)];
        let wide_blocks = wide.div_ceil(WIDEST);
        let wide_each = wide.div_ceil(wide_blocks);
        let reach = |line: &Line, results: usize| {
            (results - 1) * line.pace + (line.taps.max(1) - 1) * line.apart + 1
        };
        let x_wide = reach(&width, wide_each);
        let row_bytes = (x_wide * of.channels_each * depth.taps * height.pace
            + wide_each * strips * columns)
            * size_of::<E::Sum>();
        let fits = (CHUNK_BYTES / row_bytes.max(1)).clamp(1, high);
        let high_blocks = high.div_ceil(fits);
        let high_each = high.div_ceil(high_blocks);
        let along = width.apart == 1;
        let run = of.channels_each * if along { width.taps } else { 1 };
        let runs = depth.taps * height.taps * if along { 1 } else { width.taps };
        let planes = of.grad.batch * of.grad.sizes[0];
        let chunks =
            if of.grad.space() == 0 { 0 } else { planes * high.div_ceil(high_each) * wide_blocks };
        // By the sizes alone: in which order sums are made does not depend on the threads.
        let share_tiles = runs * run.div_ceil(rows) >= ENOUGH_TILES;
        let shares = if share_tiles { 1 } else { chunks.clamp(1, MOST_SHARES) };
        Plan {
            isa,
            parts: parallel::threads(),
            share_tiles,
            shares,
            chunks,
            rows,
            columns,
            strips,
            high: high_each,
            wide: wide_each,
            high_blocks: high.div_ceil(high_each),
            wide_blocks,
            x_high: reach(&height, high_each),
            x_wide,
            run,
            runs,
        }
    }

    pub(super) fn sums_len(&self) -> usize {
        (self.runs * self.run * self.strips * self.columns).next_multiple_of(16)
    }

    pub(super) fn x_len(&self, of: &WeightGradient) -> usize {
        let each = of.channels_each * self.x_wide * self.x_high;
        (of.lines[0].taps * each + SLACK).next_multiple_of(16)
    }

    pub(super) fn grad_len(&self) -> usize {
        (self.high * self.wide * self.strips * self.columns).next_multiple_of(16)
    }

    /// Copies of a chunk that there are at once.
    pub(super) fn copies(&self) -> usize {
        if self.share_tiles { 1 } else { self.parts }
    }

    /// Sums of the whole workspace.
    pub(super) fn workspace_len(&self, of: &WeightGradient) -> usize {
        self.shares * self.sums_len()
            + self.copies() * (self.x_len(of) + self.grad_len())
            + self.parts * self.tile_len()
    }

    pub(super) fn tile_len(&self) -> usize {
        (SLICE_STEPS.max(self.wide) * self.rows + SLACK).next_multiple_of(16)
    }

    pub(super) fn tiles_of_run(&self) -> usize {
        self.run.div_ceil(self.rows)
    }
}
