//! Layer normalization over trailing dimensions: (x - mean) / sqrt(variance + eps), scaled and
//! shifted. `backward.rs` has its derivative, `rows.rs` how rows of any layout become contiguous
//! ones.
//!
//! Mean and variance are computed in two passes over a row in the cache, lanes of f32 with totals
//! in f64. Weight and bias have the rows' type `T`, or the one `W` that it is computed in.

mod backward;
mod rows;

use plimsoll_core::{Error, Result};

pub use backward::{LayerNormGrads, layer_norm_backward, layer_norm_backward_workspace_bytes};
use plimsoll_engine::generate::{load_real, store_real};
use rows::{RowSet, Scratch};

use plimsoll_engine::Element;
use plimsoll_engine::along_dim::{SLICE, fold, slices, write_slice};
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::match_float;
use plimsoll_engine::nontemporal;
use plimsoll_engine::parallel;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Meta, Operand};

/// What a layer norm is told besides its operands.
#[derive(Clone, Copy, Debug)]
pub struct LayerNormArgs {
    /// How many trailing dimensions are normalized over.
    pub normalized_rank: usize,
    /// Whether a weight follows the input.
    pub weight: bool,
    /// Whether a bias follows them.
    pub bias: bool,
    /// Added to the variance.
    pub eps: f64,
}

/// Scratch of [`layer_norm`]: nothing when rows, weight and bias are contiguous.
pub fn layer_norm_workspace_bytes(
    inputs: &[&Meta],
    outputs: &[Meta],
    normalized_rank: usize,
) -> usize {
    let (Some(input), Some(out)) = (inputs.first(), outputs.first()) else { return 0 };
    let slots = slots(input.layout.numel());
    let once = inputs[1..].iter().map(|meta| rows::copy_bytes(meta, meta.shape().len()));
    let each = rows::copy_bytes(input, normalized_rank) + rows::copy_bytes(out, normalized_rank);
    once.sum::<usize>() + slots * each
}

/// ForwardRow buffers that a launch over `numel` elements uses: a function of the thread count.
fn slots(numel: usize) -> usize {
    parallel::parts(numel, GRAIN).max(1)
}

/// `[x, weight?, bias?]` -> `[y]` or `[y, mean, 1 / sqrt(variance + eps)]`; the latter two have the
/// leading dimensions. Weight and bias of halves may both be float32.
pub fn layer_norm(launch: &CpuLaunch<'_>, args: LayerNormArgs) -> Result<()> {
    let dtype = plimsoll_engine::input_dtype(launch)?;
    match_float!(launch, dtype, T => match launch.inputs.get(1) {
        Some(given) if given.dtype() != dtype => forward::<T, <T as Float>::Wide>(launch, args),
        _ => forward::<T, T>(launch, args),
    })
}

fn forward<T: Float, W: Float<Wide = T::Wide>>(
    launch: &CpuLaunch<'_>,
    args: LayerNormArgs,
) -> Result<()> {
    let expected = 1 + usize::from(args.weight) + usize::from(args.bias);
    if launch.inputs.len() != expected || !matches!(launch.outputs.len(), 1 | 3) {
        return Err(Error::invalid_argument("operands do not match the arguments")
            .in_operation(launch.operation));
    }
    let mut scratch = Scratch::new(launch);
    let x = RowSet::<T>::new(launch, &launch.inputs[0], args.normalized_rank)?;
    let y = RowSet::<T>::new(launch, &launch.outputs[0], args.normalized_rank)?;
    if x.len == 0 || x.count == 0 {
        return empty_rows(launch);
    }
    let mut affine = launch.inputs[1..].iter();
    let weight = scratch.whole::<W>(launch, affine.next().filter(|_| args.weight), x.len)?;
    let bias = scratch.whole::<W>(launch, launch.inputs.last().filter(|_| args.bias), x.len)?;
    let slots = slots(x.len * x.count).min(x.count);
    let buffers = scratch.slots(slots, [x.copy_bytes(), y.copy_bytes()])?;
    let moments = launch.outputs.get(1).zip(launch.outputs.get(2));
    let streamed =
        nontemporal::is_streamed(&[launch.outputs[0], launch.inputs[0]]) && y.copy_bytes() == 0;
    parallel::fork(slots, |slot| {
        let [x_buffer, y_buffer] = buffers.slot(slot);
        let mut buffer = [T::Wide::ZERO; SLICE];
        for row in parallel::part_range(x.count, slots, slot) {
            // SAFETY: rows of this launch's operands, slots are per part, and parts have their own
            // rows.
            unsafe {
                let to = y.place(row, y_buffer);
                let (mean, rstd) = simd::dispatch_level(ForwardRow {
                    x: x.fetch(row, x_buffer),
                    y: to,
                    weight: weight.get(),
                    bias: bias.get(),
                    len: x.len,
                    eps: args.eps,
                    buffer: &mut buffer,
                    streamed,
                });
                y.put_back(row, to);
                if let Some((mean_out, rstd_out)) = moments {
                    store_real(mean_out, row, mean);
                    store_real(rstd_out, row, rstd);
                }
            }
        }
        if streamed {
            nontemporal::fence();
        }
    });
    Ok(())
}

/// Rows without elements have no mean: PyTorch gives mean 0 and NaN for the deviation.
fn empty_rows(launch: &CpuLaunch<'_>) -> Result<()> {
    if let Some((mean, rstd)) = launch.outputs.get(1).zip(launch.outputs.get(2)) {
        for row in 0..mean.layout().numel() {
            // SAFETY: logical indices of the outputs.
            unsafe {
                store_real(mean, row, 0.0);
                store_real(rstd, row, f64::NAN);
            }
        }
    }
    Ok(())
}

/// Normalizes one contiguous row; weight and bias may be null.
struct ForwardRow<'a, T: Float, W> {
    x: *const T,
    y: *mut T,
    weight: *const W,
    bias: *const W,
    len: usize,
    eps: f64,
    buffer: &'a mut [T::Wide; SLICE],
    streamed: bool,
}

impl<T: Float, W: Float<Wide = T::Wide>> LevelKernel for ForwardRow<'_, T, W> {
    type Output = (f64, f64);
    #[inline(always)]
    fn run<L: Level>(self) -> (f64, f64) {
        let ForwardRow { x, y, weight, bias, len, eps, buffer, streamed } = self;
        // SAFETY: `forward` hands in rows of `len` elements; weight and bias are that long or null.
        let total = unsafe { sum_row(x, len, |sum, value| sum + value) };
        let mean = total / len as f64;
        let center = T::Wide::of(mean);
        // SAFETY: as above.
        let squares = unsafe {
            sum_row(x, len, |sum, value| {
                let off = value - center;
                off.mul_add::<L>(off, sum)
            })
        };
        // The rounding of the mean to `Wide` adds its square to the variance; far below its error.
        let rstd = 1.0 / (squares / len as f64 + eps).sqrt();
        let scale = T::Wide::of(rstd);
        // SAFETY: as above; slices are inside the row.
        slices(len, |at, count| unsafe {
            let values = &mut buffer[..count];
            for (i, value) in values.iter_mut().enumerate() {
                *value = ((*x.add(at + i)).widen() - center) * scale;
            }
            if !weight.is_null() {
                for (i, value) in values.iter_mut().enumerate() {
                    *value = *value * (*weight.add(at + i)).widen();
                }
            }
            if !bias.is_null() {
                for (i, value) in values.iter_mut().enumerate() {
                    *value = *value + (*bias.add(at + i)).widen();
                }
            }
            write_slice(y.add(at), values, streamed);
        });
        (mean, rstd)
    }
}

/// The sum over a contiguous row of what `add` adds to a lane for each element; lanes of slices
/// joined in f64.
///
/// # Safety
/// `len` elements from `x` must be readable.
#[inline(always)]
unsafe fn sum_row<T: Float>(
    x: *const T,
    len: usize,
    add: impl Fn(T::Wide, T::Wide) -> T::Wide,
) -> f64 {
    let mut total = 0.0;
    // SAFETY: slices are inside the row; the caller vouches for it.
    slices(len, |at, count| unsafe {
        total += fold(x.add(at), count, T::Wide::ZERO, &add, |a, b| a + b).to_f64();
    });
    total
}

/// The value of a moment (mean or deviation) for `row`, whatever float dtype it was kept in.
///
/// # Safety
/// `row` must be a logical index of `operand`.
unsafe fn moment<R: Real>(operand: &Operand<'_>, row: usize) -> R {
    // SAFETY: handed on from the caller.
    R::of(unsafe { load_real(operand, row) })
}

#[cfg(test)]
mod tests;
