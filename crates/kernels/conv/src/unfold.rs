//! Windows of images as columns (`unfold`, PyTorch's `im2col`), and columns added back into images
//! (`fold`, `col2im`). Each is the other's derivative.

use plimsoll_core::Result;
use plimsoll_engine::number::Number;
use plimsoll_engine::parallel;
use plimsoll_engine::{CpuLaunch, input_dtype, match_dtype};

use crate::volume::Volume;

/// The windows of an image: height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfoldArgs {
    /// Elements of a window.
    pub kernel: [usize; 2],
    /// From one element of a window to the next.
    pub dilation: [usize; 2],
    /// Zeros around the image.
    pub padding: [usize; 2],
    /// From one window to the next.
    pub stride: [usize; 2],
}

impl UnfoldArgs {
    /// Windows along each dimension of an image; 0 where none fits.
    pub fn windows(&self, size: [usize; 2]) -> [usize; 2] {
        std::array::from_fn(|d| {
            let span = self.dilation[d] * (self.kernel[d] - 1) + 1;
            let room = (size[d] + 2 * self.padding[d]).checked_sub(span);
            room.map_or(0, |room| room / self.stride[d] + 1)
        })
    }
}

/// Input [batch, channels, height, width], output [batch, channels x kernel, windows].
pub fn unfold(launch: &CpuLaunch<'_>, args: UnfoldArgs) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        let (image, columns) = (&launch.inputs[0], &launch.outputs[0]);
        let job = Job::<T>::new(args, (image.first(), Volume::of(image.meta())),
            (columns.first(), Volume::of(columns.meta())));
        job.each(|image, channel| job.unfold(image, channel));
    });
    Ok(())
}

/// Input [batch, channels x kernel, windows], output [batch, channels, height, width].
pub fn fold(launch: &CpuLaunch<'_>, args: UnfoldArgs) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        let (columns, image) = (&launch.inputs[0], &launch.outputs[0]);
        let job = Job::<T>::new(args, (image.first(), Volume::of(image.meta())),
            (columns.first(), Volume::of(columns.meta())));
        job.each(|image, channel| job.fold(image, channel));
    });
    Ok(())
}

struct Job<T> {
    args: UnfoldArgs,
    windows: [usize; 2],
    image: (*mut T, Volume),
    /// [batch, channels x kernel, windows]: the windows are the width.
    columns: (*mut T, Volume),
}

// SAFETY: addresses; what is done with them happens under the launch's claim, and threads write
// disjoint channels.
unsafe impl<T> Send for Job<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Job<T> {}

impl<T: Number> Job<T> {
    fn new(args: UnfoldArgs, image: (*mut T, Volume), columns: (*mut T, Volume)) -> Job<T> {
        let [_, height, width] = image.1.sizes;
        Job { args, windows: args.windows([height, width]), image, columns }
    }

    fn each(&self, body: impl Fn(usize, usize) + Sync) {
        let (image, columns) = (&self.image.1, &self.columns.1);
        let taps = self.args.kernel[0] * self.args.kernel[1];
        let grain = (16_384 / (columns.sizes[2] * taps).max(1)).max(1);
        parallel::split(image.batch * image.channels, grain, |range| {
            range.for_each(|unit| body(unit / image.channels, unit % image.channels));
        });
    }

    /// Calls `body` on every element of the columns of a channel, with the image's if the window
    /// has it there.
    #[inline(always)]
    fn pairs(&self, index: usize, channel: usize, body: impl Fn(*mut T, Option<*mut T>)) {
        let (image, columns) = (&self.image.1, &self.columns.1);
        let UnfoldArgs { kernel, dilation, padding, stride } = self.args;
        let taps = kernel[0] * kernel[1];
        let [_, height, width] = image.sizes;
        for tap in 0..taps {
            let (k, l) = (tap / kernel[1] * dilation[0], tap % kernel[1] * dilation[1]);
            let column = columns.at(index, channel * taps + tap);
            for row in 0..self.windows[0] {
                let at_row = (row * stride[0] + k).checked_sub(padding[0]);
                let at_row = at_row.filter(|&at| at < height);
                for element in 0..self.windows[1] {
                    let at = (element * stride[1] + l).checked_sub(padding[1]);
                    let window = row * self.windows[1] + element;
                    // SAFETY: an element of the columns, and one of the image.
                    unsafe {
                        let place = match (at_row, at.filter(|&at| at < width)) {
                            (Some(row), Some(at)) => Some(self.image.0.add(
                                image.at(index, channel)
                                    + image.row(0, row)
                                    + at * image.strides[2],
                            )),
                            _ => None,
                        };
                        body(self.columns.0.add(column + window * columns.strides[2]), place);
                    }
                }
            }
        }
    }

    fn unfold(&self, image: usize, channel: usize) {
        // SAFETY: `pairs` hands out elements, the columns' of this thread's channel.
        self.pairs(image, channel, |to, from| unsafe {
            *to = from.map_or(T::ZERO, |from| *from);
        });
    }

    fn fold(&self, image: usize, channel: usize) {
        let volume = &self.image.1;
        let [_, height, width] = volume.sizes;
        for row in 0..height {
            for element in 0..width {
                let at = volume.at(image, channel) + volume.row(0, row);
                // SAFETY: an element of the channel, which is this thread's.
                unsafe { *self.image.0.add(at + element * volume.strides[2]) = T::ZERO };
            }
        }
        self.pairs(image, channel, |from, to| {
            if let Some(to) = to {
                // SAFETY: `pairs` hands out elements, the image's of this thread's channel.
                unsafe { *to = T::down((*to).up().plus((*from).up())) };
            }
        });
    }
}
