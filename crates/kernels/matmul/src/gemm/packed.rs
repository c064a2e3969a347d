//! A right factor that is packed once, for many products with few rows: the steps of a recurrent
//! layer multiply by the same weights. Each product runs on its caller's thread, so threads with
//! rows of their own never wait for each other. `blocked.rs` is the product that packs for itself.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::geometry::Strides;
use super::micro::{Kernels, MOST_COLUMNS, MOST_ROWS, Micro, Tile};
use plimsoll_engine::pack::{Accumulator, Factor, Pack};
use plimsoll_engine::parallel;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Isa};

/// Bytes of a strip of a slice, at most: it stays in a first-level cache of 48 KiB while the tiles
/// of rows go by.
const STRIP_BYTES: usize = 32 << 10;

/// How the right factor `B[k, n]` of a product is packed: decided from its sizes and the
/// instruction set in force, so that its bytes are known before it is there.
///
/// ```
/// use plimsoll_kernels_matmul::gemm::{PackedRight, Rows, Strides};
/// let right = PackedRight::new::<f32>(2, 3);
/// let mut packed = vec![0f32; right.len()];
/// let (a, b, mut c) = ([1.0f32, 2.0], [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [10.0f32; 3]);
/// // SAFETY: `packed` is as long as `right` says, and the arrays are as large as the sizes.
/// unsafe {
///     right.pack(b.as_ptr(), Strides::row_major(3), packed.as_mut_ptr());
///     let rows = Rows { count: 1, a: a.as_ptr(), a_row: 2, c: c.as_mut_ptr(), c_row: 3 };
///     right.multiply(rows, packed.as_ptr(), 1.0);
/// }
/// assert_eq!(c, [19.0, 22.0, 25.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedRight {
    isa: Isa,
    k: usize,
    n: usize,
    /// Depth of a slice of k.
    kc: usize,
    /// Columns of a strip.
    columns: usize,
}

/// The left factor and the result of a product: rows that are contiguous themselves. Strides are in
/// elements.
#[derive(Clone, Copy, Debug)]
pub struct Rows<E> {
    /// How many.
    pub count: usize,
    /// The left factor.
    pub a: *const E,
    /// From one of its rows to the next.
    pub a_row: usize,
    /// The result.
    pub c: *mut E,
    /// From one of its rows to the next.
    pub c_row: usize,
}

impl PackedRight {
    /// A factor of `k` rows and `n` columns.
    pub fn new<E: Factor<Sum = E> + Kernels>(k: usize, n: usize) -> PackedRight {
        let isa = simd::isa();
        let Micro { columns, .. } = E::micro(isa);
        let deepest = (STRIP_BYTES / size_of::<E>() / columns).max(1);
        let slices = k.div_ceil(deepest).max(1);
        PackedRight { isa, k, n, kc: k.div_ceil(slices).max(1), columns }
    }

    /// Elements of the packed factor.
    pub fn len(&self) -> usize {
        self.k * self.strips() * self.columns
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn strips(&self) -> usize {
        self.n.div_ceil(self.columns)
    }

    /// The slices of k.
    fn slices(&self) -> impl Iterator<Item = Range<usize>> {
        let &PackedRight { k, kc, .. } = self;
        (0..k).step_by(kc).map(move |start| start..k.min(start + kc))
    }

    /// Where a strip of a slice starts in the packed factor.
    fn place(&self, slice: &Range<usize>, strip: usize) -> usize {
        (slice.start * self.strips() + strip * slice.len()) * self.columns
    }

    /// Packs the factor, in parallel.
    ///
    /// # Safety
    /// `b` is readable at every position of the sizes, and `to` writable for [`PackedRight::len`]
    /// elements that nobody else uses.
    pub unsafe fn pack<E: Factor<Sum = E>>(&self, b: *const E, strides: Strides, to: *mut E) {
        let (b, to) = (Shared(b.cast_mut()), Shared(to));
        let &PackedRight { isa, n, columns, .. } = self;
        let grain = (8192 / (self.k * columns).max(1)).max(1);
        parallel::split(self.strips(), grain, |strips| {
            for slice in self.slices() {
                for strip in strips.clone() {
                    let first = strip * columns;
                    let step = slice.start as isize * strides.row;
                    // SAFETY: the strip is inside B, and its place in the packed factor its own.
                    unsafe {
                        Pack {
                            source: b.add(0).offset(step + first as isize * strides.column),
                            lanes: columns.min(n - first),
                            lane_stride: strides.column,
                            steps: slice.len(),
                            step_stride: strides.row,
                            to: to.add(self.place(&slice, strip)),
                            width: columns,
                        }
                        .run(isa);
                    }
                }
            }
        });
    }

    /// `C = A B + beta C` for some rows, on this thread; where `beta` is 0, C is not read.
    ///
    /// # Safety
    /// The rows are readable and writable for `k` and `n` elements each and C is apart from A;
    /// `packed` is what [`PackedRight::pack`] wrote.
    pub unsafe fn multiply<E: Factor<Sum = E> + Kernels>(
        &self,
        rows: Rows<E>,
        packed: *const E,
        beta: E,
    ) {
        let micro = E::micro(self.isa);
        let tiles = rows.count.div_ceil(micro.rows);
        for slice in self.slices() {
            for strip in 0..self.strips() {
                for tile in 0..tiles {
                    let own = parallel::part_range(rows.count, tiles, tile);
                    let kernel = micro.tile(own.len(), false);
                    // SAFETY: rows of A and C, a packed strip, and a place inside both.
                    unsafe {
                        let operands = Tile {
                            k: slice.len(),
                            a: rows.a.add(own.start * rows.a_row + slice.start),
                            a_row: rows.a_row as isize,
                            a_step: 1,
                            b: packed.add(self.place(&slice, strip)),
                            b_step: self.columns as isize,
                            c: rows.c.add(own.start * rows.c_row + strip * self.columns),
                            c_row: rows.c_row as isize,
                            alpha: E::ONE,
                            beta: if slice.start == 0 { beta } else { E::ONE },
                        };
                        let width = self.columns.min(self.n - strip * self.columns);
                        if width == self.columns {
                            kernel(&operands);
                        } else {
                            narrow(&operands, own.len(), width, kernel);
                        }
                    }
                }
            }
        }
    }
}

/// A tile of which only the first `width` columns are inside C.
///
/// # Safety
/// As [`super::TileFn`], with `width` columns of C.
unsafe fn narrow<E: Accumulator>(
    tile: &Tile<E>,
    height: usize,
    width: usize,
    kernel: super::TileFn<E>,
) {
    let mut scratch = MaybeUninit::<[E; MOST_ROWS * MOST_COLUMNS]>::uninit();
    let sums = scratch.as_mut_ptr().cast::<E>();
    let whole = Tile { c: sums, c_row: MOST_COLUMNS as isize, beta: E::ZERO, ..*tile };
    // SAFETY: the scratch tile has room for the largest, and the kernel writes the columns that
    // are read; those of C are the caller's.
    unsafe {
        kernel(&whole);
        for row in 0..height {
            for column in 0..width {
                let sum = *sums.add(row * MOST_COLUMNS + column);
                let c = tile.c.offset(row as isize * tile.c_row).add(column);
                *c = if tile.beta == E::ZERO { sum } else { sum.add((*c).mul(tile.beta)) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f64 / 16_777_216.0 - 0.5
        };
        (0..count).map(|_| next()).collect()
    }

    /// `[m, k]` times `[k, n]` against sums in f64; B row-major or column-major, C with room
    /// between its rows that must stay as it was.
    fn check<E: Factor<Sum = E> + Kernels>(m: usize, k: usize, n: usize, beta: f64, error: f64) {
        let (a, b, c) = (numbers(m * k, 1), numbers(k * n, 2), numbers(m * (n + 3), 3));
        let own = |values: &[f64]| values.iter().map(|&v| E::from_f64(v)).collect::<Vec<E>>();
        for strides in [Strides::row_major(n), Strides::column_major(k)] {
            let (left, right, mut result) = (own(&a), own(&b), own(&c));
            let packing = PackedRight::new::<E>(k, n);
            let mut packed = vec![E::ZERO; packing.len()];
            let (a_row, c_row) = (k, n + 3);
            // SAFETY: the vectors are as large as the sizes.
            unsafe {
                packing.pack(right.as_ptr(), strides, packed.as_mut_ptr());
                let (a, c) = (left.as_ptr(), result.as_mut_ptr());
                let rows = Rows { count: m, a, a_row, c, c_row };
                packing.multiply(rows, packed.as_ptr(), E::from_f64(beta));
            }
            for (at, (&got, &held)) in result.iter().zip(&c).enumerate() {
                let (row, column) = (at / c_row, at % c_row);
                let b_at = |p: usize| {
                    b[(p as isize * strides.row) as usize
                        + (column as isize * strides.column) as usize]
                };
                let sum = match column < n {
                    true => (0..k).map(|p| a[row * k + p] * b_at(p)).sum::<f64>() + beta * held,
                    false => held,
                };
                let off = (Accumulator::to_f64(got) - sum).abs();
                assert!(off <= error * (k as f64 + 1.0), "{m}x{k}x{n} at {row}, {column}: {off}");
            }
        }
    }

    #[test]
    fn products_with_a_packed_factor_equal_plain_sums() {
        for (m, k, n) in [(1, 1, 1), (16, 256, 64), (15, 300, 40), (3, 7, 97), (29, 1030, 32)] {
            for beta in [0.0, 1.0, 0.5] {
                check::<f32>(m, k, n, beta, 6e-8);
                check::<f64>(m, k, n, beta, 2e-16);
            }
        }
    }
}
