//! From a block of sums, `sums[pixel * pitch + channel]`, to the output, with the bias, rounded.
//! Where rows of the output are contiguous this is a transposition. Sums of a flipped product lie
//! the other way round, channel after channel, for each row.

use std::ops::Range;

use plimsoll_core::DType;
use plimsoll_engine::pack::{Accumulator, Factor};
use plimsoll_engine::simd::{self, Isa, Level, LevelKernel};

use super::line::Line;
use crate::volume::Volume;

/// A bias: one element a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bias<E> {
    pub(super) first: *const E,
    pub(super) stride: usize,
}

impl<E: Factor> Bias<E> {
    /// # Safety
    /// `channel` is one of the result's.
    #[inline(always)]
    pub(super) unsafe fn of(self, channel: usize) -> E::Sum {
        // SAFETY: by the contract above.
        unsafe { *self.first.add(channel * self.stride) }.widen()
    }
}

/// The sums of a block.
pub(super) struct Results<E: Factor> {
    pub(super) isa: Isa,
    pub(super) sums: *const E::Sum,
    pub(super) pitch: usize,
    /// From one channel's sums of a row to the next one's, if the product was flipped.
    pub(super) slots: Option<usize>,
    pub(super) bias: Option<Bias<E>>,
    /// The output's channels that these are.
    pub(super) channel: usize,
    pub(super) channels: usize,
}

impl<E: Factor> Results<E> {
    /// Writes rows of one plane of `to`.
    ///
    /// # Safety
    /// The rows and elements are the output's, and no other thread's; there is a sum for each.
    pub(super) unsafe fn write(
        &self,
        result: &Volume,
        to: *mut E,
        image: usize,
        plane: usize,
        (height, rows): (&Line, Range<usize>),
        (width, elements): (&Line, Range<usize>),
    ) {
        let step = width.step * result.strides[2];
        // Rows that follow each other are one.
        let down = height.step * result.strides[1];
        let dense = self.slots.is_none() && elements.len() == width.len && down == width.len * step;
        let (runs, len) =
            if dense { (1, rows.len() * elements.len()) } else { (rows.len(), elements.len()) };
        for run in 0..runs {
            let row = height.first + (rows.start + run) * height.step;
            let element = width.first + elements.start * width.step;
            // SAFETY: by the contract above.
            unsafe {
                let at = result.at(image, self.channel) + result.row(plane, row);
                let run = Rows {
                    sums: self.sums.add(run * self.slots.unwrap_or(len) * self.pitch),
                    pitch: self.pitch,
                    slots: self.slots,
                    len,
                    channels: self.channels,
                    to: to.add(at + element * result.strides[2]),
                    step,
                    channel_stride: result.channel_stride,
                    bias: self.bias,
                    channel: self.channel,
                };
                simd::dispatch_on(self.isa, run);
            }
        }
    }
}

/// Results that lie evenly apart.
struct Rows<E: Factor> {
    sums: *const E::Sum,
    pitch: usize,
    slots: Option<usize>,
    len: usize,
    channels: usize,
    to: *mut E,
    step: usize,
    channel_stride: usize,
    bias: Option<Bias<E>>,
    channel: usize,
}

impl<E: Factor> LevelKernel for Rows<E> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        // SAFETY: the contract of `Results::write`.
        unsafe {
            if let Some(slots) = self.slots {
                return self.channel_after_channel(slots);
            }
            #[cfg(target_arch = "x86_64")]
            if matches!(L::ISA, Isa::Avx512) && E::DTYPE == DType::F32 && self.step == 1 {
                return self.by_transposing();
            }
            if self.channel_stride <= self.step {
                self.by_channels();
            } else {
                self.by_pixels();
            }
        }
    }
}

impl<E: Factor> Rows<E> {
    #[inline(always)]
    unsafe fn bias_of(&self, channel: usize) -> E::Sum {
        // SAFETY: `channel` is one of the rows'.
        self.bias.map_or(E::Sum::ZERO, |bias| unsafe { bias.of(self.channel + channel) })
    }

    /// A flipped product's.
    #[inline(always)]
    unsafe fn channel_after_channel(&self, slots: usize) {
        for channel in 0..self.channels {
            // SAFETY: sums of the block and their results.
            unsafe {
                let bias = self.bias_of(channel);
                let sums = self.sums.add(channel * slots);
                let to = self.to.add(channel * self.channel_stride);
                if self.step == 1 {
                    for pixel in 0..self.len {
                        *to.add(pixel) = E::narrow((*sums.add(pixel)).add(bias));
                    }
                } else {
                    for pixel in 0..self.len {
                        *to.add(pixel * self.step) = E::narrow((*sums.add(pixel)).add(bias));
                    }
                }
            }
        }
    }

    /// Channels last: pixel after pixel.
    #[inline(always)]
    unsafe fn by_channels(&self) {
        for pixel in 0..self.len {
            for channel in 0..self.channels {
                // SAFETY: a sum of the block and its result.
                unsafe {
                    let sum = *self.sums.add(pixel * self.pitch + channel);
                    let to = self.to.add(pixel * self.step + channel * self.channel_stride);
                    *to = E::narrow(sum.add(self.bias_of(channel)));
                }
            }
        }
    }

    /// Sixteen channels at a time, so that each line of sums is read once.
    #[inline(always)]
    unsafe fn by_pixels(&self) {
        for pixel in (0..self.len).step_by(16) {
            for channel in 0..self.channels {
                // SAFETY: a sum of the block and its result.
                unsafe {
                    let bias = self.bias_of(channel);
                    for pixel in pixel..self.len.min(pixel + 16) {
                        let sum = *self.sums.add(pixel * self.pitch + channel);
                        let to = self.to.add(pixel * self.step + channel * self.channel_stride);
                        *to = E::narrow(sum.add(bias));
                    }
                }
            }
        }
    }

    /// Squares of 16 x 16 in registers; `E` is f32.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn by_transposing(&self) {
        use std::arch::x86_64::*;
        for channel in (0..self.channels).step_by(16) {
            let channels = (self.channels - channel).min(16);
            for pixel in (0..self.len).step_by(16) {
                let pixels = (self.len - pixel).min(16);
                let load = (((1u32 << channels) - 1) & 0xffff) as u16;
                let store = (((1u32 << pixels) - 1) & 0xffff) as u16;
                // SAFETY: masks keep loads and stores to the block's sums and its results; the
                // level vouches for AVX-512, and both types are f32.
                unsafe {
                    let mut rows = [_mm512_setzero_ps(); 16];
                    for (row, value) in rows.iter_mut().enumerate() {
                        if row < pixels {
                            let from = self.sums.add((pixel + row) * self.pitch + channel);
                            *value = _mm512_maskz_loadu_ps(load, from.cast());
                        }
                    }
                    let columns = plimsoll_engine::pack::transpose_f32(rows);
                    for (column, value) in columns.into_iter().enumerate() {
                        if column < channels {
                            let bias = self.bias_of(channel + column).to_f64() as f32;
                            let value = _mm512_add_ps(value, _mm512_set1_ps(bias));
                            let to = self.to.add((channel + column) * self.channel_stride + pixel);
                            _mm512_mask_storeu_ps(to.cast(), store, value);
                        }
                    }
                }
            }
        }
    }
}
