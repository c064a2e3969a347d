//! Resampling without aliasing: where a dimension shrinks, the filter grows with the step, so that
//! every pixel counts. One dimension after the other, the last first, by index and weight. Bytes
//! take the weights from here and are added up in `interpolate_bytes.rs`.

use plimsoll_core::{DType, Device, Error, Result};

use crate::Tensor;
use crate::ops::channels_last::in_order_of;

/// The filter along one dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    /// Keys's cubic with a slope of -1/2 at 1, and not the triangle.
    pub(super) cubic: bool,
    pub(super) align_corners: bool,
    /// Output size over input size, where it is given.
    pub(super) scale: Option<f64>,
}

impl Filter {
    /// Input places to an output place.
    fn step(&self, input: usize, output: usize) -> f64 {
        match (self.align_corners, self.scale) {
            (true, _) if output > 1 => (input - 1) as f64 / (output - 1) as f64,
            (true, _) => 0.0,
            (false, Some(scale)) => 1.0 / scale,
            (false, None) => input as f64 / output as f64,
        }
    }

    /// The first pixel of output `place`, and the weights from there on, which add up to 1.
    pub(super) fn weights_at(
        &self,
        place: usize,
        input: usize,
        output: usize,
    ) -> (usize, Vec<f64>) {
        let step = self.step(input, output);
        let widened = step.max(1.0);
        let support = if self.cubic { 2.0 } else { 1.0 } * widened;
        let centre = step * (place as f64 + 0.5);
        let first = (centre - support + 0.5).max(0.0) as usize;
        let end = ((centre + support + 0.5) as usize).min(input);
        let most = support.ceil() as usize * 2 + 1;
        let count = end.saturating_sub(first).min(most);
        let distance = |tap: usize| ((tap + first) as f64 - centre + 0.5) / widened;
        let mut weights: Vec<f64> = (0..count).map(|tap| self.of(distance(tap))).collect();
        let total: f64 = weights.iter().sum();
        if total != 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= total);
        }
        (first.min(input - 1), weights)
    }

    fn of(&self, distance: f64) -> f64 {
        const A: f64 = -0.5;
        let x = distance.abs();
        match (self.cubic, x) {
            (false, x) => (1.0 - x).max(0.0),
            (true, x) if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
            (true, x) if x < 2.0 => ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A,
            _ => 0.0,
        }
    }

    /// `x` with `size` places along `dim`.
    fn resample(&self, x: &Tensor, dim: usize, size: usize) -> Result<Tensor> {
        let input = x.shape()[dim];
        if self.step(input, size) == 1.0 && input == size {
            return Ok(x.clone());
        }
        let taps: Vec<_> = (0..size).map(|place| self.weights_at(place, input, size)).collect();
        let mut along = vec![1; x.rank()];
        along[dim] = size as i64;
        let most = taps.iter().map(|(_, weights)| weights.len()).max().unwrap_or(0);
        let mut sum: Option<Tensor> = None;
        for tap in 0..most.max(1) {
            // Beyond its own taps a place looks at its first pixel, which then counts nothing.
            let own = |(first, weights): &(usize, Vec<f64>)| match weights.get(tap) {
                Some(&weight) => ((first + tap) as i64, weight),
                None => (*first as i64, 0.0),
            };
            let (places, weights): (Vec<i64>, Vec<f64>) = taps.iter().map(own).unzip();
            let places = Tensor::from_slice(&places, &[size as i64], Device::CPU)?;
            let weights = Tensor::from_slice(&weights, &along, Device::CPU)?;
            let pixels = x.index_select(dim as i64, &places.to(x.device())?)?;
            let part = pixels.mul(&weights.to(x.dtype())?.to(x.device())?)?;
            match &sum {
                Some(sum) => drop(sum.add_(&part)?),
                None => sum = Some(part),
            }
        }
        sum.ok_or_else(|| Error::shape("interpolate", "a size of 0 has no places"))
    }
}

/// `x`, images of floats, with other spatial sizes. Half types are computed in float32.
pub(super) fn resample(x: &Tensor, sizes: &[usize], filters: [Filter; 2]) -> Result<Tensor> {
    let shape = x.shape();
    if shape.len() != 4 || sizes.len() != 2 || shape[1..].contains(&0) || sizes.contains(&0) {
        return Err(Error::shape(
            "interpolate",
            format!("images of shape {shape:?} and sizes {sizes:?} must fit and have elements"),
        ));
    }
    if !x.dtype().is_float() {
        let why = format!("antialias takes floats and uint8, not {}; convert with `to`", x.dtype());
        return Err(Error::dtype("interpolate", why));
    }
    let wide = if x.dtype().size_bytes() < 4 { DType::F32 } else { x.dtype() };
    let mut result = x.to(wide)?;
    for (dim, filter) in filters.iter().enumerate().rev() {
        result = filter.resample(&result, dim + 2, sizes[dim])?;
    }
    let result = if result.is(x) { x.clone_tensor()? } else { result.to(x.dtype())? };
    in_order_of(&result, x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_and_every_pixel_counts() {
        for cubic in [false, true] {
            for (input, output) in [(16, 5), (10, 2), (5, 9), (3, 1), (1, 4)] {
                let filter = Filter { cubic, align_corners: false, scale: None };
                let mut counted = vec![0.0f64; input];
                for place in 0..output {
                    let (first, weights) = filter.weights_at(place, input, output);
                    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                    for (tap, weight) in weights.iter().enumerate() {
                        counted[first + tap] += weight.abs();
                    }
                }
                assert!(counted.iter().all(|&weight| weight > 0.0), "{cubic} {input} {output}");
            }
        }
    }
}
