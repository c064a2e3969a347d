//! One product with its pointers, as the methods (`blocked.rs`, `gemv.rs`) see it.

use super::geometry::Geometry;
use plimsoll_engine::pack::{Accumulator, Factor};
use plimsoll_engine::simd::{self, Isa, Level, LevelKernel};

/// `c = alpha * a * b + beta * c` over the geometry.
#[derive(Clone, Copy)]
pub(super) struct Product<E: Factor> {
    pub(super) geometry: Geometry,
    pub(super) a: *const E,
    pub(super) b: *const E,
    pub(super) c: *mut E,
    pub(super) alpha: E::Sum,
    pub(super) beta: E::Sum,
}

// SAFETY: the threads of one call share the pointers; they read A and B and write disjoint parts of
// C, which each method's partition sees to.
unsafe impl<E: Factor> Send for Product<E> {}
// SAFETY: as above.
unsafe impl<E: Factor> Sync for Product<E> {}

impl<E: Factor> Product<E> {
    /// The product of another element of the batch: A, B and C moved by element offsets, then A and
    /// B exchanged if `transposed` (the geometry is transposed already).
    ///
    /// # Safety
    /// The offsets are those of the batch.
    pub(super) unsafe fn moved(&self, [a, b, c]: [isize; 3], transposed: bool) -> Product<E> {
        // SAFETY: by the contract above.
        let (a, b, c) = unsafe { (self.a.offset(a), self.b.offset(b), self.c.offset(c)) };
        let (a, b) = if transposed { (b, a) } else { (a, b) };
        Product { a, b, c, ..*self }
    }

    /// The same product, where `E` is `bf16`, as the compiler cannot see.
    ///
    /// # Panics
    /// If `E` is anything else: a plan for `bf16` was run on it.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn assume_bf16(&self) -> Product<half::bf16> {
        assert!(E::DTYPE == plimsoll_core::DType::BF16, "planned for bf16 alone");
        Product {
            geometry: self.geometry,
            a: self.a.cast(),
            b: self.b.cast(),
            c: self.c.cast(),
            alpha: self.alpha.to_f64() as f32,
            beta: self.beta.to_f64() as f32,
        }
    }

    /// # Safety
    /// `row < m` and `step <= k`.
    #[inline(always)]
    pub(super) unsafe fn a_at(&self, row: usize, step: usize) -> *const E {
        let a = self.geometry.a;
        // SAFETY: inside A, by the contract above and that of `gemm`.
        unsafe { self.a.offset(row as isize * a.row + step as isize * a.column) }
    }

    /// # Safety
    /// `step < k` and `column < n`.
    #[inline(always)]
    pub(super) unsafe fn b_at(&self, step: usize, column: usize) -> *const E {
        let b = self.geometry.b;
        // SAFETY: inside B, by the contract above and that of `gemm`.
        unsafe { self.b.offset(step as isize * b.row + column as isize * b.column) }
    }

    /// # Safety
    /// `row < m` and `column < n`.
    #[inline(always)]
    pub(super) unsafe fn c_at(&self, row: usize, column: usize) -> *mut E {
        let c = self.geometry.c;
        // SAFETY: inside C, by the contract above and that of `gemm`.
        unsafe { self.c.offset(row as isize * c.row + column as isize * c.column) }
    }

    /// `c[row, column] = alpha * sum + beta * c[row, column]`, rounded once; reads C only if `beta`
    /// is not 0.
    ///
    /// # Safety
    /// `row < m`, `column < n`, and no other thread has that element.
    #[inline(always)]
    pub(super) unsafe fn write(&self, row: usize, column: usize, sum: E::Sum) {
        // SAFETY: by the contract above.
        unsafe {
            let c = self.c_at(row, column);
            let scaled = sum.mul(self.alpha);
            *c = E::narrow(if self.beta == E::Sum::ZERO {
                scaled
            } else {
                scaled.add((*c).widen().mul(self.beta))
            });
        }
    }

    /// Writes a tile of sums that lies in the workspace, as [`Product::write`] does.
    ///
    /// # Safety
    /// The tile at `(row, column)` of `(height, width)` is inside C and no other thread has it;
    /// `sums` is readable for its rows, `sums_row` apart.
    pub(super) unsafe fn write_tile(
        &self,
        isa: Isa,
        (row, column): (usize, usize),
        (height, width): (usize, usize),
        sums: *const E::Sum,
        sums_row: usize,
    ) {
        let product = *self;
        simd::dispatch_on(isa, WriteTile { product, row, column, height, width, sums, sums_row });
    }

    /// The case without products, `k == 0`: `c = beta * c`.
    ///
    /// # Safety
    /// `gemm`'s contract.
    pub(super) unsafe fn scale_only(&self) {
        for row in 0..self.geometry.m {
            for column in 0..self.geometry.n {
                // SAFETY: inside C; this is the only thread.
                unsafe { self.write(row, column, E::Sum::ZERO) };
            }
        }
    }
}

struct WriteTile<E: Factor> {
    product: Product<E>,
    row: usize,
    column: usize,
    height: usize,
    width: usize,
    sums: *const E::Sum,
    sums_row: usize,
}

impl<E: Factor> LevelKernel for WriteTile<E> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Product { alpha, beta, geometry, .. } = self.product;
        for i in 0..self.height {
            // SAFETY: `write_tile`'s contract.
            unsafe {
                let sums = self.sums.add(i * self.sums_row);
                let c = self.product.c_at(self.row + i, self.column);
                if geometry.c.column == 1 && beta == E::Sum::ZERO {
                    for j in 0..self.width {
                        *c.add(j) = E::narrow((*sums.add(j)).mul(alpha));
                    }
                } else {
                    for j in 0..self.width {
                        self.product.write(self.row + i, self.column + j, *sums.add(j));
                    }
                }
            }
        }
    }
}
