//! Softmax, its logarithm and their derivatives along lines of any layout.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;
use smallvec::smallvec;

use super::lines::Lines;
use super::{Arguments, CudaLaunch, address, type_name, whole};

/// Lines of up to this many elements are a warp's.
const SHORT: usize = 1024;
/// Packs of 16 bytes that a thread of the derivative's kernel keeps of each operand's line.
const KEPT_PACKS: usize = 4;

/// Threads that take a line together. Exponentials want few with much to do each.
fn team(length: usize) -> usize {
    match length {
        ..=SHORT => 32,
        length if length <= 8 * SHORT => 256,
        _ => 512,
    }
}

/// The same for the derivative, which waits for memory: as many as keep the line, if they can.
fn backward_team(length: usize, dtype: DType) -> usize {
    let packs = (length * dtype.size_bytes()).div_ceil(16);
    packs.div_ceil(KEPT_PACKS).next_multiple_of(32).min(512)
}

/// Input [x].
pub(crate) fn softmax(launch: &CudaLaunch<'_>, dim: usize, log: bool) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let lines = Lines::new([x, out], dim);
    let team = team(lines.len);
    run(launch, "softmax", [x, out], lines, team, log)
}

/// Inputs [grad, the softmax].
pub(crate) fn softmax_backward(launch: &CudaLaunch<'_>, dim: usize, log: bool) -> Result<()> {
    let operands = [&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]];
    let lines = Lines::new(operands, dim);
    let team = backward_team(lines.len, operands[0].dtype());
    run(launch, "softmax_backward", operands, lines, team, log)
}

fn run<const N: usize>(
    launch: &CudaLaunch<'_>,
    kernel: &'static str,
    operands: [&Operand<'_>; N],
    lines: Lines<N>,
    team: usize,
    log: bool,
) -> Result<()> {
    let dtype = operands[0].dtype();
    launch.check_dtypes(dtype, &operands)?;
    if lines.count == 0 || lines.len == 0 {
        return Ok(());
    }
    // A team of 1 stands for blocks of 32 neighbouring lines.
    let (team, threads, in_block) = match team {
        _ if lines.are_columns() => (1, 256, 32),
        32 => (32, 128, 4),
        team => (team, team, 1),
    };
    let blocks = lines.count.div_ceil(in_block).min(1 << 20) as u32;
    let mut arguments: Arguments =
        smallvec![whole(lines.count), whole(lines.len), lines.outer.argument(launch.operation)?];
    arguments.extend(lines.steps.map(whole));
    arguments.extend([Argument::I32(i32::from(log)), Argument::I32(team as i32)]);
    arguments.extend(operands.map(address));
    let grid = Grid { blocks: (blocks, 1, 1), threads: threads as u32, shared_bytes: 0 };
    let kernel = (kernel, type_name(dtype));
    launch.run(&source_files::SOFTMAX, kernel, grid, &arguments)
}
