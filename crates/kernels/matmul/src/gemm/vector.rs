//! The registers that the inner kernel is written in: one trait, and its types for AVX-512, AVX2
//! and for any level by plain arrays (which the compiler vectorises; integers use those
//! everywhere).
//!
//! Every method is `#[inline(always)]`: it takes on the instruction set of the `#[target_feature]`
//! function that it ends up in (`micro.rs`).

#[cfg(target_arch = "x86_64")]
use std::arch::{asm, x86_64::*};

use plimsoll_engine::pack::Accumulator;

/// A register of [`Vector::LANES`] sums.
pub(super) trait Vector: Copy {
    type Sum: Accumulator;
    const LANES: usize;
    /// `value` in every lane.
    ///
    /// # Safety
    /// As for every method here: the machine has the type's instructions.
    unsafe fn splat(value: Self::Sum) -> Self;
    /// # Safety
    /// `from` is readable for [`Vector::LANES`] sums.
    unsafe fn load(from: *const Self::Sum) -> Self;
    /// # Safety
    /// `to` is writable for [`Vector::LANES`] sums.
    unsafe fn store(self, to: *mut Self::Sum);
    /// `self + a * b`.
    /// # Safety
    /// As above.
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
    /// `self * a`.
    /// # Safety
    /// As above.
    unsafe fn times(self, a: Self) -> Self;
    /// `from`, which the compiler does not know to be the same address where a multiply-add can
    /// read an element for all its lanes by itself. An element that is used twice, once through
    /// each, is then read twice and needs no instruction of its own: 35 a step of 14 rows instead
    /// of 48.
    #[inline(always)]
    fn twin(from: *const Self::Sum) -> *const Self::Sum {
        from
    }
}

/// A vector without a vector type.
#[derive(Clone, Copy)]
pub(super) struct Lanes<T, const N: usize>([T; N]);

impl<T: Accumulator, const N: usize> Vector for Lanes<T, N> {
    type Sum = T;
    const LANES: usize = N;
    #[inline(always)]
    unsafe fn splat(value: T) -> Self {
        Lanes([value; N])
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller vouches for `N` readable sums; arrays have no further alignment.
        Lanes(unsafe { from.cast::<[T; N]>().read() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller vouches for `N` writable sums.
        unsafe { to.cast::<[T; N]>().write(self.0) }
    }
    #[inline(always)]
    unsafe fn add_product(mut self, a: Self, b: Self) -> Self {
        for lane in 0..N {
            self.0[lane] = self.0[lane].add(a.0[lane].mul(b.0[lane]));
        }
        self
    }
    #[inline(always)]
    unsafe fn times(mut self, a: Self) -> Self {
        for lane in 0..N {
            self.0[lane] = self.0[lane].mul(a.0[lane]);
        }
        self
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! x86_vector {
    ($vector:ty, $sum:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident, $fma:ident, $mul:ident) => {
        impl Vector for $vector {
            type Sum = $sum;
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn splat(value: $sum) -> Self {
                // SAFETY: the caller vouches for the instructions.
                unsafe { $splat(value) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $sum) -> Self {
                // SAFETY: the caller vouches for the instructions and the memory.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $sum) {
                // SAFETY: the caller vouches for the instructions and the memory.
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            unsafe fn add_product(self, a: Self, b: Self) -> Self {
                // SAFETY: the caller vouches for the instructions.
                unsafe { $fma(a, b, self) }
            }
            #[inline(always)]
            unsafe fn times(self, a: Self) -> Self {
                // SAFETY: the caller vouches for the instructions.
                unsafe { $mul(self, a) }
            }
            #[inline(always)]
            fn twin(mut from: *const $sum) -> *const $sum {
                // Of these, the vectors of AVX-512 can.
                if size_of::<$vector>() == 64 {
                    // SAFETY: it does nothing.
                    unsafe {
                        asm!("/* {0} */", inout(reg) from, options(pure, readonly, nostack, preserves_flags));
                    }
                }
                from
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
x86_vector!(
    __m512,
    f32,
    16,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_fmadd_ps,
    _mm512_mul_ps
);
#[cfg(target_arch = "x86_64")]
x86_vector!(
    __m512d,
    f64,
    8,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd,
    _mm512_mul_pd
);
#[cfg(target_arch = "x86_64")]
x86_vector!(
    __m256,
    f32,
    8,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_fmadd_ps,
    _mm256_mul_ps
);
#[cfg(target_arch = "x86_64")]
x86_vector!(
    __m256d,
    f64,
    4,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd,
    _mm256_mul_pd
);
