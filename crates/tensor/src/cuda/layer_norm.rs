//! Layer normalisation over contiguous rows.

use plimsoll_core::Result;
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;

use super::{CudaLaunch, NOTHING, address, type_name, whole};

fn or_nothing(operand: Option<&Operand<'_>>) -> Argument {
    operand.map_or(NOTHING, address)
}

fn rows_grid(rows: usize, length: usize) -> Grid {
    let threads = if length >= 1024 { 512 } else { 128 };
    Grid { blocks: (rows.clamp(1, 1 << 20) as u32, 1, 1), threads, shared_bytes: 0 }
}

fn check_rows(launch: &CudaLaunch<'_>, operands: &[&Operand<'_>]) -> Result<()> {
    match operands.iter().find(|operand| !operand.layout().is_contiguous()) {
        None => Ok(()),
        Some(_) => Err(launch.unsupported("layer_norm of operands that are not contiguous")),
    }
}

/// Inputs [x, weight?, bias?]; outputs [out] or [out, mean, rstd]. Rows of `length` elements.
pub(crate) fn layer_norm(
    launch: &CudaLaunch<'_>,
    length: usize,
    eps: f64,
    weight: Option<&Operand<'_>>,
    bias: Option<&Operand<'_>>,
) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let operands: Vec<&Operand<'_>> = [x, out].into_iter().chain(weight).chain(bias).collect();
    check_rows(launch, &operands)?;
    if x.layout().numel() == 0 {
        return Ok(());
    }
    let rows = x.layout().numel() / length;
    let arguments = [
        whole(rows),
        whole(length),
        Argument::F64(eps),
        address(x),
        or_nothing(weight),
        or_nothing(bias),
        address(out),
        or_nothing(launch.outputs.get(1)),
        or_nothing(launch.outputs.get(2)),
    ];
    let kernel = format!("layer_norm_{}", type_name(x.dtype()));
    launch.run(&source_files::LAYER_NORM, &kernel, rows_grid(rows, length), &arguments)
}

/// Inputs [grad, x, mean, rstd, weight?]; outputs are given apart, each if it is wanted.
pub(crate) fn layer_norm_backward(
    launch: &CudaLaunch<'_>,
    length: usize,
    weight: Option<&Operand<'_>>,
    outputs: [Option<&Operand<'_>>; 3],
) -> Result<()> {
    let [grad, x, mean, rstd] = [0, 1, 2, 3].map(|index| &launch.inputs[index]);
    check_rows(launch, &[grad, x])?;
    if x.layout().numel() == 0 {
        return Ok(());
    }
    let rows = x.layout().numel() / length;
    let dtype = type_name(x.dtype());
    let [input, weight_out, bias_out] = outputs;
    let shared =
        [whole(rows), whole(length), address(grad), address(x), address(mean), address(rstd)];
    if let Some(out) = input {
        let arguments: Vec<Argument> =
            shared.iter().cloned().chain([or_nothing(weight), address(out)]).collect();
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
