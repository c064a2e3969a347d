//! Positions of extremes: the first index, in row-major order of the reduced dimensions, of the
//! largest or smallest value; a NaN is both. The output holds i64.

use plimsoll_core::{DType, Result};

use super::geometry::{DimList, Geometry, merged, offsets};
use plimsoll_engine::CpuLaunch;
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::map::{check, operands};
use plimsoll_engine::number::Number;
use plimsoll_engine::parallel;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{Element, match_dtype};

/// Elements whose extreme is found first, before looking for its place.
const BLOCK: usize = 1024;
/// Lanes side by side.
const LANES: usize = 32;
/// Chunks that one large search is cut into at most.
const MOST_CHUNKS: usize = 16;

/// `[x]` -> where the largest value over the dimensions `reduced` is.
pub fn argmax(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    super::something_to_reduce(launch, reduced)?;
    match_dtype!(plimsoll_engine::input_dtype(launch)?, T => search::<T, true>(launch, reduced))
}

/// `[x]` -> where the smallest value over the dimensions `reduced` is.
pub fn argmin(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    super::something_to_reduce(launch, reduced)?;
    match_dtype!(plimsoll_engine::input_dtype(launch)?, T => search::<T, false>(launch, reduced))
}

/// A value and its index in the reduced dimensions.
#[derive(Clone, Copy)]
struct Found<N>(N, usize);

fn search<T: Number, const MAX: bool>(launch: &CpuLaunch<'_>, reduced: &[usize]) -> Result<()> {
    let [out, input] = operands::<2>(launch)?;
    check::<i64>(launch, &out)?;
    debug_assert_eq!(out.dtype(), DType::I64);
    let geometry = Geometry::logical(launch, &input, &out, reduced)?;
    // Indices count in logical order, so dimensions are merged but never sorted.
    let dims = merged(&geometry.reduced);
    let (kept, work) = (geometry.kept_numel(), geometry.reduced_numel());
    if kept == 0 {
        return Ok(());
    }
    let parts = if kept >= 32 { 1 } else { (work / (2 * GRAIN)).clamp(1, MOST_CHUNKS) };
    let find = |index: usize, part: usize| {
        let range = parallel::part_range(work, parts, part);
        let first = geometry.input_at(offsets(&geometry.kept, index).0);
        simd::dispatch_level(Search::<T, MAX> {
            dims: &dims,
            first: first.cast(),
            start: range.start,
            end: range.end,
        })
    };
    let store = |index: usize, found: Found<T::Compute>| {
        let to = geometry.output_at(offsets(&geometry.kept, index).1);
        // SAFETY: an address of the output's own elements, which are i64.
        unsafe { *to.cast::<i64>() = found.1 as i64 }
    };
    if parts == 1 {
        parallel::split(kept, (GRAIN / work.max(1)).max(1), |indices| {
            for index in indices {
                store(index, find(index, 0));
            }
        });
        return Ok(());
    }
    for index in 0..kept {
        let found: [parking_lot::Mutex<Option<Found<T::Compute>>>; MOST_CHUNKS] =
            std::array::from_fn(|_| parking_lot::Mutex::new(None));
        parallel::fork(parts, |part| *found[part].lock() = Some(find(index, part)));
        let best = found.iter().filter_map(|found| *found.lock()).reduce(|best, next| {
            if better::<T::Compute, MAX>(next.0, best.0) { next } else { best }
        });
        if let Some(best) = best {
            store(index, best);
        }
    }
    Ok(())
}

/// Whether `a`, found after `b`, takes its place.
#[inline(always)]
fn better<N: Number, const MAX: bool>(a: N, b: N) -> bool {
    let beats = if MAX { b.below(a) } else { a.below(b) };
    (beats | a.is_nan()) & !b.is_nan()
}

/// Searches elements `start..end` of the reduced dimensions from `first`; there is at least one.
struct Search<'a, T, const MAX: bool> {
    dims: &'a DimList,
    first: *const T,
    start: usize,
    end: usize,
}

impl<T: Number, const MAX: bool> LevelKernel for Search<'_, T, MAX> {
    type Output = Found<T::Compute>;
    #[inline(always)]
    fn run<L: Level>(self) -> Found<T::Compute> {
        let Search { dims, first, start, end } = self;
        let (outer, stride, len) = match dims.split_last() {
            Some((last, outer)) => (outer, last.from, last.size),
            None => (&[][..], 0, 1),
        };
        let mut best: Option<Found<T::Compute>> = None;
        let mut at = start;
        while at < end {
            let column = at % len;
            let count = (end - at).min(len - column).min(BLOCK);
            let block = first.wrapping_byte_add(offsets(outer, at / len).0 + column * stride);
            // SAFETY: `at..at + count` are indices of the reduced dimensions, so the block lies in
            // the input.
            let found = unsafe {
                if stride == size_of::<T>() && count >= LANES {
                    dense::<T, MAX>(block, count, best)
                } else {
                    strided::<T, MAX>(block, stride, count, best)
                }
            };
            if let Some(Found(value, index)) = found {
                best = Some(Found(value, at + index));
            }
            at += count;
        }
        // `start < end`, and the first element always takes the empty place.
        best.unwrap_or(Found(T::Compute::ZERO, start))
    }
}

/// The best element of a block, if it beats `best`.
///
/// # Safety
/// `count` elements at `stride` bytes from `block` must be readable.
#[inline(always)]
unsafe fn strided<T: Number, const MAX: bool>(
    block: *const T,
    stride: usize,
    count: usize,
    best: Option<Found<T::Compute>>,
) -> Option<Found<T::Compute>> {
    let (mut to_beat, mut found) = (best.map(|best| best.0), None);
    for i in 0..count {
        // SAFETY: i < count.
        let value = unsafe { *block.byte_add(i * stride) }.up();
        if to_beat.is_none_or(|best| better::<T::Compute, MAX>(value, best)) {
            to_beat = Some(value);
            found = Some(Found(value, i));
        }
    }
    found
}

/// As [`strided`] for neighbours: the extreme value by vectors first, and its place only if it
/// counts.
///
/// # Safety
/// `count` elements from `block` must be readable; at least `LANES`.
#[inline(always)]
unsafe fn dense<T: Number, const MAX: bool>(
    block: *const T,
    count: usize,
    best: Option<Found<T::Compute>>,
) -> Option<Found<T::Compute>> {
    let join = |a: T::Compute, b: T::Compute| {
        let keep = if MAX { b.below(a) } else { a.below(b) };
        if keep | a.is_nan() { a } else { b }
    };
    // SAFETY: every index is below `count`; the caller vouches for those elements.
    let extreme = unsafe {
        let mut lanes = [(*block).up(); LANES];
        let whole = count / LANES * LANES;
        let mut at = 0;
        while at < whole {
            for (j, lane) in lanes.iter_mut().enumerate() {
                *lane = join(*lane, (*block.add(at + j)).up());
            }
            at += LANES;
        }
        for i in whole..count {
            lanes[0] = join(lanes[0], (*block.add(i)).up());
        }
        lanes.iter().fold(lanes[0], |a, &b| join(a, b))
    };
    if best.is_some_and(|best| !better::<T::Compute, MAX>(extreme, best.0)) {
        return None;
    }
    // SAFETY: as above.
    let is_it = |i: usize| unsafe {
        let value = (*block.add(i)).up();
        value.equals(extreme) | (value.is_nan() & extreme.is_nan())
    };
    (0..count).find(|&i| is_it(i)).map(|i| Found(extreme, i))
}
