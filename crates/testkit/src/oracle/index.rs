//! Reading and writing at indices; sorting; positions of what is not zero.

use plimsoll_core::DType;

use super::array::broadcast;
use super::{Array, Number, indices};

fn wrapped(index: Number, size: usize) -> usize {
    let index = index.to_i64();
    let index = if index < 0 { index + size as i64 } else { index };
    usize::try_from(index).ok().filter(|&i| i < size).expect("an index inside its dimension")
}

/// `out[i][j][k] = x[i][index[i][j][k]][k]` for `dim` 1, and so on.
pub fn gather(x: &Array, dim: i64, index: &Array) -> Array {
    if x.shape().is_empty() {
        return Array::build(x.dtype(), index.shape(), |_| x.at(&[]));
    }
    let d = x.dim(dim);
    Array::build(x.dtype(), index.shape(), |i| {
        let mut from = i.to_vec();
        from[d] = index.at(i).to_i64() as usize;
        x.at(&from)
    })
}

fn plus(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Number::Int(a.wrapping_add(b)),
        (a, b) => Number::Float(a.to_f64() + b.to_f64()),
    }
}

/// `x[i][index[i][j][k]][k] += source[i][j][k]` for `dim` 1, and so on. Sums are rounded once, at
/// the end.
pub fn scatter_add(x: &Array, dim: i64, index: &Array, source: &Array) -> Array {
    let d = x.dim(dim);
    let mut sums: Vec<Number> = x.values().to_vec();
    for i in indices(index.shape()) {
        let mut to = i.clone();
        if !to.is_empty() {
            to[d] = index.at(&i).to_i64() as usize;
        }
        let position = flat(x.shape(), &to);
        sums[position] = plus(sums[position], source.at(&i));
    }
    Array::new(x.dtype(), x.shape(), sums)
}

fn flat(shape: &[usize], index: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |p, (&i, &size)| p * size + i)
}

/// Where `x[indexes]` reads: the shape of the result, and for each of its elements the index into
/// `x`.
///
/// The index arrays broadcast together into dimensions that stand where the first index stood if
/// the indexed dimensions are neighbours, else first of all.
fn places(x: &Array, indexes: &[Option<&Array>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let indexed: Vec<usize> = (0..indexes.len()).filter(|&d| indexes[d].is_some()).collect();
    let joint = indexes.iter().flatten().fold(vec![], |s, i| broadcast(&s, i.shape()));
    let neighbours = indexed.windows(2).all(|w| w[1] == w[0] + 1);
    let insert_at = if neighbours { indexed[0] } else { 0 };
    let rest: Vec<usize> = (0..x.shape().len()).filter(|d| !indexed.contains(d)).collect();
    let mut shape: Vec<usize> = rest.iter().map(|&d| x.shape()[d]).collect();
    shape.splice(insert_at..insert_at, joint.iter().copied());
    let places = indices(&shape)
        .map(|i| {
            let at = &i[insert_at..insert_at + joint.len()];
            let others = [&i[..insert_at], &i[insert_at + joint.len()..]].concat();
            let mut place = vec![0; x.shape().len()];
            for (&d, &o) in rest.iter().zip(&others) {
                place[d] = o;
            }
            for &d in &indexed {
                let index = indexes[d].expect("indexed dimensions have an index");
                place[d] = wrapped(index.at_broadcast(at), x.shape()[d]);
            }
            place
        })
        .collect();
    (shape, places)
}

/// A bool mask stands for the indices of what it marks, one for each of its dimensions.
fn without_masks(indexes: &[Option<&Array>]) -> Vec<Option<Array>> {
    let mut plain = Vec::new();
    for index in indexes {
        match index {
            Some(mask) if mask.dtype() == DType::Bool => {
                let marked = nonzero(mask);
                for d in 0..mask.shape().len() {
                    plain.push(Some(Array::build(DType::I64, &[marked.shape()[0]], |i| {
                        marked.at(&[i[0], d])
                    })));
                }
            }
            other => plain.push(other.cloned()),
        }
    }
    plain
}

/// `x[indexes]`, with `None` for a whole dimension.
pub fn index(x: &Array, indexes: &[Option<&Array>]) -> Array {
    let plain = without_masks(indexes);
    let (shape, places) = places(x, &plain.iter().map(Option::as_ref).collect::<Vec<_>>());
    Array::new(x.dtype(), &shape, places.iter().map(|p| x.at(p)).collect())
}

/// `x` after `x[indexes] = values`, or `+=` if `accumulate`.
pub fn index_put(x: &Array, indexes: &[Option<&Array>], values: &Array, accumulate: bool) -> Array {
    let plain = without_masks(indexes);
    let (shape, places) = places(x, &plain.iter().map(Option::as_ref).collect::<Vec<_>>());
    let mut result: Vec<Number> = x.values().to_vec();
    for (i, place) in indices(&shape).zip(&places) {
        let position = flat(x.shape(), place);
        let value = values.at_broadcast(&i);
        result[position] = if accumulate { plus(result[position], value) } else { value };
    }
    Array::new(x.dtype(), x.shape(), result)
}

/// Values in order along `dim` and where each came from. Equal values keep their order, NaN is
/// largest.
pub fn sort(x: &Array, dim: i64, descending: bool) -> (Array, Array) {
    if x.shape().is_empty() {
        return (x.clone(), Array::zeros(DType::I64, &[]));
    }
    let d = x.dim(dim);
    let mut source = Array::zeros(DType::I64, x.shape());
    let mut lines = x.shape().to_vec();
    lines[d] = 1.min(lines[d]);
    for line in indices(&lines) {
        let at = |k: usize| {
            let mut index = line.clone();
            index[d] = k;
            index
        };
        let mut order: Vec<usize> = (0..x.shape()[d]).collect();
        order.sort_by(|&a, &b| {
            let ordering = nan_last(x.at(&at(a)), x.at(&at(b)));
            if descending { ordering.reverse() } else { ordering }
        });
        for (k, from) in order.into_iter().enumerate() {
            source.set(&at(k), from as i64);
        }
    }
    (gather(x, dim, &source), source)
}

fn nan_last(a: Number, b: Number) -> std::cmp::Ordering {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a.cmp(&b),
        (a, b) => {
            let (a, b) = (a.to_f64(), b.to_f64());
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
    }
}

/// The indices of elements that are not zero, one row each, in row-major order.
pub fn nonzero(x: &Array) -> Array {
    let found: Vec<Vec<usize>> = indices(x.shape()).filter(|i| x.at(i).is_true()).collect();
    Array::build(DType::I64, &[found.len(), x.shape().len()], |i| found[i[0]][i[1]] as i64)
}

/// The elements that `mask` marks, after broadcasting both, in row-major order.
pub fn masked_select(x: &Array, mask: &Array) -> Array {
    let shape = broadcast(x.shape(), mask.shape());
    let taken: Vec<Number> = indices(&shape)
        .filter(|i| mask.at_broadcast(i).is_true())
        .map(|i| x.at_broadcast(&i))
        .collect();
    Array::new(x.dtype(), &[taken.len()], taken)
}
