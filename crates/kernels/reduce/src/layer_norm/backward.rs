//! The derivative of layer normalization. Gradients of weight and bias are sums over rows: rows are
//! cut into chunks by size alone, each chunk sums into its own part of the workspace, and the parts
//! are added in order, so the result does not depend on the number of threads.

use plimsoll_core::{Error, Result};

use super::moment;
use super::rows::{RowSet, Scratch, copy_bytes};
use plimsoll_engine::Element;
use plimsoll_engine::along_dim::{SLICE, slices, sum, write_slice};
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::match_float;
use plimsoll_engine::nontemporal;
use plimsoll_engine::parallel;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Meta};

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
    /// Whether that of the input is added to what its output holds.
    pub added: bool,
}

fn chunks(rows: usize, len: usize) -> usize {
    (rows.saturating_mul(len) / GRAIN).clamp(1, MOST_CHUNKS).min(rows.max(1))
}

/// Scratch of [`layer_norm_backward`]: partial sums, and row buffers for layouts that are not
/// contiguous.
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

/// [grad, x, mean, rstd, weight?] -> the wanted gradients of x, weight and bias. The weight of
/// halves may be float32.
pub fn layer_norm_backward(
    launch: &CpuLaunch<'_>,
    normalized_rank: usize,
    wanted: LayerNormGrads,
) -> Result<()> {
    let dtype = plimsoll_engine::input_dtype(launch)?;
    match_float!(launch, dtype, T => match launch.inputs.get(4) {
        Some(weight) if weight.dtype() != dtype => {
            backward::<T, <T as Float>::Wide>(launch, normalized_rank, wanted)
        }
        _ => backward::<T, T>(launch, normalized_rank, wanted),
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

fn backward<T: Float, W: Float<Wide = T::Wide>>(
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
    let weight = scratch.whole::<W>(launch, launch.inputs.get(4), len)?;
    let out_bytes = out.as_ref().map_or(0, RowSet::copy_bytes);
    let sizes = [grad.copy_bytes(), x.copy_bytes(), out_bytes];
    let copies = scratch.slots(chunks, sizes)?;
    let sums = if wanted.weight || wanted.bias {
        let start = scratch.take(chunks * 2 * len * size_of::<T::Wide>())?.cast::<T::Wide>();
        Sums { start, len }
    } else {
        Sums { start: std::ptr::null_mut(), len }
    };
    // What is added to has just been read.
    let streamed = wanted.input
        && !wanted.added
        && out_bytes == 0
        && nontemporal::is_streamed(&[launch.outputs[0], launch.inputs[0], launch.inputs[1]]);
    parallel::fork(chunks, |chunk| {
        let [grad_buffer, x_buffer, out_buffer] = copies.slot(chunk);
        let [weight_sums, bias_sums] = sums.rows(chunk);
        let mut buffers = [[T::Wide::ZERO; SLICE]; 2];
        if !weight_sums.is_null() {
            // SAFETY: this chunk's own rows of the workspace, `2 * len` long together.
            unsafe { std::slice::from_raw_parts_mut(weight_sums, 2 * len).fill(T::Wide::ZERO) };
        }
        for row in parallel::part_range(grad.count, chunks, chunk) {
            // SAFETY: rows of this launch's operands; buffers and sums are this chunk's own, and
            // chunks have their own rows.
            unsafe {
                let to = out.as_ref().map(|out| match wanted.added {
                    true => out.fetch(row, out_buffer).cast_mut(),
                    false => out.place(row, out_buffer),
                });
                simd::dispatch_level(BackwardRow::<T, W> {
                    grad: grad.fetch(row, grad_buffer),
                    x: x.fetch(row, x_buffer),
                    weight: weight.get(),
                    mean: moment(&launch.inputs[2], row),
                    rstd: moment(&launch.inputs[3], row),
                    out: to.unwrap_or(std::ptr::null_mut()),
                    added: wanted.added,
                    weight_sums,
                    bias_sums,
                    len,
                    buffers: &mut buffers,
                    streamed,
                });
                if let (Some(out), Some(to)) = (&out, to) {
                    out.put_back(row, to);
                }
            }
        }
        if streamed {
            nontemporal::fence();
        }
    });
    let rest = &launch.outputs[usize::from(wanted.input)..];
    add_up(rest, wanted, sums, chunks);
    Ok(())
}

/// Adds the chunks' sums in order and writes them to the outputs.
fn add_up<R: Real>(
    outputs: &[plimsoll_engine::Operand<'_>],
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
                unsafe { plimsoll_engine::generate::store_real(out, column, total) };
            }
        });
    }
}

/// One contiguous row; `weight`, `out` and the sums may be null.
struct BackwardRow<'a, T: Float, W> {
    grad: *const T,
    x: *const T,
    weight: *const W,
    mean: T::Wide,
    rstd: T::Wide,
    out: *mut T,
    added: bool,
    weight_sums: *mut T::Wide,
    bias_sums: *mut T::Wide,
    len: usize,
    buffers: &'a mut [[T::Wide; SLICE]; 2],
    streamed: bool,
}

impl<T: Float, W: Float<Wide = T::Wide>> LevelKernel for BackwardRow<'_, T, W> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let BackwardRow { grad, x, weight, mean, rstd, len, .. } = self;
        let [g, h] = self.buffers;
        // Gradients and normalized inputs of a slice.
        let load = |at: usize, g: &mut [T::Wide], h: &mut [T::Wide]| {
            for (i, (g, h)) in g.iter_mut().zip(h).enumerate() {
                // SAFETY: `backward` hands in rows of `len` elements, and slices are inside them.
                unsafe {
                    *g = (*grad.add(at + i)).widen();
                    *h = ((*x.add(at + i)).widen() - mean) * rstd;
                }
            }
        };
        let scale = |at: usize, g: &mut [T::Wide]| {
            if !weight.is_null() {
                for (i, g) in g.iter_mut().enumerate() {
                    // SAFETY: as above; the weight is as long as a row.
                    *g = *g * unsafe { *weight.add(at + i) }.widen();
                }
            }
        };
        let (mut total, mut product) = (0.0, 0.0);
        slices(len, |at, count| {
            let (g, h) = (&mut g[..count], &mut h[..count]);
            load(at, g, h);
            if !self.weight_sums.is_null() {
                // SAFETY: this chunk's sums are `len` long.
                unsafe {
                    add_products::<L, _>(self.weight_sums.add(at), self.bias_sums.add(at), g, h)
                };
            }
            if !self.out.is_null() {
                scale(at, g);
                total += sum(g).to_f64();
                h.iter_mut().zip(&*g).for_each(|(h, &g)| *h = *h * g);
                product += sum(h).to_f64();
            }
        });
        if self.out.is_null() {
            return;
        }
        let (total, product) = (T::Wide::of(total / len as f64), T::Wide::of(product / len as f64));
        slices(len, |at, count| {
            let (g, h) = (&mut g[..count], &mut h[..count]);
            load(at, g, h);
            scale(at, g);
            for (g, &h) in g.iter_mut().zip(&*h) {
                *g = rstd * (*g - total - h * product);
            }
            if self.added {
                for (i, g) in g.iter_mut().enumerate() {
                    // SAFETY: as above; the output's row was filled before.
                    *g = *g + unsafe { *self.out.add(at + i) }.widen();
                }
            }
            // SAFETY: the output's row is as long as the others.
            unsafe { write_slice(self.out.add(at), g, self.streamed) };
        });
    }
}

/// `products[i] += g[i] * h[i]` and `sums[i] += g[i]`.
///
/// # Safety
/// As many of both as `g` is long must be writable.
#[inline(always)]
unsafe fn add_products<L: Level, R: Real>(products: *mut R, sums: *mut R, g: &[R], h: &[R]) {
    for (i, (&g, &h)) in g.iter().zip(h).enumerate() {
        // SAFETY: i is below `g.len()`.
        unsafe {
            *products.add(i) = g.mul_add::<L>(h, *products.add(i));
            *sums.add(i) = *sums.add(i) + g;
        }
    }
}
