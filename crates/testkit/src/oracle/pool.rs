//! Pooling over explicit lists of elements, unpooling, windows as columns, shuffles.

use plimsoll_core::DType;

use super::{Array, Number, indices};

/// The windows along one dimension: for each its elements, and how many count with the padding.
pub type Windows = Vec<(Vec<usize>, usize)>;

/// Windows of one size, evenly apart.
pub fn even(
    size: usize,
    (kernel, stride, padding, dilation): (usize, usize, usize, usize),
    ceil_mode: bool,
) -> Windows {
    let mut windows = Vec::new();
    loop {
        let start = windows.len() * stride;
        let end = start + dilation * (kernel - 1) + 1;
        // A window that ends past the padding needs `ceil_mode`, and must start before it.
        let fits = end <= size + 2 * padding || (ceil_mode && start < size + padding);
        let past = end >= size + 2 * padding + stride;
        if !fits || (past && !windows.is_empty()) {
            return windows;
        }
        let elements = (0..kernel)
            .filter_map(|k| (start + k * dilation).checked_sub(padding).filter(|&at| at < size))
            .collect();
        windows.push((elements, kernel.min(size + 2 * padding - start)));
    }
}

/// As many windows as asked for, which share out the elements.
pub fn adaptive(size: usize, results: usize) -> Windows {
    (0..results)
        .map(|at| {
            let elements: Vec<usize> =
                (at * size / results..((at + 1) * size).div_ceil(results)).collect();
            let count = elements.len();
            (elements, count)
        })
        .collect()
}

/// Windows of fractional pooling by one random number.
pub fn fractional(size: usize, results: usize, kernel: usize, sample: f64) -> Windows {
    (0..results)
        .map(|at| {
            let alpha = (size - kernel) as f64 / (results.max(2) - 1) as f64;
            let start = if at + 1 == results {
                size - kernel
            } else {
                ((at as f64 + sample) * alpha) as usize - (sample * alpha) as usize
            };
            ((start..start + kernel).collect(), kernel)
        })
        .collect()
}

/// The places that a window of each dimension has together.
fn places(windows: &[Windows], at: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for (window, &at) in windows.iter().zip(at) {
        all = all
            .into_iter()
            .flat_map(|place: Vec<usize>| {
                window[at].0.iter().map(move |&e| [&place[..], &[e]].concat())
            })
            .collect();
    }
    all
}

fn pooled_shape(x: &Array, windows: &[Windows]) -> Vec<usize> {
    let lead = x.shape().len() - windows.len();
    x.shape()[..lead].iter().copied().chain(windows.iter().map(Vec::len)).collect()
}

/// The largest of each window and its place; a NaN is the largest. `windows` may depend on the
/// leading index.
pub fn max_pool(
    x: &Array,
    rank: usize,
    windows: impl Fn(&[usize]) -> Vec<Windows>,
) -> (Array, Array) {
    let lead = x.shape().len() - rank;
    let shape = pooled_shape(x, &windows(&vec![0; lead]));
    let size = &x.shape()[lead..];
    let best = |at: &[usize]| {
        let (channel, at) = at.split_at(lead);
        let mut found: Option<(Number, usize)> = None;
        for place in places(&windows(channel), at) {
            let value = x.at(&[channel, &place[..]].concat());
            let index = place.iter().zip(size).fold(0, |index, (p, size)| index * size + p);
            let larger = match (found, value) {
                (None, _) => true,
                (Some((Number::Int(best), _)), Number::Int(value)) => value > best,
                (Some((best, _)), value) => {
                    value.to_f64().is_nan() || value.to_f64() > best.to_f64()
                }
            };
            if larger {
                found = Some((value, index));
            }
        }
        found.expect("windows have elements")
    };
    let values = Array::build(x.dtype(), &shape, |at| best(at).0);
    (values, Array::build(DType::I64, &shape, |at| best(at).1 as i64))
}

/// The mean of each window, with or without the padding, or over a divisor.
pub fn avg_pool(
    x: &Array,
    windows: &[Windows],
    count_padding: bool,
    divisor: Option<i64>,
) -> Array {
    let lead = x.shape().len() - windows.len();
    Array::build(x.dtype(), &pooled_shape(x, windows), |at| {
        let (channel, at) = at.split_at(lead);
        let values: Vec<Number> =
            places(windows, at).iter().map(|place| x.at(&[channel, &place[..]].concat())).collect();
        let counted = windows.iter().zip(at).map(|(window, &at)| window[at].1).product::<usize>();
        let count = divisor.unwrap_or(if count_padding { counted } else { values.len() } as i64);
        if x.dtype().is_float() {
            Number::Float(values.iter().map(|v| v.to_f64()).sum::<f64>() / count as f64)
        } else {
            Number::Int(values.iter().map(|v| v.to_i64()).sum::<i64>() / count)
        }
    })
}

/// Zeros of `size`, and in them each value at its place, added to what is there or in its stead.
pub fn scatter(values: &Array, places: &Array, size: &[usize], accumulate: bool) -> Array {
    let lead = values.shape().len() - size.len();
    let shape = [&values.shape()[..lead], size].concat();
    let mut out = Array::zeros(values.dtype(), &shape);
    for at in indices(values.shape()) {
        let mut place = places.at(&at).to_i64() as usize;
        let mut to = vec![0; size.len()];
        for (slot, &size) in to.iter_mut().zip(size).rev() {
            *slot = place % size;
            place /= size;
        }
        let to = [&at[..lead], &to[..]].concat();
        let value = values.at(&at);
        let kept = if accumulate { out.at(&to).to_f64() } else { 0.0 };
        out.set(&to, value.to_f64() + kept);
    }
    out
}

/// Windows of images as columns.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// Elements of a window.
    pub kernel: [usize; 2],
    /// From one element of a window to the next.
    pub dilation: [usize; 2],
    /// Zeros around the image.
    pub padding: [usize; 2],
    /// From one window to the next.
    pub stride: [usize; 2],
}

impl Columns {
    fn windows(&self, size: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|d| {
            let span = self.dilation[d] * (self.kernel[d] - 1) + 1;
            (size[d] + 2 * self.padding[d] - span) / self.stride[d] + 1
        })
    }

    /// The element of the image that a tap of a window is, if it is inside.
    fn place(&self, size: [usize; 2], tap: usize, window: usize) -> Option<[usize; 2]> {
        let wide = self.windows(size)[1];
        let (tap, window) =
            ([tap / self.kernel[1], tap % self.kernel[1]], [window / wide, window % wide]);
        let at = [0, 1].map(|d| {
            (window[d] * self.stride[d] + tap[d] * self.dilation[d])
                .checked_sub(self.padding[d])
                .filter(|&at| at < size[d])
        });
        Some([at[0]?, at[1]?])
    }
}

/// [batch, channels, height, width] -> [batch, channels x kernel, windows].
pub fn unfold(x: &Array, by: Columns) -> Array {
    let [batch, channels, height, width] = *x.shape() else { panic!("images") };
    let taps = by.kernel[0] * by.kernel[1];
    let windows = by.windows([height, width]).iter().product();
    Array::build(x.dtype(), &[batch, channels * taps, windows], |at| {
        match by.place([height, width], at[1] % taps, at[2]) {
            Some([row, column]) => x.at(&[at[0], at[1] / taps, row, column]),
            None => Number::Int(0),
        }
    })
}

/// [batch, channels x kernel, windows] -> [batch, channels, height, width].
pub fn fold(x: &Array, size: [usize; 2], by: Columns) -> Array {
    let [batch, rows, windows] = *x.shape() else { panic!("columns") };
    let taps = by.kernel[0] * by.kernel[1];
    Array::build(x.dtype(), &[batch, rows / taps, size[0], size[1]], |at| {
        let mut sum = 0.0;
        for tap in 0..taps {
            for window in 0..windows {
                if by.place(size, tap, window) == Some([at[2], at[3]]) {
                    sum += x.at(&[at[0], at[1] * taps + tap, window]).to_f64();
                }
            }
        }
        Number::Float(sum)
    })
}

/// [batch, channels x r x r, height, width] -> [batch, channels, height x r, width x r].
pub fn pixel_shuffle(x: &Array, r: usize) -> Array {
    let [batch, channels, height, width] = *x.shape() else { panic!("images") };
    Array::build(x.dtype(), &[batch, channels / r / r, height * r, width * r], |at| {
        let channel = at[1] * r * r + at[2] % r * r + at[3] % r;
        x.at(&[at[0], channel, at[2] / r, at[3] / r])
    })
}

/// What [`pixel_shuffle`] undoes.
pub fn pixel_unshuffle(x: &Array, r: usize) -> Array {
    let [batch, channels, height, width] = *x.shape() else { panic!("images") };
    Array::build(x.dtype(), &[batch, channels * r * r, height / r, width / r], |at| {
        let (row, column) = (at[2] * r + at[1] % (r * r) / r, at[3] * r + at[1] % r);
        x.at(&[at[0], at[1] / r / r, row, column])
    })
}

/// The channels of `groups` groups dealt out in turn.
pub fn channel_shuffle(x: &Array, groups: usize) -> Array {
    let each = x.shape()[1] / groups;
    Array::build(x.dtype(), x.shape(), |at| {
        let mut from = at.to_vec();
        from[1] = at[1] % groups * each + at[1] / groups;
        x.at(&from)
    })
}
