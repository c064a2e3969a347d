//! The derivative of batch normalization, from the sums over each channel of the gradient and of
//! its products with the centered input: one pass over memory for the sums, one for the gradient of
//! the input.

use std::marker::PhantomData;
use std::ops::Range;

use plimsoll_core::Result;

use super::channels::Channels;
use super::columns::{self, Columns, TILE, Tile};
use super::split::Split;
use super::{workspace_bytes, wrong_operands};
use plimsoll_engine::Element;
use plimsoll_engine::along_dim::{LANES, SLICE, sum};
use plimsoll_engine::generate::{load_real, store_real};
use plimsoll_engine::match_float;
use plimsoll_engine::nontemporal;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Meta, Operand};

/// Which gradients are wanted; the outputs are those, in this order.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormGrads {
    /// Of the input.
    pub input: bool,
    /// Of the weight.
    pub weight: bool,
    /// Of the bias.
    pub bias: bool,
}

/// What the derivative is told besides its operands.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormBackwardArgs {
    /// Whether the statistics were the batch's own, and so have gradients too.
    pub training: bool,
    /// Which gradients are wanted.
    pub wanted: BatchNormGrads,
    /// Added to the variance, in evaluation.
    pub eps: f64,
}

impl BatchNormBackwardArgs {
    fn has_sums(&self) -> bool {
        self.training || self.wanted.weight || self.wanted.bias
    }
}

/// Scratch of [`batch_norm_backward`].
pub fn batch_norm_backward_workspace_bytes(
    inputs: &[&Meta],
    outputs: &[Meta],
    args: BatchNormBackwardArgs,
) -> usize {
    let [grad, x, ..] = inputs else { return 0 };
    if !args.has_sums() || x.shape().len() < 2 {
        return 0;
    }
    match outputs.first().filter(|_| args.wanted.input) {
        Some(out) => workspace_bytes::<Sums>(&[x, grad, out]),
        None => workspace_bytes::<Sums>(&[x, grad, x]),
    }
}

/// Training: `[grad, x, mean, 1 / deviation, weight?]`, evaluation: `[grad, x, mean, variance,
/// weight?]` -> the wanted gradients of x, weight and bias. In evaluation x is read only for the
/// weight's.
pub fn batch_norm_backward(launch: &CpuLaunch<'_>, args: BatchNormBackwardArgs) -> Result<()> {
    match_float!(launch, plimsoll_engine::input_dtype(launch)?, T => backward::<T>(launch, args))
}

/// Over a channel: the gradient, and its products with the centered input.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    grads: f64,
    products: f64,
}

impl Sums {
    fn join(self, other: Sums) -> Sums {
        Sums { grads: self.grads + other.grads, products: self.products + other.products }
    }
}

/// The gradient of the input: `(grad - mean - (x - center) * slope) * scale`.
#[derive(Clone, Copy, Debug)]
struct Slope<R> {
    center: R,
    mean: R,
    slope: R,
    scale: R,
}

impl<R: Real> Slope<R> {
    const ZERO: Slope<R> = Slope { center: R::ZERO, mean: R::ZERO, slope: R::ZERO, scale: R::ZERO };
}

/// The operands that have an element a channel.
struct Statistics<'a> {
    args: BatchNormBackwardArgs,
    mean: &'a Operand<'a>,
    /// 1 / deviation in training, the variance in evaluation.
    spread: &'a Operand<'a>,
    weight: Option<&'a Operand<'a>>,
    weight_out: Option<&'a Operand<'a>>,
    bias_out: Option<&'a Operand<'a>>,
    /// Elements of a channel.
    elements: usize,
}

impl<'a> Statistics<'a> {
    fn new(launch: &'a CpuLaunch<'a>, args: BatchNormBackwardArgs) -> Result<Statistics<'a>> {
        let BatchNormGrads { input, weight, bias } = args.wanted;
        let expected = [input, weight, bias].map(usize::from).iter().sum::<usize>();
        let (inputs, outputs) = (launch.inputs, launch.outputs);
        if !matches!(inputs.len(), 4 | 5)
            || outputs.len() != expected
            || inputs[1].shape().len() < 2
        {
            return Err(wrong_operands(launch));
        }
        let mut rest = outputs[usize::from(input)..].iter();
        let weight_out = if weight { rest.next() } else { None };
        let bias_out = if bias { rest.next() } else { None };
        let channels = inputs[1].shape()[1];
        let all = inputs[2..].iter().chain(weight_out).chain(bias_out);
        if all.into_iter().any(|operand| operand.layout().numel() != channels) {
            return Err(wrong_operands(launch));
        }
        Ok(Statistics {
            args,
            mean: &inputs[2],
            spread: &inputs[3],
            weight: inputs.get(4),
            weight_out,
            bias_out,
            elements: inputs[1].layout().numel().checked_div(channels).unwrap_or(0),
        })
    }

    fn rstd(&self, channel: usize) -> f64 {
        // SAFETY: every operand has an element for each channel (`new` checked).
        let spread = unsafe { load_real(self.spread, channel) };
        if self.args.training { spread } else { 1.0 / (spread + self.args.eps).sqrt() }
    }

    fn center<R: Real>(&self, channel: usize) -> R {
        // SAFETY: as above.
        R::of(unsafe { load_real(self.mean, channel) })
    }

    fn slope<R: Real>(&self, channel: usize, sums: Sums) -> Slope<R> {
        let rstd = self.rstd(channel);
        // SAFETY: as above.
        let weight = self.weight.map_or(1.0, |weight| unsafe { load_real(weight, channel) });
        let count = self.elements as f64;
        let part = |value: f64| if self.args.training { value / count } else { 0.0 };
        Slope {
            center: self.center(channel),
            mean: R::of(part(sums.grads)),
            slope: R::of(part(sums.products) * rstd * rstd),
            scale: R::of(weight * rstd),
        }
    }

    /// Writes the gradients of weight and bias.
    fn keep(&self, channel: usize, sums: Sums) {
        // SAFETY: every operand has an element for each channel (`new` checked), and a channel is
        // kept once, by one thread.
        unsafe {
            if let Some(out) = self.weight_out {
                store_real(out, channel, sums.products * self.rstd(channel));
            }
            if let Some(out) = self.bias_out {
                store_real(out, channel, sums.grads);
            }
        }
    }
}

fn backward<T: Float>(launch: &CpuLaunch<'_>, args: BatchNormBackwardArgs) -> Result<()> {
    let statistics = Statistics::new(launch, args)?;
    let (grad, x) = (launch.inputs[0], launch.inputs[1]);
    let out = if args.wanted.input { launch.outputs[0] } else { x };
    let operands = [x, grad, out];
    let numel = x.layout().numel();
    if columns::fit(operands.iter().map(Operand::layout)) {
        let columns = Columns::<3>::new::<T>(launch, &operands)?;
        return backward_columns::<T>(launch, &columns, &statistics, numel);
    }
    let channels = &Channels::<3>::new::<T>(launch, &operands)?;
    let streamed =
        args.wanted.input && channels.is_dense::<T>(2) && nontemporal::is_streamed(&[out, grad, x]);
    let measure = |channel: usize, slices: Range<usize>| {
        let center = statistics.center::<T::Wide>(channel);
        let element = PhantomData::<T>;
        simd::dispatch_level(Measure { channels, channel, slices, center, element })
    };
    let measure: &(dyn Fn(usize, Range<usize>) -> Sums + Sync) = &measure;
    Split::new(channels.count, numel).run(
        launch,
        channels.slices(),
        args.has_sums().then_some(measure),
        &Sums::join,
        &|channel, slices, sums, first| {
            if args.wanted.input {
                let slope = statistics.slope::<T::Wide>(channel, sums);
                let training = args.training;
                simd::dispatch_level(Descend::<T> {
                    channels,
                    channel,
                    slices,
                    slope,
                    training,
                    streamed,
                });
            }
            if first {
                statistics.keep(channel, sums);
            }
        },
    )
}

/// The sums over some slices of a channel.
struct Measure<'a, T: Float> {
    channels: &'a Channels<3>,
    channel: usize,
    slices: Range<usize>,
    center: T::Wide,
    element: PhantomData<T>,
}

impl<T: Float> LevelKernel for Measure<'_, T> {
    type Output = Sums;
    #[inline(always)]
    fn run<L: Level>(self) -> Sums {
        let Measure { channels, channel, slices, center, .. } = self;
        let mut buffers = [[T::Wide::ZERO; SLICE]; 2];
        let [x_buffer, grad_buffer] = &mut buffers;
        let mut sums = Sums::default();
        for slice in slices {
            // SAFETY: slices of this launch's inputs, which hold `T` (`Channels::new` checked).
            let (x, grad) = unsafe {
                let x = channels.fetch::<T>(0, channel, slice, x_buffer);
                (x, channels.fetch::<T>(1, channel, slice, grad_buffer))
            };
            sums.grads += sum(grad).to_f64();
            sums.products += products::<L, T::Wide>(x, grad, center).to_f64();
        }
        sums
    }
}

/// The sum of `(x - center) * grad`, in lanes.
#[inline(always)]
fn products<L: Level, R: Real>(x: &[R], grad: &[R], center: R) -> R {
    let mut lanes = [R::ZERO; LANES];
    let (x_lanes, grad_lanes) = (x.chunks_exact(LANES), grad.chunks_exact(LANES));
    let (x_rest, grad_rest) = (x_lanes.remainder(), grad_lanes.remainder());
    for (x, grad) in x_lanes.zip(grad_lanes) {
        for (lane, total) in lanes.iter_mut().enumerate() {
            *total = (x[lane] - center).mul_add::<L>(grad[lane], *total);
        }
    }
    for ((total, &x), &grad) in lanes.iter_mut().zip(x_rest).zip(grad_rest) {
        *total = (x - center).mul_add::<L>(grad, *total);
    }
    sum(&lanes)
}

/// The gradient of the input over some slices of a channel.
struct Descend<'a, T: Float> {
    channels: &'a Channels<3>,
    channel: usize,
    slices: Range<usize>,
    slope: Slope<T::Wide>,
    training: bool,
    streamed: bool,
}

impl<T: Float> LevelKernel for Descend<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Descend { channels, channel, slices, slope, training, streamed } = self;
        let Slope { center, mean, slope, scale } = slope;
        let mut buffers = [[T::Wide::ZERO; SLICE]; 3];
        let [x_buffer, grad_buffer, results] = &mut buffers;
        for slice in slices {
            // SAFETY: slices of this launch's operands, which hold `T` (`Channels::new` checked);
            // every slice is one thread's.
            unsafe {
                let grad = channels.fetch::<T>(1, channel, slice, grad_buffer);
                if training {
                    let x = channels.fetch::<T>(0, channel, slice, x_buffer);
                    for ((result, &grad), &x) in results.iter_mut().zip(grad).zip(x) {
                        *result = (center - x).mul_add::<L>(slope, grad - mean) * scale;
                    }
                } else {
                    for (result, &grad) in results.iter_mut().zip(grad) {
                        *result = grad * scale;
                    }
                }
                channels.store::<T>(2, channel, slice, &results[..grad.len()], streamed);
            }
        }
        if streamed {
            nontemporal::fence();
        }
    }
}

fn backward_columns<T: Float>(
    launch: &CpuLaunch<'_>,
    columns: &Columns<3>,
    statistics: &Statistics<'_>,
    numel: usize,
) -> Result<()> {
    let args = statistics.args;
    let measure = |tile: usize, blocks: Range<usize>| {
        let mut center = [T::Wide::ZERO; TILE];
        for (lane, channel) in columns.channels(tile).enumerate() {
            center[lane] = statistics.center(channel);
        }
        let element = PhantomData::<T>;
        simd::dispatch_level(MeasureColumns { columns, tile, blocks, center, element })
    };
    let measure: &(dyn Fn(usize, Range<usize>) -> Tile<Sums> + Sync) = &measure;
    Split::new(columns.tiles(), numel).run(
        launch,
        columns.blocks(),
        args.has_sums().then_some(measure),
        &|a: Tile<Sums>, b: Tile<Sums>| a.join(&b, Sums::join),
        &|tile, blocks, sums, first| {
            if args.wanted.input {
                let mut slopes = Tile([Slope::ZERO; TILE]);
                for (lane, channel) in columns.channels(tile).enumerate() {
                    slopes.0[lane] = statistics.slope(channel, sums.0[lane]);
                }
                let training = args.training;
                simd::dispatch_level(DescendColumns::<T> {
                    columns,
                    tile,
                    blocks,
                    slopes,
                    training,
                });
            }
            if first {
                for (lane, channel) in columns.channels(tile).enumerate() {
                    statistics.keep(channel, sums.0[lane]);
                }
            }
        },
    )
}

/// The sums over some blocks of a tile.
struct MeasureColumns<'a, T: Float> {
    columns: &'a Columns<3>,
    tile: usize,
    blocks: Range<usize>,
    center: [T::Wide; TILE],
    element: PhantomData<T>,
}

impl<T: Float> MeasureColumns<'_, T> {
    #[inline(always)]
    fn of_width<L: Level>(&self, width: usize) -> Tile<Sums> {
        let mut sums = Tile::<Sums>::default();
        for block in self.blocks.clone() {
            let (mut grads, mut products) = ([T::Wide::ZERO; TILE], [T::Wide::ZERO; TILE]);
            for row in self.columns.rows(block) {
                let x = self.columns.row::<T>(0, self.tile, row);
                let grad = self.columns.row::<T>(1, self.tile, row);
                for lane in 0..width {
                    // SAFETY: elements of this launch's inputs, which hold `T`.
                    let (x, grad) = unsafe { ((*x.add(lane)).widen(), (*grad.add(lane)).widen()) };
                    grads[lane] = grads[lane] + grad;
                    let off = x - self.center[lane];
                    products[lane] = off.mul_add::<L>(grad, products[lane]);
                }
            }
            for (lane, total) in sums.0.iter_mut().enumerate().take(width) {
                let (grads, products) = (grads[lane].to_f64(), products[lane].to_f64());
                *total = total.join(Sums { grads, products });
            }
        }
        sums
    }
}

impl<T: Float> LevelKernel for MeasureColumns<'_, T> {
    type Output = Tile<Sums>;
    #[inline(always)]
    fn run<L: Level>(self) -> Tile<Sums> {
        match self.columns.channels(self.tile).len() {
            TILE => self.of_width::<L>(TILE),
            width => self.of_width::<L>(width),
        }
    }
}

/// The gradient of the input over some blocks of a tile.
struct DescendColumns<'a, T: Float> {
    columns: &'a Columns<3>,
    tile: usize,
    blocks: Range<usize>,
    slopes: Tile<Slope<T::Wide>>,
    training: bool,
}

impl<T: Float> DescendColumns<'_, T> {
    #[inline(always)]
    fn of_width<L: Level>(&self, width: usize) {
        let center = self.slopes.0.map(|slope| slope.center);
        let mean = self.slopes.0.map(|slope| slope.mean);
        let slope = self.slopes.0.map(|slope| slope.slope);
        let scale = self.slopes.0.map(|slope| slope.scale);
        for block in self.blocks.clone() {
            for row in self.columns.rows(block) {
                let x = self.columns.row::<T>(0, self.tile, row);
                let grad = self.columns.row::<T>(1, self.tile, row);
                let out = self.columns.row::<T>(2, self.tile, row);
                let mut results = [T::Wide::ZERO; TILE];
                for (lane, result) in results.iter_mut().enumerate().take(width) {
                    // SAFETY: elements of this launch's inputs, which hold `T`.
                    let (x, grad) = unsafe { ((*x.add(lane)).widen(), (*grad.add(lane)).widen()) };
                    let off = center[lane] - x;
                    *result = if self.training {
                        off.mul_add::<L>(slope[lane], grad - mean[lane]) * scale[lane]
                    } else {
                        grad * scale[lane]
                    };
                }
                for (lane, &result) in results.iter().enumerate().take(width) {
                    // SAFETY: an element of this launch's output, this thread's own.
                    unsafe { *out.add(lane) = T::narrow(result) };
                }
            }
        }
    }
}

impl<T: Float> LevelKernel for DescendColumns<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        match self.columns.channels(self.tile).len() {
            TILE => self.of_width::<L>(TILE),
            width => self.of_width::<L>(width),
        }
    }
}
