//! One row times a matrix: `c[n] = a[k] * B[k, n]`. Every element of B is used once, so the pace is
//! set by memory, and what matters is to read B in the order in which it lies.

use super::product::Product;
use plimsoll_engine::pack::{Accumulator, Factor};
use plimsoll_engine::parallel;
use plimsoll_engine::simd::{self, Isa, Level, LevelKernel};
use std::ops::Range;

/// Columns whose sums are kept at once: 4 KiB of `f32`, and as long a run of each row of B.
const CHUNK: usize = 1024;
/// Rows of B that are read side by side.
const ROWS: usize = 8;
/// Elements of B below which a thread is not worth waking.
const GRAIN: usize = 64 * 1024;

/// Multiplies on up to `parts` threads, each with its own columns.
///
/// # Safety
/// `product` keeps `gemm`'s contract and has `m == 1`.
pub(super) unsafe fn run<E: Factor>(product: Product<E>, isa: Isa, parts: usize) {
    let n = product.geometry.n;
    let columns = (GRAIN / product.geometry.k.max(1)).max(1);
    let parts = parts.min(n.div_ceil(columns)).max(1);
    // Whole cache lines of C a thread.
    let lines = n.div_ceil(16);
    let parts = parts.min(lines);
    parallel::fork(parts, |part| {
        let range = parallel::part_range(lines, parts, part);
        let range = range.start * 16..n.min(range.end * 16);
        simd::dispatch_on(isa, Columns { product, range });
    });
}

/// Some columns of the result.
struct Columns<E: Factor> {
    product: Product<E>,
    range: Range<usize>,
}

impl<E: Factor> LevelKernel for Columns<E> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let b = self.product.geometry.b;
        // SAFETY: `run`'s contract; the range is this part's own.
        unsafe {
            if b.column == 1 || b.row != 1 {
                for start in self.range.clone().step_by(CHUNK) {
                    self.by_rows::<L>(start..self.range.end.min(start + CHUNK));
                }
            } else {
                self.by_columns::<L>();
            }
        }
    }
}

impl<E: Factor> Columns<E> {
    /// Adds up rows of B, eight at a time, into a buffer of sums.
    #[inline(always)]
    unsafe fn by_rows<L: Level>(&self, range: Range<usize>) {
        let k = self.product.geometry.k;
        let mut sums = [E::Sum::ZERO; CHUNK];
        let sums = &mut sums[..range.len()];
        let whole = k - k % ROWS;
        for step in (0..whole).step_by(ROWS) {
            // SAFETY: `step + ROWS <= k` and the columns are inside B.
            unsafe { self.add_rows::<L, ROWS>(step, range.start, sums) };
        }
        for step in whole..k {
            // SAFETY: as above.
            unsafe { self.add_rows::<L, 1>(step, range.start, sums) };
        }
        for (column, sum) in range.zip(sums) {
            // SAFETY: the column belongs to this part.
            unsafe { self.product.write(0, column, *sum) };
        }
    }

    #[inline(always)]
    unsafe fn add_rows<L: Level, const R: usize>(
        &self,
        step: usize,
        column: usize,
        sums: &mut [E::Sum],
    ) {
        let stride = self.product.geometry.b.column;
        // SAFETY: the caller keeps steps and columns inside the operands.
        unsafe {
            let factors: [E::Sum; R] =
                std::array::from_fn(|r| (*self.product.a_at(0, step + r)).widen());
            let rows: [*const E; R] = std::array::from_fn(|r| self.product.b_at(step + r, column));
            if stride == 1 {
                for (j, sum) in sums.iter_mut().enumerate() {
                    let mut total = *sum;
                    for r in 0..R {
                        total = factors[r].multiply_add::<L>((*rows[r].add(j)).widen(), total);
                    }
                    *sum = total;
                }
            } else {
                for (j, sum) in sums.iter_mut().enumerate() {
                    let mut total = *sum;
                    for r in 0..R {
                        let x = (*rows[r].offset(j as isize * stride)).widen();
                        total = factors[r].multiply_add::<L>(x, total);
                    }
                    *sum = total;
                }
            }
        }
    }

    /// Contiguous columns of B: dot products, four columns at a time.
    #[inline(always)]
    unsafe fn by_columns<L: Level>(&self) {
        let mut column = self.range.start;
        // SAFETY: columns stay inside the part's range.
        unsafe {
            while column + 4 <= self.range.end {
                self.dot::<L, 4>(column);
                column += 4;
            }
            while column < self.range.end {
                self.dot::<L, 1>(column);
                column += 1;
            }
        }
    }

    #[inline(always)]
    unsafe fn dot<L: Level, const C: usize>(&self, column: usize) {
        const LANES: usize = 32;
        let k = self.product.geometry.k;
        let a_stride = self.product.geometry.a.column;
        let whole = k - k % LANES;
        // SAFETY: steps stay below k and columns inside the part's range.
        unsafe {
            let columns: [*const E; C] = std::array::from_fn(|c| self.product.b_at(0, column + c));
            let mut sums = [[E::Sum::ZERO; LANES]; C];
            for step in (0..whole).step_by(LANES) {
                let a = self.product.a_at(0, step);
                let x: [E::Sum; LANES] = if a_stride == 1 {
                    std::array::from_fn(|lane| (*a.add(lane)).widen())
                } else {
                    std::array::from_fn(|lane| (*a.offset(lane as isize * a_stride)).widen())
                };
                for c in 0..C {
                    for lane in 0..LANES {
                        let y = (*columns[c].add(step + lane)).widen();
                        sums[c][lane] = x[lane].multiply_add::<L>(y, sums[c][lane]);
                    }
                }
            }
            for c in 0..C {
                let mut total = E::Sum::ZERO;
                for step in whole..k {
                    let x = (*self.product.a_at(0, step)).widen();
                    total = x.multiply_add::<L>((*columns[c].add(step)).widen(), total);
                }
                // Halves are added to halves: fewer roundings than one long chain, and vector adds.
                let mut width = LANES;
                while width > 1 {
                    width /= 2;
                    for lane in 0..width {
                        sums[c][lane] = sums[c][lane].add(sums[c][lane + width]);
                    }
                }
                self.product.write(0, column + c, total.add(sums[c][0]));
            }
        }
    }
}
