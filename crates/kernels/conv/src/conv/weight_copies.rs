//! A chunk's windows and its gradient, copied channels last into the workspace: what `weight.rs`
//! multiplies.

use std::ops::Range;

use plimsoll_engine::pack::{Accumulator, Factor, Pack};
use plimsoll_kernels_matmul::gemm::Kernels;

use super::weight::{Chunk, Copies, Run};

impl<E: Factor> Run<'_, E>
where
    E::Sum: Kernels,
{
    /// Copies rows of what the chunk's windows see, zeros for what lies outside.
    pub(super) unsafe fn copy_x(
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
                let (Some(plane), Some(row)) = (depth.place(chunk.plane, tap, x.sizes[0]), at_row)
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
    pub(super) unsafe fn copy_grad(
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
}
