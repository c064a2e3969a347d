//! Transposing a square of registers with AVX-512: 16 x 16 `f32` and 8 x 8 `f64`, in log2(n) rounds
//! of exchanging halves between pairs of rows, smallest pieces first. Used by `mod.rs`.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

/// The transpose of 16 rows of 16.
///
/// # Safety
/// The machine has AVX-512 F.
#[inline(always)]
pub unsafe fn transpose_f32(rows: [__m512; 16]) -> [__m512; 16] {
    // SAFETY: register arithmetic only; the caller vouches for AVX-512.
    unsafe {
        let mut pairs = rows;
        for i in 0..8 {
            pairs[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
            pairs[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
        }
        // quads[4 * g + c] holds, in each 128-bit lane l, column 4 * l + c of the four rows from
        // 4 * g on.
        let mut quads = pairs;
        for g in 0..4 {
            for half in 0..2 {
                let low = _mm512_castps_pd(pairs[4 * g + half]);
                let high = _mm512_castps_pd(pairs[4 * g + 2 + half]);
                quads[4 * g + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
                quads[4 * g + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
            }
        }
        // Now a 4 x 4 transposition of 128-bit lanes for each c.
        let mut columns = quads;
        for c in 0..4 {
            let [q0, q1, q2, q3] = [quads[c], quads[4 + c], quads[8 + c], quads[12 + c]];
            let even_low = _mm512_shuffle_f32x4::<0x88>(q0, q1); // lanes 0, 2 of q0 and of q1
            let odd_low = _mm512_shuffle_f32x4::<0xdd>(q0, q1); // lanes 1, 3
            let even_high = _mm512_shuffle_f32x4::<0x88>(q2, q3);
            let odd_high = _mm512_shuffle_f32x4::<0xdd>(q2, q3);
            columns[c] = _mm512_shuffle_f32x4::<0x88>(even_low, even_high);
            columns[4 + c] = _mm512_shuffle_f32x4::<0x88>(odd_low, odd_high);
            columns[8 + c] = _mm512_shuffle_f32x4::<0xdd>(even_low, even_high);
            columns[12 + c] = _mm512_shuffle_f32x4::<0xdd>(odd_low, odd_high);
        }
        columns
    }
}

/// # Safety
/// The machine has AVX-512 F.
#[inline(always)]
pub(super) unsafe fn transpose_f64(rows: [__m512d; 8]) -> [__m512d; 8] {
    // SAFETY: register arithmetic only; the caller vouches for AVX-512.
    unsafe {
        // pairs[2 * g + c] holds, in each 128-bit lane l, column 2 * l + c of the two rows from
        // 2 * g on.
        let mut pairs = rows;
        for g in 0..4 {
            pairs[2 * g] = _mm512_unpacklo_pd(rows[2 * g], rows[2 * g + 1]);
            pairs[2 * g + 1] = _mm512_unpackhi_pd(rows[2 * g], rows[2 * g + 1]);
        }
        let mut columns = pairs;
        for c in 0..2 {
            let [q0, q1, q2, q3] = [pairs[c], pairs[2 + c], pairs[4 + c], pairs[6 + c]];
            let even_low = _mm512_shuffle_f64x2::<0x88>(q0, q1);
            let odd_low = _mm512_shuffle_f64x2::<0xdd>(q0, q1);
            let even_high = _mm512_shuffle_f64x2::<0x88>(q2, q3);
            let odd_high = _mm512_shuffle_f64x2::<0xdd>(q2, q3);
            columns[c] = _mm512_shuffle_f64x2::<0x88>(even_low, even_high);
            columns[2 + c] = _mm512_shuffle_f64x2::<0x88>(odd_low, odd_high);
            columns[4 + c] = _mm512_shuffle_f64x2::<0xdd>(even_low, even_high);
            columns[6 + c] = _mm512_shuffle_f64x2::<0xdd>(odd_low, odd_high);
        }
        columns
    }
}
