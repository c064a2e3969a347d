//! Reductions over some dimensions: a block folds one output, or a part of a long one, whose parts a second kernel folds.

use plimsoll_core::{Dims, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Meta;

use super::strided::Strided;
use super::{CudaLaunch, address, type_name, whole};

/// Which fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Sum,
    Mean,
    Amax,
    Amin,
}

/// Elements that one block folds before another one helps: long enough to hide the second kernel.
const PART: usize = 1 << 16;

/// The most parts of one output; together with few outputs still more blocks than a GPU runs at once.
const MOST_PARTS: usize = 1024;

/// Into how many parts each of `outputs` folds of `count` elements is cut.
fn parts(outputs: usize, count: usize) -> usize {
    if outputs >= MOST_PARTS { 1 } else { count.div_ceil(PART).clamp(1, MOST_PARTS) }
}

fn counts(input: &Meta, output: &Meta) -> (usize, usize) {
    let outputs = output.layout.numel();
    let count = input.layout.numel().checked_div(outputs).unwrap_or(0);
    (outputs, count)
}

/// Bytes of partial results.
pub(crate) fn workspace_bytes(input: &Meta, output: &Meta) -> usize {
    let (outputs, count) = counts(input, output);
    match parts(outputs, count) {
        1 => 0,
        // No partial result is wider than a double.
        parts => outputs * parts * 8,
    }
}

/// Folds the dimensions `reduced` of the input.
pub(crate) fn reduce(launch: &CudaLaunch<'_>, fold: Fold, reduced: &[usize]) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let (outputs, count) = counts(x.meta(), out.meta());
    if outputs == 0 {
        return Ok(());
    }
    let kept: Dims = (0..x.shape().len()).filter(|dim| !reduced.contains(dim)).collect();
    let mut folded = Dims::from(reduced);
    folded.sort_unstable();
    let (outer, inner) = (Strided::of_dims(x, &kept), Strided::of_dims(x, &folded));
    let parts = parts(outputs, count);
    let name = match fold {
        Fold::Sum | Fold::Mean => "sum",
        Fold::Amax => "amax",
        Fold::Amin => "amin",
    };
    let scale = if fold == Fold::Mean { 1.0 / count as f64 } else { 1.0 };
    let kernel = format!("{name}_{}", type_name(x.dtype()));
    let partial = Argument::U64(launch.workspace.pointer.addr() as u64);
    let threads = if count >= 512 { 512 } else { 64 };
    let grid =
        |jobs: usize| Grid { blocks: (jobs.min(1 << 20) as u32, 1, 1), threads, shared_bytes: 0 };
    launch.run(
        &source_files::REDUCE,
        &kernel,
        grid(outputs * parts),
        &[
            whole(outputs),
            whole(count),
            outer.argument(launch.operation)?,
            inner.argument(launch.operation)?,
            Argument::I32(i32::from(inner.is_dense())),
            whole(parts),
            Argument::F64(scale),
            address(x),
            address(out),
            partial.clone(),
        ],
    )?;
    if parts == 1 {
        return Ok(());
    }
    launch.run(
        &source_files::REDUCE,
        &format!("{kernel}_finish"),
        grid(outputs),
        &[whole(outputs), whole(parts), Argument::F64(scale), address(out), partial],
    )
}
