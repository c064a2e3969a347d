//! Resampling of planes, row-major or channels last, computed in f32 or f64.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, source_files};
use plimsoll_kernels::cpu::interpolate::{InterpolateArgs, InterpolateMode};
use plimsoll_kernels::{Meta, Operand};

use super::tail::code;
use super::{CudaLaunch, address, is_channels_last, whole};

/// Bytes of a range of outputs.
const RANGE_BYTES: usize = 16;

fn computed_in(dtype: DType) -> &'static str {
    if dtype == DType::F64 { "f64" } else { "f32" }
}

/// Input places to an output place, rounded as the kernel computes.
fn step(args: InterpolateArgs, dtype: DType, from: usize, to: usize, scale: f64) -> f64 {
    let quotient = |a: usize, b: usize| match dtype {
        DType::F64 => a as f64 / b as f64,
        _ => f64::from(a as f32 / b as f32),
    };
    let nearest = matches!(args.mode, InterpolateMode::Nearest | InterpolateMode::NearestExact);
    if args.align_corners && !nearest {
        return if to > 1 { quotient(from - 1, to - 1) } else { 0.0 };
    }
    match (scale > 0.0, dtype) {
        (true, DType::F64) => 1.0 / scale,
        (true, _) => f64::from((1.0 / scale) as f32),
        (false, _) => quotient(from, to),
    }
}

/// The structure `Job` of the kernels, for inputs of shape `from`.
fn job(args: InterpolateArgs, dtype: DType, from: &[usize], to: &[usize]) -> Vec<u64> {
    let mode = match args.mode {
        InterpolateMode::Nearest => 0,
        InterpolateMode::NearestExact => 1,
        InterpolateMode::Linear => 2,
        InterpolateMode::Cubic => 3,
        InterpolateMode::Area => 4,
    };
    let planes = (from[0] * from[1]) as u64;
    let mut words = vec![mode, u64::from(args.align_corners), planes, code(dtype)];
    let spatial = from.len() - 2;
    for index in 0..3 {
        words.extend(match (index + spatial).checked_sub(3) {
            Some(dim) => {
                let (from, to) = (from[2 + dim], to[2 + dim]);
                let step = step(args, dtype, from, to, args.scales[dim]);
                [from as u64, to as u64, step.to_bits(), 1]
            }
            None => [1, 1, 1f64.to_bits(), 0],
        });
    }
    words
}

/// The structure `Order` of the kernels.
fn order(launch: &CudaLaunch<'_>, operand: &Operand<'_>) -> Result<[u64; 3]> {
    let channels = operand.shape()[1];
    let places: usize = operand.shape()[2..].iter().product();
    let sizes = match is_channels_last(launch, operand)? {
        false => [channels, places, 1],
        true => [channels, 1, channels],
    };
    Ok(sizes.map(|size| size as u64))
}

/// The structure `Job` with the order of what is read and of what is written behind it.
fn arranged(
    launch: &CudaLaunch<'_>,
    mut job: Vec<u64>,
    from: &Operand<'_>,
    to: &Operand<'_>,
) -> Result<Argument> {
    job.extend(order(launch, from)?);
    job.extend(order(launch, to)?);
    Ok(Argument::Words(job.into()))
}

/// [x] -> x at other sizes; both are [batch, channels, 1 to 3 spatial dimensions].
pub(crate) fn interpolate(launch: &CudaLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let job = arranged(launch, job(args, x.dtype(), x.shape(), out.shape()), x, out)?;
    let arguments = [job, address(x), address(out)];
    let kernel = ("interpolate", computed_in(x.dtype()));
    launch.run(&source_files::INTERPOLATE, kernel, launch.grid(n, 1), &arguments)
}

/// Places along the three dimensions of the gradient of x.
fn places(shape: &[usize]) -> usize {
    5 - shape.len() + shape[2..].iter().sum::<usize>()
}

/// Bytes of the ranges of outputs along each dimension.
pub(crate) fn interpolate_backward_workspace_bytes(output: &Meta) -> usize {
    places(output.shape()) * RANGE_BYTES
}

/// [grad] -> the gradient of x, whose shape is the output's.
pub(crate) fn interpolate_backward(launch: &CudaLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    let (grad, out) = (&launch.inputs[0], &launch.outputs[0]);
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let job = arranged(launch, job(args, out.dtype(), out.shape(), grad.shape()), grad, out)?;
    let computed = computed_in(out.dtype());
    let ranges = whole(launch.workspace.pointer().addr());
    let places = places(out.shape());
    let kernel = ("interpolate_ranges", computed);
    let mut grid = launch.grid(1, 1);
    grid.blocks.0 = places.div_ceil(grid.threads as usize) as u32;
    launch.run(&source_files::INTERPOLATE, kernel, grid, &[job.clone(), ranges.clone()])?;
    let arguments = [job, ranges, address(grad), address(out)];
    let kernel = ("interpolate_backward", computed);
    launch.run(&source_files::INTERPOLATE, kernel, launch.grid(n, 1), &arguments)
}
