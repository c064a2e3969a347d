//! Group normalization: mean 0 and variance 1 over groups of channels of each sample, then a scale
//! and a shift for each channel; and the gradients.

use plimsoll_core::{Error, Result};

use plimsoll_engine::along_dim::{SLICE, slices, sum, write_slice};
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
    fn of(shape: &[usize], groups: usize) -> Sizes {
        let places = shape[2..].iter().product();
        Sizes { samples: shape[0], channels: shape[1], places, groups, last: false }
    }

    fn group_channels(self) -> usize {
        self.channels / self.groups
    }

    /// Elements of a group.
    fn length(self) -> usize {
        self.group_channels() * self.places
    }

    /// Where channel `index` of group `unit` starts.
    fn start(self, unit: usize, index: usize) -> usize {
        match self.last {
            true => {
                unit / self.groups * self.channels * self.places
                    + self.channels_of(unit).start
                    + index
            }
            false => unit * self.length() + index * self.places,
        }
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
    let from = Planes::<T>::of(launch, &x)?;
    let sizes = Sizes { last: from.place != 1, ..Sizes::of(x.shape(), args.groups) };
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
    let (from, to) = (from.first, same_order::<T>(launch, sizes, &out)?);
    let streamed = nontemporal::is_streamed(&[out, x]);
    sizes.split(|unit| match sizes.last {
        true => simd::dispatch_level(Normalize::<T, true> {
            sizes,
            unit,
            args,
            from,
            to,
            weight,
            bias,
            moments,
            streamed: false,
        }),
        false => simd::dispatch_level(Normalize::<T, false> {
            sizes,
            unit,
            args,
            from,
            to,
            weight,
            bias,
            moments,
            streamed,
        }),
    });
    Ok(())
}

/// The first element of a tensor of the input's shape, which must lie in its order.
fn same_order<T: Element>(
    launch: &CpuLaunch<'_>,
    sizes: Sizes,
    operand: &Operand<'_>,
) -> Result<Shared<T>> {
    let planes = Planes::<T>::of(launch, operand)?;
    match (planes.place != 1) == sizes.last {
        true => Ok(planes.first),
        false => Err(Error::invalid_argument("the kernel needs operands in the input's order")
            .in_operation(launch.operation)),
    }
}

/// Some places of a channel, widened. `LAST` says that they lie `step` apart.
///
/// # Safety
/// There must be as many elements from `from` on.
#[inline(always)]
unsafe fn load<T: Float, const LAST: bool>(from: *const T, step: usize, to: &mut [T::Wide]) {
    for (i, value) in to.iter_mut().enumerate() {
        // SAFETY: as the caller promises.
        *value = unsafe { *from.add(if LAST { i * step } else { i }) }.widen();
    }
}

/// Writes some places of a channel.
///
/// # Safety
/// As [`load`].
#[inline(always)]
unsafe fn store<T: Float, const LAST: bool>(
    to: *mut T,
    step: usize,
    values: &[T::Wide],
    streamed: bool,
) {
    // SAFETY: as the caller promises.
    unsafe {
        if !LAST {
            return write_slice(to, values, streamed);
        }
        for (i, &value) in values.iter().enumerate() {
            *to.add(i * step) = T::narrow(value);
        }
    }
}

/// One group; `LAST` is the order's.
struct Normalize<T: Float, const LAST: bool> {
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

impl<T: Float, const LAST: bool> LevelKernel for Normalize<T, LAST> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Normalize { sizes, unit, args, from, to, weight, bias, moments, streamed } = self;
        let length = sizes.length();
        let mut buffer = [T::Wide::ZERO; SLICE];
        // A row-major group is one run, whatever its channels.
        let (runs, run) = if LAST { (sizes.group_channels(), sizes.places) } else { (1, length) };
        let step = sizes.channels;
        // SAFETY: the unit's own group of the input and the output, its places in the moments, and
        // a weight and a bias a channel.
        unsafe {
            let mut total = 0.0;
            for index in 0..runs {
                let x = from.add(sizes.start(unit, index));
                slices(run, |at, count| {
                    let values = &mut buffer[..count];
                    load::<T, LAST>(x.add(if LAST { at * step } else { at }), step, values);
                    total += sum(values).to_f64();
                });
            }
            let mean = total / length as f64;
            let center = T::Wide::of(mean);
            let mut squares = 0.0;
            for index in 0..runs {
                let x = from.add(sizes.start(unit, index));
                slices(run, |at, count| {
                    let values = &mut buffer[..count];
                    load::<T, LAST>(x.add(if LAST { at * step } else { at }), step, values);
                    for value in values.iter_mut() {
                        let distance = *value - center;
                        *value = distance * distance;
                    }
                    squares += sum(values).to_f64();
                });
            }
            let rstd = 1.0 / (squares / length as f64 + args.eps).sqrt();
            if let Some([means, rstds]) = moments {
                *means.add(unit) = T::Wide::of(mean);
                *rstds.add(unit) = T::Wide::of(rstd);
            }
            for (index, channel) in sizes.channels_of(unit).enumerate() {
                let scale = rstd * weight.map_or(1.0, |w| (*w.add(channel)).to_f64());
                let shift = bias.map_or(0.0, |b| (*b.add(channel)).to_f64());
                let (scale, shift) = (T::Wide::of(scale), T::Wide::of(shift));
                let first = sizes.start(unit, index);
                slices(sizes.places, |at, count| {
                    let values = &mut buffer[..count];
                    let first = first + if LAST { at * step } else { at };
                    load::<T, LAST>(from.add(first), step, values);
                    for value in values.iter_mut() {
                        *value = (*value - center) * scale + shift;
                    }
                    store::<T, LAST>(to.add(first), step, values, streamed);
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
    let from = Planes::<T>::of(launch, &x)?;
    let sizes = Sizes { last: from.place != 1, ..Sizes::of(x.shape(), groups) };
    if launch.workspace.bytes() < group_norm_backward_workspace_bytes(x.shape()) {
        return Err(Error::invalid_argument("the kernel needs a workspace of two sums a channel")
            .in_operation(launch.operation));
    }
    let weight = match weighted {
        true => Some(row_major::<T>(launch, &operand(launch, launch.inputs, 4)?)?),
        false => None,
    };
    let moment = |at| row_major::<T::Wide>(launch, &operand(launch, launch.inputs, at)?);
    let mut outputs = launch.outputs.iter();
    let input = match wanted.input {
        true => outputs.next().map(|out| same_order::<T>(launch, sizes, out).map(|to| (to, *out))),
        false => None,
    };
    let input = input.transpose()?;
    let mut output = |wanted: bool| match outputs.next().filter(|_| wanted) {
        Some(out) => row_major::<T>(launch, out).map(|first| Some((first, *out))),
        None => Ok(None),
    };
    let weight_out = if wanted.weight { output(true)? } else { None };
    let bias_out = if wanted.bias { output(true)? } else { None };
    let job = Gradient {
        sizes,
        grad: same_order::<T>(launch, sizes, &operand(launch, launch.inputs, 0)?)?,
        x: from.first,
        mean: moment(2)?,
        rstd: moment(3)?,
        weight,
        sums: Shared(launch.workspace.pointer().cast()),
        to: input.map(|(first, _)| first),
        streamed: !sizes.last && input.is_some_and(|(_, out)| nontemporal::is_streamed(&[out])),
    };
    sizes.split(|unit| match sizes.last {
        true => simd::dispatch_level(GradientOf::<T, true> { job: &job, unit }),
        false => simd::dispatch_level(GradientOf::<T, false> { job: &job, unit }),
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
            if let Some((first, _)) = out {
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

struct GradientOf<'a, T: Float, const LAST: bool> {
    job: &'a Gradient<T>,
    unit: usize,
}

impl<T: Float, const LAST: bool> LevelKernel for GradientOf<'_, T, LAST> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let GradientOf { job, unit } = self;
        let sizes = job.sizes;
        let sample = unit / sizes.groups;
        let step = sizes.channels;
        let mut buffers = [[T::Wide::ZERO; SLICE]; 2];
        // SAFETY: the unit's own group of every tensor, and its channels' sums.
        unsafe {
            let scale_of = |channel: usize| job.weight.map_or(1.0, |w| (*w.add(channel)).to_f64());
            let (mut products, mut grads) = (0.0, 0.0);
            for (index, channel) in sizes.channels_of(unit).enumerate() {
                let first = sizes.start(unit, index);
                let mut own = [0.0, 0.0];
                slices(sizes.places, |at, count| {
                    let [grads, values] = buffers.each_mut().map(|buffer| &mut buffer[..count]);
                    let first = first + if LAST { at * step } else { at };
                    load::<T, LAST>(job.grad.add(first), step, grads);
                    load::<T, LAST>(job.x.add(first), step, values);
                    own[1] += sum(grads).to_f64();
                    for (value, &grad) in values.iter_mut().zip(&*grads) {
                        *value = grad * *value;
                    }
                    own[0] += sum(values).to_f64();
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
                let first = sizes.start(unit, index);
                slices(sizes.places, |at, count| {
                    let [grads, values] = buffers.each_mut().map(|buffer| &mut buffer[..count]);
                    let first = first + if LAST { at * step } else { at };
                    load::<T, LAST>(job.grad.add(first), step, grads);
                    load::<T, LAST>(job.x.add(first), step, values);
                    for (value, &grad) in values.iter_mut().zip(&*grads) {
                        *value = grad * scale + *value * along + constant;
                    }
                    store::<T, LAST>(to.add(first), step, values, job.streamed);
                });
            }
        }
        if job.streamed {
            nontemporal::fence();
        }
    }
}
