//! Layer normalisation over contiguous rows; operands that are not contiguous are copied first.

use plimsoll_core::{Result, Scalar};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;

use super::fill::fill_operand;
use super::in_workspace::Space;
use super::{CudaLaunch, NOTHING, address, type_name, whole};

fn or_nothing(operand: Option<&Operand<'_>>) -> Argument {
    operand.map_or(NOTHING, address)
}

fn rows_grid(rows: usize, length: usize) -> Grid {
    let threads = if length >= 1024 { 512 } else { 128 };
    Grid { blocks: (rows.clamp(1, 1 << 20) as u32, 1, 1), threads, shared_bytes: 0 }
}

/// The addresses of inputs as contiguous rows; 0 for one that is not there.
fn rows_of<const N: usize>(
    launch: &CudaLaunch<'_>,
    operands: [Option<&Operand<'_>>; N],
) -> Result<[Argument; N]> {
    let mut space = Space::new(&launch.workspace);
    let mut addresses = [const { NOTHING }; N];
    for (place, operand) in addresses.iter_mut().zip(operands) {
        if let Some(operand) = operand {
            *place = whole(space.contiguous(launch, operand)?);
        }
    }
    Ok(addresses)
}

/// Inputs [x, weight?, bias?]; outputs [out] or [out, mean, rstd]. Rows of `length` elements.
pub(crate) fn layer_norm(
    launch: &CudaLaunch<'_>,
    length: usize,
    eps: f64,
    weight: Option<&Operand<'_>>,
    bias: Option<&Operand<'_>>,
) -> Result<()> {
    let x = &launch.inputs[0];
    let out = launch.contiguous_output()?;
    if x.layout().numel() == 0 {
        return Ok(());
    }
    let given: Vec<&Operand<'_>> = [out].into_iter().chain(weight).chain(bias).collect();
    launch.check_dtypes(x.dtype(), &given)?;
    let rows = x.layout().numel() / length;
    let [x_rows, weight, bias] = rows_of(launch, [Some(x), weight, bias])?;
    let arguments = [
        whole(rows),
        whole(length),
        Argument::F64(eps),
        x_rows,
        weight,
        bias,
        address(out),
        or_nothing(launch.outputs.get(1)),
        or_nothing(launch.outputs.get(2)),
    ];
    let kernel = format!("layer_norm_{}", type_name(x.dtype()));
    launch.run(&source_files::LAYER_NORM, &kernel, rows_grid(rows, length), &arguments)
}

/// Inputs [grad, x, mean, rstd, weight?]; outputs are given apart, each if it is wanted. Outputs
/// are new, so they are contiguous.
pub(crate) fn layer_norm_backward(
    launch: &CudaLaunch<'_>,
    length: usize,
    weight: Option<&Operand<'_>>,
    outputs: [Option<&Operand<'_>>; 3],
) -> Result<()> {
    let [grad, x, mean, rstd] = [0, 1, 2, 3].map(|index| &launch.inputs[index]);
    let [input, weight_out, bias_out] = outputs;
    if x.layout().numel() == 0 {
        // No row adds anything to the gradients of the parameters.
        let parameters = [weight_out, bias_out].into_iter().flatten();
        return parameters
            .into_iter()
            .try_for_each(|out| fill_operand(launch, out, Scalar::Int(0)));
    }
    let given: Vec<&Operand<'_>> = [grad].into_iter().chain(weight).collect();
    launch.check_dtypes(x.dtype(), &given)?;
    let rows = x.layout().numel() / length;
    let dtype = type_name(x.dtype());
    let [grad, x, mean, rstd, weight] =
        rows_of(launch, [Some(grad), Some(x), Some(mean), Some(rstd), weight])?;
    let shared = [whole(rows), whole(length), grad, x, mean, rstd];
    if let Some(out) = input {
        let arguments: Vec<Argument> =
            shared.iter().cloned().chain([weight, address(out)]).collect();
        let kernel = format!("layer_norm_backward_{dtype}");
        launch.run(&source_files::LAYER_NORM, &kernel, rows_grid(rows, length), &arguments)?;
    }
    if weight_out.is_some() || bias_out.is_some() {
        let arguments: Vec<Argument> =
            shared.iter().cloned().chain([or_nothing(weight_out), or_nothing(bias_out)]).collect();
        let kernel = format!("layer_norm_parameters_{dtype}");
        let grid =
            Grid { blocks: (length.div_ceil(128) as u32, 1, 1), threads: 128, shared_bytes: 0 };
        launch.run(&source_files::LAYER_NORM, &kernel, grid, &arguments)?;
    }
    Ok(())
}
