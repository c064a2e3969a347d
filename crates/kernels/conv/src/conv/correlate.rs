//! Windows times weights as blocked implicit products: `result[pixel, channel] = windows[pixel,
//! taps x channels] * weights[taps x channels, channel]`.
//!
//! ```text
//! pack the weights into strips of a tile's channels                              once, shared
//! threads take blocks of an image's results; for each slice of the operand's channels:
//!     for each tile of results: pack its windows, then for each strip: the inner kernel
//! write the block's sums into the result, with the bias
//! ```
//! A tile's windows stay in the first-level cache and never exist for more than a tile: there is no
//! unrolled image. The packed weights of a slice stay in the second-level cache. Sums are always
//! made in the same order, whatever the number of threads.
//!
//! Where there are too few channels to fill vectors (three of them: the derivative by an image) the
//! product is flipped: results lie along the vectors, channels down the rows.
//!
//! Backward the same loops run over phases (`line.rs`).

use plimsoll_engine::pack::{Accumulator, Factor, Pack};
use plimsoll_engine::parallel;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Meta};
use plimsoll_kernels_matmul::gemm::{Kernels, Micro, Tile};

use super::line::{Dimension, Line};
use super::plan::Plan;
use super::results::{Bias, Results};
use super::windows::Windows;
use super::{ConvArgs, Weights, narrow};
use crate::volume::Volume;

/// A correlation of an operand (x, or backward the gradient) with weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Correlation {
    pub(super) operand: Volume,
    pub(super) result: Volume,
    pub(super) weights: Weights,
    pub(super) groups: usize,
    /// Channels of a group.
    pub(super) operands_each: usize,
    pub(super) results_each: usize,
    pub(super) dimensions: [Dimension; 3],
}

impl Correlation {
    pub(super) fn forward(x: &Meta, weight: &Meta, y: &Meta, args: ConvArgs) -> Correlation {
        Correlation::new(x, weight, y, args, false)
    }

    pub(super) fn backward(grad: &Meta, weight: &Meta, x: &Meta, args: ConvArgs) -> Correlation {
        Correlation::new(grad, weight, x, args, true)
    }

    fn new(
        operand: &Meta,
        weight: &Meta,
        result: &Meta,
        args: ConvArgs,
        backward: bool,
    ) -> Correlation {
        let (operand, result) = (Volume::of(operand), Volume::of(result));
        let weight = Volume::of(weight);
        let dimensions = std::array::from_fn(|d| Dimension {
            kernel: weight.sizes[d],
            stride: args.stride[d],
            padding: args.padding[d],
            dilation: args.dilation[d],
            results: result.sizes[d],
            backward,
        });
        Correlation {
            operand,
            result,
            weights: Weights::of(&weight, args.groups, backward),
            groups: args.groups,
            operands_each: operand.channels / args.groups,
            results_each: result.channels / args.groups,
            dimensions,
        }
    }

    fn is_empty(&self) -> bool {
        self.result.batch * self.result.channels * self.result.space() == 0
    }

    /// Whether groups have so few channels that products of matrices would be mostly padding.
    fn is_narrow(&self) -> bool {
        self.groups > 1 && self.operands_each <= 4 && self.results_each <= 4
    }

    pub(super) fn workspace_bytes<E: Factor>(&self) -> usize
    where
        E::Sum: Kernels,
    {
        if self.is_empty() {
            return 0;
        }
        if self.is_narrow() {
            return narrow::workspace_bytes::<E>(self);
        }
        let plan = Plan::new::<E>(self);
        let panels = self.groups * plan.panel_len(&self.weights, self.operands_each);
        let each = plan.tile_len() + plan.block_len();
        (panels.next_multiple_of(16) + plan.parts * each.next_multiple_of(16)) * size_of::<E::Sum>()
    }

    /// Computes. Inputs [operand, weight, bias?], output the result.
    ///
    /// # Safety
    /// The launch's operands are of `E` and have the layouts that this was made from; its workspace
    /// holds [`Correlation::workspace_bytes`].
    pub(super) unsafe fn run<E: Factor>(&self, launch: &CpuLaunch<'_>)
    where
        E::Sum: Kernels,
    {
        if self.is_empty() {
            return;
        }
        let bias = launch.inputs.get(2).map(|bias| Bias {
            first: bias.first_byte().cast::<E>().cast_const(),
            stride: bias.layout().strides().first().copied().unwrap_or(0),
        });
        let operands = Operands {
            operand: launch.inputs[0].first_byte().cast::<E>().cast_const(),
            weight: launch.inputs[1].first_byte().cast::<E>().cast_const(),
            result: launch.outputs[0].first_byte().cast::<E>(),
            bias,
        };
        let workspace = launch.workspace.pointer().cast::<E::Sum>();
        // SAFETY: by the contract above.
        unsafe {
            if self.is_narrow() {
                return narrow::run(self, &operands, Shared(workspace));
            }
            let plan = Plan::new::<E>(self);
            let panels = self.groups * plan.panel_len(&self.weights, self.operands_each);
            let own = Shared(workspace.add(panels.next_multiple_of(16)));
            let micro = E::Sum::micro(plan.isa);
            let run = Run { of: self, plan, operands, micro, panels: Shared(workspace), own };
            run.pack_weights();
            run.multiply();
        }
    }
}

/// The operands' first elements.
#[derive(Clone, Copy)]
pub(super) struct Operands<E> {
    pub(super) operand: *const E,
    pub(super) weight: *const E,
    pub(super) result: *mut E,
    pub(super) bias: Option<Bias<E>>,
}

// SAFETY: addresses; what is done with them happens under the launch's claim, and threads write
// disjoint parts of the result.
unsafe impl<E> Send for Operands<E> {}
// SAFETY: as above.
unsafe impl<E> Sync for Operands<E> {}

/// One call's state.
struct Run<'a, E: Factor> {
    of: &'a Correlation,
    plan: Plan,
    operands: Operands<E>,
    micro: Micro<E::Sum>,
    /// The packed weights of all groups.
    panels: Shared<E::Sum>,
    /// Each thread's windows and sums.
    own: Shared<E::Sum>,
}

/// One phase: a line for each dimension, and where its packed weights start in a group's panel.
struct Pass {
    lines: [Line; 3],
    taps: usize,
    taps_before: usize,
}

/// A block of results: of an image, a group, some strips of its channels, a plane, rows, and
/// elements of a row, counted within a phase.
struct Block {
    image: usize,
    group: usize,
    strips: std::ops::Range<usize>,
    plane: usize,
    rows: std::ops::Range<usize>,
    elements: std::ops::Range<usize>,
}

impl<E: Factor> Run<'_, E>
where
    E::Sum: Kernels,
{
    fn passes(&self) -> usize {
        self.of.dimensions.iter().map(Dimension::phases).product()
    }

    fn pass(&self, index: usize) -> Pass {
        let [depth, height, width] = self.of.dimensions;
        let phases = [index / width.phases() / height.phases(), index / width.phases(), index];
        let phases = [phases[0], phases[1] % height.phases(), phases[2] % width.phases()];
        let lines: [Line; 3] = std::array::from_fn(|d| self.of.dimensions[d].line(phases[d]));
        let before = |d: usize| self.of.dimensions[d].taps_before(phases[d]);
        let (high, wide) = (height.all_taps(), width.all_taps());
        debug_assert!(depth.all_taps() * high * wide == self.plan.taps, "all phases' taps");
        let taps_before = before(0) * high * wide
            + lines[0].taps * (before(1) * wide + lines[1].taps * before(2));
        Pass { lines, taps: lines.iter().map(|line| line.taps).product(), taps_before }
    }

    /// The channels of a slice.
    fn slice(&self, slice: usize) -> std::ops::Range<usize> {
        let start = slice * self.plan.slice;
        start..self.of.operands_each.min(start + self.plan.slice)
    }

    /// Where the packed weights of a slice and strip start: `pass``slice``strip``tap``channel`.
    unsafe fn panel(&self, group: usize, pass: &Pass, slice: usize, strip: usize) -> *mut E::Sum {
        let Plan { strips, .. } = self.plan;
        let channels = self.slice(slice);
        let steps = pass.taps_before * self.of.operands_each * strips
            + pass.taps * (channels.start * strips + strip * channels.len());
        let panel = self.plan.panel_len(&self.of.weights, self.of.operands_each);
        // SAFETY: inside the group's panel, whose steps are the taps of all phases times channels
        // and strips.
        unsafe { self.panels.add(group * panel + steps * self.plan.channels) }
    }

    unsafe fn pack_weights(&self) {
        let strips = self.plan.strips;
        // A part of less than about 32 KiB is not worth a wake-up.
        let each = self.plan.taps * self.of.operands_each * self.plan.channels;
        parallel::split(self.of.groups * strips, (8192 / each.max(1)).max(1), |range| {
            for task in range {
                for pass in 0..self.passes() {
                    // SAFETY: strips of groups and passes are distinct.
                    unsafe { self.pack_strip(task / strips, task % strips, &self.pass(pass)) };
                }
            }
        });
    }

    unsafe fn pack_strip(&self, group: usize, strip: usize, pass: &Pass) {
        let Plan { channels: width, slices, isa, .. } = self.plan;
        let weights = &self.of.weights;
        let first = strip * width;
        let lanes = width.min(self.of.results_each - first);
        for slice in 0..slices {
            let channels = self.slice(slice);
            // SAFETY: the slice's region of the panel is this task's alone.
            let mut to = unsafe { self.panel(group, pass, slice, strip) };
            each_tap(&pass.lines, |taps| {
                let place: usize =
                    (0..3).map(|d| pass.lines[d].kernel(taps[d]) * weights.strides[d]).sum();
                let place = place
                    + group * weights.group
                    + first * weights.result
                    + channels.start * weights.operand;
                // SAFETY: an element of the weight, whose lanes and steps are channels that exist.
                unsafe {
                    Pack {
                        source: self.operands.weight.add(place),
                        lanes,
                        lane_stride: weights.result as isize,
                        steps: channels.len(),
                        step_stride: weights.operand as isize,
                        to,
                        width,
                    }
                    .run(isa);
                    to = to.add(channels.len() * width);
                }
            });
        }
    }

    unsafe fn multiply(&self) {
        let Plan { parts, high_blocks, wide_blocks, .. } = self.plan;
        let planes = self.of.dimensions[0].longest().max(1);
        let strip_blocks = self.plan.strip_blocks();
        let units = self.of.result.batch
            * self.of.groups
            * strip_blocks
            * planes
            * high_blocks
            * wide_blocks;
        parallel::split_there_and_back(parts, units, 1, |part, range| {
            for unit in range {
                let (unit, wide) = (unit / wide_blocks, unit % wide_blocks);
                let (unit, high) = (unit / high_blocks, unit % high_blocks);
                let (unit, plane) = (unit / planes, unit % planes);
                let (unit, strips) = (unit / strip_blocks, unit % strip_blocks);
                let strips = strips * self.plan.block_strips;
                let block = Block {
                    image: unit / self.of.groups,
                    group: unit % self.of.groups,
                    strips: strips..self.plan.strips.min(strips + self.plan.block_strips),
                    plane,
                    rows: high * self.plan.high..(high + 1) * self.plan.high,
                    elements: wide * self.plan.wide..(wide + 1) * self.plan.wide,
                };
                for pass in 0..self.passes() {
                    // SAFETY: blocks are distinct, and each thread has its own memory.
                    unsafe { self.block(&block, &self.pass(pass), part) };
                }
            }
        });
    }

    /// One block of one phase.
    unsafe fn block(&self, block: &Block, pass: &Pass, part: usize) {
        let [depth, height, width] = &pass.lines;
        let rows = block.rows.start..block.rows.end.min(height.len);
        let elements = block.elements.start..block.elements.end.min(width.len);
        if block.plane >= depth.len || rows.is_empty() || elements.is_empty() {
            return;
        }
        let each = (self.plan.tile_len() + self.plan.block_len()).next_multiple_of(16);
        // SAFETY: each part has its own tile and block behind the panels.
        let (tile, sums) = unsafe {
            let tile = self.own.add(part * each);
            (tile, tile.add(self.plan.tile_len()))
        };
        let pitch = block.strips.len() * self.plan.channels;
        let slots = self.plan.slots(elements.len());
        for slice in 0..self.plan.slices {
            for row in rows.clone() {
                // SAFETY: the row's sums lie in the block.
                unsafe {
                    let sums = sums.add((row - rows.start) * slots * pitch);
                    self.row(block, pass, slice, row, &elements, tile, sums);
                }
            }
        }
        let results = Results {
            isa: self.plan.isa,
            sums,
            pitch,
            slots: self.plan.flipped.then_some(slots),
            bias: self.operands.bias,
            channel: block.group * self.of.results_each + block.strips.start * self.plan.channels,
            channels: pitch.min(self.of.results_each - block.strips.start * self.plan.channels),
        };
        // SAFETY: the block's results are inside the output and this thread's alone.
        unsafe {
            results.write(
                &self.of.result,
                self.operands.result,
                block.image,
                depth.first + block.plane * depth.step,
                (height, rows),
                (width, elements),
            );
        }
    }

    /// One row of a block, for one slice of channels.
    #[allow(clippy::too_many_arguments)]
    unsafe fn row(
        &self,
        block: &Block,
        pass: &Pass,
        slice: usize,
        row: usize,
        elements: &std::ops::Range<usize>,
        packed: *mut E::Sum,
        sums: *mut E::Sum,
    ) {
        let Plan { flipped, results, isa, .. } = self.plan;
        let channels = self.slice(slice);
        let steps = pass.taps * channels.len();
        let pitch = block.strips.len() * self.plan.channels;
        let slots = self.plan.slots(elements.len());
        let tiles = elements.len().div_ceil(results);
        let beta = if slice == 0 { E::Sum::ZERO } else { E::Sum::ONE };
        let first = block.group * self.of.operands_each + channels.start;
        for tile in 0..tiles {
            let own = match flipped {
                true => tile * results..elements.len().min((tile + 1) * results),
                false => parallel::part_range(elements.len(), tiles, tile),
            };
            let width = own.len();
            // SAFETY: windows are packed into the thread's own tile; strips are inside the panel
            // and the block.
            unsafe {
                Windows {
                    operand: &self.of.operand,
                    from: self.operands.operand.add(self.of.operand.at(block.image, first)),
                    channels: channels.len(),
                    lines: &pass.lines,
                    plane: block.plane,
                    row,
                    elements: elements.start + own.start..elements.start + own.end,
                    to: packed,
                }
                .pack(isa);
                let height = if flipped { self.plan.channels } else { width };
                let kernel = self.micro.tile(height, true);
                for strip in block.strips.clone() {
                    let channel = (strip - block.strips.start) * self.plan.channels;
                    let weights = self.panel(block.group, pass, slice, strip);
                    let (a, b, b_step) = match flipped {
                        true => (weights, packed, width),
                        false => (packed, weights, self.plan.channels),
                    };
                    let (at, c_row) = match flipped {
                        true => (channel * slots + own.start, slots),
                        false => (own.start * pitch + channel, pitch),
                    };
                    kernel(&Tile {
                        k: steps,
                        a,
                        a_row: 1,
                        a_step: height as isize,
                        b,
                        b_step: b_step as isize,
                        c: sums.add(at),
                        c_row: c_row as isize,
                        alpha: E::Sum::ONE,
                        beta,
                    });
                }
            }
        }
    }
}

/// Calls `body` on the taps of all three dimensions, the last fastest.
fn each_tap(lines: &[Line; 3], mut body: impl FnMut([usize; 3])) {
    for depth in 0..lines[0].taps {
        for height in 0..lines[1].taps {
            for width in 0..lines[2].taps {
                body([depth, height, width]);
            }
        }
    }
}
