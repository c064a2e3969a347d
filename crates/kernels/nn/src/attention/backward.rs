//! Attention backward: each block of scores again, from the logarithms of its rows' sums. A head of
//! keys is one thread's, with all queries that see it: no atomics.

use plimsoll_core::Result;

use plimsoll_engine::map::check;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Element, input_dtype, match_float};
use plimsoll_kernels_matmul::gemm::Strides;

use super::{
    AttentionArgs, Heads, Job, KEYS, QUERIES, Sizes, attention_workspace_bytes, backward_counts,
    in_parts, product, units_of,
};
use crate::rows::{operand, row_major};

/// [grad, query, key, value, result, logarithms of sums, mask?] -> the gradients of query, key and
/// value.
pub fn attention_backward(launch: &CpuLaunch<'_>, args: AttentionArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => backward::<T>(launch, args))
}

fn backward<T: Float>(launch: &CpuLaunch<'_>, args: AttentionArgs) -> Result<()> {
    let mut job = Job::new(launch, AttentionArgs { mask: false, ..args }, 1)?;
    let heads = |index| operand(launch, launch.inputs, index).map(|operand| Heads { operand });
    job.mask = if args.mask { Some(heads(6)?) } else { None };
    let (grad, result) = (heads(0)?, heads(4)?);
    let sums = row_major::<T::Wide>(launch, &operand(launch, launch.inputs, 5)?)?;
    let output = |at| -> Result<Heads<'_>> {
        let operand = operand(launch, launch.outputs, at)?;
        check::<T>(launch, &operand)?;
        Ok(Heads { operand })
    };
    let outputs = [output(0)?, output(1)?, output(2)?];
    let (query, value) = (job.query.operand.shape(), job.value.operand.shape());
    let units = units_of(query, value, true);
    let bytes = attention_workspace_bytes(job.query.operand.dtype(), query, value, true);
    in_parts(launch, units, bytes, |units, mut buffers| {
        let taken = backward_counts(job.sizes).map(|count| buffers.take::<T::Wide>(count));
        let of = Gradient::<T> {
            job: &job,
            grad,
            result,
            sums,
            outputs,
            buffers: taken,
            workspace: buffers.next,
        };
        for head in units {
            // SAFETY: this part's buffers, and the head's own rows of the outputs.
            unsafe { of.head(head) };
        }
    })
}

struct Gradient<'a, 'b, T: Float> {
    job: &'a Job<'b>,
    grad: Heads<'b>,
    result: Heads<'b>,
    sums: Shared<T::Wide>,
    outputs: [Heads<'b>; 3],
    buffers: [*mut T::Wide; 10],
    workspace: *mut u8,
}

impl<T: Float> Gradient<'_, '_, T> {
    /// One head of keys, with all heads of queries that see it.
    ///
    /// # Safety
    /// The buffers must be as large as [`backward_counts`] says.
    unsafe fn head(&self, head: usize) {
        let Sizes { queries, keys, width, values } = self.job.sizes;
        let [key, value, key_grad, value_grad, ..] = self.buffers;
        // SAFETY: the caller vouches for the buffers; the head's own rows of the outputs.
        unsafe {
            self.job.key.load::<T>(head, 0..keys, key);
            self.job.value.load::<T>(head, 0..keys, value);
            std::slice::from_raw_parts_mut(key_grad, keys * width).fill(T::Wide::ZERO);
            std::slice::from_raw_parts_mut(value_grad, keys * values).fill(T::Wide::ZERO);
            for query_head in head * self.job.args.group..(head + 1) * self.job.args.group {
                for first in (0..queries).step_by(QUERIES) {
                    self.block(query_head, first..queries.min(first + QUERIES));
                }
            }
            for (from, to) in [(key_grad, self.outputs[1]), (value_grad, self.outputs[2])] {
                to.store::<T>(head, 0..keys, from, |_| T::Wide::ONE);
            }
        }
    }

    /// # Safety
    /// As [`Gradient::head`].
    unsafe fn block(&self, head: usize, queries: std::ops::Range<usize>) {
        let Sizes { queries: all, width, values, .. } = self.job.sizes;
        let [key, value, key_grad, value_grad, query, grad, query_grad, scores, slopes, rows] =
            self.buffers;
        let count = queries.len();
        let scale = self.job.args.scale;
        let in_rows = Strides::row_major;
        // SAFETY: the caller vouches for the buffers.
        unsafe {
            self.job.query.load::<T>(head, queries.clone(), query);
            self.grad.load::<T>(head, queries.clone(), grad);
            // The result is looked at once, for its products with the gradient.
            self.result.load::<T>(head, queries.clone(), scores);
            for row in 0..count {
                let at = |buffer: *mut T::Wide, column| *buffer.add(row * values + column);
                let along = |column| at(scores, column).to_f64() * at(grad, column).to_f64();
                *rows.add(row) = T::Wide::of((0..values).map(along).sum());
            }
            std::slice::from_raw_parts_mut(query_grad, count * width).fill(T::Wide::ZERO);
            let seen = self.job.seen(queries.start, count);
            for first in (0..seen).step_by(KEYS) {
                let keys = first..seen.min(first + KEYS);
                let len = keys.len();
                let (key, value) = (key.add(first * width), value.add(first * values));
                let workspace = self.workspace;
                let turned = (key.cast_const(), Strides::column_major(width));
                let of_query = (query.cast_const(), in_rows(width));
                let of_grad = (grad.cast_const(), in_rows(values));
                product([count, len, width], of_query, turned, scores, (scale, 0.0), workspace);
                self.job.hide::<T>(head, queries.clone(), keys, scores);
                let turned = (value.cast_const(), Strides::column_major(values));
                product([count, len, values], of_grad, turned, slopes, (1.0, 0.0), workspace);
                let sums = self.sums.add(head * all + queries.start);
                simd::dispatch_level(Slopes { scores, slopes, rows, sums, count, len, scale });
                let weights = (scores.cast_const(), Strides::column_major(len));
                let to = value_grad.add(first * values);
                product([len, values, count], weights, of_grad, to, (1.0, 1.0), workspace);
                let own = (slopes.cast_const(), in_rows(len));
                let keys = (key.cast_const(), in_rows(width));
                product([count, width, len], own, keys, query_grad, (1.0, 1.0), workspace);
                let turned = (slopes.cast_const(), Strides::column_major(len));
                let to = key_grad.add(first * width);
                product([len, width, count], turned, of_query, to, (1.0, 1.0), workspace);
            }
            self.outputs[0].store::<T>(head, queries, query_grad, |_| T::Wide::ONE);
        }
    }
}

/// Scores become weights, and the gradients of weights those of scores.
struct Slopes<R> {
    scores: *mut R,
    slopes: *mut R,
    rows: *const R,
    sums: *const R,
    count: usize,
    len: usize,
    scale: f64,
}

impl<R: Real> LevelKernel for Slopes<R> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Slopes { scores, slopes, rows, sums, count, len, scale } = self;
        let scale = R::of(scale);
        for row in 0..count {
            // SAFETY: rows of the block's buffers.
            unsafe {
                let (along, sum) = (*rows.add(row), *sums.add(row));
                let nothing = sum == -R::INFINITY;
                let scores = std::slice::from_raw_parts_mut(scores.add(row * len), len);
                let slopes = std::slice::from_raw_parts_mut(slopes.add(row * len), len);
                for (score, slope) in scores.iter_mut().zip(slopes) {
                    *score = if nothing { R::ZERO } else { (*score - sum).exp::<L>() };
                    *slope = *score * (*slope - along) * scale;
                }
            }
        }
    }
}
