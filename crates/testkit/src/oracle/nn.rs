//! What networks are made of: softmax, normalisation, dropout given its mask.

use super::{Array, Number, float_dtype, indices, views};

/// The elements along `dim` that `index` lies among, as doubles.
fn row(x: &Array, dim: usize, index: &[usize]) -> Vec<f64> {
    if x.shape().is_empty() {
        return vec![x.at(&[]).to_f64()];
    }
    let mut index = index.to_vec();
    (0..x.shape()[dim])
        .map(|k| {
            index[dim] = k;
            x.at(&index).to_f64()
        })
        .collect()
}

/// `exp(x) / sum(exp(x))` along `dim`.
pub fn softmax(x: &Array, dim: i64) -> Array {
    let d = x.dim(dim);
    Array::build(x.dtype(), x.shape(), |i| {
        let row = row(x, d, i);
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (x.at(i).to_f64() - top).exp() / row.iter().map(|v| (v - top).exp()).sum::<f64>()
    })
}

/// `x - log(sum(exp(x)))` along `dim`.
pub fn log_softmax(x: &Array, dim: i64) -> Array {
    let d = x.dim(dim);
    Array::build(x.dtype(), x.shape(), |i| {
        let row = row(x, d, i);
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        x.at(i).to_f64() - top - row.iter().map(|v| (v - top).exp()).sum::<f64>().ln()
    })
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` over the last `normalized` dimensions.
pub fn layer_norm(
    x: &Array,
    normalized: usize,
    weight: Option<&Array>,
    bias: Option<&Array>,
    eps: f64,
) -> Array {
    let lead = x.shape().len() - normalized;
    let inner: usize = x.shape()[lead..].iter().product();
    let mut flat = x.shape()[..lead].to_vec();
    flat.push(inner);
    let rows = views::reshape(x, &flat);
    let result = Array::build(x.dtype(), &flat, |i| {
        let row = row(&rows, lead, i);
        let n = inner as f64;
        let mean = row.iter().sum::<f64>() / n;
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let scale =
            |w: Option<&Array>, plain: f64| w.map_or(plain, |w| w.values()[i[lead]].to_f64());
        (rows.at(i).to_f64() - mean) / (variance + eps).sqrt() * scale(weight, 1.0)
            + scale(bias, 0.0)
    });
    views::reshape(&result, x.shape())
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` over groups of channels, dimension 1, of each
/// sample.
pub fn group_norm(
    x: &Array,
    groups: usize,
    weight: Option<&Array>,
    bias: Option<&Array>,
    eps: f64,
) -> Array {
    let size = x.shape()[1] / groups;
    Array::build(x.dtype(), x.shape(), |i| {
        let alike = |j: &[usize]| j[0] == i[0] && j[1] / size == i[1] / size;
        let values: Vec<f64> =
            indices(x.shape()).filter(|j| alike(j)).map(|j| x.at(&j).to_f64()).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let of =
            |array: Option<&Array>, plain: f64| array.map_or(plain, |a| a.values()[i[1]].to_f64());
        (x.at(i).to_f64() - mean) / (variance + eps).sqrt() * of(weight, 1.0) + of(bias, 0.0)
    })
}

/// What a batch norm goes by besides its input, an element a channel each.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<'a> {
    /// Running mean and variance.
    pub running: Option<(&'a Array, &'a Array)>,
    /// Multiplies.
    pub weight: Option<&'a Array>,
    /// Is added.
    pub bias: Option<&'a Array>,
    /// Whether the batch's own statistics are used.
    pub training: bool,
    /// How much of them goes into the running ones.
    pub momentum: f64,
    /// Added to the variance.
    pub eps: f64,
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` for each channel, dimension 1; and the running
/// statistics afterwards.
pub fn batch_norm(x: &Array, by: BatchNorm<'_>) -> (Array, Option<(Array, Array)>) {
    let channels = x.shape()[1];
    let mut values = vec![Vec::new(); channels];
    for index in indices(x.shape()) {
        values[index[1]].push(x.at(&index).to_f64());
    }
    // Mean, variance, and the latter unbiased.
    let moments: Vec<(f64, f64, f64)> = values
        .iter()
        .map(|values| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            (mean, squares / n, squares / (n - 1.0))
        })
        .collect();
    let at = |array: &Array, channel: usize| array.values()[channel].to_f64();
    let y = Array::build(x.dtype(), x.shape(), |i| {
        let channel = i[1];
        let (mean, variance) = match by.running.filter(|_| !by.training) {
            Some((mean, variance)) => (at(mean, channel), at(variance, channel)),
            None => (moments[channel].0, moments[channel].1),
        };
        (x.at(i).to_f64() - mean) / (variance + by.eps).sqrt()
            * by.weight.map_or(1.0, |weight| at(weight, channel))
            + by.bias.map_or(0.0, |bias| at(bias, channel))
    });
    let mixed = |old: &Array, new: &dyn Fn(usize) -> f64| {
        Array::build(old.dtype(), old.shape(), |i| {
            let stays = !by.training || values[i[0]].is_empty();
            let momentum = if stays { 0.0 } else { by.momentum };
            let added = if stays { 0.0 } else { momentum * new(i[0]) };
            at(old, i[0]) * (1.0 - momentum) + added
        })
    };
    let running = by.running.map(|(mean, variance)| {
        (mixed(mean, &|c| moments[c].0), mixed(variance, &|c| moments[c].2))
    });
    (y, running)
}

/// Dropout with a known mask: kept elements are scaled by `1 / (1 - p)`, the others are zero.
pub fn dropout(x: &Array, keep: &[bool], p: f64) -> Array {
    let mut kept = keep.iter();
    Array::build(float_dtype(x.dtype()), x.shape(), |i| {
        match kept.next().expect("a mask as long as the array") {
            true => Number::Float(x.at(i).to_f64() / (1.0 - p)),
            false => Number::Float(0.0),
        }
    })
}
