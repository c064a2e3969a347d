//! The inner kernel: one tile of the product, kept in registers while `k` goes by. All the time of
//! a large product is spent in the loop of [`tile`].
//!
//! A tile is up to `rows` x (2 vectors) sums. Per step of `k` it loads two vectors of B and
//! broadcasts one element of A per row: with 14 rows of AVX-512 that is 16 loads for 28
//! multiply-adds, so the multipliers, not the loads, set the pace. The sizes are chosen to fill the
//! register file: 28 sums of 32 registers (AVX-512), 12 of 16 (AVX2). What is left to save are
//! instructions ([`Vector::twin`], [`odd_rows`]): alone on a core they wait for the multipliers
//! anyway, but a neighbour on the same core takes half of their turns.
//!
//! It knows nothing of blocking or packing (`blocked.rs`, `engine/src/pack/mod.rs`).

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256, __m256d, __m512, __m512d};

use super::vector::{Lanes, Vector};
use plimsoll_engine::pack::Accumulator;
use plimsoll_engine::simd::Isa;

/// The operands of one tile. Strides are in elements.
#[derive(Clone, Copy, Debug)]
pub struct Tile<T> {
    /// Steps.
    pub k: usize,
    /// `a[p * a_step + i * a_row]` is row `i` at step `p`.
    pub a: *const T,
    /// From one row of A to the next.
    pub a_row: isize,
    /// From one step of A to the next.
    pub a_step: isize,
    /// `b[p * b_step + j]` is column `j` at step `p`; two full vectors are read.
    pub b: *const T,
    /// From one step of B to the next.
    pub b_step: isize,
    /// `c[i * c_row + j]`; two full vectors are written, and read only where `beta` is not 0.
    pub c: *mut T,
    /// From one row of C to the next.
    pub c_row: isize,
    /// `c = alpha * a * b + beta * c`.
    pub alpha: T,
    /// Factor of what C held.
    pub beta: T,
}

/// Computes one tile.
///
/// # Safety
/// The pointers of the [`Tile`] cover what its fields say, for the rows that the function was
/// chosen for, and the machine has the level that it was chosen for.
pub type TileFn<T> = unsafe fn(&Tile<T>);

/// One level's inner kernel for one accumulator.
#[derive(Clone, Copy, Debug)]
pub struct Micro<T> {
    /// The most rows a tile can have.
    pub rows: usize,
    /// The columns every tile has.
    pub columns: usize,
    /// The kernel for a number of rows, 1 to `rows`.
    /// With `packed`, A has `a_row = 1` and `a_step = rows`: addresses known when compiling.
    choose: fn(rows: usize, packed: bool) -> TileFn<T>,
}

impl<T> Micro<T> {
    /// The kernel for `rows` rows; with `packed`, for `a_row == 1 && a_step == rows` only.
    #[inline]
    pub fn tile(&self, rows: usize, packed: bool) -> TileFn<T> {
        debug_assert!((1..=self.rows).contains(&rows), "the plan cuts rows to fit the kernel");
        (self.choose)(rows, packed)
    }
}

/// The tallest tile of any level.
pub(super) const MOST_ROWS: usize = 14;
/// The widest tile of any level.
pub(super) const MOST_COLUMNS: usize = 32;

#[inline(always)]
unsafe fn tile<V: Vector, const ROWS: usize, const PACKED: bool>(tile: &Tile<V::Sum>) {
    let Tile { k, mut a, a_row, a_step, mut b, b_step, c, c_row, alpha, beta } = *tile;
    // SAFETY: for the whole body, `TileFn`'s contract, kept by `blocked.rs`: A is read at rows <
    // ROWS and steps < k, B and C at two vectors a row, all inside their operands or the workspace.
    unsafe {
        for row in 0..ROWS {
            prefetch(c.offset(row as isize * c_row));
            prefetch(c.offset(row as isize * c_row).add(V::LANES));
        }
        let mut sums = [[V::splat(V::Sum::ZERO); 2]; ROWS];
        let odd = if PACKED { [0; MOST_ROWS / 2] } else { odd_rows::<V::Sum>(a_row) };
        for _ in 0..k {
            let (left, right) = (V::load(b), V::load(b.add(V::LANES)));
            let twin = if PACKED { V::twin(a) } else { a };
            for (row, sum) in sums.iter_mut().enumerate() {
                let of_row = |a: *const V::Sum| {
                    if PACKED { a.add(row) } else { a.byte_offset(row_bytes(&odd, row)) }
                };
                sum[0] = sum[0].add_product(V::splat(*of_row(a)), left);
                sum[1] = sum[1].add_product(V::splat(*of_row(twin)), right);
            }
            a = if PACKED { a.add(ROWS) } else { a.offset(a_step) };
            b = b.offset(b_step);
        }
        let alpha = V::splat(alpha);
        for (row, sum) in sums.into_iter().enumerate() {
            let c = c.offset(row as isize * c_row);
            for (half, sum) in sum.into_iter().enumerate() {
                let c = c.add(half * V::LANES);
                if beta == V::Sum::ZERO {
                    sum.times(alpha).store(c);
                } else {
                    V::load(c).times(V::splat(beta)).add_product(sum, alpha).store(c);
                }
            }
        }
    }
}

/// How many bytes the rows 1, 3, 5, ... are from row 0. An address may add twice, four or eight
/// times a register, so with these every row is one load. The compiler is kept from seeing what
/// they are: it would go from row to row by 13 additions, each waiting for the one before, which
/// takes as long as the multiply-adds do.
#[inline(always)]
fn odd_rows<T>(a_row: isize) -> [isize; MOST_ROWS / 2] {
    let bytes = a_row * size_of::<T>() as isize;
    std::array::from_fn(|i| std::hint::black_box((2 * i as isize + 1) * bytes))
}

/// How many bytes `row` is from row 0.
#[inline(always)]
fn row_bytes(odd: &[isize; MOST_ROWS / 2], row: usize) -> isize {
    if row == 0 {
        return 0;
    }
    let twos = row.trailing_zeros();
    odd[row >> twos >> 1] << twos
}

/// Starts to bring a row of C into the cache while the loop runs.
#[inline(always)]
unsafe fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The functions compiled for a level, by number of rows.
macro_rules! choose_rows {
    ($choose:ident, $tile:ident, $features:literal, $($rows:literal)*) => {
        #[target_feature(enable = $features)]
        unsafe fn $tile<V: Vector, const ROWS: usize, const PACKED: bool>(operands: &Tile<V::Sum>) {
            // SAFETY: the caller keeps `TileFn`'s contract.
            unsafe { tile::<V, ROWS, PACKED>(operands) }
        }

        fn $choose<V: Vector>(rows: usize, packed: bool) -> TileFn<V::Sum> {
            match (rows, packed) {
                $(
                    ($rows, true) => $tile::<V, $rows, true>,
                    ($rows, false) => $tile::<V, $rows, false>,
                )*
                _ => unreachable!("the plan cuts rows to fit the kernel"),
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
choose_rows!(choose_avx512, tile_avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma",
    1 2 3 4 5 6 7 8 9 10 11 12 13 14);
// Integers: the compiler vectorises these, and six rows are enough to keep it from spilling.
#[cfg(target_arch = "x86_64")]
choose_rows!(choose_avx512_integer, tile_avx512_integer,
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma", 1 2 3 4 5 6);
#[cfg(target_arch = "x86_64")]
choose_rows!(choose_avx2, tile_avx2, "avx2,fma", 1 2 3 4 5 6);
#[cfg(target_arch = "x86_64")]
choose_rows!(choose_baseline, tile_baseline, "sse2", 1 2 3 4);
#[cfg(not(target_arch = "x86_64"))]
choose_rows!(choose_baseline, tile_baseline, "", 1 2 3 4);

/// An accumulator that has kernels.
pub trait Kernels: Accumulator {
    /// The kernel of a level that the machine has.
    fn micro(isa: Isa) -> Micro<Self>;
}

#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($($sum:ty, $avx512:ty, $rows:literal, $choose:ident, $avx2:ty, $baseline:ty);* $(;)?) => {$(
        impl Kernels for $sum {
            fn micro(isa: Isa) -> Micro<$sum> {
                match isa {
                    Isa::Avx512 => Micro {
                        rows: $rows,
                        columns: 2 * <$avx512>::LANES,
                        choose: $choose::<$avx512>,
                    },
                    Isa::Avx2 => Micro {
                        rows: 6,
                        columns: 2 * <$avx2>::LANES,
                        choose: choose_avx2::<$avx2>,
                    },
                    Isa::Scalar => Micro {
                        rows: 4,
                        columns: 2 * <$baseline>::LANES,
                        choose: choose_baseline::<$baseline>,
                    },
                }
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
kernels! {
    f32, __m512, 14, choose_avx512, __m256, Lanes<f32, 4>;
    f64, __m512d, 14, choose_avx512, __m256d, Lanes<f64, 2>;
    i32, Lanes<i32, 16>, 6, choose_avx512_integer, Lanes<i32, 8>, Lanes<i32, 4>;
    i64, Lanes<i64, 8>, 6, choose_avx512_integer, Lanes<i64, 4>, Lanes<i64, 2>;
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! kernels {
    ($($sum:ty, $lanes:literal);*) => {$(
        impl Kernels for $sum {
            fn micro(_: Isa) -> Micro<$sum> {
                Micro {
                    rows: 4,
                    columns: 2 * $lanes,
                    choose: choose_baseline::<Lanes<$sum, $lanes>>,
                }
            }
        }
    )*};
}
#[cfg(not(target_arch = "x86_64"))]
kernels!(f32, 4; f64, 2; i32, 4; i64, 2);
