//! Convolutions, as the sums that define them.

use super::{Array, Number, indices};

/// What a convolution has besides tensors; lists by spatial dimension.
#[derive(Clone, Copy, Debug)]
pub struct Conv {
    /// From one window to the next.
    pub stride: &'static [usize],
    /// Zeros before the first element.
    pub padding: &'static [usize],
    /// Zeros behind the last element.
    pub behind: &'static [usize],
    /// From one element of a window to the next.
    pub dilation: &'static [usize],
    /// Groups of channels.
    pub groups: usize,
}

/// A sum of products, exact for integers.
#[derive(Clone, Copy)]
enum Sum {
    Int(i64),
    Float(f64),
}

impl Sum {
    fn of(x: &Array) -> Sum {
        if x.dtype().is_float() { Sum::Float(0.0) } else { Sum::Int(0) }
    }

    fn add(&mut self, a: Number, b: Number) {
        match self {
            Sum::Int(sum) => *sum = sum.wrapping_add(a.to_i64().wrapping_mul(b.to_i64())),
            Sum::Float(sum) => *sum += a.to_f64() * b.to_f64(),
        }
    }

    fn number(self) -> Number {
        match self {
            Sum::Int(sum) => Number::Int(sum),
            Sum::Float(sum) => Number::Float(sum),
        }
    }
}

/// Every window of `x` times the weights of each channel, plus its bias.
pub fn conv(x: &Array, weight: &Array, bias: Option<&Array>, by: Conv) -> Array {
    let (input, kernel) = (&x.shape()[2..], &weight.shape()[2..]);
    let results: Vec<usize> = (0..input.len())
        .map(|d| {
            let span = by.dilation[d] * (kernel[d] - 1) + 1;
            (input[d] + by.padding[d] + by.behind[d] - span) / by.stride[d] + 1
        })
        .collect();
    let (inner, outer) = (weight.shape()[1], weight.shape()[0] / by.groups);
    let shape = [&[x.shape()[0], weight.shape()[0]], &results[..]].concat();
    Array::build(x.dtype(), &shape, |at| {
        let (image, channel, place) = (at[0], at[1], &at[2..]);
        let mut sum = Sum::of(x);
        for c in 0..inner {
            for k in indices(kernel) {
                let from: Option<Vec<usize>> = (0..k.len())
                    .map(|d| {
                        (place[d] * by.stride[d] + k[d] * by.dilation[d])
                            .checked_sub(by.padding[d])
                            .filter(|&at| at < input[d])
                    })
                    .collect();
                let Some(from) = from else { continue };
                let from = [&[image, channel / outer * inner + c], &from[..]].concat();
                sum.add(x.at(&from), weight.at(&[&[channel, c], &k[..]].concat()));
            }
        }
        if let Some(bias) = bias {
            sum.add(bias.at(&[channel]), Number::Int(1));
        }
        sum.number()
    })
}

/// What `conv` sends back to an input whose result has `x`'s shape, plus a bias; the input is
/// `more` larger than it must be.
pub fn conv_transpose(
    x: &Array,
    weight: &Array,
    bias: Option<&Array>,
    by: Conv,
    more: &[usize],
) -> Array {
    let (input, kernel) = (&x.shape()[2..], &weight.shape()[2..]);
    let results: Vec<usize> = (0..input.len())
        .map(|d| {
            let span = by.dilation[d] * (kernel[d] - 1) + 1;
            (input[d] - 1) * by.stride[d] + span + more[d] - 2 * by.padding[d]
        })
        .collect();
    let (inner, outer) = (weight.shape()[0] / by.groups, weight.shape()[1]);
    let shape = [&[x.shape()[0], outer * by.groups], &results[..]].concat();
    Array::build(x.dtype(), &shape, |at| {
        let (image, channel, place) = (at[0], at[1], &at[2..]);
        let mut sum = Sum::of(x);
        for c in 0..inner {
            for from in indices(input) {
                for k in indices(kernel) {
                    let meets = (0..k.len()).all(|d| {
                        from[d] * by.stride[d] + k[d] * by.dilation[d] == place[d] + by.padding[d]
                    });
                    if meets {
                        let c = channel / outer * inner + c;
                        sum.add(
                            x.at(&[&[image, c], &from[..]].concat()),
                            weight.at(&[&[c, channel % outer], &k[..]].concat()),
                        );
                    }
                }
            }
        }
        if let Some(bias) = bias {
            sum.add(bias.at(&[channel]), Number::Int(1));
        }
        sum.number()
    })
}
