//! Reductions, plainly: one pass in row-major order. The engine in `reduce/` takes its place.

use plimsoll_core::Result;

use crate::element::{Element, match_dtype};
use crate::operand::{CpuLaunch, Meta};

/// Scratch of a reduction.
pub fn workspace_bytes(_inputs: &[&Meta], _outputs: &[Meta]) -> usize {
    0
}

/// Folds every element into its place of the output, which is contiguous.
fn fold(
    launch: &CpuLaunch<'_>,
    reduced: &[usize],
    start: f64,
    step: fn(f64, f64) -> f64,
    scale: bool,
) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let shape = x.shape();
    let mut totals = vec![start; out.layout().numel()];
    let mut index = vec![0usize; shape.len()];
    for _ in 0..x.layout().numel() {
        let from: usize =
            index.iter().zip(x.layout().strides()).map(|(i, stride)| i * stride).sum();
        let to = (0..shape.len())
            .filter(|dim| !reduced.contains(dim))
            .fold(0, |to, dim| to * shape[dim] + index[dim]);
        // SAFETY: `from` is an element of the input, which the launch claims for reading.
        let value = match_dtype!(x.dtype(), T => unsafe { (*x.first::<T>().add(from)).to_f64() });
        totals[to] = step(totals[to], value);
        for dim in (0..shape.len()).rev() {
            index[dim] += 1;
            if index[dim] < shape[dim] {
                break;
            }
            index[dim] = 0;
        }
    }
    let count: usize = reduced.iter().map(|&dim| shape[dim]).product();
    for (to, total) in totals.into_iter().enumerate() {
        let value = if scale { total / count as f64 } else { total };
        // SAFETY: `to` is an element of the contiguous output, which the launch claims for writing.
        match_dtype!(out.dtype(), T => unsafe { *out.first::<T>().add(to) = T::from_f64(value) });
    }
    Ok(())
}

/// The sum over `reduced`.
pub fn sum(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    fold(launch, reduced, 0.0, |a, b| a + b, false)
}

/// The mean over `reduced`.
pub fn mean(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    fold(launch, reduced, 0.0, |a, b| a + b, true)
}

/// The largest over `reduced`.
pub fn amax(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    fold(launch, reduced, f64::NEG_INFINITY, |a, b| if b.is_nan() || b > a { b } else { a }, false)
}

/// The smallest over `reduced`.
pub fn amin(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    fold(launch, reduced, f64::INFINITY, |a, b| if b.is_nan() || b < a { b } else { a }, false)
}
