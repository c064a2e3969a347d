//! The derivative by the weight: `weight[tap x channel, channel] = sum over pixels of
//! windows[pixel, tap x channel] * gradient[pixel, channel]`.
//!
//! ```text
//! for each group, for each chunk of results (rows of an image):
//!     copy what its windows see of x, and its gradient, channels last, into the workspace
//!     for each tile of (tap, channel), for each slice of pixels: pack the tile's elements, then for
//!     each strip of the gradient's channels: the inner kernel adds to the tile's sums
//! ```
//! Channels last, the taps of a row of the kernel lie one after another, so that tiles run across
//! them. Where there are tiles enough, threads share out the tiles of a chunk and all add to one
//! set of sums; otherwise each has sums of its own for its share of the chunks, added up at the end.

use std::ops::Range;

use plimsoll_engine::pack::{Accumulator, Factor, Pack};
use plimsoll_engine::parallel;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Isa};
use plimsoll_engine::{CpuLaunch, Meta};
use plimsoll_kernels_matmul::gemm::{Kernels, Micro, Tile};

use super::line::{Dimension, Line};
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

/// How it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    isa: Isa,
    parts: usize,
    /// Whether threads share out tiles, or chunks.
    share_tiles: bool,
    rows: usize,
    columns: usize,
    strips: usize,
    /// Rows and elements of a chunk, and chunks of an image's plane.
    high: usize,
    wide: usize,
    high_blocks: usize,
    wide_blocks: usize,
    /// Rows and elements of x that a chunk sees.
    x_high: usize,
    x_wide: usize,
    /// Elements that a run of taps and channels has, and runs.
    run: usize,
    runs: usize,
}

/// Bytes of a chunk's copy of x and of its gradient, at most where a row allows.
const CHUNK_BYTES: usize = 512 << 10;
/// Pixels of a chunk's row, at most.
const WIDEST: usize = 448;
/// Pixels whose elements are packed at once.
const SLICE_STEPS: usize = 512;
/// Sums behind the packed elements that packing may write over.
const SLACK: usize = 16;

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

    fn plan<E: Factor>(&self) -> Plan
    where
        E::Sum: Kernels,
    {
        let isa = simd::isa();
        let Micro { rows, columns, .. } = E::Sum::micro(isa);
        let strips = self.grads_each.div_ceil(columns).max(1);
        let [depth, height, width] = self.lines;
        let [high, wide] = [self.grad.sizes[1].max(1), self.grad.sizes[2].max(1)];
        let wide_blocks = wide.div_ceil(WIDEST);
        let wide_each = wide.div_ceil(wide_blocks);
        let reach = |line: &Line, results: usize| {
            (results - 1) * line.pace + (line.taps.max(1) - 1) * line.apart + 1
        };
        let x_wide = reach(&width, wide_each);
        let row_bytes = (x_wide * self.channels_each * depth.taps * height.pace
            + wide_each * strips * columns)
            * size_of::<E::Sum>();
        let fits = (CHUNK_BYTES / row_bytes.max(1)).clamp(1, high);
        let high_blocks = high.div_ceil(fits);
        let high_each = high.div_ceil(high_blocks);
        let along = width.apart == 1;
        let run = self.channels_each * if along { width.taps } else { 1 };
        let runs = depth.taps * height.taps * if along { 1 } else { width.taps };
        let threads = parallel::threads();
        let share_tiles = runs * run.div_ceil(rows) >= 4 * threads;
        Plan {
            isa,
            parts: threads,
            share_tiles,
            rows,
            columns,
            strips,
            high: high_each,
            wide: wide_each,
            high_blocks: high.div_ceil(high_each),
            wide_blocks,
            x_high: reach(&height, high_each),
            x_wide,
            run,
            runs,
        }
    }

    pub(super) fn workspace_bytes<E: Factor>(&self) -> usize
    where
        E::Sum: Kernels,
    {
        if self.is_empty() || self.is_narrow() {
            return 0;
        }
        let plan = self.plan::<E>();
        let copies = if plan.share_tiles { 1 } else { plan.parts };
        let sums = copies * (plan.sums_len() + plan.x_len(self) + plan.grad_len());
        (sums + plan.parts * plan.tile_len()) * size_of::<E::Sum>()
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
            let plan = self.plan::<E>();
            let micro = E::Sum::micro(plan.isa);
            let workspace = Shared(launch.workspace.pointer().cast::<E::Sum>());
            let run = Run { of: self, plan, operands, micro, workspace };
            (0..self.groups).for_each(|group| run.group(group));
        }
    }
}

impl Plan {
    fn sums_len(&self) -> usize {
        (self.runs * self.run * self.strips * self.columns).next_multiple_of(16)
    }

    fn x_len(&self, of: &WeightGradient) -> usize {
        let each = of.channels_each * self.x_wide * self.x_high;
        (of.lines[0].taps * each + SLACK).next_multiple_of(16)
    }

    fn grad_len(&self) -> usize {
        (self.high * self.wide * self.strips * self.columns).next_multiple_of(16)
    }

    fn tile_len(&self) -> usize {
        (SLICE_STEPS.max(self.wide) * self.rows + SLACK).next_multiple_of(16)
    }

    fn tiles_of_run(&self) -> usize {
        self.run.div_ceil(self.rows)
    }
}

/// One call's state.
struct Run<'a, E: Factor> {
    of: &'a WeightGradient,
    plan: Plan,
    operands: Operands<E>,
    micro: Micro<E::Sum>,
    workspace: Shared<E::Sum>,
}

/// A chunk of results: of an image, a plane, rows, elements of a row.
struct Chunk {
    image: usize,
    plane: usize,
    rows: Range<usize>,
    elements: Range<usize>,
}

/// Where a thread's copies lie, or those that all share.
struct Copies<S> {
    sums: *mut S,
    x: *mut S,
    grad: *mut S,
}

impl<E: Factor> Run<'_, E>
where
    E::Sum: Kernels,
{
    unsafe fn copies(&self, index: usize) -> Copies<E::Sum> {
        let (sums, x) = (self.plan.sums_len(), self.plan.x_len(self.of));
        let each = sums + x + self.plan.grad_len();
        // SAFETY: there are as many as `workspace_bytes` counted.
        unsafe {
            let first = self.workspace.add(index * each);
            Copies { sums: first, x: first.add(sums), grad: first.add(sums + x) }
        }
    }

    unsafe fn packed(&self, part: usize) -> *mut E::Sum {
        let Plan { parts, share_tiles, .. } = self.plan;
        let each = self.plan.sums_len() + self.plan.x_len(self.of) + self.plan.grad_len();
        let copies = if share_tiles { 1 } else { parts };
        // SAFETY: the tiles lie behind the copies, one a part.
        unsafe { self.workspace.add(copies * each + part * self.plan.tile_len()) }
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
        let Plan { parts, share_tiles, high_blocks, wide_blocks, .. } = self.plan;
        let planes = self.of.grad.batch * self.of.grad.sizes[0];
        let empty = self.of.grad.space() == 0;
        let chunks = if empty { 0 } else { planes * high_blocks * wide_blocks };
        let tiles = self.plan.runs * self.plan.tiles_of_run();
        let copies = if share_tiles { 1 } else { parts };
        // SAFETY: copies and tiles are each one thread's, or shared between a fork and the next:
        // the joins order them.
        unsafe {
            for copy in 0..copies {
                let sums = self.copies(copy).sums;
                std::slice::from_raw_parts_mut(sums, self.plan.sums_len()).fill(E::Sum::ZERO);
            }
            if share_tiles {
                for chunk in (0..chunks).map(|index| self.chunk(index)) {
                    self.copy_together(group, &chunk);
                    parallel::split_there_and_back(parts, tiles, 1, |part, tiles| {
                        self.multiply(&chunk, tiles, &self.copies(0), self.packed(part));
                    });
                }
            } else {
                parallel::fork(parts, |part| {
                    let copies = self.copies(part);
                    for index in parallel::part_range(chunks, parts, part) {
                        let chunk = self.chunk(index);
                        self.copy_x(group, &chunk, &copies, 0..self.x_rows(&chunk));
                        self.copy_grad(group, &chunk, &copies, chunk.rows.clone());
                        self.multiply(&chunk, 0..tiles, &copies, self.packed(part));
                    }
                });
            }
            self.write(group, copies);
        }
    }

    /// Rows of x that a chunk sees, in all its planes.
    fn x_rows(&self, chunk: &Chunk) -> usize {
        let [depth, height, _] = &self.of.lines;
        depth.taps * ((chunk.rows.len() - 1) * height.pace + (height.taps - 1) * height.apart + 1)
    }

    unsafe fn copy_together(&self, group: usize, chunk: &Chunk) {
        // SAFETY: rows of the copies are distinct.
        unsafe {
            let each = (self.plan.x_wide * self.of.channels_each).max(1);
            parallel::split(self.x_rows(chunk), 8192 / each + 1, |rows| {
                self.copy_x(group, chunk, &self.copies(0), rows);
            });
            let each = (self.plan.wide * self.of.grads_each).max(1);
            parallel::split(chunk.rows.len(), 8192 / each + 1, |rows| {
                let rows = chunk.rows.start + rows.start..chunk.rows.start + rows.end;
                self.copy_grad(group, chunk, &self.copies(0), rows);
            });
        }
    }

    /// Copies rows of what the chunk's windows see, zeros for what lies outside.
    unsafe fn copy_x(
        &self,
        group: usize,
        chunk: &Chunk,
        copies: &Copies<E::Sum>,
        rows: Range<usize>,
    ) {
        let (x, channels) = (&self.of.x, self.of.channels_each);
        let [depth, height, width] = &self.of.lines;
        let each = self.x_rows(chunk) / depth.taps;
        let line = self.plan.x_wide * channels;
        for index in rows {
            let (tap, row) = (index / each, index % each);
            let at_row = (chunk.rows.start * height.pace + row) as isize + height.offset;
            let at_row = usize::try_from(at_row).ok().filter(|&row| row < x.sizes[1]);
            let first = (chunk.elements.start * width.pace) as isize + width.offset;
            let seen = (chunk.elements.len() - 1) * width.pace + (width.taps - 1) * width.apart + 1;
            // SAFETY: the row's place in the copy; what is read lies inside x.
            unsafe {
                let to = copies.x.add((tap * self.plan.x_high + row) * line);
                let zeros = |from: usize, until: usize| {
                    let count = (until - from) * channels;
                    std::slice::from_raw_parts_mut(to.add(from * channels), count)
                        .fill(E::Sum::ZERO);
                };
                let (Some(plane), Some(row)) =
                    (depth.place(chunk.plane, tap, x.sizes[0]), at_row)
                else {
                    zeros(0, seen);
                    continue;
                };
                let left = (-first).clamp(0, seen as isize) as usize;
                let right =
                    (x.sizes[2] as isize - first).clamp(left as isize, seen as isize) as usize;
                zeros(0, left);
                zeros(right, seen);
                if left == right {
                    continue;
                }
                let element = (first + left as isize) as usize * x.strides[2];
                let at = x.at(chunk.image, group * channels) + x.row(plane, row) + element;
                Pack {
                    source: self.operands.x.add(at),
                    lanes: channels,
                    lane_stride: x.channel_stride as isize,
                    steps: right - left,
                    step_stride: x.strides[2] as isize,
                    to: to.add(left * channels),
                    width: channels,
                }
                .run(self.plan.isa);
            }
        }
    }

    /// Copies rows of the gradient.
    unsafe fn copy_grad(
        &self,
        group: usize,
        chunk: &Chunk,
        copies: &Copies<E::Sum>,
        rows: Range<usize>,
    ) {
        let (grad, channels) = (&self.of.grad, self.of.grads_each);
        let pitch = self.plan.strips * self.plan.columns;
        for row in rows {
            let at = grad.at(chunk.image, group * channels)
                + grad.row(chunk.plane, row)
                + chunk.elements.start * grad.strides[2];
            // SAFETY: the row's place in the copy, and a row of the gradient.
            unsafe {
                let to = (row - chunk.rows.start) * chunk.elements.len() * pitch;
                Pack {
                    source: self.operands.grad.add(at),
                    lanes: channels,
                    lane_stride: grad.channel_stride as isize,
                    steps: chunk.elements.len(),
                    step_stride: grad.strides[2] as isize,
                    to: copies.grad.add(to),
                    width: pitch,
                }
                .run(self.plan.isa);
            }
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

    /// Adds up the copies of the sums and writes the group's weights.
    unsafe fn write(&self, group: usize, copies: usize) {
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
                        let sum = (0..copies).fold(E::Sum::ZERO, |sum, copy| {
                            sum.add(*self.copies(copy).sums.add(step * pitch + own))
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
