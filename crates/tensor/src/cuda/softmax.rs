//! Softmax, its logarithm and their derivatives along lines of any layout.

use plimsoll_core::Result;
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;
use smallvec::smallvec;

use super::lines::Lines;
use super::{Arguments, CudaLaunch, address, type_name, whole};

/// Lines of up to this many elements are a warp's.
const SHORT: usize = 1024;

/// Input [x].
pub(crate) fn softmax(launch: &CudaLaunch<'_>, dim: usize, log: bool) -> Result<()> {
    run(launch, "softmax", [&launch.inputs[0], &launch.outputs[0]], dim, log)
}

/// Inputs [grad, the softmax].
pub(crate) fn softmax_backward(launch: &CudaLaunch<'_>, dim: usize, log: bool) -> Result<()> {
    let operands = [&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]];
    run(launch, "softmax_backward", operands, dim, log)
}

fn run<const N: usize>(
    launch: &CudaLaunch<'_>,
    kernel: &'static str,
    operands: [&Operand<'_>; N],
    dim: usize,
    log: bool,
) -> Result<()> {
    let dtype = operands[0].dtype();
    launch.check_dtypes(dtype, &operands)?;
    let lines = Lines::new(operands, dim);
    if lines.count == 0 || lines.len == 0 {
        return Ok(());
    }
    // A team of 1 stands for blocks of 32 neighbouring lines.
    let (team, threads, in_block) = match lines.len {
        _ if lines.are_columns() => (1, 256, 32),
        ..=SHORT => (32, 128, 4),
        len if len <= 8 * SHORT => (256, 256, 1),
        _ => (512, 512, 1),
    };
    let blocks = lines.count.div_ceil(in_block).min(1 << 20) as u32;
    let mut arguments: Arguments =
        smallvec![whole(lines.count), whole(lines.len), lines.outer.argument(launch.operation)?];
    arguments.extend(lines.steps.map(whole));
    arguments.extend([Argument::I32(i32::from(log)), Argument::I32(team)]);
    arguments.extend(operands.map(address));
    let grid = Grid { blocks: (blocks, 1, 1), threads, shared_bytes: 0 };
    let kernel = (kernel, type_name(dtype));
    launch.run(&source_files::SOFTMAX, kernel, grid, &arguments)
}
