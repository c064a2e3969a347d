//! Group normalization of inputs that are row-major or channels last, a block a group of a sample.

use plimsoll_core::{Result, Scalar};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;
use plimsoll_kernels::cpu::group_norm::GroupNormArgs;

use super::fill::fill_operand;
use super::tail::{computed_in, half_width};
use super::{CudaLaunch, NOTHING, address, contiguous, is_channels_last, type_name, whole};

/// The structure `Sizes` of the kernels.
fn sizes(x: &Operand<'_>, groups: usize) -> Argument {
    let shape = x.shape();
    let places: usize = shape[2..].iter().product();
    Argument::Words([shape[0], shape[1], places, groups].iter().map(|&size| size as u64).collect())
}

/// What the names of kernels say of the order of `x`, which all tensors of its shape have.
fn order(launch: &CudaLaunch<'_>, x: &Operand<'_>) -> Result<&'static str> {
    Ok(if is_channels_last(launch, x)? { "last" } else { "" })
}

/// The address of a tensor that must lie as `x` does.
fn like(launch: &CudaLaunch<'_>, x: &Operand<'_>, operand: &Operand<'_>) -> Result<Argument> {
    match is_channels_last(launch, operand)? == is_channels_last(launch, x)? {
        true => Ok(address(operand)),
        false => Err(launch.unsupported("an operand in another order than the input")),
    }
}

fn grid(shape: &[usize], groups: usize) -> Grid {
    let (units, length) = (shape[0] * groups, shape[1..].iter().product::<usize>() / groups);
    let threads = match length {
        0..512 => 64,
        512..4096 => 256,
        _ => 512,
    };
    Grid { blocks: (units.clamp(1, 1 << 20) as u32, 1, 1), threads, shared_bytes: 0 }
}

fn optional(launch: &CudaLaunch<'_>, operand: Option<&Operand<'_>>) -> Result<Argument> {
    operand.map_or(Ok(NOTHING), |operand| contiguous(launch, operand))
}

/// Inputs [x, weight?, bias?]; outputs [out] or [out, mean, 1 / deviation].
pub(crate) fn group_norm(launch: &CudaLaunch<'_>, args: GroupNormArgs) -> Result<()> {
    let x = &launch.inputs[0];
    if x.layout().numel() == 0 {
        return Ok(());
    }
    let bias = launch.inputs.get(1 + usize::from(args.weight)).filter(|_| args.bias);
    let arguments = [
        sizes(x, args.groups),
        Argument::F64(args.eps),
        address(x),
        optional(launch, launch.inputs.get(1).filter(|_| args.weight))?,
        optional(launch, bias)?,
        like(launch, x, &launch.outputs[0])?,
        optional(launch, launch.outputs.get(1))?,
        optional(launch, launch.outputs.get(2))?,
    ];
    let kernel = ("group_norm", order(launch, x)?, type_name(x.dtype()));
    launch.run(&source_files::GROUP_NORM, kernel, grid(x.shape(), args.groups), &arguments)
}

/// Inputs [grad, x, mean, 1 / deviation, weight?]; outputs are given apart, each if it is wanted.
pub(crate) fn group_norm_backward(
    launch: &CudaLaunch<'_>,
    groups: usize,
    weight: Option<&Operand<'_>>,
    [input, weight_out, bias_out]: [Option<&Operand<'_>>; 3],
) -> Result<()> {
    let x = &launch.inputs[1];
    if x.layout().numel() == 0 {
        let mut parameters = [weight_out, bias_out].into_iter().flatten();
        return parameters.try_for_each(|out| fill_operand(launch, out, Scalar::Int(0)));
    }
    let (computed, width) = (computed_in(x.dtype()), whole(half_width(x.dtype())));
    let sums = whole(launch.workspace.pointer().addr());
    let rstd = contiguous(launch, &launch.inputs[3])?;
    let arguments = [
        sizes(x, groups),
        width.clone(),
        like(launch, x, &launch.inputs[0])?,
        address(x),
        contiguous(launch, &launch.inputs[2])?,
        rstd.clone(),
        optional(launch, weight)?,
        sums.clone(),
        input.map_or(Ok(NOTHING), |input| like(launch, x, input))?,
    ];
    let kernel = ("group_norm_backward", order(launch, x)?, computed);
    launch.run(&source_files::GROUP_NORM, kernel, grid(x.shape(), groups), &arguments)?;
    if weight_out.is_none() && bias_out.is_none() {
        return Ok(());
    }
    let arguments = [
        sizes(x, groups),
        width,
        sums,
        rstd,
        optional(launch, weight_out)?,
        optional(launch, bias_out)?,
    ];
    let blocks = x.shape()[1].div_ceil(4) as u32;
    let grid = Grid { blocks: (blocks, 1, 1), threads: 128, shared_bytes: 0 };
    let kernel = ("group_norm_parameters", computed);
    launch.run(&source_files::GROUP_NORM, kernel, grid, &arguments)
}
