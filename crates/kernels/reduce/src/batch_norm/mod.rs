//! Batch normalization over dimension 1: (x - mean) / sqrt(variance + eps), scaled and shifted, by
//! the batch's own statistics in training and by running ones in evaluation. `backward.rs` has its
//! derivative, `channels.rs` and `columns.rs` how any layout becomes loops, `split.rs` who does
//! what.
//!
//! Statistics take one pass over memory: a slice in the cache gives its mean and its squares around
//! that mean, lanes of f32, and slices are joined in f64 (Chan, Golub and LeVeque).

mod backward;
mod channels;
mod columns;
mod split;

use std::ops::Range;

use plimsoll_core::{Error, Result};

pub use backward::{
    BatchNormBackwardArgs, BatchNormGrads, batch_norm_backward, batch_norm_backward_workspace_bytes,
};
use channels::Channels;
use columns::{Columns, TILE, Tile};
use split::Split;

use plimsoll_engine::Element;
use plimsoll_engine::along_dim::{SLICE, fold};
use plimsoll_engine::generate::{load_real, store_real};
use plimsoll_engine::match_float;
use plimsoll_engine::nontemporal;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Meta, Operand};

/// What a batch norm is told besides its operands.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormArgs {
    /// Whether the batch's own statistics are used, and running ones written.
    pub training: bool,
    /// Whether there are running statistics: inputs in evaluation, written in training.
    pub running: bool,
    /// Whether a weight follows.
    pub weight: bool,
    /// Whether a bias follows.
    pub bias: bool,
    /// How much of the batch goes into the running statistics.
    pub momentum: f64,
    /// Added to the variance.
    pub eps: f64,
}

/// Scratch of [`batch_norm`]: nothing where threads take whole channels.
pub fn batch_norm_workspace_bytes(inputs: &[&Meta], outputs: &[Meta], training: bool) -> usize {
    let (Some(x), Some(out)) = (inputs.first(), outputs.first()) else { return 0 };
    if !training || x.shape().len() < 2 {
        return 0;
    }
    workspace_bytes::<Moments>(&[x, out])
}

/// Scratch for sums of `A` over each channel of operands of these metas.
fn workspace_bytes<A>(metas: &[&Meta]) -> usize {
    let (channels, numel) = (metas[0].shape()[1], metas[0].layout.numel());
    let layouts = metas.iter().map(|meta| &meta.layout);
    if columns::fit(layouts) {
        Split::new(channels.div_ceil(TILE), numel).workspace_bytes::<Tile<A>>()
    } else {
        Split::new(channels, numel).workspace_bytes::<A>()
    }
}

/// Training: `[x, weight?, bias?]` -> `[y]` or `[y, mean, 1 / sqrt(variance + eps)]`, and running
/// mean and variance behind them if there are. Evaluation: `[x, mean, variance, weight?, bias?]` ->
/// `[y]`.
pub fn batch_norm(launch: &CpuLaunch<'_>, args: BatchNormArgs) -> Result<()> {
    match_float!(launch, plimsoll_engine::input_dtype(launch)?, T => forward::<T>(launch, args))
}

/// How many values, their mean, and the sum of their squared distances from it.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// From squared distances to `center`, the mean after rounding.
    #[inline(always)]
    fn around(center: f64, count: f64, mean: f64, squares: f64) -> Moments {
        let squares = squares - (mean - center) * (mean - center) * count;
        // Not by `max`, which would hide a NaN.
        Moments { count, mean, squares: if squares < 0.0 { 0.0 } else { squares } }
    }

    #[inline(always)]
    fn join(self, other: Moments) -> Moments {
        if self.count == 0.0 {
            return other;
        }
        let count = self.count + other.count;
        let apart = other.mean - self.mean;
        Moments {
            count,
            mean: self.mean + apart * other.count / count,
            squares: self.squares
                + other.squares
                + apart * apart * self.count * other.count / count,
        }
    }
}

/// What is done to each element of a channel: `(x - center) * scale + shift`.
#[derive(Clone, Copy, Debug)]
struct Affine<R> {
    center: R,
    scale: R,
    shift: R,
}

impl<R: Real> Affine<R> {
    const ZERO: Affine<R> = Affine { center: R::ZERO, scale: R::ZERO, shift: R::ZERO };
}

/// The operands that have an element a channel.
struct Statistics<'a> {
    args: BatchNormArgs,
    weight: Option<&'a Operand<'a>>,
    bias: Option<&'a Operand<'a>>,
    /// Mean and 1 / deviation, for backward.
    kept: Option<[&'a Operand<'a>; 2]>,
    /// Running mean and variance.
    running: Option<[&'a Operand<'a>; 2]>,
}

impl<'a> Statistics<'a> {
    fn new(launch: &'a CpuLaunch<'a>, args: BatchNormArgs) -> Result<Statistics<'a>> {
        let (inputs, outputs) = (launch.inputs, launch.outputs);
        let given = 2 * usize::from(args.running);
        let read = if args.training { 0 } else { given };
        let made = outputs.len().checked_sub(if args.training { given } else { 0 });
        let expected = 1 + read + usize::from(args.weight) + usize::from(args.bias);
        let kept = match made {
            Some(1) => None,
            Some(3) if args.training => Some([&outputs[1], &outputs[2]]),
            _ => return Err(wrong_operands(launch)),
        };
        if inputs.len() != expected || (!args.training && !args.running) {
            return Err(wrong_operands(launch));
        }
        let running = match (args.running, args.training) {
            (false, _) => None,
            (true, true) => Some([&outputs[outputs.len() - 2], &outputs[outputs.len() - 1]]),
            (true, false) => Some([&inputs[1], &inputs[2]]),
        };
        let mut affine = inputs[1 + read..].iter();
        let weight = if args.weight { affine.next() } else { None };
        let bias = if args.bias { affine.next() } else { None };
        let statistics = Statistics { args, weight, bias, kept, running };
        let channels = inputs[0].shape().get(1).copied().unwrap_or(0);
        let all = [weight, bias].into_iter().flatten();
        let all = all.chain(kept.into_iter().flatten()).chain(running.into_iter().flatten());
        if all.into_iter().any(|operand| operand.layout().numel() != channels) {
            return Err(wrong_operands(launch));
        }
        Ok(statistics)
    }

    /// What is done to the elements of a channel with these moments.
    fn affine<R: Real>(&self, channel: usize, moments: Moments) -> Affine<R> {
        // SAFETY: every operand has an element for each channel (`new` checked).
        let at = |operand: &Operand<'_>| unsafe { load_real(operand, channel) };
        let (mean, variance) = match self.running.filter(|_| !self.args.training) {
            Some([mean, variance]) => (at(mean), at(variance)),
            None => (moments.mean, moments.squares / moments.count),
        };
        let scale = self.weight.map_or(1.0, at) / (variance + self.args.eps).sqrt();
        let shift = self.bias.map_or(0.0, at);
        Affine { center: R::of(mean), scale: R::of(scale), shift: R::of(shift) }
    }

    /// Writes what follows from a channel's moments in training.
    fn keep(&self, channel: usize, moments: Moments) {
        if !self.args.training {
            return;
        }
        let Moments { count, mean, squares } = moments;
        // SAFETY: every operand has an element for each channel (`new` checked), and a channel is
        // kept once, by one thread.
        unsafe {
            if let Some([mean_out, rstd_out]) = self.kept {
                let rstd = 1.0 / (squares / count + self.args.eps).sqrt();
                store_real(mean_out, channel, mean);
                // Without values gradients are 0, not NaN.
                store_real(rstd_out, channel, if count == 0.0 { 0.0 } else { rstd });
            }
            // Running statistics stay as they are without values.
            if let (Some([running_mean, running_var]), true) = (self.running, count > 0.0) {
                let momentum = self.args.momentum;
                let mixed = |old: f64, new: f64| (1.0 - momentum) * old + momentum * new;
                let unbiased = squares / (count - 1.0);
                store_real(running_mean, channel, mixed(load_real(running_mean, channel), mean));
                let old = load_real(running_var, channel);
                store_real(running_var, channel, mixed(old, unbiased));
            }
        }
    }
}

#[cold]
fn wrong_operands(launch: &CpuLaunch<'_>) -> Error {
    Error::invalid_argument("operands do not match the arguments").in_operation(launch.operation)
}

fn forward<T: Float>(launch: &CpuLaunch<'_>, args: BatchNormArgs) -> Result<()> {
    let statistics = Statistics::new(launch, args)?;
    let operands = [launch.inputs[0], launch.outputs[0]];
    let numel = operands[0].layout().numel();
    if columns::fit(operands.iter().map(Operand::layout)) {
        let columns = Columns::<2>::new::<T>(launch, &operands)?;
        return forward_columns::<T>(launch, &columns, &statistics, numel);
    }
    let channels = Channels::<2>::new::<T>(launch, &operands)?;
    let streamed = channels.is_dense::<T>(1)
        && nontemporal::is_streamed(&[launch.outputs[0], launch.inputs[0]]);
    let measure = |channel: usize, slices: Range<usize>| {
        simd::dispatch_level(Measure::<T>(&channels, channel, slices, Default::default()))
    };
    let measure: &(dyn Fn(usize, Range<usize>) -> Moments + Sync) = &measure;
    Split::new(channels.count, numel).run(
        launch,
        channels.slices(),
        args.training.then_some(measure),
        &Moments::join,
        &|channel, slices, moments, first| {
            let affine = statistics.affine::<T::Wide>(channel, moments);
            let channels = &channels;
            simd::dispatch_level(Normalize::<T> { channels, channel, slices, affine, streamed });
            if first {
                statistics.keep(channel, moments);
            }
        },
    )
}

/// The moments of some slices of a channel of operand 0.
struct Measure<'a, T: Float>(&'a Channels<2>, usize, Range<usize>, std::marker::PhantomData<T>);

impl<T: Float> LevelKernel for Measure<'_, T> {
    type Output = Moments;
    #[inline(always)]
    fn run<L: Level>(self) -> Moments {
        let Measure(channels, channel, slices, _) = self;
        let mut buffer = [T::Wide::ZERO; SLICE];
        let mut moments = Moments::default();
        for slice in slices {
            // SAFETY: slices of this launch's input, which holds `T` (`Channels::new` checked).
            let values = unsafe { channels.fetch::<T>(0, channel, slice, &mut buffer) };
            moments = moments.join(moments_of::<L, T::Wide>(values));
        }
        moments
    }
}

/// The moments of neighbouring values in the cache, in two passes.
#[inline(always)]
fn moments_of<L: Level, R: Real>(values: &[R]) -> Moments {
    let (from, len, count) = (values.as_ptr(), values.len(), values.len() as f64);
    // SAFETY: the elements of a slice.
    let sum = unsafe { fold(from, len, R::ZERO, |a, b| a + b, |a, b| a + b) };
    let center = R::of(sum.to_f64() / count);
    let square = |total: R, value: R| {
        let off = value - center;
        off.mul_add::<L>(off, total)
    };
    // SAFETY: as above.
    let squares = unsafe { fold(from, len, R::ZERO, square, |a, b| a + b) };
    Moments::around(center.to_f64(), count, sum.to_f64() / count, squares.to_f64())
}

/// Normalizes some slices of a channel, operand 0 into operand 1.
struct Normalize<'a, T: Float> {
    channels: &'a Channels<2>,
    channel: usize,
    slices: Range<usize>,
    affine: Affine<T::Wide>,
    streamed: bool,
}

impl<T: Float> LevelKernel for Normalize<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Normalize { channels, channel, slices, affine, streamed } = self;
        let Affine { center, scale, shift } = affine;
        let mut buffer = [T::Wide::ZERO; SLICE];
        let mut results = [T::Wide::ZERO; SLICE];
        for slice in slices {
            // SAFETY: slices of this launch's operands, which hold `T` (`Channels::new` checked);
            // every slice is one thread's.
            unsafe {
                let values = channels.fetch::<T>(0, channel, slice, &mut buffer);
                for (result, &value) in results.iter_mut().zip(values) {
                    *result = (value - center).mul_add::<L>(scale, shift);
                }
                channels.store::<T>(1, channel, slice, &results[..values.len()], streamed);
            }
        }
        if streamed {
            nontemporal::fence();
        }
    }
}

fn forward_columns<T: Float>(
    launch: &CpuLaunch<'_>,
    columns: &Columns<2>,
    statistics: &Statistics<'_>,
    numel: usize,
) -> Result<()> {
    let measure = |tile: usize, blocks: Range<usize>| {
        simd::dispatch_level(columns::Measure::<T>::new(columns, tile, blocks))
    };
    let measure: &(dyn Fn(usize, Range<usize>) -> Tile<Moments> + Sync) = &measure;
    Split::new(columns.tiles(), numel).run(
        launch,
        columns.blocks(),
        statistics.args.training.then_some(measure),
        &|a: Tile<Moments>, b: Tile<Moments>| a.join(&b, Moments::join),
        &|tile, blocks, moments, first| {
            let mut affine = Tile([Affine::ZERO; TILE]);
            for (lane, channel) in columns.channels(tile).enumerate() {
                affine.0[lane] = statistics.affine(channel, moments.0[lane]);
            }
            simd::dispatch_level(columns::Normalize::<T>::new(columns, tile, blocks, &affine));
            if first {
                for (lane, channel) in columns.channels(tile).enumerate() {
                    statistics.keep(channel, moments.0[lane]);
                }
            }
        },
    )
}

#[cfg(test)]
mod tests;
