//! The derivative of layer normalization. Gradients of weight and bias are sums over rows: rows are cut into
//! chunks by size alone, each chunk sums into its own part of the workspace, and the parts are added in
//! order, so the result does not depend on the number of threads.

use plimsoll_core::{Error, Result};

use super::rows::{RowSet, Scratch, copy_bytes};
use super::{moment, rows};
use crate::cpu::iterate::GRAIN;
use crate::cpu::lines::{RUN, add_lanes, read_run, write_run};
use crate::cpu::real::{Float, Real, match_float};
use crate::cpu::simd::{self, Level, LevelKernel};
use crate::element::Element;
use crate::operand::{CpuLaunch, Meta};
use crate::parallel;

/// Chunks of rows at most.
const MOST_CHUNKS: usize = 16;

/// Which gradients are wanted; the outputs are those, in this order.
#[derive(Clone, Copy, Debug)]
pub struct LayerNormGrads {
    /// Of the input.
    pub input: bool,
    /// Of the weight.
    pub weight: bool,
    /// Of the bias.
    pub bias: bool,
}

fn chunks(rows: usize, len: usize) -> usize {
    (rows.saturating_mul(len) / GRAIN).clamp(1, MOST_CHUNKS).min(rows.max(1))
}

/// Scratch of [`layer_norm_backward`]: partial sums, and row buffers for layouts that are not contiguous.
pub fn layer_norm_backward_workspace_bytes(
    inputs: &[&Meta],
    outputs: &[Meta],
    normalized_rank: usize,
    wanted: LayerNormGrads,
) -> usize {
    let Some(grad) = inputs.first() else { return 0 };
    let lead = grad.shape().len().saturating_sub(normalized_rank);
    let len: usize = grad.shape()[lead..].iter().product();
    let rows: usize = grad.shape()[..lead].iter().product();
    let chunks = chunks(rows, len);
    let weight = inputs.get(4).map_or(0, |meta| copy_bytes(meta, meta.shape().len()));
    let out = if wanted.input {
        outputs.first().map_or(0, |meta| copy_bytes(meta, normalized_rank))
    } else {
        0
    };
    let each = inputs.iter().take(2).map(|meta| copy_bytes(meta, normalized_rank)).sum::<usize>();
    // Partial sums in what is computed in: 8 bytes cover both.
    let sums = if wanted.weight || wanted.bias {
        (chunks * 2 * len * size_of::<f64>()).next_multiple_of(64)
    } else {
        0
    };
    weight + chunks * (each + out) + sums
}

/// [grad, x, mean, rstd, weight?] -> the wanted gradients of x, weight and bias.
pub fn layer_norm_backward(
    launch: &CpuLaunch<'_>,
    normalized_rank: usize,
    wanted: LayerNormGrads,
) -> Result<()> {
    match_float!(launch, crate::cpu::input_dtype(launch)?, T => {
        backward::<T>(launch, normalized_rank, wanted)
    })
}

/// Partial sums of a launch: for each chunk, a row for the weight and one for the bias.
#[derive(Clone, Copy)]
struct Sums<R> {
    start: *mut R,
    len: usize,
}

// SAFETY: each chunk writes its own two rows; they are read after the join.
unsafe impl<R: Send> Send for Sums<R> {}
// SAFETY: as for Send.
unsafe impl<R: Send> Sync for Sums<R> {}

impl<R> Sums<R> {
    /// The weight's and the bias's row of `chunk`; null if there are no sums.
    fn rows(&self, chunk: usize) -> [*mut R; 2] {
        if self.start.is_null() {
            return [std::ptr::null_mut(); 2];
        }
        [0, 1].map(|which| self.start.wrapping_add((2 * chunk + which) * self.len))
    }
}

fn backward<T: Float>(
    launch: &CpuLaunch<'_>,
    normalized_rank: usize,
    wanted: LayerNormGrads,
) -> Result<()> {
    let outputs = [wanted.input, wanted.weight, wanted.bias].map(usize::from).iter().sum::<usize>();
    if !matches!(launch.inputs.len(), 4 | 5) || launch.outputs.len() != outputs {
        return Err(Error::invalid_argument("operands do not match the arguments")
            .in_operation(launch.operation));
    }
    let mut scratch = Scratch::new(launch);
    let grad = RowSet::<T>::new(launch, &launch.inputs[0], normalized_rank)?;
    let x = RowSet::<T>::new(launch, &launch.inputs[1], normalized_rank)?;
    let out = match launch.outputs.first().filter(|_| wanted.input) {
        Some(out) => Some(RowSet::<T>::new(launch, out, normalized_rank)?),
        None => None,
    };
    let (len, chunks) = (grad.len, chunks(grad.count, grad.len));
    let weight = scratch.whole::<T>(launch, launch.inputs.get(4), len)?;
    let out_bytes = out.as_ref().map_or(0, RowSet::copy_bytes);
    let sizes = [grad.copy_bytes(), x.copy_bytes(), out_bytes];
    let buffers = scratch.slots(chunks, sizes)?;
    let sums = if wanted.weight || wanted.bias {
        let start = scratch.take(chunks * 2 * len * size_of::<T::Wide>())?.cast::<T::Wide>();
        Sums { start, len }
    } else {
        Sums { start: std::ptr::null_mut(), len }
    };
    parallel::fork(chunks, |chunk| {
        let [grad_buffer, x_buffer, out_buffer] = buffers.slot(chunk);
        let [weight_sums, bias_sums] = sums.rows(chunk);
        if !weight_sums.is_null() {
            // SAFETY: this chunk's own rows of the workspace, `2 * len` long together.
            unsafe { std::slice::from_raw_parts_mut(weight_sums, 2 * len).fill(T::Wide::ZERO) };
        }
        for row in parallel::part_range(grad.count, chunks, chunk) {
            // SAFETY: rows of this launch's operands; buffers and sums are this chunk's own, and chunks
            // have their own rows.
            unsafe {
                let to = out.as_ref().map(|out| out.place(row, out_buffer));
                simd::dispatch_level(Row::<T> {
                    grad: grad.fetch(row, grad_buffer),
                    x: x.fetch(row, x_buffer),
                    weight: weight.get(),
                    mean: moment(&launch.inputs[2], row),
                    rstd: moment(&launch.inputs[3], row),
                    out: to.unwrap_or(std::ptr::null_mut()),
                    weight_sums,
                    bias_sums,
                    len,
                });
                if let (Some(out), Some(to)) = (&out, to) {
                    out.put_back(row, to);
                }
            }
        }
    });
    let rest = &launch.outputs[usize::from(wanted.input)..];
    add_up(rest, wanted, sums, chunks);
    Ok(())
}

/// Adds the chunks' sums in order and writes them to the outputs.
fn add_up<R: Real>(
    outputs: &[crate::operand::Operand<'_>],
    wanted: LayerNormGrads,
    sums: Sums<R>,
    chunks: usize,
) {
    let which = [(0, wanted.weight), (1, wanted.bias)].into_iter().filter(|which| which.1);
    for ((row, _), out) in which.zip(outputs) {
        parallel::split(sums.len, (GRAIN / chunks).max(1), |columns| {
            for column in columns {
                let mut total = 0.0;
                for chunk in 0..chunks {
                    // SAFETY: written by the chunks, which have joined.
                    total += unsafe { *sums.rows(chunk)[row].add(column) }.to_f64();
                }
                // SAFETY: a logical index of the output, this thread's own.
                unsafe { rows::store_real(out, column, total) };
            }
        });
    }
}

/// One contiguous row; `weight`, `out` and the sums may be null.
struct Row<T: Float> {
    grad: *const T,
    x: *const T,
    weight: *const T,
    mean: T::Wide,
    rstd: T::Wide,
    out: *mut T,
    weight_sums: *mut T::Wide,
    bias_sums: *mut T::Wide,
    len: usize,
}

impl<T: Float> Row<T> {
    /// The run at `at`: gradients, normalized inputs and weights (ones if there are none).
    ///
    /// # Safety
    /// The row's pointers must be good for `len` elements, and the run inside it.
    #[inline(always)]
    unsafe fn run_at(&self, at: usize, count: usize, [g, h, w]: [&mut [T::Wide; RUN]; 3]) {
        let width = size_of::<T>();
        // SAFETY: handed on from the caller.
        unsafe {
            read_run(self.grad.add(at), width, &mut g[..count]);
            read_run(self.x.add(at), width, &mut h[..count]);
            if !self.weight.is_null() {
                read_run(self.weight.add(at), width, &mut w[..count]);
            }
        }
        for h in &mut h[..count] {
            *h = (*h - self.mean) * self.rstd;
        }
    }
}

impl<T: Float> LevelKernel for Row<T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let (zero, one) = (T::Wide::ZERO, T::Wide::ONE);
        let (mut g, mut h, mut w) = ([zero; RUN], [zero; RUN], [one; RUN]);
        let (mut sums, mut products) = ([zero; RUN], [zero; RUN]);
        let mut at = 0;
        while at < self.len {
            let count = RUN.min(self.len - at);
            // SAFETY: `backward` hands in rows of `len` elements.
            unsafe { self.run_at(at, count, [&mut g, &mut h, &mut w]) };
            for j in 0..count {
                let scaled = g[j] * w[j];
                sums[j] = sums[j] + scaled;
                products[j] = scaled.mul_add::<L>(h[j], products[j]);
            }
            if !self.weight_sums.is_null() {
                // SAFETY: this chunk's sums are `len` long.
                unsafe {
                    add_products::<T::Wide>(self.weight_sums.add(at), &g[..count], &h[..count])
                };
                // SAFETY: as above.
                unsafe {
                    add_products::<T::Wide>(self.bias_sums.add(at), &g[..count], &[one; RUN])
                };
            }
            at += count;
        }
        if self.out.is_null() {
            return;
        }
        let share = one / T::Wide::of(self.len as f64);
        let (mean, product) = (add_lanes(sums) * share, add_lanes(products) * share);
        at = 0;
        while at < self.len {
            let count = RUN.min(self.len - at);
            // SAFETY: `backward` hands in rows of `len` elements.
            unsafe {
                self.run_at(at, count, [&mut g, &mut h, &mut w]);
                for j in 0..count {
                    g[j] = self.rstd * (g[j] * w[j] - mean - h[j] * product);
                }
                write_run(self.out.add(at), size_of::<T>(), &g[..count]);
            }
            at += count;
        }
    }
}

/// `sums[i] += a[i] * b[i]`.
///
/// # Safety
/// As many sums as `a` is long must be writable.
#[inline(always)]
unsafe fn add_products<R: Real>(sums: *mut R, a: &[R], b: &[R]) {
    for (i, (&a, &b)) in a.iter().zip(b).enumerate() {
        // SAFETY: i is below `a.len()`.
        unsafe { *sums.add(i) = *sums.add(i) + a * b };
    }
}
