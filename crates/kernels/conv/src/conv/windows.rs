//! Packing a tile's windows: for a few neighbouring results of a row, what they look at, in the
//! order in which the inner kernel reads it: `packed[(tap * channels + channel) * results +
//! result]`, widened, with zeros for what lies outside the operand.

use std::ops::Range;

use plimsoll_core::DType;
use plimsoll_engine::pack::{Accumulator, Factor, Pack};
use plimsoll_engine::simd::{self, Isa, Level, LevelKernel};

use super::line::Line;
use crate::volume::Volume;

/// The windows of a tile.
pub(super) struct Windows<'a, E: Factor> {
    pub(super) operand: &'a Volume,
    /// The image's first channel of the slice.
    pub(super) from: *const E,
    pub(super) channels: usize,
    pub(super) lines: &'a [Line; 3],
    /// The results: a plane, a row, elements of it, counted within the phase.
    pub(super) plane: usize,
    pub(super) row: usize,
    pub(super) elements: Range<usize>,
    pub(super) to: *mut E::Sum,
}

/// Windows that [`Windows::pack`]'s caller vouched for.
struct Vouched<'a, E: Factor>(Windows<'a, E>);

impl<E: Factor> Windows<'_, E> {
    /// Packs with the instructions of `isa`.
    ///
    /// # Safety
    /// `from` is a channel of the operand, the elements are results, and `to` is writable for all
    /// taps, channels and results, and [`super::plan::SLACK`] sums more.
    pub(super) unsafe fn pack(self, isa: Isa) {
        simd::dispatch_on(isa, Vouched(self));
    }
}

impl<E: Factor> LevelKernel for Vouched<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Vouched(windows) = self;
        let Windows { operand, from, channels, lines, plane, row, elements, mut to } = windows;
        let width = elements.len();
        // Loops, and no closure: one that is not inlined has none of the level's instructions.
        for j in 0..lines[0].taps {
            let plane = lines[0].place(plane, j, operand.sizes[0]);
            for k in 0..lines[1].taps {
                let row = lines[1].place(row, k, operand.sizes[1]);
                let row = plane.zip(row).map(|(plane, row)| operand.row(plane, row));
                for l in 0..lines[2].taps {
                    let inside = lines[2].inside(l, operand.sizes[2], elements.start, elements.end);
                    let at = inside.start * lines[2].pace + l * lines[2].apart;
                    let at = (at as isize + lines[2].offset) as usize;
                    let lanes = inside.start - elements.start..inside.end - elements.start;
                    // SAFETY: taps lie one after another in the packed tile; those inside the
                    // operand are read at results that look at it.
                    unsafe {
                        match row.filter(|_| !inside.is_empty()) {
                            Some(row) => Tap {
                                from: from.add(row + at * operand.strides[2]),
                                lane_stride: lines[2].pace * operand.strides[2],
                                channels,
                                channel_stride: operand.channel_stride,
                                lanes,
                                width,
                                to,
                            }
                            .pack::<L>(),
                            None => std::slice::from_raw_parts_mut(to, channels * width)
                                .fill(E::Sum::ZERO),
                        }
                        to = to.add(channels * width);
                    }
                }
            }
        }
    }
}

/// One tap of a tile: `width` results, of which `lanes` look into the operand, from `from`.
struct Tap<E: Factor> {
    from: *const E,
    lane_stride: usize,
    channels: usize,
    channel_stride: usize,
    lanes: Range<usize>,
    width: usize,
    to: *mut E::Sum,
}

impl<E: Factor> Tap<E> {
    #[inline(always)]
    unsafe fn pack<L: Level>(&self) {
        let whole = self.lanes.len() == self.width;
        // SAFETY: the contract of `Windows::pack`.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if matches!(L::ISA, Isa::Avx512)
                && matches!(E::DTYPE, DType::F32 | DType::F16 | DType::BF16)
                && self.lane_stride == 1
                && self.width <= 32
            {
                return self.by_vectors();
            }
            if whole && self.channel_stride == 1 && self.channels > 1 {
                let pack = Pack {
                    source: self.from,
                    lanes: self.width,
                    lane_stride: self.lane_stride as isize,
                    steps: self.channels,
                    step_stride: 1,
                    to: self.to,
                    width: self.width,
                };
                return pack.run(L::ISA);
            }
            for channel in 0..self.channels {
                let row =
                    std::slice::from_raw_parts_mut(self.to.add(channel * self.width), self.width);
                if !whole {
                    row.fill(E::Sum::ZERO);
                }
                let from = self.from.add(channel * self.channel_stride);
                for (lane, sum) in row[self.lanes.clone()].iter_mut().enumerate() {
                    *sum = (*from.add(lane * self.lane_stride)).widen();
                }
            }
        }
    }

    /// Neighbouring lanes, a register or two a channel. Each store runs over into the next
    /// channel's place, which is written after it.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn by_vectors(&self) {
        let mask = ((1u64 << self.lanes.len()) - 1) << self.lanes.start;
        let first = self.from.wrapping_sub(self.lanes.start);
        for channel in 0..self.channels {
            let from = first.wrapping_add(channel * self.channel_stride);
            // SAFETY: the masks keep loads to lanes inside the operand; a store reaches at most 15
            // sums past the tile, where there is slack.
            unsafe {
                let to = self.to.add(channel * self.width).cast::<f32>();
                let values = E::load_16_as_f32(from, mask as u16);
                std::arch::x86_64::_mm512_storeu_ps(to, values);
                if self.width > 16 {
                    let values = E::load_16_as_f32(from.wrapping_add(16), (mask >> 16) as u16);
                    std::arch::x86_64::_mm512_storeu_ps(to.add(16), values);
                }
            }
        }
    }
}
