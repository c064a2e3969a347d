//! Where a tensor is not zero: a kernel counts, so that the host learns the size of the result, and
//! one writes the places.

use plimsoll_core::{DType, Error, Result};
use plimsoll_cuda::{Argument, Grid, Words, source_files};
use plimsoll_kernels::{Meta, Operand};
use smallvec::smallvec;

use super::strided::Strided;
use super::{Arguments, CudaLaunch, address, whole};

/// Elements that are worth a block.
const PART: usize = 1 << 12;
/// Blocks at most.
const MOST_PARTS: usize = 1 << 12;
/// The most dimensions that positions are written for; mirrors `Sizes` in the kernels.
const RANK: usize = 32;

fn parts(numel: usize) -> usize {
    numel.div_ceil(PART).clamp(1, MOST_PARTS)
}

/// Workspace of both launches: a count for each part, and their sum.
pub(crate) fn nonzero_workspace_bytes(x: &Meta) -> usize {
    (parts(x.layout.numel()) + 1) * size_of::<i64>()
}

/// What both kernels take first.
fn scanned(launch: &CudaLaunch<'_>, x: &Operand<'_>) -> Result<Arguments> {
    let n = x.layout().numel();
    let (shape, strides) = (x.shape(), x.layout().strides());
    let in_order = shape.iter().zip(strides).map(|(&size, &stride)| (size, [stride]));
    let bits = x.dtype().size_bytes() * 8;
    // The sign of a float's zero does not count.
    let mask = u64::MAX >> (64 - bits + usize::from(x.dtype().is_float()));
    Ok(smallvec![
        whole(n),
        whole(n.div_ceil(parts(n))),
        Strided::in_order(in_order).argument(launch.operation)?,
        Argument::I32(x.dtype().size_bytes() as i32),
        Argument::U64(mask),
        address(x),
    ])
}

fn blocks(parts: usize, threads: u32) -> Grid {
    Grid { blocks: (parts as u32, 1, 1), threads, shared_bytes: 0 }
}

/// Counts, and leaves in the workspace where each part's rows start, and how many there are.
fn count(launch: &CudaLaunch<'_>, x: &Operand<'_>) -> Result<()> {
    let parts = parts(x.layout().numel());
    let counts = Argument::U64(launch.workspace.pointer().addr() as u64);
    let mut arguments = scanned(launch, x)?;
    arguments.push(counts.clone());
    let source = &source_files::NONZERO;
    launch.run(source, "nonzero_count", blocks(parts, 256), &arguments)?;
    launch.run(source, "nonzero_starts", blocks(1, 1024), &[whole(parts), counts])
}

/// How many elements of input 0 are not zero. Waits.
pub(crate) fn nonzero_count(launch: &CudaLaunch<'_>) -> Result<usize> {
    let x = &launch.inputs[0];
    let n = x.layout().numel();
    if n == 0 {
        return Ok(0);
    }
    count(launch, x)?;
    let sum = launch.workspace.pointer().addr() + parts(n) * size_of::<i64>();
    let [found] = launch.read_back::<1>(sum)?;
    Ok(found as usize)
}

/// Input [x], output [places]: a row for each, as many as [`nonzero_count`] said.
pub(crate) fn nonzero(launch: &CudaLaunch<'_>) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let rank = x.shape().len();
    if out.layout().numel() == 0 || out.dtype() != DType::I64 {
        return Ok(());
    }
    if rank > RANK {
        return Err(Error::unsupported(
            launch.operation,
            format!("CUDA writes positions of up to {RANK} dimensions; `view` x with fewer first"),
        ));
    }
    count(launch, x)?;
    let mut shape: Words = smallvec![0u64; 1 + RANK];
    shape[0] = rank as u64;
    for (word, &size) in shape[1..].iter_mut().zip(x.shape()) {
        *word = size as u64;
    }
    let mut arguments = scanned(launch, x)?;
    arguments.extend([
        Argument::U64(launch.workspace.pointer().addr() as u64),
        Argument::Words(shape),
        whole(out.shape()[0]),
        whole(out.layout().strides()[0]),
        whole(out.layout().strides()[1]),
        address(out),
    ]);
    let grid = blocks(parts(x.layout().numel()), 256);
    launch.run(&source_files::NONZERO, "nonzero_write", grid, &arguments)
}
