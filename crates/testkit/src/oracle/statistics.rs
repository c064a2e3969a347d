//! Scans, norms, moments, order statistics and searches: each line of elements by itself, by the
//! definition.

use plimsoll_core::{DType, DTypeClass};

use super::array::wrap_dim;
use super::reduce::fold;
use super::{Array, Number, indices};

/// Each line along `dim` by `f`, which may change its length.
pub fn along<N: Into<Number>>(
    x: &Array,
    dim: i64,
    dtype: DType,
    f: impl Fn(&[Number]) -> Vec<N>,
) -> Array {
    let rank = x.shape().len();
    if rank == 0 {
        let value = f(&[x.at(&[])]).into_iter().next().expect("a line of one element");
        return Array::new(dtype, &[], vec![value.into()]);
    }
    let dim = wrap_dim(dim, rank);
    let mut outer = x.shape().to_vec();
    outer[dim] = 1;
    let lines: Vec<Vec<Number>> = indices(&outer)
        .map(|start| {
            let line: Vec<Number> = (0..x.shape()[dim])
                .map(|i| {
                    let mut place = start.clone();
                    place[dim] = i;
                    x.at(&place)
                })
                .collect();
            f(&line).into_iter().map(Into::into).collect()
        })
        .collect();
    let mut shape = outer.clone();
    shape[dim] = lines.first().map_or(0, Vec::len);
    let mut result = Array::zeros(dtype, &shape);
    for (start, line) in indices(&outer).zip(lines) {
        for (i, value) in line.into_iter().enumerate() {
            let mut place = start.clone();
            place[dim] = i;
            result.set(&place, value);
        }
    }
    result
}

fn floats(line: &[Number]) -> Vec<f64> {
    line.iter().map(|x| x.to_f64()).collect()
}

/// The dtype of running sums and products.
fn accumulating(dtype: DType) -> DType {
    if dtype.class() == DTypeClass::Float { dtype } else { DType::I64 }
}

fn running(x: &Array, dim: i64, int: fn(i64, i64) -> i64, float: fn(f64, f64) -> f64) -> Array {
    along(x, dim, accumulating(x.dtype()), |line| {
        let mut state: Option<Number> = None;
        line.iter()
            .map(|&value| {
                let next = match (state, value) {
                    (None, value) => value,
                    (Some(Number::Int(a)), Number::Int(b)) => Number::Int(int(a, b)),
                    (Some(a), b) => Number::Float(float(a.to_f64(), b.to_f64())),
                };
                state = Some(next);
                next
            })
            .collect()
    })
}

/// Running sums.
pub fn cumsum(x: &Array, dim: i64) -> Array {
    running(x, dim, i64::wrapping_add, |a, b| a + b)
}

/// Running products.
pub fn cumprod(x: &Array, dim: i64) -> Array {
    running(x, dim, i64::wrapping_mul, |a, b| a * b)
}

/// The logarithm of a sum of exponentials.
fn log_sum_exp(values: &[f64]) -> f64 {
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return values.iter().map(|x| x.exp()).sum::<f64>().ln();
    }
    top + values.iter().map(|x| (x - top).exp()).sum::<f64>().ln()
}

/// Logarithms of running sums of exponentials.
pub fn logcumsumexp(x: &Array, dim: i64) -> Array {
    along(x, dim, x.dtype(), |line| {
        let line = floats(line);
        (1..=line.len()).map(|end| log_sum_exp(&line[..end])).collect::<Vec<f64>>()
    })
}

/// The logarithm of the sum of exponentials over dimensions.
pub fn logsumexp(x: &Array, dims: &[i64], keepdim: bool) -> Array {
    fold(x, dims, keepdim, x.dtype(), |line| log_sum_exp(&floats(line)))
}

/// The place of the extreme so far.
fn places(line: &[Number], max: bool) -> Vec<i64> {
    let mut best = 0;
    (0..line.len())
        .map(|i| {
            let wins = match (line[i], line[best]) {
                (Number::Int(new), Number::Int(old)) if max => new >= old,
                (Number::Int(new), Number::Int(old)) => new <= old,
                (new, old) => {
                    let (new, old) = (new.to_f64(), old.to_f64());
                    let better = if max { new >= old } else { new <= old };
                    new.is_nan() || (!old.is_nan() && better)
                }
            };
            if wins {
                best = i;
            }
            best as i64
        })
        .collect()
}

/// The largest or smallest so far, and where it is.
pub fn cumulative_extreme(x: &Array, dim: i64, max: bool) -> (Array, Array) {
    let values = along(x, dim, x.dtype(), |line| {
        places(line, max).into_iter().map(|at| line[at as usize]).collect::<Vec<_>>()
    });
    (values, along(x, dim, DType::I64, |line| places(line, max)))
}

/// Differences of neighbours.
pub fn diff(x: &Array, dim: i64) -> Array {
    along(x, dim, x.dtype(), |line| {
        let pairs = line.windows(2);
        pairs
            .map(|pair| match (pair[0], pair[1]) {
                (Number::Int(a), Number::Int(b)) if x.dtype() == DType::Bool => {
                    Number::Int(i64::from(a != b))
                }
                (Number::Int(a), Number::Int(b)) => Number::Int(b.wrapping_sub(a)),
                (a, b) => Number::Float(b.to_f64() - a.to_f64()),
            })
            .collect()
    })
}

/// Running integrals by trapezoids of width `dx`, or the last of them.
pub fn trapezoids(y: &Array, dim: i64, dx: f64, last: bool) -> Array {
    let dtype = if y.dtype().is_float() { y.dtype() } else { DType::F32 };
    // Neighbours are added in their own dtype, in which integers wrap.
    let pairs = along(y, dim, y.dtype(), |line| {
        let sum = |pair: &[Number]| match (pair[0], pair[1]) {
            (Number::Int(a), Number::Int(b)) => Number::Int(a.wrapping_add(b)),
            (a, b) => Number::Float(a.to_f64() + b.to_f64()),
        };
        line.windows(2).map(sum).collect::<Vec<_>>()
    });
    let integrals = |line: &[Number]| {
        let mut sum = 0.0;
        let areas = floats(line).into_iter().map(|pair| {
            sum += pair * dx / 2.0;
            sum
        });
        areas.collect::<Vec<f64>>()
    };
    if !last {
        return along(&pairs, dim, dtype, integrals);
    }
    fold(&pairs, &[dim], false, dtype, |line| integrals(line).last().copied().unwrap_or(0.0))
}

/// The norm of an order.
fn norm_of(line: &[f64], order: f64) -> f64 {
    let sizes = line.iter().map(|x| x.abs());
    if order == f64::INFINITY {
        sizes.fold(0.0, f64::max)
    } else if order == f64::NEG_INFINITY {
        sizes.fold(f64::INFINITY, f64::min)
    } else if order == 0.0 {
        sizes.filter(|&x| x != 0.0).count() as f64
    } else {
        sizes.map(|x| x.powf(order)).sum::<f64>().powf(1.0 / order)
    }
}

/// The norm over dimensions.
pub fn norm(x: &Array, order: f64, dims: &[i64], keepdim: bool) -> Array {
    fold(x, dims, keepdim, x.dtype(), |line| norm_of(&floats(line), order))
}

/// The sum without NaN.
pub fn nansum(x: &Array, dims: &[i64], keepdim: bool) -> Array {
    if x.dtype().class() != DTypeClass::Float {
        return super::reduce::sum(x, dims, keepdim);
    }
    fold(x, dims, keepdim, x.dtype(), |line| {
        line.iter().map(|x| x.to_f64()).filter(|x| !x.is_nan()).sum::<f64>()
    })
}

/// The mean without NaN.
pub fn nanmean(x: &Array, dims: &[i64], keepdim: bool) -> Array {
    fold(x, dims, keepdim, x.dtype(), |line| {
        let there: Vec<f64> = floats(line).into_iter().filter(|x| !x.is_nan()).collect();
        there.iter().sum::<f64>() / there.len() as f64
    })
}

/// How many are not zero.
pub fn count_nonzero(x: &Array, dims: &[i64]) -> Array {
    fold(x, dims, false, DType::I64, |line| line.iter().filter(|x| x.is_true()).count() as i64)
}

/// The variance, its sum of squares over the count less `correction`.
pub fn var(x: &Array, dims: &[i64], keepdim: bool, correction: f64) -> Array {
    fold(x, dims, keepdim, x.dtype(), |line| {
        let line = floats(line);
        let mean = line.iter().sum::<f64>() / line.len() as f64;
        let squares: f64 = line.iter().map(|x| (x - mean) * (x - mean)).sum();
        squares / (line.len() as f64 - correction).max(0.0)
    })
}

/// The standard deviation.
pub fn std(x: &Array, dims: &[i64], keepdim: bool, correction: f64) -> Array {
    fold(&x.cast(DType::F64), dims, keepdim, x.dtype(), |line| {
        let line = Array::new(DType::F64, &[line.len()], line.to_vec());
        var(&line, &[0], false, correction).at(&[]).to_f64().sqrt()
    })
}

/// Covariances of rows.
pub fn cov(x: &Array) -> Array {
    let (rows, count) = (x.shape()[0], x.shape()[1]);
    let dtype = if x.dtype().is_float() { x.dtype() } else { DType::F32 };
    let at = |row: usize, i: usize| x.at(&[row, i]).to_f64();
    let mean = |row: usize| (0..count).map(|i| at(row, i)).sum::<f64>() / count as f64;
    Array::build(dtype, &[rows, rows], |place| {
        let (a, b) = (place[0], place[1]);
        let products = (0..count).map(|i| (at(a, i) - mean(a)) * (at(b, i) - mean(b)));
        products.sum::<f64>() / (count as f64 - 1.0)
    })
}

/// Correlations of rows.
pub fn corrcoef(x: &Array) -> Array {
    let wide = cov(&x.cast(DType::F64));
    let dtype = if x.dtype().is_float() { x.dtype() } else { DType::F32 };
    Array::build(dtype, wide.shape(), |place| {
        let at = |a: usize, b: usize| wide.at(&[a, b]).to_f64();
        let (a, b) = (place[0], place[1]);
        (at(a, b) / (at(a, a) * at(b, b)).sqrt()).clamp(-1.0, 1.0)
    })
}

/// The places of a line in order, NaN last.
fn order(line: &[Number], descending: bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..line.len()).collect();
    places.sort_by(|&a, &b| {
        let less = match (line[a], line[b]) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (a, b) => {
                let (a, b) = (a.to_f64(), b.to_f64());
                a.is_nan()
                    .cmp(&b.is_nan())
                    .then(a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal))
            }
        };
        if descending { less.reverse() } else { less }
    });
    places
}

/// The first `k` in order, and where they are.
pub fn topk(x: &Array, k: usize, dim: i64, largest: bool) -> (Array, Array) {
    let first = |line: &[Number]| order(line, largest)[..k].to_vec();
    let values = along(x, dim, x.dtype(), |line| {
        first(line).into_iter().map(|at| line[at]).collect::<Vec<_>>()
    });
    let places = |line: &[Number]| first(line).into_iter().map(|at| at as i64).collect::<Vec<_>>();
    (values, along(x, dim, DType::I64, places))
}

/// The places that put lines in order.
pub fn argsort(x: &Array, dim: i64) -> Array {
    along(x, dim, DType::I64, |line| {
        order(line, false).into_iter().map(|at| at as i64).collect::<Vec<_>>()
    })
}

/// The element of rank `rank` (from 0), and where it is.
pub fn ranked(x: &Array, rank: usize, dim: i64) -> (Array, Array) {
    let at = |line: &[Number]| order(line, false)[rank];
    (
        fold(x, &[dim], false, x.dtype(), |line| line[at(line)]),
        fold(x, &[dim], false, DType::I64, |line| at(line) as i64),
    )
}

/// The lower median, and where it is; without NaN if `ignores_nan`.
pub fn median(x: &Array, dim: i64, ignores_nan: bool) -> (Array, Array) {
    let at = |line: &[Number]| {
        let places = order(line, false);
        let count = line.iter().filter(|x| !x.to_f64().is_nan()).count();
        match (ignores_nan, count < line.len()) {
            (true, _) => places[count.saturating_sub(1) / 2],
            (false, true) => places[count],
            (false, false) => places[(line.len() - 1) / 2],
        }
    };
    (
        fold(x, &[dim], false, x.dtype(), |line| line[at(line)]),
        fold(x, &[dim], false, DType::I64, |line| at(line) as i64),
    )
}

/// Where the fraction `q` of each line lies, between two elements on their line.
pub fn quantile(x: &Array, q: f64, dim: i64) -> Array {
    fold(x, &[dim], false, x.dtype(), |line| {
        let places = order(line, false);
        let rank = q * (line.len() - 1) as f64;
        let value = |at: f64| line[places[at as usize]].to_f64();
        let (low, high) = (value(rank.floor()), value(rank.ceil()));
        low + (high - low) * (rank - rank.floor())
    })
}

/// For each value the number of elements of `sequence` below it, or not above it if `right`.
pub fn searchsorted(sequence: &Array, values: &Array, right: bool) -> Array {
    Array::build(DType::I64, values.shape(), |place| {
        let value = values.at(place).to_f64();
        let elements = indices(sequence.shape()).map(|i| sequence.at(&i).to_f64());
        elements.filter(|&x| if right { x <= value } else { x < value }).count() as i64
    })
}

/// How often each number from 0 to the largest occurs.
pub fn bincount(x: &Array) -> Array {
    let numbers: Vec<i64> = indices(x.shape()).map(|i| x.at(&i).to_i64()).collect();
    let count = numbers.iter().max().map_or(0, |&most| most as usize + 1);
    Array::build(DType::I64, &[count], |bin| {
        numbers.iter().filter(|&&x| x == bin[0] as i64).count() as i64
    })
}

/// How many elements each of `bins` bins from `low` to `high` has.
pub fn histogram(x: &Array, bins: usize, low: f64, high: f64) -> Array {
    let edge = |i: usize| low + (high - low) * i as f64 / bins as f64;
    Array::build(x.dtype(), &[bins], |bin| {
        let values = indices(x.shape()).map(|i| x.at(&i).to_f64());
        let last = bin[0] + 1 == bins;
        let inside = |x: f64| x >= edge(bin[0]) && (x < edge(bin[0] + 1) || (last && x == high));
        values.filter(|&x| inside(x)).count() as f64
    })
}

/// The distinct elements in order, which of them each element is, and how often each occurs.
pub fn unique(x: &Array) -> (Array, Array, Array) {
    let all: Vec<Number> = indices(x.shape()).map(|i| x.at(&i)).collect();
    let mut distinct: Vec<Number> = Vec::new();
    for at in order(&all, false) {
        if distinct.last() != Some(&all[at]) {
            distinct.push(all[at]);
        }
    }
    let which = |value: Number| distinct.iter().position(|&x| x == value).expect("a value") as i64;
    let inverse = Array::build(DType::I64, x.shape(), |place| which(x.at(place)));
    let counts = Array::build(DType::I64, &[distinct.len()], |i| {
        all.iter().filter(|&&x| x == distinct[i[0]]).count() as i64
    });
    (Array::new(x.dtype(), &[distinct.len()], distinct.clone()), inverse, counts)
}

/// The elements without those that equal the one before.
pub fn unique_consecutive(x: &Array) -> Array {
    let mut values: Vec<Number> = indices(x.shape()).map(|i| x.at(&i)).collect();
    values.dedup();
    Array::new(x.dtype(), &[values.len()], values)
}
