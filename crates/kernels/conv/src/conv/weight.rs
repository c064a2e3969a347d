//! The derivative by the weight: `weight[tap x channel, channel] = sum over pixels of
//! windows[pixel, tap x channel] * gradient[pixel, channel]`.
//!
//! ```text
//! for each group, for each chunk of results (rows of an image):
//!     copy what its windows see of x, and its gradient, channels last, into the workspace
//!     for each tile of (tap, channel), for each slice of pixels: pack the tile's elements, then
//!     for each strip of the gradient's channels: the inner kernel adds to the tile's sums
//! ```
//! Channels last, the taps of a row of the kernel lie one after another, so that tiles run across
//! them. Where there are tiles enough, threads share out the tiles of a chunk and all add to one
//! set of sums; otherwise they take shares of the chunks, each with sums of its own, added up at
//! the end. Neither depends on the number of threads, so the sums do not.

use std::ops::Range;

use plimsoll_engine::pack::{Accumulator, Factor};
use plimsoll_engine::parallel;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Meta};
use plimsoll_kernels_matmul::gemm::{Kernels, Micro, Tile};

use super::line::{Dimension, Line};
use super::weight_plan::{Plan, SLICE_STEPS};
use super::{ConvArgs, narrow_weight};
use crate::volume::Volume;

/// A weight's derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WeightGradient {
    pub(super) x: Volume,
    pub(super) grad: Volume,
    pub(super) weight: Volume,
    groups: usize,
    /// Channels of a group.
    pub(super) channels_each: usize,
    pub(super) grads_each: usize,
    pub(super) lines: [Line; 3],
}

/// The operands' first elements.
#[derive(Clone, Copy)]
pub(super) struct Operands<E> {
    pub(super) x: *const E,
    pub(super) grad: *const E,
    pub(super) weight: *mut E,
}

// SAFETY: addresses; what is done with them happens under the launch's claim, and threads write
// disjoint parts of the weight.
unsafe impl<E> Send for Operands<E> {}
// SAFETY: as above.
unsafe impl<E> Sync for Operands<E> {}

impl WeightGradient {
    pub(super) fn new(x: &Meta, grad: &Meta, weight: &Meta, args: ConvArgs) -> WeightGradient {
        let (x, grad, weight) = (Volume::of(x), Volume::of(grad), Volume::of(weight));
        let lines = std::array::from_fn(|d| {
            Dimension {
                kernel: weight.sizes[d],
                stride: args.stride[d],
                padding: args.padding[d],
                dilation: args.dilation[d],
                results: grad.sizes[d],
                backward: false,
            }
            .line(0)
        });
        WeightGradient {
            x,
            grad,
            weight,
            groups: args.groups,
            channels_each: x.channels / args.groups,
            grads_each: grad.channels / args.groups,
            lines,
        }
    }

    fn is_empty(&self) -> bool {
        self.weight.batch * self.weight.channels * self.weight.space() == 0
    }

    fn is_narrow(&self) -> bool {
        self.groups > 1 && self.channels_each <= 4 && self.grads_each <= 4
    }

    pub(super) fn workspace_bytes<E: Factor>(&self) -> usize
    where
        E::Sum: Kernels,
    {
        if self.is_empty() || self.is_narrow() {
            return 0;
        }
        Plan::new::<E>(self).workspace_len(self) * size_of::<E::Sum>()
    }

    /// Computes. Inputs [x, grad], output the weight's derivative.
    ///
    /// # Safety
    /// The launch's operands are of `E` and have the layouts that this was made from; its workspace
    /// holds [`WeightGradient::workspace_bytes`].
    pub(super) unsafe fn run<E: Factor>(&self, launch: &CpuLaunch<'_>)
    where
        E::Sum: Kernels,
    {
        let operands = Operands {
            x: launch.inputs[0].first_byte().cast::<E>().cast_const(),
            grad: launch.inputs[1].first_byte().cast::<E>().cast_const(),
            weight: launch.outputs[0].first_byte().cast::<E>(),
        };
        if self.is_empty() {
            return;
        }
        // SAFETY: by the contract above.
        unsafe {
            if self.is_narrow() {
                return narrow_weight::run(self, &operands);
            }
            let plan = Plan::new::<E>(self);
            let micro = E::Sum::micro(plan.isa);
            let workspace = Shared(launch.workspace.pointer().cast::<E::Sum>());
            let run = Run { of: self, plan, operands, micro, workspace };
            (0..self.groups).for_each(|group| run.group(group));
        }
    }
}

/// One call's state.
pub(super) struct Run<'a, E: Factor> {
    pub(super) of: &'a WeightGradient,
    pub(super) plan: Plan,
    pub(super) operands: Operands<E>,
    micro: Micro<E::Sum>,
    workspace: Shared<E::Sum>,
}

/// A chunk of results: of an image, a plane, rows, elements of a row.
pub(super) struct Chunk {
    pub(super) image: usize,
    pub(super) plane: usize,
    pub(super) rows: Range<usize>,
    pub(super) elements: Range<usize>,
}

/// Where a thread's copies lie, or those that all share.
pub(super) struct Copies<S> {
    sums: *mut S,
    pub(super) x: *mut S,
    pub(super) grad: *mut S,
}

impl<E: Factor> Run<'_, E>
where
    E::Sum: Kernels,
{
    /// The sums of a share, beside a thread's copies or those that all share.
    unsafe fn copies(&self, share: usize, part: usize) -> Copies<E::Sum> {
        let Plan { shares, share_tiles, .. } = self.plan;
        let (sums, x) = (self.plan.sums_len(), self.plan.x_len(self.of));
        let own = if share_tiles { 0 } else { part };
        let first = shares * sums + own * (x + self.plan.grad_len());
        // SAFETY: the sums of all shares, then the copies, as `workspace_len` counts them.
        unsafe {
            Copies {
                sums: self.workspace.add(share * sums),
                x: self.workspace.add(first),
                grad: self.workspace.add(first + x),
            }
        }
    }

    unsafe fn packed(&self, part: usize) -> *mut E::Sum {
        let copies = self.plan.copies() * (self.plan.x_len(self.of) + self.plan.grad_len());
        let first = self.plan.shares * self.plan.sums_len() + copies;
        // SAFETY: the tiles lie behind the copies, one a part.
        unsafe { self.workspace.add(first + part * self.plan.tile_len()) }
    }

    fn chunk(&self, index: usize) -> Chunk {
        let Plan { high, wide, high_blocks, wide_blocks, .. } = self.plan;
        let [planes, rows, elements] = self.of.grad.sizes;
        let (index, across) = (index / wide_blocks, index % wide_blocks);
        let (index, down) = (index / high_blocks, index % high_blocks);
        Chunk {
            image: index / planes.max(1),
            plane: index % planes.max(1),
            rows: down * high..rows.min((down + 1) * high),
            elements: across * wide..elements.min((across + 1) * wide),
        }
    }

    unsafe fn group(&self, group: usize) {
        let Plan { parts, share_tiles, shares, chunks, .. } = self.plan;
        let tiles = self.plan.runs * self.plan.tiles_of_run();
        // SAFETY: sums are each one share's, copies and tiles each one thread's, or shared between
        // a fork and the next: the joins order them.
        unsafe {
            let sums = self.copies(0, 0).sums;
            std::slice::from_raw_parts_mut(sums, shares * self.plan.sums_len()).fill(E::Sum::ZERO);
            if share_tiles {
                for chunk in (0..chunks).map(|index| self.chunk(index)) {
                    self.copy_together(group, &chunk);
                    parallel::split_there_and_back(parts, tiles, 1, |part, tiles| {
                        self.multiply(&chunk, tiles, &self.copies(0, 0), self.packed(part));
                    });
                }
            } else {
                parallel::split_there_and_back(parts, shares, 1, |part, range| {
                    for share in range {
                        let copies = self.copies(share, part);
                        for index in parallel::part_range(chunks, shares, share) {
                            let chunk = self.chunk(index);
                            self.copy_x(group, &chunk, &copies, 0..self.x_rows(&chunk));
                            self.copy_grad(group, &chunk, &copies, chunk.rows.clone());
                            self.multiply(&chunk, 0..tiles, &copies, self.packed(part));
                        }
                    }
                });
            }
            self.write(group);
        }
    }

    /// Rows of x that a chunk sees, in all its planes.
    pub(super) fn x_rows(&self, chunk: &Chunk) -> usize {
        let [depth, height, _] = &self.of.lines;
        depth.taps * ((chunk.rows.len() - 1) * height.pace + (height.taps - 1) * height.apart + 1)
    }

    unsafe fn copy_together(&self, group: usize, chunk: &Chunk) {
        // SAFETY: rows of the copies are distinct.
        unsafe {
            let each = (self.plan.x_wide * self.of.channels_each).max(1);
            parallel::split(self.x_rows(chunk), 8192 / each + 1, |rows| {
                self.copy_x(group, chunk, &self.copies(0, 0), rows);
            });
            let each = (self.plan.wide * self.of.grads_each).max(1);
            parallel::split(chunk.rows.len(), 8192 / each + 1, |rows| {
                let rows = chunk.rows.start + rows.start..chunk.rows.start + rows.end;
                self.copy_grad(group, chunk, &self.copies(0, 0), rows);
            });
        }
    }

    /// Adds what a chunk gives to some tiles of (tap, channel).
    unsafe fn multiply(
        &self,
        chunk: &Chunk,
        tiles: Range<usize>,
        copies: &Copies<E::Sum>,
        packed: *mut E::Sum,
    ) {
        let Plan { columns, strips, x_high, x_wide, run, .. } = self.plan;
        let [_, height, width] = &self.of.lines;
        let pitch = strips * columns;
        let channels = self.of.channels_each;
        let rows_at_once = (SLICE_STEPS / chunk.elements.len()).max(1);
        for index in tiles {
            let (at, tile) = (index / self.plan.tiles_of_run(), index % self.plan.tiles_of_run());
            let own = parallel::part_range(run, self.plan.tiles_of_run(), tile);
            let wide_runs = if width.apart == 1 { 1 } else { width.taps };
            let (at_row, l) = (at / wide_runs, at % wide_runs);
            let (j, k) = (at_row / height.taps, at_row % height.taps);
            let first = (j * x_high + k * height.apart) * x_wide + l * width.apart;
            // SAFETY: packed elements lie in the copy of x; sums and gradients in theirs.
            unsafe {
                let kernel = self.micro.tile(own.len(), true);
                let from = copies.x.add(first * channels + own.start);
                for start in (0..chunk.rows.len()).step_by(rows_at_once) {
                    let rows = rows_at_once.min(chunk.rows.len() - start);
                    let mut to = packed;
                    for row in start..start + rows {
                        let from = from.add(row * height.pace * x_wide * channels);
                        copy_tile(from, width.pace * channels, chunk.elements.len(), own.len(), to);
                        to = to.add(chunk.elements.len() * own.len());
                    }
                    for strip in 0..strips {
                        kernel(&Tile {
                            k: rows * chunk.elements.len(),
                            a: packed,
                            a_row: 1,
                            a_step: own.len() as isize,
                            b: copies
                                .grad
                                .add(start * chunk.elements.len() * pitch + strip * columns),
                            b_step: pitch as isize,
                            c: copies.sums.add((at * run + own.start) * pitch + strip * columns),
                            c_row: pitch as isize,
                            alpha: E::Sum::ONE,
                            beta: E::Sum::ONE,
                        });
                    }
                }
            }
        }
    }

    /// Adds up the shares' sums and writes the group's weights.
    unsafe fn write(&self, group: usize) {
        let weight = &self.of.weight;
        let pitch = self.plan.strips * self.plan.columns;
        let taps: usize = weight.sizes.iter().product();
        let [_, high, wide] = weight.sizes;
        let channels = self.of.channels_each;
        parallel::split(self.of.grads_each, 8192 / (taps * channels).max(1) + 1, |range| {
            for own in range {
                for step in 0..taps * channels {
                    let (tap, channel) = (step / channels, step % channels);
                    let place = weight.at(group * self.of.grads_each + own, channel)
                        + weight.row(tap / wide / high, tap / wide % high)
                        + tap % wide * weight.strides[2];
                    // SAFETY: sums of this group's weight, each written by one thread.
                    unsafe {
                        let sum = (0..self.plan.shares).fold(E::Sum::ZERO, |sum, share| {
                            sum.add(*self.copies(share, 0).sums.add(step * pitch + own))
                        });
                        *self.operands.weight.add(place) = E::narrow(sum);
                    }
                }
            }
        });
    }
}

/// `to[pixel * width + lane] = from[pixel * stride + lane]`. Where a vector may be stored it runs
/// over into the next pixel's place, which is written after it.
///
/// # Safety
/// `from` is readable for its pixels and 15 sums more, `to` writable likewise.
#[inline(always)]
unsafe fn copy_tile<S: Copy>(
    from: *const S,
    stride: usize,
    pixels: usize,
    width: usize,
    to: *mut S,
) {
    const WHOLE: usize = 16;
    // SAFETY: by the contract above.
    unsafe {
        for pixel in 0..pixels {
            let (from, to) = (from.add(pixel * stride), to.add(pixel * width));
            to.cast::<[S; WHOLE]>().write_unaligned(from.cast::<[S; WHOLE]>().read_unaligned());
        }
    }
}
