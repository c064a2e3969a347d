//! Attention forward: blocks of queries against blocks of keys, under the largest score so far.

use plimsoll_core::Result;

use plimsoll_engine::along_dim::{fold, sum};
use plimsoll_engine::map::check;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, input_dtype, match_float};
use plimsoll_kernels_matmul::gemm::Strides;

use super::{
    AttentionArgs, Heads, Job, KEYS, QUERIES, SHARE, Sizes, attention_workspace_bytes,
    forward_counts, in_parts, product, units_of,
};
use crate::rows::{operand, row_major};

/// [query, key, value, mask?] -> the result, and [logarithm of each row's sum] if backward wants
/// it.
pub fn attention(launch: &CpuLaunch<'_>, args: AttentionArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => forward::<T>(launch, args))
}

fn forward<T: Float>(launch: &CpuLaunch<'_>, args: AttentionArgs) -> Result<()> {
    let job = Job::new(launch, args, 0)?;
    let out = Heads { operand: operand(launch, launch.outputs, 0)? };
    check::<T>(launch, &out.operand)?;
    let sums = match launch.outputs.get(1) {
        Some(sums) => Some(row_major::<T::Wide>(launch, sums)?),
        None => None,
    };
    let (query, value) = (job.query.operand.shape(), job.value.operand.shape());
    let units = units_of(query, value, false);
    let dtype = job.query.operand.dtype();
    let bytes = attention_workspace_bytes(dtype, query, value, false);
    let shares = job.sizes.queries.div_ceil(SHARE).max(1);
    in_parts(launch, units, bytes, |units, mut buffers| {
        let [key, value, block, result, scores, moments] =
            forward_counts(job.sizes).map(|count| buffers.take::<T::Wide>(count));
        let workspace = buffers.next;
        let mut loaded = None;
        for unit in units {
            let (head, share) = (unit / shares, unit % shares);
            // SAFETY: this part's buffers, and the unit's own rows of the outputs.
            unsafe {
                if loaded != Some(job.key_head(head)) {
                    loaded = Some(job.key_head(head));
                    job.key.load::<T>(job.key_head(head), 0..job.sizes.keys, key);
                    job.value.load::<T>(job.key_head(head), 0..job.sizes.keys, value);
                }
                let last = job.sizes.queries.min((share + 1) * SHARE);
                for first in (share * SHARE..last).step_by(QUERIES) {
                    let queries = first..last.min(first + QUERIES);
                    job.query.load::<T>(head, queries.clone(), block);
                    let of = Block {
                        job: &job,
                        head,
                        queries,
                        key,
                        value,
                        block,
                        result,
                        scores,
                        moments,
                        workspace,
                    };
                    of.run::<T>(out, sums);
                }
            }
        }
    })
}

/// One block of queries against all keys.
struct Block<'a, 'b, R> {
    job: &'a Job<'b>,
    head: usize,
    queries: std::ops::Range<usize>,
    key: *const R,
    value: *const R,
    block: *const R,
    result: *mut R,
    scores: *mut R,
    /// The largest score of each row so far, then the sums.
    moments: *mut R,
    workspace: *mut u8,
}

impl<R: Real> Block<'_, '_, R> {
    /// # Safety
    /// The buffers must be as large as [`forward_counts`] says, and the outputs have these rows.
    unsafe fn run<T: Float<Wide = R>>(&self, out: Heads<'_>, sums: Option<Shared<R>>) {
        let Sizes { width, values, .. } = self.job.sizes;
        let count = self.queries.len();
        // SAFETY: the caller vouches for the buffers.
        unsafe {
            let result = std::slice::from_raw_parts_mut(self.result, count * values);
            let (tops, totals) =
                std::slice::from_raw_parts_mut(self.moments, 2 * QUERIES).split_at_mut(QUERIES);
            result.fill(R::ZERO);
            tops.fill(-R::INFINITY);
            totals.fill(R::ZERO);
            let seen = self.job.seen(self.queries.start, count);
            for first in (0..seen).step_by(KEYS) {
                let keys = first..seen.min(first + KEYS);
                let sizes = [count, keys.len(), width];
                let key = (self.key.add(first * width), Strides::column_major(width));
                let query = (self.block, Strides::row_major(width));
                let scale = (self.job.args.scale, 0.0);
                product(sizes, query, key, self.scores, scale, self.workspace);
                self.job.hide::<T>(self.head, self.queries.clone(), keys.clone(), self.scores);
                let scores = std::slice::from_raw_parts_mut(self.scores, count * keys.len());
                let (result, keys) = (&mut *result, keys.len());
                simd::dispatch_level(Weigh { scores, tops, totals, result, values, count, keys });
                let value = (self.value.add(first * values), Strides::row_major(values));
                let weights = (self.scores.cast_const(), Strides::row_major(keys));
                let sizes = [count, values, keys];
                product(sizes, weights, value, self.result, (1.0, 1.0), self.workspace);
            }
            // A query that sees nothing gets nothing.
            let whole = |total: R| if total == R::ZERO { R::ZERO } else { R::ONE / total };
            out.store::<T>(self.head, self.queries.clone(), self.result, |row| whole(totals[row]));
            let Some(sums) = sums else { return };
            let row = self.head * self.job.sizes.queries + self.queries.start;
            for (index, &total) in totals.iter().enumerate().take(count) {
                *sums.add(row + index) = R::of(tops[index].to_f64() + total.to_f64().ln());
            }
        }
    }
}

/// Scores become weights under the largest so far, and what was summed before is brought down to
/// it.
struct Weigh<'a, R> {
    scores: &'a mut [R],
    tops: &'a mut [R],
    totals: &'a mut [R],
    result: &'a mut [R],
    values: usize,
    count: usize,
    keys: usize,
}

impl<R: Real> LevelKernel for Weigh<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Weigh { scores, tops, totals, result, values, count, keys } = self;
        for row in 0..count {
            let line = &mut scores[row * keys..(row + 1) * keys];
            let larger = |a: R, b: R| if b > a { b } else { a };
            // SAFETY: the elements of a slice.
            let top = unsafe { fold(line.as_ptr(), keys, tops[row], larger, larger) };
            if top == -R::INFINITY {
                line.fill(R::ZERO);
                continue;
            }
            for score in line.iter_mut() {
                *score = (*score - top).exp::<L>();
            }
            let shrink = (tops[row] - top).exp::<L>();
            totals[row] = totals[row] * shrink + sum(line);
            tops[row] = top;
            for value in &mut result[row * values..(row + 1) * values] {
                *value = *value * shrink;
            }
        }
    }
}
