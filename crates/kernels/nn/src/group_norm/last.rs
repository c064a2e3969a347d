//! Group normalization of images whose channels lie side by side: a group is a few neighbours at
//! each place. A block of channels goes down all places together, so that every line of the cache
//! is read once a pass.

use plimsoll_engine::Element;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::{Level, LevelKernel};

use super::{Gradient, Sizes};

/// Channels that are computed together.
const BLOCK: usize = 64;
/// Places whose sums are kept in what is computed in.
const PLACES: usize = 256;

/// Calls `body(first place, places)` over all places, at most [`PLACES`] at a time.
#[inline(always)]
fn in_parts(places: usize, mut body: impl FnMut(usize, usize)) {
    for first in (0..places).step_by(PLACES) {
        body(first, PLACES.min(places - first));
    }
}

/// Blocks of the channels of group `unit`: the first channel, how many, and where they lie.
#[inline(always)]
fn blocks(sizes: Sizes, unit: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let channels = sizes.channels_of(unit);
    let start = unit / sizes.groups * sizes.channels * sizes.places;
    let end = channels.end;
    channels.step_by(BLOCK).map(move |first| (first, BLOCK.min(end - first), start + first))
}

/// The sum of a term over all elements of group `unit`.
///
/// # Safety
/// `from` must be the first element of a tensor of these sizes.
#[inline(always)]
unsafe fn folded<T: Float>(
    sizes: Sizes,
    unit: usize,
    from: *const T,
    term: impl Fn(T::Wide) -> T::Wide,
) -> f64 {
    let mut total = 0.0;
    for (_, count, at) in blocks(sizes, unit) {
        in_parts(sizes.places, |first, places| {
            let mut sums = [T::Wide::ZERO; BLOCK];
            for place in first..first + places {
                for (channel, sum) in sums[..count].iter_mut().enumerate() {
                    // SAFETY: an element of the group, which the caller vouches for.
                    let x = unsafe { *from.add(at + place * sizes.channels + channel) };
                    *sum = *sum + term(x.widen());
                }
            }
            total += sums[..count].iter().map(|sum| sum.to_f64()).sum::<f64>();
        });
    }
    total
}

/// One group.
pub(super) struct Normalize<T: Float>(pub(super) super::Normalize<T>);

impl<T: Float> LevelKernel for Normalize<T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let super::Normalize { sizes, unit, args, from, to, weight, bias, moments, .. } = self.0;
        let (step, length) = (sizes.channels, sizes.length() as f64);
        // SAFETY: the unit's own channels of the input and the output, its places in the moments,
        // and a weight and a bias a channel.
        unsafe {
            let mean = folded::<T>(sizes, unit, from.0, |x| x) / length;
            let center = T::Wide::of(mean);
            let square = |x| (x - center) * (x - center);
            let variance = folded::<T>(sizes, unit, from.0, square) / length;
            let rstd = 1.0 / (variance + args.eps).sqrt();
            if let Some([means, rstds]) = moments {
                *means.add(unit) = T::Wide::of(mean);
                *rstds.add(unit) = T::Wide::of(rstd);
            }
            for (channel, count, at) in blocks(sizes, unit) {
                let (mut scales, mut shifts) = ([T::Wide::ZERO; BLOCK], [T::Wide::ZERO; BLOCK]);
                for index in 0..count {
                    let own = weight.map_or(1.0, |w| (*w.add(channel + index)).to_f64());
                    let shift = bias.map_or(0.0, |b| (*b.add(channel + index)).to_f64());
                    (scales[index], shifts[index]) = (T::Wide::of(rstd * own), T::Wide::of(shift));
                }
                for place in 0..sizes.places {
                    let (x, to) = (from.add(at + place * step), to.add(at + place * step));
                    for index in 0..count {
                        let value = ((*x.add(index)).widen() - center) * scales[index];
                        *to.add(index) = T::narrow(value + shifts[index]);
                    }
                }
            }
        }
    }
}

/// The gradients of one group.
pub(super) struct GradientOf<'a, T: Float> {
    pub(super) job: &'a Gradient<T>,
    pub(super) unit: usize,
}

impl<T: Float> LevelKernel for GradientOf<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let GradientOf { job, unit } = self;
        let sizes = job.sizes;
        let (sample, step) = (unit / sizes.groups, sizes.channels);
        // SAFETY: the unit's own channels of every tensor, and their sums.
        unsafe {
            let scale_of = |channel: usize| job.weight.map_or(1.0, |w| (*w.add(channel)).to_f64());
            let (mut products, mut grads) = (0.0, 0.0);
            for (channel, count, at) in blocks(sizes, unit) {
                let mut own = [[0.0; 2]; BLOCK];
                in_parts(sizes.places, |first, places| {
                    let (mut along, mut alone) = ([T::Wide::ZERO; BLOCK], [T::Wide::ZERO; BLOCK]);
                    for place in first..first + places {
                        let grad = job.grad.add(at + place * step);
                        let x = job.x.add(at + place * step);
                        let sums = along[..count].iter_mut().zip(&mut alone[..count]);
                        for (index, (product, sum)) in sums.enumerate() {
                            let slope = (*grad.add(index)).widen();
                            *product = *product + slope * (*x.add(index)).widen();
                            *sum = *sum + slope;
                        }
                    }
                    for (index, own) in own[..count].iter_mut().enumerate() {
                        own[0] += along[index].to_f64();
                        own[1] += alone[index].to_f64();
                    }
                });
                for (index, &own) in own[..count].iter().enumerate() {
                    *job.sums.add(sample * sizes.channels + channel + index) = own;
                    products += own[0] * scale_of(channel + index);
                    grads += own[1] * scale_of(channel + index);
                }
            }
            let Some(to) = job.to else { return };
            let (mean, rstd) = ((*job.mean.add(unit)).to_f64(), (*job.rstd.add(unit)).to_f64());
            let length = sizes.length() as f64;
            let along = (grads * mean - products) * rstd * rstd * rstd / length;
            let constant = T::Wide::of(-along * mean - grads * rstd / length);
            let along = T::Wide::of(along);
            for (channel, count, at) in blocks(sizes, unit) {
                let mut scales = [T::Wide::ZERO; BLOCK];
                for (index, scale) in scales[..count].iter_mut().enumerate() {
                    *scale = T::Wide::of(rstd * scale_of(channel + index));
                }
                for place in 0..sizes.places {
                    let here = at + place * step;
                    let (grad, x, to) = (job.grad.add(here), job.x.add(here), to.add(here));
                    for (index, &scale) in scales[..count].iter().enumerate() {
                        let slope = (*grad.add(index)).widen() * scale;
                        *to.add(index) =
                            T::narrow(slope + (*x.add(index)).widen() * along + constant);
                    }
                }
            }
        }
    }
}
