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

/// The most blocks of a kernel that leaves sums.
const MOST_BLOCKS: usize = 1 << 14;
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
        self.outer.min(MOST_BLOCKS)
    }

    /// Blocks of a kernel with a thread a row.
    fn thread_blocks(self) -> usize {
        self.count().div_ceil(THREADS as usize).min(MOST_BLOCKS)
    }

    /// Threads for one row.
    fn row_threads(self) -> u32 {
        match self.classes {
            0..1024 => 32,
            1024..4096 => 128,
            4096..16384 => 256,
            _ => 512,
        }
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

/// How kernels for rows of neighbouring scores end; they are compiled for each dtype.
fn rows_of(dtype: DType) -> (&'static str, &'static str) {
    ("rows", type_name(dtype))
}

/// How kernels for rows side by side end; they are compiled for what is computed in.
fn columns_of(dtype: DType) -> (&'static str, &'static str) {
    ("columns", computed_in(dtype))
}

fn grid(blocks: usize, threads: u32) -> Grid {
    Grid { blocks: (blocks as u32, 1, 1), threads, shared_bytes: 0 }
}

/// Bytes of the blocks' sums, for scores of this shape.
pub(crate) fn cross_entropy_workspace_bytes(shape: &[usize]) -> usize {
    let rows = Rows::of(shape);
    rows.row_blocks().max(rows.thread_blocks()) * TOTAL_BYTES
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
    let (name, blocks, threads) = match rows.inner {
        1 => (rows_of(x.dtype()), rows.row_blocks(), rows.row_threads()),
        _ => (columns_of(x.dtype()), rows.thread_blocks(), THREADS),
    };
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
        let kernel = ("cross_entropy", name.0, name.1);
        launch.run(&source_files::CROSS_ENTROPY, kernel, grid(blocks, threads), &arguments)?;
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
    let (name, grid) = match rows.inner {
        1 => (rows_of(x.dtype()), grid(rows.outer.min(1 << 20), rows.row_threads())),
        _ => (columns_of(x.dtype()), launch.grid(n, 4)),
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
    let kernel = ("cross_entropy_backward", name.0, name.1);
    launch.run(&source_files::CROSS_ENTROPY, kernel, grid, &arguments)
}
