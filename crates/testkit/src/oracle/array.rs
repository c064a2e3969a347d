//! The oracle's arrays: row-major, every element widened to `f64` or `i64`, with the dtype beside
//! it.

use plimsoll_core::{DType, Scalar};

use super::rules::round_to;

/// One element: integers and bools exactly, floats in double precision.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An integer or a bool (0 or 1).
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

impl PartialEq for Number {
    /// Numerically, with NaN equal to itself: tests ask whether two results are the same.
    fn eq(&self, other: &Number) -> bool {
        match (*self, *other) {
            (Number::Int(a), Number::Int(b)) => a == b,
            (a, b) => {
                let (a, b) = (a.to_f64(), b.to_f64());
                a == b || (a.is_nan() && b.is_nan())
            }
        }
    }
}

impl Number {
    /// As a double.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Float(x) => x,
        }
    }

    /// As an integer, truncated toward zero.
    pub fn to_i64(self) -> i64 {
        match self {
            Number::Int(i) => i,
            Number::Float(x) => x as i64,
        }
    }

    /// Whether it is not zero (NaN is not zero).
    pub fn is_true(self) -> bool {
        match self {
            Number::Int(i) => i != 0,
            Number::Float(x) => x != 0.0,
        }
    }
}

impl From<f64> for Number {
    fn from(x: f64) -> Number {
        Number::Float(x)
    }
}

impl From<i64> for Number {
    fn from(i: i64) -> Number {
        Number::Int(i)
    }
}

impl From<bool> for Number {
    fn from(b: bool) -> Number {
        Number::Int(i64::from(b))
    }
}

/// A row-major array of numbers that are all values of `dtype`.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    values: Vec<Number>,
    host: bool,
}

impl Array {
    /// An array from its elements in row-major order, each rounded or wrapped to `dtype`.
    pub fn new(dtype: DType, shape: &[usize], values: Vec<Number>) -> Array {
        assert_eq!(values.len(), shape.iter().product::<usize>(), "shape {shape:?}");
        let values = values.into_iter().map(|v| round_to(dtype, v)).collect();
        Array { dtype, shape: shape.to_vec(), values, host: false }
    }

    /// An array whose element at `index` is `f(index)`, rounded or wrapped to `dtype`.
    pub fn build<N: Into<Number>>(
        dtype: DType,
        shape: &[usize],
        mut f: impl FnMut(&[usize]) -> N,
    ) -> Array {
        Array::new(dtype, shape, indices(shape).map(|index| f(&index).into()).collect())
    }

    /// Zeros.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Array {
        Array::build(dtype, shape, |_| 0i64)
    }

    /// A number of the host program, the `1` of `x + 1`: it has a class but no width.
    pub fn host(value: impl Into<Scalar>) -> Array {
        let (dtype, number) = match value.into() {
            Scalar::Bool(b) => (DType::Bool, Number::from(b)),
            Scalar::Int(i) => (DType::I64, Number::Int(i)),
            Scalar::Float(x) => (DType::F64, Number::Float(x)),
        };
        Array { host: true, ..Array::new(dtype, &[], vec![number]) }
    }

    /// Whether this is a number of the host program rather than a tensor.
    pub fn is_host_number(&self) -> bool {
        self.host
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.values.len()
    }

    /// The elements in row-major order.
    pub fn values(&self) -> &[Number] {
        &self.values
    }

    /// The element at `index`.
    pub fn at(&self, index: &[usize]) -> Number {
        assert_eq!(index.len(), self.shape.len(), "index {index:?} into shape {:?}", self.shape);
        let mut position = 0;
        for (&i, &size) in index.iter().zip(&self.shape) {
            assert!(i < size, "index {index:?} into shape {:?}", self.shape);
            position = position * size + i;
        }
        self.values[position]
    }

    /// The element at `index` of this array broadcast to as many dimensions as `index` has.
    pub fn at_broadcast(&self, index: &[usize]) -> Number {
        let tail = &index[index.len() - self.shape.len()..];
        let own: Vec<usize> =
            tail.iter().zip(&self.shape).map(|(&i, &size)| if size == 1 { 0 } else { i }).collect();
        self.at(&own)
    }

    /// Replaces the element at `index`.
    pub fn set(&mut self, index: &[usize], value: impl Into<Number>) {
        let position = index.iter().zip(&self.shape).fold(0, |p, (&i, &size)| p * size + i);
        self.values[position] = round_to(self.dtype, value.into());
    }

    /// The same values converted to `dtype`.
    pub fn cast(&self, dtype: DType) -> Array {
        Array { host: self.host, ..Array::new(dtype, &self.shape, self.values.clone()) }
    }

    /// A dimension counted from the end if negative.
    pub fn dim(&self, dim: i64) -> usize {
        wrap_dim(dim, self.shape.len())
    }
}

/// `dim` of a tensor of `rank` dimensions; a zero-dimensional tensor answers to 0 and -1.
pub(crate) fn wrap_dim(dim: i64, rank: usize) -> usize {
    let rank = rank.max(1) as i64;
    assert!((-rank..rank).contains(&dim), "dim {dim} of {rank}");
    dim.rem_euclid(rank) as usize
}

/// The shape that both operands broadcast to.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Vec<usize> {
    let rank = a.len().max(b.len());
    let size = |shape: &[usize], d: usize| {
        let missing = rank - shape.len();
        if d < missing { 1 } else { shape[d - missing] }
    };
    (0..rank)
        .map(|d| match (size(a, d), size(b, d)) {
            (1, n) | (n, 1) => n,
            (m, n) => {
                assert_eq!(m, n, "{a:?} and {b:?} do not broadcast");
                n
            }
        })
        .collect()
}

/// Every index of `shape` in row-major order; one empty index for a zero-dimensional shape.
pub fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    let count: usize = shape.iter().product();
    (0..count).map(move |mut position| {
        let mut index = vec![0; shape.len()];
        for (i, &size) in index.iter_mut().zip(shape).rev() {
            *i = position % size;
            position /= size;
        }
        index
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_run_in_row_major_order() {
        let all: Vec<_> = indices(&[2, 2]).collect();
        assert_eq!(all, [[0, 0], [0, 1], [1, 0], [1, 1]]);
        assert_eq!(indices(&[]).count(), 1);
        assert_eq!(indices(&[3, 0]).count(), 0);
    }

    #[test]
    fn broadcasting_repeats_sizes_of_one() {
        let column = Array::build(DType::I64, &[2, 1], |i| i[0] as i64);
        assert_eq!(broadcast(&[2, 1], &[3]), [2, 3]);
        assert_eq!(column.at_broadcast(&[1, 2]), Number::Int(1));
    }
}
