//! The mean of each window, and what comes back from it.

use plimsoll_core::Result;
use plimsoll_engine::number::Number;
use plimsoll_engine::parallel;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Element, input_dtype, match_dtype};

use super::window::{LANES, Lanes, Pooling, Sample, Window};
use crate::volume::Volume;

/// What a mean has besides tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanArgs {
    /// The windows of depth, height and width.
    pub windows: [Window; 3],
    /// Whether zeros around the input count as elements.
    pub count_padding: bool,
    /// What sums are divided by instead of the number of elements.
    pub divisor: Option<i64>,
}

impl MeanArgs {
    /// Elements of window `result` along dimension `d`, as they count.
    #[inline(always)]
    fn counted(&self, d: usize, result: usize, results: usize, size: usize) -> usize {
        let window = self.windows[d];
        match window {
            Window::Even { kernel, stride, padding, .. } if self.count_padding => {
                // A last window may run past the padding, which does not count.
                kernel.min((size + 2 * padding).saturating_sub(result * stride))
            }
            _ => window.inside(result, results, size, Sample::None).1,
        }
    }

    /// What the sum of a window is divided by; 0 where it has no elements.
    #[inline(always)]
    fn divisor(&self, y: &Volume, x: &Volume, at: [usize; 3]) -> i64 {
        let elements =
            |d: usize| self.windows[d].inside(at[d], y.sizes[d], x.sizes[d], Sample::None).1;
        if (0..3).any(|d| elements(d) == 0) {
            return 0;
        }
        self.divisor.unwrap_or_else(|| {
            (0..3).map(|d| self.counted(d, at[d], y.sizes[d], x.sizes[d]) as i64).product()
        })
    }
}

/// A number over a count.
#[inline(always)]
fn over<C: Number>(sum: C, count: i64) -> C {
    if count == 0 { C::ZERO } else { sum.over(<C as Element>::from_i64(count)) }
}

/// Input `x`, output `y`.
pub fn mean_pool(launch: &CpuLaunch<'_>, args: MeanArgs) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        let (x, y) = (&launch.inputs[0], &launch.outputs[0]);
        let pooling = Pooling::new(Volume::of(x.meta()), Volume::of(y.meta()), args.windows);
        let job = Job::<T> { pooling, args, x: x.first(), y: y.first() };
        job.pooling.each(|lanes| simd::dispatch_level(SideBySide(&job, lanes)));
    });
    Ok(())
}

/// One pooling.
struct Job<T> {
    pooling: Pooling,
    args: MeanArgs,
    x: *const T,
    y: *mut T,
}

// SAFETY: addresses; what is done with them happens under the launch's claim, and threads write
// disjoint results.
unsafe impl<T> Send for Job<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Job<T> {}

struct SideBySide<'a, T>(&'a Job<T>, Lanes);

impl<T: Number> LevelKernel for SideBySide<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let SideBySide(job, lanes) = self;
        let pooling = &job.pooling;
        let mut sums = [T::Compute::ZERO; LANES];
        pooling.taps(&lanes, [Sample::None; 3], |tap| {
            for (lane, sum) in sums[tap.lanes].iter_mut().enumerate() {
                // SAFETY: the lane's window has this element.
                let value = unsafe { *job.x.add(tap.from + lane * tap.stride) }.up();
                *sum = sum.plus(value);
            }
        });
        let (at, step) = pooling.result(&pooling.y, &lanes);
        for (lane, &sum) in sums.iter().enumerate().take(lanes.count) {
            let place = pooling.place(&lanes, lane);
            let count = job.args.divisor(&pooling.y, &pooling.x, place);
            // SAFETY: the lane's result, which is this thread's.
            unsafe { *job.y.add(at + lane * step) = T::down(over(sum, count)) };
        }
    }
}

/// Input `grad`, output `x`: each window's gradient, shared out among its elements. Threads take
/// channels, so that each sum is one thread's, in one order.
pub fn mean_pool_backward(launch: &CpuLaunch<'_>, args: MeanArgs) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        let (grad, x) = (&launch.inputs[0], &launch.outputs[0]);
        let back = Back::<T> {
            args,
            y: Volume::of(grad.meta()),
            x: Volume::of(x.meta()),
            grad: grad.first(),
            to: x.first(),
        };
        let channels = back.x.channels;
        let grain = (16_384 / back.x.space().max(1)).max(1);
        parallel::split(back.x.batch * channels, grain, |range| {
            range.for_each(|unit| back.channel(unit / channels, unit % channels));
        });
    });
    Ok(())
}

/// What comes back.
struct Back<T> {
    args: MeanArgs,
    y: Volume,
    x: Volume,
    grad: *const T,
    to: *mut T,
}

// SAFETY: addresses; what is done with them happens under the launch's claim, and threads write
// disjoint channels.
unsafe impl<T> Send for Back<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Back<T> {}

impl<T: Number> Back<T> {
    fn channel(&self, image: usize, channel: usize) {
        let Back { args, y, x, .. } = self;
        let (from, to) = (y.at(image, channel), x.at(image, channel));
        let [planes, rows, elements] = x.sizes;
        for place in 0..planes * rows {
            let row = to + x.row(place / rows, place % rows);
            for element in 0..elements {
                // SAFETY: an element of the channel, which is this thread's.
                unsafe { *self.to.add(row + element * x.strides[2]) = T::ZERO };
            }
        }
        let window =
            |d: usize, at: usize| args.windows[d].inside(at, y.sizes[d], x.sizes[d], Sample::None);
        for at in 0..y.space() {
            let at = [at / y.sizes[2] / y.sizes[1], at / y.sizes[2] % y.sizes[1], at % y.sizes[2]];
            let count = args.divisor(y, x, at);
            let place = from + y.row(at[0], at[1]) + at[2] * y.strides[2];
            // SAFETY: a gradient of the channel.
            let share = over(unsafe { *self.grad.add(place) }.up(), count);
            let [depth, height, width] = [0, 1, 2].map(|d| window(d, at[d]));
            for j in 0..depth.1 {
                for k in 0..height.1 {
                    let row = to + x.row(depth.0 + j * depth.2, height.0 + k * height.2);
                    for l in 0..width.1 {
                        // SAFETY: an element of the window, in this thread's channel.
                        unsafe {
                            let to = self.to.add(row + (width.0 + l * width.2) * x.strides[2]);
                            *to = T::down((*to).up().plus(share));
                        }
                    }
                }
            }
        }
    }
}
