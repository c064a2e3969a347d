//! Views, by value: which element of the input stands at each place of the result. Strides and
//! shared storage are not the oracle's business; `golden` compares those with PyTorch.

use super::Array;
use super::array::wrap_dim;

/// The elements in row-major order under another shape.
pub fn reshape(x: &Array, shape: &[usize]) -> Array {
    Array::new(x.dtype(), shape, x.values().to_vec())
}

/// Dimensions in another order: dimension `d` of the result is `dims[d]` of the input.
pub fn permute(x: &Array, dims: &[i64]) -> Array {
    let dims: Vec<usize> = dims.iter().map(|&d| x.dim(d)).collect();
    let shape: Vec<usize> = dims.iter().map(|&d| x.shape()[d]).collect();
    Array::build(x.dtype(), &shape, |i| {
        let mut index = vec![0; dims.len()];
        for (&d, &at) in dims.iter().zip(i) {
            index[d] = at;
        }
        x.at(&index)
    })
}

/// Two dimensions exchanged.
pub fn transpose(x: &Array, a: i64, b: i64) -> Array {
    if x.shape().is_empty() {
        return x.clone();
    }
    let mut dims: Vec<i64> = (0..x.shape().len() as i64).collect();
    dims.swap(x.dim(a), x.dim(b));
    permute(x, &dims)
}

/// Indices `start`, `start + step`, .. before `end` along `dim`; negative ends count from the end,
/// and both are brought into the dimension.
pub fn slice(x: &Array, dim: i64, start: i64, end: i64, step: usize) -> Array {
    let d = x.dim(dim);
    let size = x.shape()[d] as i64;
    let bring = |at: i64| (if at < 0 { at + size } else { at }).clamp(0, size);
    let taken: Vec<usize> =
        (bring(start) as usize..bring(end).max(bring(start)) as usize).step_by(step).collect();
    let mut shape = x.shape().to_vec();
    shape[d] = taken.len();
    Array::build(x.dtype(), &shape, |i| {
        let mut index = i.to_vec();
        index[d] = taken[i[d]];
        x.at(&index)
    })
}

/// `length` indices from `start` along `dim`.
pub fn narrow(x: &Array, dim: i64, start: i64, length: usize) -> Array {
    let start = if start < 0 { start + x.shape()[x.dim(dim)] as i64 } else { start };
    slice(x, dim, start, start + length as i64, 1)
}

/// One index along `dim`, which vanishes.
pub fn select(x: &Array, dim: i64, index: i64) -> Array {
    let index = if index < 0 { index + x.shape()[x.dim(dim)] as i64 } else { index };
    squeeze(&narrow(x, dim, index, 1), x.dim(dim) as i64)
}

/// Sizes of one repeated, new leading dimensions added; -1 keeps a size.
pub fn expand(x: &Array, sizes: &[i64]) -> Array {
    let missing = sizes.len() - x.shape().len();
    let shape: Vec<usize> = sizes
        .iter()
        .enumerate()
        .map(|(d, &size)| if size < 0 { x.shape()[d - missing] } else { size as usize })
        .collect();
    Array::build(x.dtype(), &shape, |i| x.at_broadcast(i))
}

/// A dimension of size one removed; any other size is left alone.
pub fn squeeze(x: &Array, dim: i64) -> Array {
    let mut shape = x.shape().to_vec();
    let d = x.dim(dim);
    if shape.get(d) == Some(&1) {
        shape.remove(d);
    }
    reshape(x, &shape)
}

/// A dimension of size one inserted.
pub fn unsqueeze(x: &Array, dim: i64) -> Array {
    let mut shape = x.shape().to_vec();
    shape.insert(wrap_dim(dim, shape.len() + 1), 1);
    reshape(x, &shape)
}

/// Elements of a row-major array at `offset + sum(index * stride)`.
pub fn as_strided(x: &Array, size: &[usize], stride: &[usize], offset: usize) -> Array {
    Array::build(x.dtype(), size, |i| {
        x.values()[offset + i.iter().zip(stride).map(|(a, b)| a * b).sum::<usize>()]
    })
}

/// An array of another shape whose element at `index` is the input's at `from(index)`.
pub fn read(x: &Array, shape: &[usize], from: impl Fn(&[usize]) -> Vec<usize>) -> Array {
    Array::build(x.dtype(), shape, |index| x.at(&from(index)))
}

/// The elements where index `column` is index `row` plus `offset`, along a new last dimension.
pub fn diagonal(x: &Array, offset: i64, row: usize, column: usize) -> Array {
    let (rows, columns) = (x.shape()[row] as i64, x.shape()[column] as i64);
    let places: Vec<(usize, usize)> = (0..rows)
        .filter(|i| (0..columns).contains(&(i + offset)))
        .map(|i| (i as usize, (i + offset) as usize))
        .collect();
    let others: Vec<usize> = (0..x.shape().len()).filter(|&d| d != row && d != column).collect();
    let mut shape: Vec<usize> = others.iter().map(|&d| x.shape()[d]).collect();
    shape.push(places.len());
    read(x, &shape, |i| {
        let mut from = vec![0; x.shape().len()];
        for (&d, &at) in others.iter().zip(i) {
            from[d] = at;
        }
        (from[row], from[column]) = places[i[i.len() - 1]];
        from
    })
}

/// Windows of `size` elements along `dim`, `step` apart, along a new last dimension.
pub fn unfold(x: &Array, dim: usize, size: usize, step: usize) -> Array {
    let mut shape = x.shape().to_vec();
    shape[dim] = (shape[dim] - size) / step + 1;
    shape.push(size);
    read(x, &shape, |i| {
        let mut from = i[..i.len() - 1].to_vec();
        from[dim] = from[dim] * step + i[i.len() - 1];
        from
    })
}
