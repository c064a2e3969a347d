//! Packing: copying a block of an operand into the order in which the inner kernel reads it,
//! widening on the way. One routine serves both operands: `lanes` are rows of A, or columns of B.
//!
//! ```text
//! packed[step * width + lane] = widen(source[lane * lane_stride + step * step_stride])
//! ```
//! with zeros in `lanes..width`. Where steps are contiguous this is a transposition; AVX-512 does
//! it in registers, 16 x 16 (`f32` and the half types) or 8 x 8 (`f64`).

mod factor;
mod transpose;

pub use factor::{Accumulator, Factor};
#[cfg(target_arch = "x86_64")]
pub use transpose::transpose_f32;

use crate::simd::{self, Isa, Level, LevelKernel};

/// Lanes that are copied at once: one AVX-512 register of `f64`.
const CHUNK: usize = 8;

/// Rows of B that are asked for ahead of the copy: rows lie too far apart for the hardware to
/// foresee.
const AHEAD: isize = 12;

/// Asks for `width` neighbouring elements ahead of their use; they need not exist.
#[inline(always)]
pub fn prefetch_strip<E>(from: *const E, width: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..width * size_of::<E>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast::<i8>().wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, width);
}

/// A block to pack. Strides are in elements.
#[derive(Debug)]
pub struct Pack<E: Factor> {
    /// The element of lane 0 and step 0.
    pub source: *const E,
    /// Lanes to read.
    pub lanes: usize,
    /// From one lane to the next.
    pub lane_stride: isize,
    /// Steps to read.
    pub steps: usize,
    /// From one step to the next.
    pub step_stride: isize,
    /// Where the packed form goes.
    pub to: *mut E::Sum,
    /// Lanes in the packed form, at least `lanes`.
    pub width: usize,
}

/// A block that [`Pack::run`]'s caller vouched for.
struct Vouched<E: Factor>(Pack<E>);

impl<E: Factor> Pack<E> {
    /// A plain transposition: row r of `to`, of `columns` elements, is the r-th of each of
    /// `columns` runs that lie `stride` apart.
    pub fn transposing(
        source: *const E,
        stride: isize,
        to: *mut E::Sum,
        rows: usize,
        columns: usize,
    ) -> Pack<E> {
        let (lanes, steps) = (columns, rows);
        Pack { source, lanes, lane_stride: stride, steps, step_stride: 1, to, width: columns }
    }

    /// Packs with the instructions of `isa`.
    ///
    /// # Safety
    /// `source` is readable at every lane and step, and `to` writable for `steps * width` sums.
    #[inline]
    pub unsafe fn run(self, isa: Isa) {
        simd::dispatch_on(isa, Vouched(self));
    }

    #[inline(always)]
    unsafe fn at(&self, lane: usize, step: usize) -> *const E {
        let offset = lane as isize * self.lane_stride + step as isize * self.step_stride;
        // SAFETY: inside the block, which the caller of `run` vouches for.
        unsafe { self.source.offset(offset) }
    }

    /// Any strides; the inner loop goes over lanes and vectorises where they are contiguous.
    #[inline(always)]
    unsafe fn by_lanes(&self) {
        for step in 0..self.steps {
            // SAFETY: inside both blocks, by the contract of `run`.
            unsafe {
                let row = self.to.add(step * self.width);
                if self.lane_stride == 1
                    && self.lanes == self.width
                    && self.width.is_multiple_of(CHUNK)
                {
                    // The usual strip of B: chunks whose length the compiler knows.
                    let from = self.at(0, step);
                    prefetch_strip(from.wrapping_offset(AHEAD * self.step_stride), self.width);
                    for chunk in (0..self.width).step_by(CHUNK) {
                        for lane in chunk..chunk + CHUNK {
                            *row.add(lane) = (*from.add(lane)).widen();
                        }
                    }
                    continue;
                }
                if self.lane_stride == 1 {
                    let from = self.at(0, step);
                    (0..self.lanes).for_each(|lane| *row.add(lane) = (*from.add(lane)).widen());
                } else {
                    for lane in 0..self.lanes {
                        *row.add(lane) = (*self.at(lane, step)).widen();
                    }
                }
                (self.lanes..self.width).for_each(|lane| *row.add(lane) = E::Sum::ZERO);
            }
        }
    }

    /// Contiguous steps, without a transposition in registers: eight steps at a time, so that each
    /// line of the source is read once.
    #[inline(always)]
    unsafe fn by_steps(&self, first_step: usize) {
        for start in (first_step..self.steps).step_by(8) {
            let end = self.steps.min(start + 8);
            // SAFETY: inside both blocks, by the contract of `run`.
            unsafe {
                for lane in 0..self.lanes {
                    for step in start..end {
                        *self.to.add(step * self.width + lane) = (*self.at(lane, step)).widen();
                    }
                }
                for step in start..end {
                    for lane in self.lanes..self.width {
                        *self.to.add(step * self.width + lane) = E::Sum::ZERO;
                    }
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn by_transposing_f32(&self) {
        for lane in (0..self.width).step_by(16) {
            let lanes = self.lanes.saturating_sub(lane).min(16);
            let store: u16 = low_bits(self.width - lane);
            for step in (0..self.steps).step_by(16) {
                let steps = (self.steps - step).min(16);
                // SAFETY: masks keep loads inside the source's steps and stores inside the packed
                // width; `dispatch_on` vouches for AVX-512, and `E::Sum` is f32 where this is
                // called.
                unsafe {
                    let mut rows = [std::arch::x86_64::_mm512_setzero_ps(); 16];
                    // Conditions inside loops of known length, so that the rows stay in registers.
                    for (row, value) in rows.iter_mut().enumerate() {
                        if row < lanes {
                            *value = E::load_16_as_f32(self.at(lane + row, step), low_bits(steps));
                        }
                    }
                    let columns = transpose::transpose_f32(rows);
                    let to = self.to.cast::<f32>().add(step * self.width + lane);
                    for (column, value) in columns.into_iter().enumerate() {
                        if column < steps {
                            let to = to.add(column * self.width);
                            std::arch::x86_64::_mm512_mask_storeu_ps(to, store, value);
                        }
                    }
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn by_transposing_f64(&self) {
        use std::arch::x86_64::*;
        for lane in (0..self.width).step_by(8) {
            let lanes = self.lanes.saturating_sub(lane).min(8);
            let store = low_bits(self.width - lane) as u8;
            for step in (0..self.steps).step_by(8) {
                let steps = (self.steps - step).min(8);
                // SAFETY: as for f32; `E` is f64 where this is called.
                unsafe {
                    let mut rows = [_mm512_setzero_pd(); 8];
                    for (row, value) in rows.iter_mut().enumerate() {
                        if row < lanes {
                            let from = self.at(lane + row, step).cast::<f64>();
                            *value = _mm512_maskz_loadu_pd(low_bits(steps) as u8, from);
                        }
                    }
                    let columns = transpose::transpose_f64(rows);
                    let to = self.to.cast::<f64>().add(step * self.width + lane);
                    for (column, value) in columns.into_iter().enumerate() {
                        if column < steps {
                            _mm512_mask_storeu_pd(to.add(column * self.width), store, value);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn low_bits(count: usize) -> u16 {
    if count >= 16 { u16::MAX } else { (1 << count) - 1 }
}

impl<E: Factor> LevelKernel for Vouched<E> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        use plimsoll_core::DType;
        let pack = self.0;
        let transposes = pack.step_stride == 1 && pack.lane_stride != 1;
        #[cfg(target_arch = "x86_64")]
        if transposes && matches!(L::ISA, Isa::Avx512) {
            match E::DTYPE {
                DType::F32 | DType::F16 | DType::BF16 => {
                    // SAFETY: `run`'s contract, and these types are summed in f32.
                    return unsafe { pack.by_transposing_f32() };
                }
                DType::F64 => {
                    // SAFETY: `run`'s contract, and `E` is f64.
                    return unsafe { pack.by_transposing_f64() };
                }
                _ => {}
            }
        }
        // SAFETY: `run`'s contract.
        unsafe { if transposes { pack.by_steps(0) } else { pack.by_lanes() } }
    }
}
