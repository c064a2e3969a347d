//! Bytes resampled linearly or by cubics, as PyTorch does it on the CPU: one dimension after the
//! other, with weights in fixed point and bytes in between. Other dtypes and modes are
//! `interpolate.rs`.

use plimsoll_core::{DType, Device, Error, Result};
use plimsoll_kernels::cpu::interpolate::InterpolateMode;

use super::antialias::Filter;
use crate::Tensor;
use crate::ops::channels_last::in_order_of;

/// Bits of a weight, as PyTorch keeps it.
const WEIGHT_BITS: u32 = 15;

/// How one dimension is resampled.
pub(super) struct Axis {
    pub(super) cubic: bool,
    pub(super) align_corners: bool,
    pub(super) antialias: bool,
    /// Output size over input size, where it is given.
    pub(super) scale: Option<f64>,
}

/// The pixels that each output is made of, a list of all outputs for each of a few pixels, and
/// their weights in units of 2 to the power of minus `precision`.
struct Taps {
    places: Vec<Vec<i64>>,
    weights: Vec<Vec<i32>>,
    precision: u32,
}

impl Axis {
    pub(super) fn new(
        mode: InterpolateMode,
        align_corners: bool,
        antialias: bool,
        scale: f64,
    ) -> Axis {
        let cubic = mode == InterpolateMode::Cubic;
        Axis { cubic, align_corners, antialias, scale: (scale > 0.0).then_some(scale) }
    }

    /// `x`, of bytes, with `size` places along `dim`.
    pub(super) fn resample(&self, x: &Tensor, dim: i64, size: usize) -> Result<Tensor> {
        let input = x.shape()[dim as usize];
        if input == size {
            return Ok(x.clone());
        }
        let taps = self.taps(input, size);
        let mut along = vec![1; x.rank()];
        along[dim as usize] = size as i64;
        let half = Tensor::full(&[], 1i64 << (taps.precision - 1), (DType::I32, x.device()))?;
        let mut sum = half;
        for (places, weights) in taps.places.iter().zip(&taps.weights) {
            let places = Tensor::from_slice(places, &[size as i64], Device::CPU)?;
            let weights = Tensor::from_slice(weights, &along, Device::CPU)?;
            let pixels = x.index_select(dim, &places.to(x.device())?)?.to(DType::I32)?;
            sum = sum.add(&pixels.mul(&weights.to(x.device())?)?)?;
        }
        sum.bitwise_right_shift(i64::from(taps.precision))?.clamp(0, 255)?.to(DType::U8)
    }

    fn taps(&self, input: usize, output: usize) -> Taps {
        let Axis { cubic, align_corners, antialias, scale } = *self;
        let filter = Filter { cubic, align_corners, scale };
        let exact: Vec<(usize, Vec<f64>)> = (0..output)
            .map(|place| match antialias {
                true => filter.weights_at(place, input, output),
                false => self.weights_at(place, input, output),
            })
            .collect();
        let count = exact.iter().map(|(_, weights)| weights.len()).max().unwrap_or(0);
        let largest =
            exact.iter().flat_map(|(_, weights)| weights).fold(0.0, |a: f64, &b| a.max(b));
        let mut precision = 0;
        // As many bits as the largest weight leaves.
        while precision < 22 {
            let next = (0.5 + largest * f64::from(1u32 << (precision + 1))) as i64;
            if next >= 1 << WEIGHT_BITS {
                break;
            }
            precision += 1;
        }
        let unit = f64::from(1u32 << precision);
        let place = |tap: usize| {
            let at = |(first, _): &(usize, Vec<f64>)| (first + tap).min(input - 1) as i64;
            exact.iter().map(at).collect()
        };
        let weight = |tap: usize| {
            let rounded = |(_, weights): &(usize, Vec<f64>)| {
                weights.get(tap).map_or(0, |weight| (weight * unit).round() as i32)
            };
            exact.iter().map(rounded).collect()
        };
        Taps {
            places: (0..count).map(place).collect(),
            weights: (0..count).map(weight).collect(),
            precision: precision.max(1),
        }
    }

    /// The first pixel of output `place`, and the weights from there on. What lies outside counts
    /// for the pixel at the edge.
    fn weights_at(&self, place: usize, input: usize, output: usize) -> (usize, Vec<f64>) {
        let count = if self.cubic { 4 } else { 2 };
        let source = self.source(place, input, output);
        let last = input as i64 - 1;
        let index = (source.floor() as i64).min(last);
        let part = (source - index as f64).clamp(0.0, 1.0);
        let reach = count as i64 / 2;
        let begin = index - reach + 1;
        let first = begin.max(0);
        let inside = ((index + reach + 1).min(input as i64) - first).clamp(1, count as i64);
        let mut weights = vec![0.0; count];
        let mut at = 0;
        for tap in 0..count as i64 {
            if begin + tap <= 0 {
                at = 0;
            } else if begin + tap >= last {
                at = inside as usize - 1;
            }
            weights[at] += self.filter((tap + 1 - reach) as f64 - part);
            at = (at + 1).min(count - 1);
        }
        (first as usize, weights)
    }

    /// Where output `place` lies among the inputs.
    fn source(&self, place: usize, input: usize, output: usize) -> f64 {
        if self.align_corners {
            let step = if output > 1 { (input - 1) as f64 / (output - 1) as f64 } else { 0.0 };
            return step * place as f64;
        }
        let step = self.scale.map_or(input as f64 / output as f64, |scale| 1.0 / scale);
        let source = step * (place as f64 + 0.5) - 0.5;
        if self.cubic { source } else { source.max(0.0) }
    }

    /// The weight of a pixel this far away; the cubic is Keys's with a slope of -3/4 at 1.
    fn filter(&self, distance: f64) -> f64 {
        const A: f64 = -0.75;
        let x = distance.abs();
        match (self.cubic, x) {
            (false, x) => (1.0 - x).max(0.0),
            (true, x) if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
            (true, x) if x < 2.0 => ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A,
            _ => 0.0,
        }
    }
}

/// `x`, images of bytes, with other spatial sizes; the last dimension goes first.
pub(super) fn resample(x: &Tensor, sizes: &[usize], axes: &[Axis]) -> Result<Tensor> {
    let shape = x.shape();
    if shape.len() != sizes.len() + 2 || shape[1..].contains(&0) || sizes.contains(&0) {
        return Err(Error::shape(
            "interpolate",
            format!("images of shape {shape:?} and sizes {sizes:?} must fit and have elements"),
        ));
    }
    let mut result = x.clone();
    for (dim, (axis, &size)) in axes.iter().zip(sizes).enumerate().rev() {
        result = axis.resample(&result, dim as i64 + 2, size)?;
    }
    if result.is(x) { x.clone_tensor() } else { in_order_of(&result, x) }
}
