//! The loops of a fold: along rows where the reduced elements are the closer ones in memory, down
//! columns where the kept ones are.
//!
//! Large folds with few results are cut into chunks by size alone, folded by any thread, and joined
//! in order: the result does not depend on how many threads there are.

use super::geometry::{Dim, Geometry, offsets};
use plimsoll_engine::iterate::{GRAIN, PLACES};
use plimsoll_engine::parallel;
use plimsoll_engine::simd::{self, Level, LevelKernel};

/// An associative operation on lanes (the type that vectors hold) and totals (of many lanes).
pub(super) trait Fold: Copy + Sync {
    /// The input's elements.
    type In: Copy;
    /// What blocks are folded in.
    type Lane: Copy + Send + Sync;
    /// What blocks' results are joined in.
    type Total: Copy + Send + Sync;
    /// The lane that changes nothing.
    fn empty_lane(self) -> Self::Lane;
    /// An element as a lane.
    fn lane(self, value: Self::In) -> Self::Lane;
    /// Two lanes as one.
    fn join(self, a: Self::Lane, b: Self::Lane) -> Self::Lane;
    /// A lane as a total.
    fn total(self, lane: Self::Lane) -> Self::Total;
    /// Two totals as one, in the order of the elements.
    fn join_totals(self, a: Self::Total, b: Self::Total) -> Self::Total;
}

/// Lanes side by side in a row, enough to keep several vectors in flight.
const LANES: usize = 64;
/// Lanes of rows too short for that, and of rows whose elements are apart: a sum of 60 numbers in
/// one lane is twice as far off as PyTorch's, in four it is as near.
const FEW_LANES: usize = 4;
/// Elements of a row folded in lanes before they are joined into the total.
const ROW_BLOCK: usize = 4096;
/// Elements from which a row counts as long, and is read at [`PLACES`] places side by side.
const LONG_ROW: usize = 1 << 16;
/// Columns folded side by side.
const COLUMNS: usize = 512;
/// Rows folded in lanes before they are joined into the totals, when going down columns.
const COLUMN_BLOCK: usize = 64;
/// Chunks that one large fold is cut into at most.
const MOST_CHUNKS: usize = 16;
/// Units (results, or blocks of columns) from which threads share out units instead of chunks.
const MANY_UNITS: usize = 32;

/// Writes a total to the address of an output element.
pub(super) type Store<'a, T> = &'a (dyn Fn(*mut u8, T) + Sync);

/// Folds every output element's inputs and stores the totals.
pub(super) fn fold<F: Fold>(geometry: &Geometry, f: F, store: Store<'_, F::Total>) {
    let kept = geometry.kept_numel();
    if kept == 0 {
        return;
    }
    let row_stride = geometry.reduced.last().map_or(0, |dim| dim.from);
    match geometry.kept.last() {
        Some(column) if geometry.reduced.is_empty() || column.from < row_stride => {
            fold_columns(geometry, *column, f, store);
        }
        _ => fold_rows(geometry, kept, f, store),
    }
}

/// How many chunks a unit of `work` elements is cut into, so that threads share it.
fn chunks(units: usize, work: usize) -> usize {
    if units >= MANY_UNITS { 1 } else { (work / (2 * GRAIN)).clamp(1, MOST_CHUNKS) }
}

fn fold_rows<F: Fold>(geometry: &Geometry, kept: usize, f: F, store: Store<'_, F::Total>) {
    let work = geometry.reduced_numel();
    let parts = chunks(kept, work);
    let row = |index: usize, part: usize| {
        let (from, _) = offsets(&geometry.kept, index);
        let range = parallel::part_range(work, parts, part);
        simd::dispatch_level(Rows { geometry, f, from, start: range.start, end: range.end })
    };
    let to = |index: usize| geometry.output_at(offsets(&geometry.kept, index).1);
    if parts == 1 {
        parallel::split(kept, (GRAIN / work.max(1)).max(1), |indices| {
            for index in indices {
                store(to(index), row(index, 0));
            }
        });
        return;
    }
    for index in 0..kept {
        let mut totals = [f.total(f.empty_lane()); MOST_CHUNKS];
        let shared = Shared(totals.as_mut_ptr());
        parallel::fork(parts, |part| {
            // SAFETY: parts are distinct and below MOST_CHUNKS; `totals` outlives the fork.
            unsafe { *shared.get().add(part) = row(index, part) }
        });
        let total = totals[1..parts].iter().fold(totals[0], |a, &b| f.join_totals(a, b));
        store(to(index), total);
    }
}

/// A pointer to results that parts of one fork write side by side.
struct Shared<T>(*mut T);

// SAFETY: parts write distinct places; the owner reads after the join.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

/// Folds elements `start..end` (in the order of the reduced dimensions) under one output element.
struct Rows<'a, F> {
    geometry: &'a Geometry,
    f: F,
    from: usize,
    start: usize,
    end: usize,
}

impl<F: Fold> LevelKernel for Rows<'_, F> {
    type Output = F::Total;
    #[inline(always)]
    fn run<L: Level>(self) -> F::Total {
        let Rows { geometry, f, from, start, end } = self;
        let mut total = f.total(f.empty_lane());
        let (outer, stride, len) = match geometry.reduced.split_last() {
            Some((last, outer)) => (outer, last.from, last.size),
            None => (&[][..], 0, 1),
        };
        let mut at = start;
        while at < end {
            let column = at % len;
            let count = (end - at).min(len - column);
            let offset = from + offsets(outer, at / len).0 + column * stride;
            let row = geometry.input_at(offset).cast::<F::In>();
            // SAFETY: `at..at + count` are indices of the reduced dimensions, so the row lies in
            // the input.
            let part = unsafe { fold_row(f, row, stride, count) };
            total = f.join_totals(total, part);
            at += count;
        }
        total
    }
}

/// # Safety
/// `count` elements at `stride` bytes from `row` must be readable.
#[inline(always)]
unsafe fn fold_row<F: Fold>(f: F, row: *const F::In, stride: usize, count: usize) -> F::Total {
    // SAFETY: every index is below `count`; the caller vouches for those elements.
    unsafe {
        if stride != size_of::<F::In>() || count < LANES {
            let mut total = f.total(f.empty_lane());
            let mut at = 0;
            while at < count {
                let end = count.min(at + COLUMN_BLOCK);
                let mut lanes = [f.empty_lane(); FEW_LANES];
                while at < end {
                    for (j, lane) in lanes.iter_mut().enumerate().take(end - at) {
                        *lane = f.join(*lane, f.lane(*row.byte_add((at + j) * stride)));
                    }
                    at = end.min(at + FEW_LANES);
                }
                // In PyTorch's order, which sums of few numbers that cancel show.
                let [first, rest @ ..] = lanes;
                let lane = rest.into_iter().fold(first, |joined, lane| f.join(joined, lane));
                total = f.join_totals(total, f.total(lane));
            }
            return total;
        }
        let mut total = f.total(f.empty_lane());
        let mut at = 0;
        if count >= LONG_ROW {
            let part = count / PLACES / LANES * LANES;
            total = fold_places(f, row, part);
            at = PLACES * part;
        }
        while at < count {
            let block = (count - at).min(ROW_BLOCK);
            total = f.join_totals(total, f.total(fold_block(f, row.add(at), block)));
            at += block;
        }
        total
    }
}

/// Folds [`PLACES`] parts of `part` elements each (a multiple of [`LANES`]), all at once. Each
/// place has [`LANES`] of its own: with few the compiler lays the places' lanes side by side, and
/// shuffles take longer than memory.
///
/// # Safety
/// That many neighbouring elements from `row` must be readable.
#[inline(always)]
unsafe fn fold_places<F: Fold>(f: F, row: *const F::In, part: usize) -> F::Total {
    let mut totals = [f.total(f.empty_lane()); PLACES];
    let mut at = 0;
    while at < part {
        let end = part.min(at + ROW_BLOCK);
        let mut lanes = [[f.empty_lane(); LANES]; PLACES];
        while at < end {
            for (place, lanes) in lanes.iter_mut().enumerate() {
                for (j, lane) in lanes.iter_mut().enumerate() {
                    // SAFETY: `at + j` is below `part`, which is a multiple of LANES; the caller
                    // vouches for those elements.
                    *lane = f.join(*lane, f.lane(unsafe { *row.add(place * part + at + j) }));
                }
            }
            at += LANES;
        }
        for (total, lanes) in totals.iter_mut().zip(lanes) {
            *total = f.join_totals(*total, f.total(join_lanes(f, lanes)));
        }
    }
    totals[1..].iter().fold(totals[0], |a, &b| f.join_totals(a, b))
}

/// All lanes (a power of two of them) as one.
#[inline(always)]
fn join_lanes<F: Fold, const N: usize>(f: F, mut lanes: [F::Lane; N]) -> F::Lane {
    let mut width = N / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = f.join(lanes[j], lanes[j + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// # Safety
/// `count` neighbouring elements from `block` must be readable.
#[inline(always)]
unsafe fn fold_block<F: Fold>(f: F, block: *const F::In, count: usize) -> F::Lane {
    let mut lanes = [f.empty_lane(); LANES];
    let whole = count / LANES * LANES;
    // SAFETY: every index is below `count`; the caller vouches for those elements.
    unsafe {
        let mut at = 0;
        while at < whole {
            for (j, lane) in lanes.iter_mut().enumerate() {
                *lane = f.join(*lane, f.lane(*block.add(at + j)));
            }
            at += LANES;
        }
        for (j, lane) in lanes.iter_mut().enumerate().take(count - whole) {
            *lane = f.join(*lane, f.lane(*block.add(whole + j)));
        }
    }
    join_lanes(f, lanes)
}

fn fold_columns<F: Fold>(geometry: &Geometry, column: Dim, f: F, store: Store<'_, F::Total>) {
    let rows = geometry.reduced_numel();
    let outer = &geometry.kept[..geometry.kept.len() - 1];
    let blocks = column.size.div_ceil(COLUMNS);
    let units = outer.iter().map(|dim| dim.size).product::<usize>() * blocks;
    let width = |unit: usize| COLUMNS.min(column.size - unit % blocks * COLUMNS);
    let start = |unit: usize| {
        let (from, to) = offsets(outer, unit / blocks);
        let first = unit % blocks * COLUMNS;
        (from + first * column.from, to + first * column.to)
    };
    let unit_work = rows.saturating_mul(width(0));
    let parts = chunks(units, unit_work).min(rows.max(1));
    let fold_part = |unit: usize, part: usize, totals: &mut [F::Total; COLUMNS]| {
        let range = parallel::part_range(rows, parts, part);
        let (from, stride) = (start(unit).0, column.from);
        let columns = width(unit);
        let (start, end) = (range.start, range.end);
        simd::dispatch_level(Columns { geometry, f, from, stride, columns, start, end, totals });
    };
    let store_unit = |unit: usize, totals: &[F::Total; COLUMNS]| {
        let to = geometry.output_at(start(unit).1);
        for (j, &total) in totals[..width(unit)].iter().enumerate() {
            store(to.wrapping_add(j * column.to), total);
        }
    };
    let empty = [f.total(f.empty_lane()); COLUMNS];
    if parts == 1 {
        parallel::split(units, (GRAIN / unit_work.max(1)).max(1), |range| {
            for unit in range {
                let mut totals = empty;
                fold_part(unit, 0, &mut totals);
                store_unit(unit, &totals);
            }
        });
        return;
    }
    for unit in 0..units {
        let mut totals = [empty; MOST_CHUNKS];
        let shared = Shared(totals.as_mut_ptr());
        parallel::fork(parts, |part| {
            // SAFETY: parts are distinct and below MOST_CHUNKS; `totals` outlives the fork.
            fold_part(unit, part, unsafe { &mut *shared.get().add(part) });
        });
        let (first, others) = totals.split_at_mut(1);
        for part in &others[..parts - 1] {
            for (a, &b) in first[0].iter_mut().zip(part) {
                *a = f.join_totals(*a, b);
            }
        }
        store_unit(unit, &first[0]);
    }
}

/// Folds rows `start..end` (in the order of the reduced dimensions) of some columns into `totals`.
struct Columns<'a, F: Fold> {
    geometry: &'a Geometry,
    f: F,
    from: usize,
    stride: usize,
    columns: usize,
    start: usize,
    end: usize,
    totals: &'a mut [F::Total; COLUMNS],
}

impl<F: Fold> LevelKernel for Columns<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Columns { geometry, f, from, stride, columns, start, end, totals } = self;
        let mut lanes = [f.empty_lane(); COLUMNS];
        let mut at = start;
        while at < end {
            let block_end = end.min(at + COLUMN_BLOCK);
            lanes[..columns].fill(f.empty_lane());
            for row in at..block_end {
                let offset = from + offsets(&geometry.reduced, row).0;
                let row = geometry.input_at(offset).cast::<F::In>();
                // SAFETY: `row` is an index of the reduced dimensions and there are `columns` kept
                // elements from here on, so all of them lie in the input.
                unsafe { fold_across(f, row, stride, &mut lanes[..columns]) }
            }
            for (total, &lane) in totals.iter_mut().zip(&lanes[..columns]) {
                *total = f.join_totals(*total, f.total(lane));
            }
            at = block_end;
        }
    }
}

/// Joins one row's elements into the lanes of their columns.
///
/// # Safety
/// As many elements at `stride` bytes from `row` as there are lanes must be readable.
#[inline(always)]
unsafe fn fold_across<F: Fold>(f: F, row: *const F::In, stride: usize, lanes: &mut [F::Lane]) {
    // SAFETY: every index is below the number of lanes; the caller vouches for those elements.
    unsafe {
        if stride == size_of::<F::In>() {
            for (j, lane) in lanes.iter_mut().enumerate() {
                *lane = f.join(*lane, f.lane(*row.add(j)));
            }
        } else {
            for (j, lane) in lanes.iter_mut().enumerate() {
                *lane = f.join(*lane, f.lane(*row.byte_add(j * stride)));
            }
        }
    }
}
