//! What networks are made of: softmax, normalisation, dropout given its mask.

use super::{Array, Number, float_dtype, views};

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
