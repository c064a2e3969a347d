//! Losses: of elements and of classes.

use plimsoll_tensor::Reduction;

use super::{Array, common_dtype, indices};

/// A loss for each element, reduced.
pub fn elements(
    x: &Array,
    target: &Array,
    reduction: Reduction,
    loss: impl Fn(f64, f64) -> f64,
) -> Array {
    let dtype = common_dtype(&[x, target]);
    let each =
        Array::build(dtype, x.shape(), |i| loss(x.at(i).to_f64(), target.at_broadcast(i).to_f64()));
    let exact =
        || indices(x.shape()).map(|i| loss(x.at(&i).to_f64(), target.at_broadcast(&i).to_f64()));
    match reduction {
        Reduction::None => each,
        Reduction::Sum => Array::build(dtype, &[], |_| exact().sum::<f64>()),
        Reduction::Mean => Array::build(dtype, &[], |_| exact().sum::<f64>() / x.numel() as f64),
    }
}

/// How losses of classes are computed.
#[derive(Clone, Copy, Debug)]
pub struct Classes<'a> {
    /// One a class.
    pub weight: Option<&'a Array>,
    /// What becomes of the rows' losses.
    pub reduction: Reduction,
    /// A target that counts for nothing.
    pub ignore_index: i64,
    /// How much of the target is spread over all classes.
    pub smoothing: f64,
    /// Whether the input holds scores and not log-probabilities.
    pub scores: bool,
}

/// Cross entropy, or the negative log-likelihood, of target classes; classes are dimension 1.
pub fn classes(x: &Array, target: &Array, by: Classes<'_>) -> Array {
    let dim = usize::from(x.shape().len() > 1);
    let count = x.shape()[dim];
    let weight = |class: usize| by.weight.map_or(1.0, |w| w.values()[class].to_f64());
    let row = |place: &[usize]| -> (f64, f64) {
        let class = target.at(place).to_i64();
        if class == by.ignore_index {
            return (0.0, 0.0);
        }
        let scores: Vec<f64> = (0..count)
            .map(|c| {
                let mut index = place.to_vec();
                index.insert(dim, c);
                x.at(&index).to_f64()
            })
            .collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum = top + scores.iter().map(|s| (s - top).exp()).sum::<f64>().ln();
        let shift = if by.scores { sum } else { 0.0 };
        let own = -(scores[class as usize] - shift) * weight(class as usize);
        let all = (0..count).map(|c| -(scores[c] - shift) * weight(c)).sum::<f64>();
        let spread = all / count as f64;
        (own * (1.0 - by.smoothing) + spread * by.smoothing, weight(class as usize))
    };
    match by.reduction {
        Reduction::None => Array::build(x.dtype(), target.shape(), |i| row(i).0),
        Reduction::Sum => Array::build(x.dtype(), &[], |_| {
            indices(target.shape()).map(|i| row(&i).0).sum::<f64>()
        }),
        Reduction::Mean => Array::build(x.dtype(), &[], |_| {
            let total: f64 = indices(target.shape()).map(|i| row(&i).0).sum();
            total / indices(target.shape()).map(|i| row(&i).1).sum::<f64>()
        }),
    }
}
