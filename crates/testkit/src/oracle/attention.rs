//! Attention, with the whole matrix of scores.

use super::{Array, indices};

/// `softmax(query key^T * scale + mask) value`; `mask` says what is added, and minus infinity
/// hides.
pub fn attention(
    query: &Array,
    key: &Array,
    value: &Array,
    scale: f64,
    group: usize,
    mask: impl Fn(&[usize], usize, usize) -> f64,
) -> Array {
    let rank = query.shape().len();
    let (keys, width) = (key.shape()[rank - 2], key.shape()[rank - 1]);
    let mut shape = query.shape().to_vec();
    shape[rank - 1] = value.shape()[rank - 1];
    Array::build(query.dtype(), &shape, |i| {
        let (lead, row) = (&i[..rank - 2], i[rank - 2]);
        let mut head = lead.to_vec();
        if let Some(last) = head.last_mut() {
            *last /= group;
        }
        let at = |array: &Array, lead: &[usize], row: usize, column: usize| {
            array.at(&[lead, &[row, column]].concat()).to_f64()
        };
        let scores: Vec<f64> = (0..keys)
            .map(|k| {
                let dot = |c: usize| at(query, lead, row, c) * at(key, &head, k, c);
                (0..width).map(dot).sum::<f64>() * scale + mask(lead, row, k)
            })
            .collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY {
            return 0.0;
        }
        let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        (0..keys).map(|k| weights[k] / sum * at(value, &head, k, i[rank - 1])).sum::<f64>()
    })
}

/// The elements of `x`, in order: what a mask adds, or 0 and minus infinity of truths.
pub fn added(x: &Array) -> Vec<f64> {
    let bool = x.dtype() == plimsoll_core::DType::Bool;
    indices(x.shape())
        .map(|i| match bool {
            true if x.at(&i).is_true() => 0.0,
            true => f64::NEG_INFINITY,
            false => x.at(&i).to_f64(),
        })
        .collect()
}
