//! Searches in sorted sequences, and histograms. Operands are contiguous, as the methods make them.

use plimsoll_core::Result;
use plimsoll_cuda::{Argument, source_files};
use plimsoll_kernels::cpu::search::Bins;
use plimsoll_kernels::{Meta, Operand};

use super::sort::Radix;
use super::tail::code;
use super::{CudaLaunch, NOTHING, address, whole};

fn dtype(operand: &Operand<'_>) -> Argument {
    Argument::I32(code(operand.dtype()) as i32)
}

fn all_contiguous<'a>(
    launch: &CudaLaunch<'_>,
    mut operands: impl Iterator<Item = &'a Operand<'a>>,
) -> Result<()> {
    if operands.all(|operand| operand.layout().is_contiguous()) {
        return Ok(());
    }
    Err(launch.unsupported("an operand that is not contiguous"))
}

/// Inputs [sequences, values].
pub(crate) fn searchsorted(launch: &CudaLaunch<'_>, right: bool) -> Result<()> {
    let (sequences, values, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    all_contiguous(launch, [sequences, values, out].into_iter())?;
    let n = values.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let length = sequences.shape().last().copied().unwrap_or(1);
    let shared = sequences.shape().len() <= 1;
    let row = if shared { 0 } else { values.shape().last().copied().unwrap_or(1) };
    let real = values.dtype().is_float() || sequences.dtype().is_float();
    let arguments = [
        whole(n),
        whole(length),
        whole(row),
        Argument::I32(i32::from(right)),
        dtype(sequences),
        dtype(values),
        dtype(out),
        address(sequences),
        address(values),
        address(out),
    ];
    let kernel = if real { "searchsorted_real" } else { "searchsorted_whole" };
    launch.run(&source_files::SEARCH, kernel, launch.grid(n, 1), &arguments)
}

/// The sort that brings the elements of each bin together, for weights.
fn by_bin(x: &Meta, count: usize) -> Radix {
    let bits = (usize::BITS - count.leading_zeros()) as usize;
    Radix { rows: 1, len: x.layout.numel(), bits, positions: true }
}

/// Bytes that [`histogram`] works in.
pub(crate) fn histogram_workspace_bytes(x: &Meta, count: usize, weighted: bool) -> usize {
    if weighted { by_bin(x, count).workspace_bytes() } else { count * size_of::<u64>() }
}

/// Inputs [x (, edges) (, weights)]; the output has a place for each bin.
pub(crate) fn histogram(launch: &CudaLaunch<'_>, bins: Bins, weighted: bool) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    all_contiguous(launch, launch.inputs.iter().chain([out]))?;
    let (n, count) = (x.layout().numel(), out.layout().numel());
    if count == 0 {
        return Ok(());
    }
    let edges = launch.inputs.get(1).filter(|_| bins == Bins::Edges);
    let weights = launch.inputs.last().filter(|_| weighted);
    let (way, low, high) = match bins {
        Bins::Numbered => (0, 0.0, 0.0),
        Bins::Even { low, high } => (1, low, high),
        Bins::Edges => (2, 0.0, 0.0),
    };
    let base = launch.workspace.pointer().addr();
    let binned = [
        whole(n),
        whole(count),
        Argument::I32(way),
        Argument::F64(low),
        Argument::F64(high),
        dtype(x),
        edges.map_or(Argument::I32(0), dtype),
        address(x),
        edges.map_or(NOTHING, address),
        whole(base),
    ];
    let source = &source_files::SEARCH;
    let Some(weights) = weights else {
        launch.run(
            source,
            "histogram_clear",
            launch.grid(count, 1),
            &[whole(count), whole(base)],
        )?;
        launch.run(source, "histogram_count", launch.grid(n, 4), &binned)?;
        let arguments = [whole(count), dtype(out), whole(base), address(out)];
        return launch.run(source, "histogram_finish", launch.grid(count, 1), &arguments);
    };
    if n.max(count) >= u32::MAX as usize {
        return Err(launch.unsupported("weights of 2^32 elements or bins and more"));
    }
    launch.run(source, "histogram_keys", launch.grid(n, 4), &binned)?;
    let sorted = by_bin(x.meta(), count).run(launch, base)?;
    let arguments = [
        whole(n),
        whole(count),
        dtype(weights),
        dtype(out),
        whole(sorted.keys[0]),
        whole(sorted.positions[0]),
        address(weights),
        address(out),
    ];
    launch.run(source, "histogram_weigh", launch.grid(count * 32, 1), &arguments)
}
