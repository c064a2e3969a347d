//! Softmax, its logarithm and their derivatives along lines of any layout.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;
use smallvec::smallvec;

use super::lines::Lines;
use super::{Arguments, CudaLaunch, address, type_name, whole};

/// Bytes of a line that a thread of a block holds forward, and elements backward, where two lines
/// are held; mirrors the kernels.
const HELD_BYTES: usize = 64;
const HELD_BACKWARD: usize = 16;
/// Packs of 16 bytes of a line that a warp takes alone, forward and backward, where two lines are
/// held.
const WARPS_PACKS: [usize; 2] = [128, 64];
/// Warps of a block, each with a line.
const WARPS: usize = 4;

/// How lines are taken whose elements are neighbours: the rest of the kernel's name, lines of a
/// block and its threads, of which each holds so many elements.
fn team(
    length: usize,
    dtype: DType,
    most_packs: usize,
    held: usize,
) -> (&'static str, usize, usize) {
    match (length * dtype.size_bytes()).div_ceil(16) <= most_packs {
        true => ("by_warp", WARPS, 32 * WARPS),
        false => ("", 1, length.div_ceil(held).next_multiple_of(32).min(512)),
    }
}

/// Input [x].
pub(crate) fn softmax(launch: &CudaLaunch<'_>, dim: usize, log: bool) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let lines = Lines::new([x, out], dim);
    let team = team(lines.len, x.dtype(), WARPS_PACKS[0], HELD_BYTES / x.dtype().size_bytes());
    run(launch, "softmax", [x, out], lines, team, log)
}

/// Inputs [grad, the softmax].
pub(crate) fn softmax_backward(launch: &CudaLaunch<'_>, dim: usize, log: bool) -> Result<()> {
    let operands = [&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]];
    let lines = Lines::new(operands, dim);
    let team = team(lines.len, operands[0].dtype(), WARPS_PACKS[1], HELD_BACKWARD);
    run(launch, "softmax_backward", operands, lines, team, log)
}

fn run<const N: usize>(
    launch: &CudaLaunch<'_>,
    kernel: &'static str,
    operands: [&Operand<'_>; N],
    lines: Lines<N>,
    team: (&'static str, usize, usize),
    log: bool,
) -> Result<()> {
    let dtype = operands[0].dtype();
    launch.check_dtypes(dtype, &operands)?;
    if lines.count == 0 || lines.len == 0 {
        return Ok(());
    }
    let (way, in_block, threads) = if lines.are_columns() { ("columns", 32, 256) } else { team };
    let blocks = lines.count.div_ceil(in_block).min(1 << 20) as u32;
    let mut arguments: Arguments =
        smallvec![whole(lines.count), whole(lines.len), lines.outer.argument(launch.operation)?];
    arguments.extend(lines.steps.map(whole));
    arguments.push(Argument::I32(i32::from(log)));
    arguments.extend(operands.map(address));
    let grid = Grid { blocks: (blocks, 1, 1), threads: threads as u32, shared_bytes: 0 };
    let kernel = (kernel, way, type_name(dtype));
    launch.run(&source_files::SOFTMAX, kernel, grid, &arguments)
}
