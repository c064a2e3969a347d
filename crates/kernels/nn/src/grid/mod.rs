//! Sampling of images and volumes at places that a grid names: gathering, its transpose, and the
//! slope along the grid. A sample is a weighted sum over pixels near its place; the three kernels
//! differ in what they do with the weights. Each may take the derivative of the weights along a
//! direction instead, which is what second derivatives are made of.
//!
//! Grids hold places from -1 to 1, the last spatial dimension first. `interpolate.rs` is for grids
//! that are regular.

mod taps;

use plimsoll_core::{DType, Result};

use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Element, input_dtype, match_float, parallel};

use crate::products::check_workspace;
use crate::rows::{operand, row_major};
use taps::{Tap, Taps, taps};

pub use taps::{GridArgs, GridMode, GridPadding};

/// The pixels of one sample, with a value each; `MOST` of them.
struct Pixels<V, const MOST: usize> {
    all: [(usize, V); MOST],
    count: usize,
}

/// Runs `$body` with `$MOST` as the most pixels of a sample: two along each dimension, or four.
macro_rules! with_most {
    ($args:expr, $MOST:ident => $body:expr) => {
        if $args.mode == GridMode::Cubic {
            const $MOST: usize = 64;
            $body
        } else {
            const $MOST: usize = 8;
            $body
        }
    };
}

/// Where everything lies: [batch, channels, depth, height, width] sampled at `places` a batch.
struct Job<R, T> {
    args: GridArgs,
    spatial: usize,
    sizes: [usize; 3],
    batch: usize,
    channels: usize,
    places: usize,
    grid: Shared<T>,
    direction: Option<Shared<T>>,
    wide: std::marker::PhantomData<R>,
}

impl<T: Float> Job<T::Wide, T> {
    /// `grid` is an input, and `direction` the one after it.
    fn new(
        launch: &CpuLaunch<'_>,
        args: GridArgs,
        image: &[usize],
        grid: usize,
    ) -> Result<Job<T::Wide, T>> {
        let at = operand(launch, launch.inputs, grid)?;
        let direction = match args.directed {
            true => Some(row_major::<T>(launch, &operand(launch, launch.inputs, grid + 1)?)?),
            false => None,
        };
        let spatial = image.len() - 2;
        let mut sizes = [1; 3];
        sizes[3 - spatial..].copy_from_slice(&image[2..]);
        Ok(Job {
            args,
            spatial,
            sizes,
            batch: image[0],
            channels: image[1],
            places: at.shape()[1..=spatial].iter().product(),
            grid: row_major::<T>(launch, &at)?,
            direction,
            wide: std::marker::PhantomData,
        })
    }

    fn pixels(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The vector of a place, the first spatial dimension first.
    ///
    /// # Safety
    /// The place is one of the grid's.
    #[inline(always)]
    unsafe fn vector(&self, of: Shared<T>, place: usize) -> [T::Wide; 3] {
        let mut vector = [T::Wide::ZERO; 3];
        for dim in 0..self.spatial {
            // SAFETY: the caller vouches for the place.
            vector[2 - dim] = unsafe { *of.add(place * self.spatial + dim) }.widen();
        }
        vector
    }

    /// The pixels of a sample, each with what `value` makes of its parts along the dimensions and
    /// of the direction.
    ///
    /// # Safety
    /// As [`Job::vector`].
    #[inline(always)]
    unsafe fn sample<V: Copy, const MOST: usize>(
        &self,
        place: usize,
        nothing: V,
        value: impl Fn([Tap<T::Wide>; 3], Option<[T::Wide; 3]>) -> V,
    ) -> Pixels<V, MOST> {
        // SAFETY: the caller vouches for the place.
        let (at, direction) = unsafe {
            let direction = self.direction.map(|direction| self.vector(direction, place));
            (self.vector(self.grid, place), direction)
        };
        let along: [Taps<T::Wide>; 3] = std::array::from_fn(|dim| {
            let exists = dim + self.spatial >= 3;
            if exists { taps(self.args, at[dim], self.sizes[dim]) } else { Taps::through() }
        });
        let mut pixels = Pixels { all: [(0, nothing); MOST], count: 0 };
        let [_, height, width] = self.sizes;
        for z in &along[0].taps[..along[0].count] {
            for y in &along[1].taps[..along[1].count] {
                for x in &along[2].taps[..along[2].count] {
                    let pixel = (z.place * height + y.place) * width + x.place;
                    pixels.all[pixels.count] = (pixel, value([*z, *y, *x], direction));
                    pixels.count += 1;
                }
            }
        }
        pixels
    }
}

/// The weight of a pixel, or its derivative along a direction.
#[inline(always)]
fn weight<R: Real>([z, y, x]: [Tap<R>; 3], direction: Option<[R; 3]>) -> R {
    match direction {
        None => z.weight * y.weight * x.weight,
        Some([dz, dy, dx]) => {
            dz * z.slope * y.weight * x.weight
                + dy * z.weight * y.slope * x.weight
                + dx * z.weight * y.weight * x.slope
        }
    }
}

/// The derivatives of [`weight`] by the place, the first spatial dimension first.
#[inline(always)]
fn slopes<R: Real>([z, y, x]: [Tap<R>; 3], direction: Option<[R; 3]>) -> [R; 3] {
    let turned = |tap: Tap<R>| Tap { weight: tap.slope, slope: tap.curve, ..tap };
    [
        weight([turned(z), y, x], direction),
        weight([z, turned(y), x], direction),
        weight([z, y, turned(x)], direction),
    ]
}

/// [x, grid, direction if there is one] -> samples of x.
pub fn grid_sample(launch: &CpuLaunch<'_>, args: GridArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => {
        with_most!(args, MOST => sample::<T, MOST>(launch, args))
    })
}

fn sample<T: Float, const MOST: usize>(launch: &CpuLaunch<'_>, args: GridArgs) -> Result<()> {
    let x = operand(launch, launch.inputs, 0)?;
    let job = Job::<T::Wide, T>::new(launch, args, x.shape(), 1)?;
    let from = row_major::<T>(launch, &x)?;
    let to = row_major::<T>(launch, &operand(launch, launch.outputs, 0)?)?;
    let (pixels, places, channels) = (job.pixels(), job.places, job.channels);
    let grain = (GRAIN / (16 * channels).max(1)).max(1);
    parallel::split(job.batch * places, grain, |range| {
        for index in range {
            let (batch, place) = (index / places, index % places);
            // SAFETY: a place of the grid, its image's pixels and its own samples.
            unsafe {
                let near = job.sample::<_, MOST>(index, T::Wide::ZERO, weight);
                for channel in 0..channels {
                    let plane = batch * channels + channel;
                    let mut sum = T::Wide::ZERO;
                    for &(pixel, weight) in &near.all[..near.count] {
                        sum = sum + (*from.add(plane * pixels + pixel)).widen() * weight;
                    }
                    *to.add(plane * places + place) = T::narrow(sum);
                }
            }
        }
    });
    Ok(())
}

/// [gradient of the samples, grid, direction if there is one] -> the gradient of the image, the
/// output's shape. A plane is one thread's, so that it is the same bits in every run.
pub fn grid_scatter(launch: &CpuLaunch<'_>, args: GridArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => {
        with_most!(args, MOST => scatter::<T, MOST>(launch, args))
    })
}

/// Scratch of [`grid_scatter`]: sums of half types are kept in single precision, a plane a thread;
/// others are added up where they belong.
pub fn grid_scatter_workspace_bytes(dtype: DType, image: &[usize]) -> usize {
    if matches!(dtype, DType::F32 | DType::F64) {
        return 0;
    }
    let plane: usize = image[2..].iter().product();
    parallel::threads() * (plane * size_of::<f32>()).next_multiple_of(64)
}

fn scatter<T: Float, const MOST: usize>(launch: &CpuLaunch<'_>, args: GridArgs) -> Result<()> {
    let out = operand(launch, launch.outputs, 0)?;
    let job = Job::<T::Wide, T>::new(launch, args, out.shape(), 1)?;
    let from = row_major::<T>(launch, &operand(launch, launch.inputs, 0)?)?;
    let to = row_major::<T>(launch, &out)?;
    let (pixels, places, channels) = (job.pixels(), job.places, job.channels);
    let bytes = grid_scatter_workspace_bytes(out.dtype(), out.shape());
    check_workspace(launch, bytes)?;
    let in_place = T::DTYPE == <T::Wide as Element>::DTYPE;
    // Channels that share the weights of a sample.
    let block = if in_place { 16 } else { 1 };
    let blocks = channels.div_ceil(block);
    let threads = parallel::threads();
    let scratch = Shared(launch.workspace.pointer());
    parallel::fork(threads, |part| {
        for unit in parallel::part_range(job.batch * blocks, threads, part) {
            let (batch, first) = (unit / blocks, unit % blocks * block);
            let count = block.min(channels - first);
            let plane = batch * channels + first;
            // SAFETY: the unit's own planes, or this part's own piece of the workspace; an output
            // that is added up in place has the type of the sums.
            let sums = unsafe {
                let sums: *mut T::Wide = match in_place {
                    true => to.add(plane * pixels).cast(),
                    false => scratch.add(part * (bytes / threads)).cast(),
                };
                std::slice::from_raw_parts_mut(sums, count * pixels)
            };
            sums.fill(T::Wide::ZERO);
            for place in 0..places {
                // SAFETY: a place of the grid, and its gradients.
                unsafe {
                    let near = job.sample::<_, MOST>(batch * places + place, T::Wide::ZERO, weight);
                    for channel in 0..count {
                        let grad = (*from.add((plane + channel) * places + place)).widen();
                        for &(pixel, weight) in &near.all[..near.count] {
                            let sum = &mut sums[channel * pixels + pixel];
                            *sum = *sum + grad * weight;
                        }
                    }
                }
            }
            if !in_place {
                for (pixel, &sum) in sums.iter().enumerate() {
                    // SAFETY: an element of the plane.
                    unsafe { *to.add(plane * pixels + pixel) = T::narrow(sum) };
                }
            }
        }
    });
    Ok(())
}

/// [gradient of the samples, x, grid, direction if there is one] -> the gradient of the grid.
pub fn grid_slope(launch: &CpuLaunch<'_>, args: GridArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => {
        with_most!(args, MOST => slope::<T, MOST>(launch, args))
    })
}

fn slope<T: Float, const MOST: usize>(launch: &CpuLaunch<'_>, args: GridArgs) -> Result<()> {
    let x = operand(launch, launch.inputs, 1)?;
    let job = Job::<T::Wide, T>::new(launch, args, x.shape(), 2)?;
    let grads = row_major::<T>(launch, &operand(launch, launch.inputs, 0)?)?;
    let from = row_major::<T>(launch, &x)?;
    let to = row_major::<T>(launch, &operand(launch, launch.outputs, 0)?)?;
    let (pixels, places, channels) = (job.pixels(), job.places, job.channels);
    let grain = (GRAIN / (32 * channels).max(1)).max(1);
    parallel::split(job.batch * places, grain, |range| {
        for index in range {
            let (batch, place) = (index / places, index % places);
            let mut sums = [T::Wide::ZERO; 3];
            // SAFETY: a place of the grid, its image's pixels, its gradients and its own slope.
            unsafe {
                let near = job.sample::<_, MOST>(index, [T::Wide::ZERO; 3], slopes);
                for channel in 0..channels {
                    let plane = batch * channels + channel;
                    let grad = (*grads.add(plane * places + place)).widen();
                    for &(pixel, slopes) in &near.all[..near.count] {
                        let value = (*from.add(plane * pixels + pixel)).widen() * grad;
                        for (sum, slope) in sums.iter_mut().zip(slopes) {
                            *sum = *sum + value * slope;
                        }
                    }
                }
                for dim in 0..job.spatial {
                    *to.add(index * job.spatial + dim) = T::narrow(sums[2 - dim]);
                }
            }
        }
    });
    Ok(())
}
