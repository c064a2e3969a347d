//! Group normalization: mean 0 and variance 1 over groups of channels of each sample, then a scale
//! and a shift for each channel; and the gradients. Row-major groups are runs and are here; those
//! whose channels lie side by side are in `last.rs`.

mod last;

use plimsoll_core::{Error, Result};

use plimsoll_engine::along_dim::{SLICE, fold, slices, sum, write_slice};
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{
    CpuLaunch, Element, Operand, input_dtype, match_float, nontemporal, parallel,
};

use crate::planes::Planes;
use crate::rows::{operand, row_major};

/// What the kernels go by.
#[derive(Clone, Copy, Debug)]
pub struct GroupNormArgs {
    /// Groups of channels.
    pub groups: usize,
    /// Whether channels are scaled.
    pub weight: bool,
    /// Whether channels are shifted.
    pub bias: bool,
    /// Keeps the variance away from 0.
    pub eps: f64,
}

/// Which gradients are wanted.
#[derive(Clone, Copy, Debug)]
pub struct GroupNormGrads {
    /// Of the input.
    pub input: bool,
    /// Of the weight.
    pub weight: bool,
    /// Of the bias.
    pub bias: bool,
}

/// The sizes of an input [samples, channels, places..].
#[derive(Clone, Copy)]
struct Sizes {
    samples: usize,
    channels: usize,
    places: usize,
    groups: usize,
    /// Whether the channels of a place lie side by side, and not the places of a channel.
    last: bool,
}

impl Sizes {
    fn of<T: Element>(x: &Operand<'_>, planes: Planes<T>, groups: usize) -> Sizes {
        let Planes { channels, places, place, .. } = planes;
        Sizes { samples: x.shape()[0], channels, places, groups, last: place != 1 }
    }

    /// The first element of a tensor of the input's shape, which must lie in its order.
    fn same_order<T: Element>(
        self,
        launch: &CpuLaunch<'_>,
        operand: &Operand<'_>,
    ) -> Result<Shared<T>> {
        let planes = Planes::<T>::of(launch, operand)?;
        match (planes.place != 1) == self.last {
            true => Ok(planes.first),
            false => Err(Error::invalid_argument("the kernel needs operands in the input's order")
                .in_operation(launch.operation)),
        }
    }

    fn group_channels(self) -> usize {
        self.channels / self.groups
    }

    /// Elements of a group.
    fn length(self) -> usize {
        self.group_channels() * self.places
    }

    /// The channels of group `unit`, counted over all samples.
    fn channels_of(self, unit: usize) -> std::ops::Range<usize> {
        let first = unit % self.groups * self.group_channels();
        first..first + self.group_channels()
    }

    fn split(self, body: impl Fn(usize) + Sync) {
        let grain = (GRAIN / self.length().max(1)).max(1);
        parallel::split(self.samples * self.groups, grain, |units| units.for_each(&body));
    }
}

/// [x, weight?, bias?] -> `y`, and [mean, 1 / deviation] of each group if backward wants them.
pub fn group_norm(launch: &CpuLaunch<'_>, args: GroupNormArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => forward::<T>(launch, args))
}

fn forward<T: Float>(launch: &CpuLaunch<'_>, args: GroupNormArgs) -> Result<()> {
    let x = operand(launch, launch.inputs, 0)?;
    let planes = Planes::<T>::of(launch, &x)?;
    let sizes = Sizes::of(&x, planes, args.groups);
    let optional = |given: bool, at: usize| match given {
        true => row_major::<T>(launch, &operand(launch, launch.inputs, at)?).map(Some),
        false => Ok(None),
    };
    let weight = optional(args.weight, 1)?;
    let bias = optional(args.bias, 1 + usize::from(args.weight))?;
    let out = operand(launch, launch.outputs, 0)?;
    let moments = match launch.outputs.get(1..3) {
        Some([mean, rstd]) => {
            Some([row_major::<T::Wide>(launch, mean)?, row_major::<T::Wide>(launch, rstd)?])
        }
        _ => None,
    };
    let (from, to) = (planes.first, sizes.same_order::<T>(launch, &out)?);
    let streamed = nontemporal::is_streamed(&[out, x]);
    sizes.split(|unit| {
        let group = Normalize { sizes, unit, args, from, to, weight, bias, moments, streamed };
        match sizes.last {
            true => simd::dispatch_level(last::Normalize(group)),
            false => simd::dispatch_level(group),
        }
    });
    Ok(())
}

/// One group.
struct Normalize<T: Float> {
    sizes: Sizes,
    unit: usize,
    args: GroupNormArgs,
    from: Shared<T>,
    to: Shared<T>,
    weight: Option<Shared<T>>,
    bias: Option<Shared<T>>,
    moments: Option<[Shared<T::Wide>; 2]>,
    streamed: bool,
}

impl<T: Float> LevelKernel for Normalize<T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Normalize { sizes, unit, args, from, to, weight, bias, moments, streamed } = self;
        let length = sizes.length();
        let start = unit * length;
        let mut buffer = [T::Wide::ZERO; SLICE];
        // SAFETY: the unit's own group of the input and the output, its places in the moments, and
        // a weight and a bias a channel.
        unsafe {
            let x = from.add(start);
            let mut total = 0.0;
            slices(length, |at, count| {
                let plus = |a, b| a + b;
                total += fold(x.add(at), count, T::Wide::ZERO, plus, plus).to_f64();
            });
            let mean = total / length as f64;
            let center = T::Wide::of(mean);
            let mut squares = 0.0;
            slices(length, |at, count| {
                let values = &mut buffer[..count];
                for (i, value) in values.iter_mut().enumerate() {
                    let distance = (*x.add(at + i)).widen() - center;
                    *value = distance * distance;
                }
                squares += sum(values).to_f64();
            });
            let rstd = 1.0 / (squares / length as f64 + args.eps).sqrt();
            if let Some([means, rstds]) = moments {
                *means.add(unit) = T::Wide::of(mean);
                *rstds.add(unit) = T::Wide::of(rstd);
            }
            for (index, channel) in sizes.channels_of(unit).enumerate() {
                let scale = rstd * weight.map_or(1.0, |w| (*w.add(channel)).to_f64());
                let shift = bias.map_or(0.0, |b| (*b.add(channel)).to_f64());
                let (scale, shift) = (T::Wide::of(scale), T::Wide::of(shift));
                let at_channel = index * sizes.places;
                slices(sizes.places, |at, count| {
                    let values = &mut buffer[..count];
                    let from = x.add(at_channel + at);
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = ((*from.add(i)).widen() - center) * scale + shift;
                    }
                    write_slice(to.add(start + at_channel + at), values, streamed);
                });
            }
        }
        if streamed {
            nontemporal::fence();
        }
    }
}

/// Scratch of [`group_norm_backward`]: two sums for each channel of each sample.
pub fn group_norm_backward_workspace_bytes(shape: &[usize]) -> usize {
    shape[..2.min(shape.len())].iter().product::<usize>() * 2 * size_of::<f64>()
}

/// [grad, x, mean, 1 / deviation, weight?] -> the gradients that are wanted, in the order input,
/// weight, bias.
pub fn group_norm_backward(
    launch: &CpuLaunch<'_>,
    groups: usize,
    weight: bool,
    wanted: GroupNormGrads,
) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => backward::<T>(launch, groups, weight, wanted))
}

fn backward<T: Float>(
    launch: &CpuLaunch<'_>,
    groups: usize,
    weighted: bool,
    wanted: GroupNormGrads,
) -> Result<()> {
    let x = operand(launch, launch.inputs, 1)?;
    let planes = Planes::<T>::of(launch, &x)?;
    let sizes = Sizes::of(&x, planes, groups);
    if launch.workspace.bytes() < group_norm_backward_workspace_bytes(x.shape()) {
        return Err(Error::invalid_argument("the kernel needs a workspace of two sums a channel")
            .in_operation(launch.operation));
    }
    let weight = match weighted {
        true => Some(row_major::<T>(launch, &operand(launch, launch.inputs, 4)?)?),
        false => None,
    };
    let moment = |at| row_major::<T::Wide>(launch, &operand(launch, launch.inputs, at)?);
    let mut outputs = launch.outputs.iter().peekable();
    let input = match outputs.next_if(|_| wanted.input) {
        Some(out) => Some((sizes.same_order::<T>(launch, out)?, *out)),
        None => None,
    };
    let mut parameter = |wanted: bool| match outputs.next_if(|_| wanted) {
        Some(out) => row_major::<T>(launch, out).map(Some),
        None => Ok(None),
    };
    let (weight_out, bias_out) = (parameter(wanted.weight)?, parameter(wanted.bias)?);
    let job = Gradient {
        sizes,
        grad: sizes.same_order::<T>(launch, &operand(launch, launch.inputs, 0)?)?,
        x: planes.first,
        mean: moment(2)?,
        rstd: moment(3)?,
        weight,
        sums: Shared(launch.workspace.pointer().cast()),
        to: input.map(|(first, _)| first),
        streamed: input.is_some_and(|(_, out)| nontemporal::is_streamed(&[out])),
    };
    sizes.split(|unit| match sizes.last {
        true => simd::dispatch_level(last::GradientOf { job: &job, unit }),
        false => simd::dispatch_level(GradientOf { job: &job, unit }),
    });
    for channel in 0..sizes.channels {
        let (mut scale, mut shift) = (0.0, 0.0);
        for sample in 0..sizes.samples {
            let unit = sample * sizes.groups + channel / sizes.group_channels();
            // SAFETY: sums and moments of all units, which are written by now.
            unsafe {
                let [products, grads] = *job.sums.add(sample * sizes.channels + channel);
                let (mean, rstd) = ((*job.mean.add(unit)).to_f64(), (*job.rstd.add(unit)).to_f64());
                scale += (products - grads * mean) * rstd;
                shift += grads;
            }
        }
        for (out, value) in [(weight_out, scale), (bias_out, shift)] {
            if let Some(first) = out {
                // SAFETY: one element a channel.
                unsafe { *first.add(channel) = T::from_f64(value) };
            }
        }
    }
    Ok(())
}

struct Gradient<T: Float> {
    sizes: Sizes,
    grad: Shared<T>,
    x: Shared<T>,
    mean: Shared<T::Wide>,
    rstd: Shared<T::Wide>,
    weight: Option<Shared<T>>,
    /// For each channel of each sample: the sum of gradient times x, and of the gradient.
    sums: Shared<[f64; 2]>,
    to: Option<Shared<T>>,
    streamed: bool,
}

struct GradientOf<'a, T: Float> {
    job: &'a Gradient<T>,
    unit: usize,
}

impl<T: Float> LevelKernel for GradientOf<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let GradientOf { job, unit } = self;
        let sizes = job.sizes;
        let sample = unit / sizes.groups;
        let start = unit * sizes.length();
        let mut buffer = [T::Wide::ZERO; SLICE];
        // SAFETY: the unit's own group of every tensor, and its channels' sums.
        unsafe {
            let (grad, x) = (job.grad.add(start), job.x.add(start));
            let scale_of = |channel: usize| job.weight.map_or(1.0, |w| (*w.add(channel)).to_f64());
            let (mut products, mut grads) = (0.0, 0.0);
            for (index, channel) in sizes.channels_of(unit).enumerate() {
                let first = index * sizes.places;
                let mut own = [0.0, 0.0];
                slices(sizes.places, |at, count| {
                    let values = &mut buffer[..count];
                    let (grad, x) = (grad.add(first + at), x.add(first + at));
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = (*grad.add(i)).widen() * (*x.add(i)).widen();
                    }
                    own[0] += sum(values).to_f64();
                    let plus = |a, b| a + b;
                    own[1] += fold(grad, count, T::Wide::ZERO, plus, plus).to_f64();
                });
                *job.sums.add(sample * sizes.channels + channel) = own;
                products += own[0] * scale_of(channel);
                grads += own[1] * scale_of(channel);
            }
            let Some(to) = job.to else { return };
            let (mean, rstd) = ((*job.mean.add(unit)).to_f64(), (*job.rstd.add(unit)).to_f64());
            let length = sizes.length() as f64;
            let along = (grads * mean - products) * rstd * rstd * rstd / length;
            let constant = T::Wide::of(-along * mean - grads * rstd / length);
            let along = T::Wide::of(along);
            for (index, channel) in sizes.channels_of(unit).enumerate() {
                let scale = T::Wide::of(rstd * scale_of(channel));
                let first = index * sizes.places;
                slices(sizes.places, |at, count| {
                    let values = &mut buffer[..count];
                    let (grad, x) = (grad.add(first + at), x.add(first + at));
                    for (i, value) in values.iter_mut().enumerate() {
                        *value =
                            (*grad.add(i)).widen() * scale + (*x.add(i)).widen() * along + constant;
                    }
                    write_slice(to.add(start + first + at), values, job.streamed);
                });
            }
        }
        if job.streamed {
            nontemporal::fence();
        }
    }
}
