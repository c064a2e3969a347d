//! Correlations whose groups have a few channels, depthwise ones above all: row after row, each tap
//! a multiple of a row of the operand added to a row of sums. There is nothing to pack, and the
//! sums of a row stay in the first-level cache.

use plimsoll_engine::pack::{Accumulator, Factor};
use plimsoll_engine::parallel;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Level, LevelKernel};

use super::correlate::{Correlation, Operands};
use super::line::Line;
use super::rows::Row;

/// Sums of a thread's row, a whole number of cache lines.
fn row_len(of: &Correlation) -> usize {
    of.dimensions[2].longest().next_multiple_of(16)
}

/// Elements that pay for waking one more thread.
const GRAIN: usize = 16_384;

fn parts(of: &Correlation) -> usize {
    let channels = of.result.batch * of.result.channels;
    let work = channels * of.result.space();
    parallel::threads().min(work.div_ceil(GRAIN)).min(channels).max(1)
}

pub(super) fn workspace_bytes<E: Factor>(of: &Correlation) -> usize {
    parts(of) * row_len(of) * size_of::<E::Sum>()
}

/// Computes.
///
/// # Safety
/// As for `Correlation::run`; the workspace holds [`workspace_bytes`].
pub(super) unsafe fn run<E: Factor>(
    of: &Correlation,
    operands: &Operands<E>,
    workspace: Shared<E::Sum>,
) {
    let channels = of.result.channels;
    parallel::split_there_and_back(parts(of), of.result.batch * channels, 1, |part, range| {
        for unit in range {
            // SAFETY: each part has its own row of sums.
            let sums = unsafe {
                std::slice::from_raw_parts_mut(workspace.add(part * row_len(of)), row_len(of))
            };
            let (image, channel) = (unit / channels, unit % channels);
            simd::dispatch_level(Plane { of, operands, image, channel, sums });
        }
    });
}

/// One channel of one image of the result.
struct Plane<'a, E: Factor> {
    of: &'a Correlation,
    operands: &'a Operands<E>,
    image: usize,
    channel: usize,
    sums: &'a mut [E::Sum],
}

impl<E: Factor> LevelKernel for Plane<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(mut self) {
        let [depth, height, width] = self.of.dimensions;
        for depth in (0..depth.phases()).map(|phase| depth.line(phase)) {
            for height in (0..height.phases()).map(|phase| height.line(phase)) {
                for width in (0..width.phases()).map(|phase| width.line(phase)) {
                    let lines = [depth, height, width];
                    for plane in 0..depth.len {
                        for row in 0..height.len {
                            self.row::<L>(&lines, plane, row);
                        }
                    }
                }
            }
        }
    }
}

impl<E: Factor> Plane<'_, E> {
    #[inline(always)]
    fn row<L: Level>(&mut self, lines: &[Line; 3], plane: usize, row: usize) {
        let Plane { of, operands, image, channel, .. } = *self;
        let width = &lines[2];
        let sums = &mut self.sums[..width.len];
        // SAFETY: `channel` is the result's.
        sums.fill(operands.bias.map_or(E::Sum::ZERO, |bias| unsafe { bias.of(channel) }));
        let (group, own) = (channel / of.results_each, channel % of.results_each);
        for other in 0..of.operands_each {
            let from = of.operand.at(image, group * of.operands_each + other);
            let weight =
                group * of.weights.group + own * of.weights.result + other * of.weights.operand;
            for j in 0..lines[0].taps {
                let Some(at_plane) = lines[0].place(plane, j, of.operand.sizes[0]) else {
                    continue;
                };
                for k in 0..lines[1].taps {
                    let Some(at_row) = lines[1].place(row, k, of.operand.sizes[1]) else {
                        continue;
                    };
                    let weight = weight
                        + lines[0].kernel(j) * of.weights.strides[0]
                        + lines[1].kernel(k) * of.weights.strides[1];
                    // SAFETY: a row of the operand and of the weight.
                    unsafe {
                        let first = operands.operand.add(from + of.operand.row(at_plane, at_row));
                        let from = Row { first, stride: of.operand.strides[2] };
                        let stride = of.weights.strides[2];
                        let weight = Row { first: operands.weight.add(weight), stride };
                        add_row::<E, L>(width, from, of.operand.sizes[2], weight, sums);
                    }
                }
            }
        }
        let at = of.result.at(image, channel)
            + of.result
                .row(lines[0].first + plane * lines[0].step, lines[1].first + row * lines[1].step)
            + width.first * of.result.strides[2];
        let step = width.step * of.result.strides[2];
        for (i, sum) in sums.iter().enumerate() {
            // SAFETY: the row's results are inside the output, and this thread's alone.
            unsafe { *operands.result.add(at + i * step) = E::narrow(*sum) };
        }
    }
}

/// Adds what the results of a row get from one row of the operand.
///
/// # Safety
/// `from` is a row of `size` elements, `weight` one of the kernel.
#[inline(always)]
unsafe fn add_row<E: Factor, L: Level>(
    line: &Line,
    from: Row<E>,
    size: usize,
    weight: Row<E>,
    sums: &mut [E::Sum],
) {
    let tap = |j: usize| {
        // SAFETY: an element of the kernel.
        unsafe { *weight.from(line.kernel(j)).first }.widen()
    };
    let one = |j: usize, range: std::ops::Range<usize>, sums: &mut [E::Sum]| {
        if range.is_empty() {
            return;
        }
        let at = (range.start * line.pace + j * line.apart) as isize + line.offset;
        let stride = from.stride * line.pace;
        // SAFETY: `inside` keeps to elements of the row.
        unsafe {
            let row = Row { first: from.from(at as usize).first, stride };
            row.add_times::<L>(tap(j), &mut sums[range]);
        }
    };
    let len = sums.len();
    let fused = line.taps == 3 && line.apart == 1 && line.pace == 1 && from.stride == 1;
    if !fused {
        for j in 0..line.taps {
            one(j, line.inside(j, size, 0, len), sums);
        }
        return;
    }
    // The middle of the row looks at the operand through all three taps.
    let middle = line.inside(0, size, 0, len).start..line.inside(2, size, 0, len).end;
    let middle = middle.start..middle.end.max(middle.start);
    for j in 0..3 {
        let inside = line.inside(j, size, 0, len);
        one(j, inside.start..inside.end.min(middle.start).max(inside.start), sums);
        one(j, inside.start.max(middle.end).min(inside.end)..inside.end, sums);
    }
    let at = (middle.start as isize + line.offset) as usize;
    if !middle.is_empty() {
        // SAFETY: every result of the middle looks at three elements of the row.
        unsafe {
            from.from(at).add_three::<L>([tap(0), tap(1), tap(2)], &mut sums[middle]);
        }
    }
}
