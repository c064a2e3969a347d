//! Operands whose channels are neighbours in memory (channels-last images, and rows of features):
//! tiles of up to [`TILE`] channels, gone through in blocks of rows, a lane a channel. As in
//! `channels.rs`, blocks follow from sizes and layouts alone.

use std::marker::PhantomData;
use std::ops::Range;

use plimsoll_core::{Layout, Result};
use smallvec::SmallVec;

use super::{Affine, Moments};
use plimsoll_engine::Element;
use plimsoll_engine::map::check;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::{Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Operand};

/// Channels that are worked on side by side: several vectors of every level.
pub(super) const TILE: usize = 64;

/// Rows that are added up in what is computed in, before they go to f64. A tile of them stays in
/// the first-level cache.
const BLOCK: usize = 64;

/// Something for each channel of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile<A>(pub(super) [A; TILE]);

impl<A: Copy + Default> Default for Tile<A> {
    fn default() -> Tile<A> {
        Tile([A::default(); TILE])
    }
}

impl<A: Copy> Tile<A> {
    /// Both, channel by channel.
    #[inline(always)]
    pub(super) fn join(&self, other: &Tile<A>, join: impl Fn(A, A) -> A) -> Tile<A> {
        Tile(std::array::from_fn(|lane| join(self.0[lane], other.0[lane])))
    }
}

/// Whether operands of these layouts have their channels side by side, and more than one.
pub(super) fn fit<'a>(mut layouts: impl Iterator<Item = &'a Layout>) -> bool {
    layouts.all(|layout| layout.rank() >= 2 && layout.strides()[1] == 1 && layout.shape()[1] > 1)
}

/// `N` operands of one shape. Strides in bytes.
#[derive(Clone, Debug)]
pub(super) struct Columns<const N: usize> {
    starts: [*mut u8; N],
    /// The dimensions other than the channels', outermost first, merged.
    outer: SmallVec<[(usize, [usize; N]); 4]>,
    rows: usize,
    channels: usize,
}

// SAFETY: addresses and sizes; what is done with them happens under the launch's claim.
unsafe impl<const N: usize> Send for Columns<N> {}
// SAFETY: as for Send.
unsafe impl<const N: usize> Sync for Columns<N> {}

impl<const N: usize> Columns<N> {
    /// The columns of operands of `T` that [`fit`].
    pub(super) fn new<T: Element>(
        launch: &CpuLaunch<'_>,
        operands: &[Operand<'_>; N],
    ) -> Result<Columns<N>> {
        operands.iter().try_for_each(|operand| check::<T>(launch, operand))?;
        let shape = operands[0].shape();
        if operands.iter().any(|operand| operand.shape() != shape) {
            return Err(super::wrong_operands(launch));
        }
        let mut outer: SmallVec<[(usize, [usize; N]); 4]> = SmallVec::new();
        for dim in (0..shape.len()).filter(|&dim| dim != 1 && shape[dim] != 1) {
            let strides: [usize; N] =
                std::array::from_fn(|i| operands[i].layout().strides()[dim] * size_of::<T>());
            match outer.last_mut() {
                Some((last, above)) if (0..N).all(|i| above[i] == strides[i] * shape[dim]) => {
                    *last *= shape[dim];
                    *above = strides;
                }
                _ => outer.push((shape[dim], strides)),
            }
        }
        let starts = std::array::from_fn(|i| operands[i].first_byte());
        let rows = outer.iter().map(|dim| dim.0).product();
        Ok(Columns { starts, outer, rows, channels: shape[1] })
    }

    pub(super) fn tiles(&self) -> usize {
        self.channels.div_ceil(TILE)
    }

    /// Blocks of rows.
    pub(super) fn blocks(&self) -> usize {
        self.rows.div_ceil(BLOCK)
    }

    /// The channels of a tile.
    pub(super) fn channels(&self, tile: usize) -> Range<usize> {
        tile * TILE..self.channels.min((tile + 1) * TILE)
    }

    /// The rows of a block.
    #[inline(always)]
    pub(super) fn rows(&self, block: usize) -> Range<usize> {
        block * BLOCK..self.rows.min((block + 1) * BLOCK)
    }

    /// The first element of a tile's row.
    #[inline(always)]
    pub(super) fn row<T>(&self, which: usize, tile: usize, mut row: usize) -> *mut T {
        let mut offset = tile * TILE * size_of::<T>();
        if let [(_, strides)] = self.outer[..] {
            offset += row * strides[which];
        } else {
            for (size, strides) in self.outer.iter().rev() {
                offset += row % size * strides[which];
                row /= size;
            }
        }
        self.starts[which].wrapping_add(offset).cast()
    }
}

/// The moments of some blocks of a tile of operand 0.
pub(super) struct Measure<'a, T> {
    columns: &'a Columns<2>,
    tile: usize,
    blocks: Range<usize>,
    element: PhantomData<T>,
}

impl<'a, T: Float> Measure<'a, T> {
    pub(super) fn new(columns: &'a Columns<2>, tile: usize, blocks: Range<usize>) -> Self {
        Measure { columns, tile, blocks, element: PhantomData }
    }

    #[inline(always)]
    fn of_width<L: Level>(&self, width: usize) -> Tile<Moments> {
        let mut moments = Tile::<Moments>::default();
        for block in self.blocks.clone() {
            let rows = self.columns.rows(block);
            let count = rows.len() as f64;
            let mut sums = [T::Wide::ZERO; TILE];
            for row in rows.clone() {
                let x = self.columns.row::<T>(0, self.tile, row);
                for (lane, sum) in sums.iter_mut().enumerate().take(width) {
                    // SAFETY: an element of this launch's input, which holds `T`.
                    *sum = *sum + unsafe { *x.add(lane) }.widen();
                }
            }
            let center = sums.map(|sum| T::Wide::of(sum.to_f64() / count));
            let mut squares = [T::Wide::ZERO; TILE];
            for row in rows {
                let x = self.columns.row::<T>(0, self.tile, row);
                for (lane, total) in squares.iter_mut().enumerate().take(width) {
                    // SAFETY: as above.
                    let off = unsafe { *x.add(lane) }.widen() - center[lane];
                    *total = off.mul_add::<L>(off, *total);
                }
            }
            for (lane, total) in moments.0.iter_mut().enumerate().take(width) {
                let (mean, squares) = (sums[lane].to_f64() / count, squares[lane].to_f64());
                let block = Moments::around(center[lane].to_f64(), count, mean, squares);
                *total = total.join(block);
            }
        }
        moments
    }
}

impl<T: Float> LevelKernel for Measure<'_, T> {
    type Output = Tile<Moments>;
    #[inline(always)]
    fn run<L: Level>(self) -> Tile<Moments> {
        // A width that the compiler knows keeps the sums in registers.
        match self.columns.channels(self.tile).len() {
            TILE => self.of_width::<L>(TILE),
            width => self.of_width::<L>(width),
        }
    }
}

/// Normalizes some blocks of a tile, operand 0 into operand 1.
pub(super) struct Normalize<'a, T: Float> {
    columns: &'a Columns<2>,
    tile: usize,
    blocks: Range<usize>,
    center: [T::Wide; TILE],
    scale: [T::Wide; TILE],
    shift: [T::Wide; TILE],
}

impl<'a, T: Float> Normalize<'a, T> {
    pub(super) fn new(
        columns: &'a Columns<2>,
        tile: usize,
        blocks: Range<usize>,
        affine: &Tile<Affine<T::Wide>>,
    ) -> Self {
        Normalize {
            columns,
            tile,
            blocks,
            center: affine.0.map(|affine| affine.center),
            scale: affine.0.map(|affine| affine.scale),
            shift: affine.0.map(|affine| affine.shift),
        }
    }

    #[inline(always)]
    fn of_width<L: Level>(&self, width: usize) {
        for block in self.blocks.clone() {
            for row in self.columns.rows(block) {
                let x = self.columns.row::<T>(0, self.tile, row);
                let y = self.columns.row::<T>(1, self.tile, row);
                let mut results = [T::Wide::ZERO; TILE];
                for (lane, result) in results.iter_mut().enumerate().take(width) {
                    // SAFETY: an element of this launch's input, which holds `T`.
                    let off = unsafe { *x.add(lane) }.widen() - self.center[lane];
                    *result = off.mul_add::<L>(self.scale[lane], self.shift[lane]);
                }
                for (lane, &result) in results.iter().enumerate().take(width) {
                    // SAFETY: an element of this launch's output, this thread's own.
                    unsafe { *y.add(lane) = T::narrow(result) };
                }
            }
        }
    }
}

impl<T: Float> LevelKernel for Normalize<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        match self.columns.channels(self.tile).len() {
            TILE => self.of_width::<L>(TILE),
            width => self.of_width::<L>(width),
        }
    }
}
