//! The likelihood of target classes, from log-probabilities and from scores. Operands are
//! contiguous; what is reduced over rows goes through one pair of sums a block.

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;
use plimsoll_kernels::cpu::cross_entropy::CrossEntropyArgs;
use plimsoll_kernels::cpu::nll::{NllArgs, Reduction};
use smallvec::smallvec;

use super::fill::fill_operand;
use super::tail::{computed_in, half_width};
use super::{CudaLaunch, NOTHING, THREADS, address, contiguous, type_name, whole};

/// The most blocks of a kernel that leaves sums. As many on every GPU where it takes rows the same
/// way, so that all give the same bits.
const MOST_BLOCKS: usize = 1 << 14;
/// The same where a block's threads take a row together, and where they are a warp.
const MOST_ROW_BLOCKS: usize = 132 * 12;
const MOST_WARP_BLOCKS: usize = 132 * 32;
/// Packs of 16 bytes that a thread holds of a row, or of a piece of one; mirrors the kernels.
const KEPT_PACKS: usize = 8;
/// Pieces of rows that are on their way to a warp or worked on; mirrors the kernels.
const PIECES: usize = 3;
/// Blocks of warps that take rows in pieces: as many as the shared memory of an H200 holds.
const MOST_BLOCKS_OF_PIECES: usize = 132 * 4;
/// Rows that make three quarters of those blocks' warps busy.
const ENOUGH_ROWS: usize = MOST_BLOCKS_OF_PIECES * WARPS * 3 / 4;
/// Warps of a block, each with a row.
const WARPS: usize = 4;
/// Threads of an H200's blocks whose rows are on their way while others are worked on: as many as
/// have the shared memory for two rows each.
const THREADS_AHEAD: usize = 132 * 6 * 128;
/// Shared memory that the kernels declare themselves, at most.
const DECLARED_BYTES: usize = 2048;
/// Bytes of a block's sums.
const TOTAL_BYTES: usize = 16;

/// Scores of shape [batch, classes, places..] or [classes] as rows.
#[derive(Clone, Copy)]
struct Rows {
    outer: usize,
    classes: usize,
    inner: usize,
}

impl Rows {
    fn of(shape: &[usize]) -> Rows {
        match shape {
            [] => Rows { outer: 1, classes: 1, inner: 1 },
            [classes] => Rows { outer: 1, classes: *classes, inner: 1 },
            [outer, classes, places @ ..] => {
                Rows { outer: *outer, classes: *classes, inner: places.iter().product() }
            }
        }
    }

    fn count(self) -> usize {
        self.outer * self.inner
    }

    fn argument(self) -> Argument {
        Argument::Words(
            [self.outer, self.classes, self.inner].iter().map(|&size| size as u64).collect(),
        )
    }

    /// Blocks of a kernel with a block a row.
    fn row_blocks(self) -> usize {
        self.outer.min(if self.row_threads() == 32 { MOST_WARP_BLOCKS } else { MOST_ROW_BLOCKS })
    }

    /// Blocks of a kernel with a thread a row.
    fn thread_blocks(self) -> usize {
        self.count().div_ceil(THREADS as usize).min(MOST_BLOCKS)
    }

    /// Threads for one row, where a block takes rows one after the other.
    fn row_threads(self) -> u32 {
        match self.classes {
            0..1024 => 32,
            1024..4096 => 128,
            4096..16384 => 256,
            _ => 512,
        }
    }

    /// Packs of a row of neighbouring scores, if rows at these addresses are whole packs that can
    /// be fetched while others are worked on.
    fn packs(self, dtype: DType, smoothing: f64, at: &[&Operand<'_>]) -> Option<usize> {
        let bytes = self.classes * dtype.size_bytes();
        let aligned = at.iter().all(|operand| operand.first_byte().addr().is_multiple_of(16));
        let can = aligned && bytes.is_multiple_of(16) && bytes > 0 && smoothing == 0.0;
        can.then_some(bytes / 16)
    }

    /// The way and the launch of the kernel over rows of neighbouring scores. Warps take long rows
    /// of halves in pieces, if there are enough for nearly all warps.
    fn forward(
        self,
        launch: &CudaLaunch<'_>,
        x: &Operand<'_>,
        smoothing: f64,
    ) -> (&'static str, Grid) {
        let packs = self.packs(x.dtype(), smoothing, &[x]);
        let many = x.dtype().size_bytes() == 2 && self.outer >= ENOUGH_ROWS;
        let in_pieces = packs.filter(|&packs| many && packs > 32 * KEPT_PACKS).and_then(|_| {
            let blocks = self.outer.div_ceil(WARPS).min(MOST_BLOCKS_OF_PIECES);
            let bytes = PIECES * KEPT_PACKS * 32 * WARPS * 16;
            launch.fetching(grid(blocks, 32 * WARPS as u32), bytes, DECLARED_BYTES)
        });
        let in_pieces = in_pieces.map(|grid| ("pieces", grid));
        in_pieces.or_else(|| self.held(launch, packs?)).unwrap_or_else(|| self.by_rows())
    }

    /// The same for the gradient.
    fn backward(
        self,
        launch: &CudaLaunch<'_>,
        [x, out]: [&Operand<'_>; 2],
        smoothing: f64,
    ) -> (&'static str, Grid) {
        let packs = self.packs(x.dtype(), smoothing, &[x, out]);
        packs.and_then(|packs| self.held(launch, packs)).unwrap_or_else(|| self.by_rows())
    }

    fn by_rows(self) -> (&'static str, Grid) {
        ("rows", grid(self.row_blocks(), self.row_threads()))
    }

    /// The way and the launch in which a warp or a block holds a row of so many packs while the
    /// next is on its way, if one can.
    fn held(self, launch: &CudaLaunch<'_>, packs: usize) -> Option<(&'static str, Grid)> {
        let (way, in_block, threads) = match packs <= 32 * KEPT_PACKS {
            true => ("warps", WARPS, 32 * WARPS),
            false => ("blocks", 1, packs.div_ceil(KEPT_PACKS).next_multiple_of(32)),
        };
        if threads > 512 {
            return None;
        }
        let most = (THREADS_AHEAD / threads / 132 * 132).clamp(132, MOST_ROW_BLOCKS);
        let ahead = grid(self.outer.div_ceil(in_block).min(most), threads as u32);
        let grid = launch.fetching(ahead, 2 * KEPT_PACKS * threads * 16, DECLARED_BYTES)?;
        Some((way, grid))
    }
}

/// The structure `Terms` of the kernels.
fn terms(args: NllArgs, smoothing: f64, dtype: DType) -> Argument {
    let reduction = match args.reduction {
        Reduction::None => 0,
        Reduction::Mean => 1,
        Reduction::Sum => 2,
    };
    let width = half_width(dtype) as u64;
    Argument::Words(smallvec![args.ignore_index as u64, smoothing.to_bits(), reduction, width])
}

fn grid(blocks: usize, threads: u32) -> Grid {
    Grid { blocks: (blocks as u32, 1, 1), threads, shared_bytes: 0 }
}

/// Bytes of the blocks' sums, for scores of this shape.
pub(crate) fn cross_entropy_workspace_bytes(shape: &[usize]) -> usize {
    let rows = Rows::of(shape);
    // As many as any way of taking the rows has.
    rows.outer.min(MOST_WARP_BLOCKS).max(rows.thread_blocks()) * TOTAL_BYTES
}

/// The operand at `index` if it is there and wanted.
fn optional(launch: &CudaLaunch<'_>, wanted: bool, index: usize) -> Result<Argument> {
    match launch.inputs.get(index).filter(|_| wanted) {
        Some(operand) => contiguous(launch, operand),
        None => Ok(NOTHING),
    }
}

fn output(launch: &CudaLaunch<'_>, index: usize) -> Result<Argument> {
    launch.outputs.get(index).map_or(Ok(NOTHING), |out| contiguous(launch, out))
}

/// Adds up the sums of `blocks` blocks.
fn finish(launch: &CudaLaunch<'_>, blocks: usize, terms: Argument, x: &Operand<'_>) -> Result<()> {
    let arguments = [
        whole(blocks),
        terms,
        whole(launch.workspace.pointer().addr()),
        output(launch, 0)?,
        output(launch, 1)?,
    ];
    let kernel = ("loss_finish", computed_in(x.dtype()));
    launch.run(&source_files::CROSS_ENTROPY, kernel, grid(1, 512), &arguments)
}

/// [log-probabilities, targets, weight?] -> the loss, and the sum of the weights if there is a
/// second output.
pub(crate) fn nll_loss(launch: &CudaLaunch<'_>, args: NllArgs) -> Result<()> {
    let x = &launch.inputs[0];
    let rows = Rows::of(x.shape());
    let terms = terms(args, 0.0, x.dtype());
    let blocks = rows.thread_blocks();
    if blocks > 0 {
        let arguments = [
            rows.argument(),
            terms.clone(),
            contiguous(launch, x)?,
            contiguous(launch, &launch.inputs[1])?,
            optional(launch, args.weight, 2)?,
            output(launch, 0)?,
            whole(launch.workspace.pointer().addr()),
            launch.fault(),
        ];
        let kernel = ("nll_loss", computed_in(x.dtype()));
        launch.run(&source_files::CROSS_ENTROPY, kernel, grid(blocks, THREADS), &arguments)?;
    }
    finish(launch, blocks, terms, x)
}

/// [grad, targets, weight?, sum of weights?] -> the gradient of the log-probabilities.
pub(crate) fn nll_loss_backward(launch: &CudaLaunch<'_>, args: NllArgs) -> Result<()> {
    let out = &launch.outputs[0];
    fill_operand(launch, out, Scalar::Int(0))?;
    let rows = Rows::of(out.shape());
    let blocks = rows.thread_blocks();
    if blocks == 0 || out.layout().numel() == 0 {
        return Ok(());
    }
    let mean = args.reduction == Reduction::Mean;
    let arguments = [
        rows.argument(),
        terms(args, 0.0, out.dtype()),
        contiguous(launch, &launch.inputs[0])?,
        contiguous(launch, &launch.inputs[1])?,
        optional(launch, args.weight, 2)?,
        optional(launch, mean, 2 + usize::from(args.weight))?,
        contiguous(launch, out)?,
    ];
    let kernel = ("nll_loss_backward", computed_in(out.dtype()));
    launch.run(&source_files::CROSS_ENTROPY, kernel, grid(blocks, THREADS), &arguments)
}

/// [scores, targets, weight?] -> the loss, and [sum of weights, largest scores, logarithms of sums]
/// if backward wants them.
pub(crate) fn cross_entropy(launch: &CudaLaunch<'_>, args: CrossEntropyArgs) -> Result<()> {
    let x = &launch.inputs[0];
    let rows = Rows::of(x.shape());
    let terms = terms(args.nll, args.smoothing, x.dtype());
    // Kernels for rows side by side are compiled for what is computed in.
    let (way, grid, number) = match rows.inner {
        1 => {
            let (way, grid) = rows.forward(launch, x, args.smoothing);
            (way, grid, type_name(x.dtype()))
        }
        _ => ("columns", grid(rows.thread_blocks(), THREADS), computed_in(x.dtype())),
    };
    let blocks = grid.blocks.0 as usize;
    if blocks > 0 {
        let arguments = [
            rows.argument(),
            terms.clone(),
            contiguous(launch, x)?,
            contiguous(launch, &launch.inputs[1])?,
            optional(launch, args.nll.weight, 2)?,
            output(launch, 0)?,
            output(launch, 2)?,
            output(launch, 3)?,
            whole(launch.workspace.pointer().addr()),
            launch.fault(),
        ];
        let kernel = ("cross_entropy", way, number);
        launch.run(&source_files::CROSS_ENTROPY, kernel, grid, &arguments)?;
    }
    finish(launch, blocks, terms, x)
}

/// [grad, scores, targets, sum of weights, largest scores, logarithms of sums, weight?] -> the
/// gradient of the scores.
pub(crate) fn cross_entropy_backward(
    launch: &CudaLaunch<'_>,
    args: CrossEntropyArgs,
) -> Result<()> {
    let (x, out) = (&launch.inputs[1], &launch.outputs[0]);
    let rows = Rows::of(x.shape());
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let (way, grid, number) = match rows.inner {
        1 => {
            let (way, of_way) = rows.backward(launch, [x, out], args.smoothing);
            // Here blocks leave no sums.
            let all = rows.outer.min(1 << 20);
            let grid = if way == "rows" { grid(all, rows.row_threads()) } else { of_way };
            (way, grid, type_name(x.dtype()))
        }
        _ => ("columns", launch.grid(n, 4), computed_in(x.dtype())),
    };
    let arguments = [
        rows.argument(),
        terms(args.nll, args.smoothing, x.dtype()),
        contiguous(launch, &launch.inputs[0])?,
        contiguous(launch, x)?,
        contiguous(launch, &launch.inputs[2])?,
        optional(launch, args.nll.weight, 6)?,
        contiguous(launch, &launch.inputs[3])?,
        contiguous(launch, &launch.inputs[4])?,
        contiguous(launch, &launch.inputs[5])?,
        address(out),
    ];
    let kernel = ("cross_entropy_backward", way, number);
    launch.run(&source_files::CROSS_ENTROPY, kernel, grid, &arguments)
}
