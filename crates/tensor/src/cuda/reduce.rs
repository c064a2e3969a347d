//! Sums, means and extremes over some dimensions: a block folds one output, or a part of a long
//! one, whose parts a second kernel folds. Other folds are in `folds.rs`.

use plimsoll_core::{DType, Dims, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::{Meta, Operand};
use smallvec::SmallVec;

use super::folds::{TailFold, folds_columns, tail_fold_workspace_bytes};
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

/// The most parts of one output; together with few outputs still more blocks than a GPU runs at
/// once.
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

/// The fold of the long tail that takes the place of `fold`: sums down columns, and sums in other
/// dtypes than their own.
fn instead(fold: Fold, input: &Meta, output: &Meta, reduced: &[usize]) -> Option<TailFold> {
    let tail = match fold {
        Fold::Sum => TailFold::Sum,
        Fold::Mean if input.dtype.is_float() => TailFold::Mean,
        _ => return None,
    };
    let other = output.dtype != result_dtype(fold, input.dtype);
    (other || folds_columns(input, reduced)).then_some(tail)
}

/// Bytes of partial results.
pub(crate) fn workspace_bytes(fold: Fold, input: &Meta, output: &Meta, reduced: &[usize]) -> usize {
    if instead(fold, input, output, reduced).is_some() {
        return tail_fold_workspace_bytes(input, reduced);
    }
    let (outputs, count) = counts(input, output);
    match parts(outputs, count) {
        1 => 0,
        // No partial result is wider than a double.
        parts => outputs * parts * 8,
    }
}

/// Where each output's first input element lies and where the output does, then where the elements
/// that are folded into it lie.
pub(super) fn layouts(x: &Operand<'_>, out: &Operand<'_>, reduced: &[usize]) -> (Strided, Strided) {
    let (sizes, steps) = (x.shape(), x.layout().strides());
    let kept: Dims = (0..sizes.len()).filter(|dim| !reduced.contains(dim)).collect();
    let folded = (0..sizes.len()).filter(|dim| reduced.contains(dim));
    // Dimensions that were reduced and kept have size 1 in the output.
    let keeps_dims = out.shape().len() == sizes.len();
    let out_step =
        |place: usize, dim: usize| out.layout().strides()[if keeps_dims { dim } else { place }];
    let outer = kept.iter().enumerate();
    let mut outer: SmallVec<[(usize, [usize; 2]); 6]> =
        outer.map(|(place, &dim)| (sizes[dim], [steps[dim], out_step(place, dim)])).collect();
    // Neighbouring outputs read neighbouring elements.
    outer.sort_by_key(|&(_, [step, _])| std::cmp::Reverse(step));
    let inner = folded.map(|dim| (sizes[dim], [steps[dim]]));
    (Strided::in_order(outer.into_iter()), Strided::in_order(inner))
}

/// The dtype that a fold of `x` is written in.
fn result_dtype(fold: Fold, x: DType) -> DType {
    if fold == Fold::Sum && !x.is_float() { DType::I64 } else { x }
}

/// Folds the dimensions `reduced` of the input.
pub(crate) fn reduce(launch: &CudaLaunch<'_>, fold: Fold, reduced: &[usize]) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    if let Some(tail) = instead(fold, x.meta(), out.meta(), reduced) {
        return super::tail_fold(launch, tail, reduced);
    }
    let (outputs, count) = counts(x.meta(), out.meta());
    if outputs == 0 {
        return Ok(());
    }
    if out.dtype() != result_dtype(fold, x.dtype()) {
        let what = format!("a reduction of {} to {}", x.dtype(), out.dtype());
        return Err(launch.unsupported(what));
    }
    let (outer, inner) = layouts(x, out, reduced);
    let outer = outer.argument(launch.operation)?;
    let parts = parts(outputs, count);
    let name = match fold {
        Fold::Sum | Fold::Mean => "sum",
        Fold::Amax => "amax",
        Fold::Amin => "amin",
    };
    let scale = if fold == Fold::Mean { 1.0 / count as f64 } else { 1.0 };
    let kernel = format!("{name}_{}", type_name(x.dtype()));
    let partial = Argument::U64(launch.workspace.pointer().addr() as u64);
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
            outer.clone(),
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
        &[whole(outputs), outer, whole(parts), Argument::F64(scale), address(out), partial],
    )
}
