//! Products over dimensions of choice, made of matrix products and views.

use plimsoll_core::{Dims, Error, Result, normalize_dim, normalize_dims};
use plimsoll_memory::Site;

use crate::Tensor;
use crate::api::composed;
use crate::api::options::options;
use crate::api::reduce::SumOptions;
use crate::ops::linalg::signed;

options! {
    /// Along what [`Tensor::cross_with`] goes.
    CrossOptions {
        /// The dimension of size 3; the first that has it if none is named.
        dim: Option<i64> = None,
    }
}

options! {
    /// Along what [`Tensor::linalg_cross_with`] goes.
    LinalgCrossOptions {
        /// The dimension of size 3.
        dim: i64 = -1,
    }
}

options! {
    /// Along what [`Tensor::linalg_vecdot_with`] goes.
    LinalgVecdotOptions {
        /// The dimension that holds the vectors.
        dim: i64 = -1,
    }
}

impl Tensor {
    /// The product of two vectors; of real numbers the same as [`Tensor::dot`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let v = Tensor::arange(0, 4, 1, DType::F32)?;
    /// assert_eq!(v.vdot(&v)?.item::<f32>()?, 14.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn vdot(&self, other: &Tensor) -> Result<Tensor> {
        composed("vdot", Site::caller(), || self.dot(other))
    }

    /// Each element of one vector times each of another.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let v = Tensor::arange(1, 3, 1, DType::I64)?;
    /// assert_eq!(v.outer(&v)?.to_vec::<i64>()?, [1, 2, 2, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn outer(&self, vec2: &Tensor) -> Result<Tensor> {
        composed("outer", Site::caller(), || {
            for vector in [self, vec2] {
                if vector.rank() != 1 {
                    let why =
                        format!("the operand of shape {:?} should be a vector", vector.shape());
                    return Err(Error::shape("outer", why));
                }
            }
            self.unsqueeze(1)?.mul(vec2)
        })
    }

    /// [`Tensor::outer`] under its older name.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let v = Tensor::arange(1, 3, 1, DType::I64)?;
    /// assert_eq!(v.ger(&v)?.to_vec::<i64>()?, [1, 2, 2, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ger(&self, vec2: &Tensor) -> Result<Tensor> {
        self.outer(vec2)
    }

    /// The products of vectors along the last dimension of both.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::ones(&[2, 3], DType::F32)?;
    /// assert_eq!(a.inner(&a)?.to_vec::<f32>()?, [3.0; 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn inner(&self, other: &Tensor) -> Result<Tensor> {
        composed("inner", Site::caller(), || {
            if self.rank() == 0 || other.rank() == 0 {
                return self.mul(other);
            }
            let (own, others) = (self.shape(), other.shape());
            if own.last() != others.last() {
                let why = format!("the last sizes of {own:?} and {others:?} differ");
                return Err(Error::shape("inner", why));
            }
            if (self.rank(), other.rank()) == (1, 1) {
                return self.dot(other);
            }
            self.tensordot(other, &[-1], &[-1])
        })
    }

    /// Each element of one tensor times the whole of another, side by side: the Kronecker product.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::eye(2, DType::I64)?;
    /// let b = Tensor::ones(&[1, 2], DType::I64)?;
    /// assert_eq!(a.kron(&b)?.to_vec::<i64>()?, [1, 1, 0, 0, 0, 0, 1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn kron(&self, other: &Tensor) -> Result<Tensor> {
        composed("kron", Site::caller(), || {
            let rank = self.rank().max(other.rank());
            // [a0, 1, a1, 1, ...] times [1, b0, 1, b1, ...].
            let padded = |x: &Tensor| {
                let missing = rank - x.rank();
                let mut shape = vec![1; missing];
                shape.extend(signed(x.shape()));
                shape
            };
            let (own, others) = (padded(self), padded(other));
            let spread = |shape: &[i64], first: bool| -> Vec<i64> {
                let pair = |&size: &i64| if first { [size, 1] } else { [1, size] };
                shape.iter().flat_map(pair).collect()
            };
            let left = self.reshape(&spread(&own, true))?;
            let right = other.reshape(&spread(&others, false))?;
            let sizes = own.iter().zip(&others).map(|(a, b)| a.checked_mul(*b));
            let Some(result) = sizes.collect::<Option<Vec<i64>>>() else {
                let why = format!("sizes {own:?} times {others:?} are too many elements");
                return Err(Error::shape("kron", why));
            };
            left.mul(&right)?.reshape(&result)
        })
    }

    /// The product over the dimensions `dims_self` of one tensor and `dims_other` of another, pair
    /// by pair; the result has the other dimensions of both.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::ones(&[2, 3, 4], DType::F32)?;
    /// let b = Tensor::ones(&[4, 3, 5], DType::F32)?;
    /// let c = a.tensordot(&b, &[1, 2], &[1, 0])?;
    /// assert_eq!((c.shape(), c.to_vec::<f32>()?[0]), (&[2, 5][..], 12.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tensordot(
        &self,
        other: &Tensor,
        dims_self: &[i64],
        dims_other: &[i64],
    ) -> Result<Tensor> {
        const OP: &str = "tensordot";
        composed(OP, Site::caller(), || {
            if dims_self.len() != dims_other.len() {
                let why = format!("{dims_self:?} and {dims_other:?} are not as many dimensions");
                return Err(Error::shape(OP, why));
            }
            // An empty list is no dimension here, and not all of them.
            let dims = |dims: &[i64], rank: usize| match dims {
                [] => Ok(Dims::new()),
                _ => normalize_dims(OP, dims, rank),
            };
            let own = dims(dims_self, self.rank())?;
            let others = dims(dims_other, other.rank())?;
            let (mut left, mut right) = (self.clone(), other.clone());
            let mut product = 1;
            for (&a, &b) in own.iter().zip(&others) {
                let (size, other_size) = (left.shape()[a], right.shape()[b]);
                if size == other_size {
                    product *= size as i64;
                } else if size == 1 {
                    right = summed(&right, b)?;
                } else if other_size == 1 {
                    left = summed(&left, a)?;
                } else {
                    let why = format!(
                        "dimension {a} of {:?} and dimension {b} of {:?} differ in size",
                        self.shape(),
                        other.shape()
                    );
                    return Err(Error::shape(OP, why));
                }
            }
            let free = |rank: usize, taken: &[usize]| -> Vec<i64> {
                (0..rank).filter(|dim| !taken.contains(dim)).map(|dim| dim as i64).collect()
            };
            let (free_own, free_others) = (free(left.rank(), &own), free(right.rank(), &others));
            let left_order = [&free_own[..], &signed(&own)].concat();
            let right_order = [&signed(&others)[..], &free_others].concat();
            let kept = |x: &Tensor, dims: &[i64]| -> Vec<i64> {
                dims.iter().map(|&dim| x.shape()[dim as usize] as i64).collect()
            };
            let (rows, columns) = (kept(&left, &free_own), kept(&right, &free_others));
            let (m, n) = (rows.iter().product(), columns.iter().product());
            let a = left.permute(&left_order)?.reshape(&[m, product])?;
            let b = right.permute(&right_order)?.reshape(&[product, n])?;
            a.mm(&b)?.view(&[rows, columns].concat())
        })
    }

    /// The product of a chain of matrices, in the order that needs the fewest multiplications. The
    /// first and the last may be vectors.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::ones(&[2, 3], DType::F32)?;
    /// let b = Tensor::ones(&[3, 1], DType::F32)?;
    /// let c = Tensor::ones(&[1, 2], DType::F32)?;
    /// assert_eq!(Tensor::linalg_multi_dot(&[&a, &b, &c])?.to_vec::<f32>()?, [3.0; 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_multi_dot(tensors: &[&Tensor]) -> Result<Tensor> {
        const OP: &str = "linalg_multi_dot";
        composed(OP, Site::caller(), || {
            let refuse = |why: String| Err(Error::shape(OP, why));
            let last = tensors.len().wrapping_sub(1);
            if tensors.len() < 2 {
                return refuse(format!("a chain has at least 2 tensors, not {}", tensors.len()));
            }
            let mut chain = Vec::with_capacity(tensors.len());
            for (index, tensor) in tensors.iter().enumerate() {
                chain.push(match tensor.rank() {
                    1 if index == 0 => tensor.unsqueeze(0)?,
                    1 if index == last => tensor.unsqueeze(-1)?,
                    2 => (*tensor).clone(),
                    _ => {
                        let shape = tensor.shape();
                        return refuse(format!("tensor {index} of shape {shape:?} is no matrix"));
                    }
                });
            }
            for pair in chain.windows(2) {
                let (a, b) = (pair[0].shape(), pair[1].shape());
                if a[1] != b[0] {
                    return refuse(format!("neighbours of shapes {a:?} and {b:?} do not fit"));
                }
            }
            let product = multiply_chain(&chain, &best_splits(&chain), 0, last)?;
            let product = if tensors[0].rank() == 1 { product.squeeze_with(0)? } else { product };
            if tensors[last].rank() == 1 { product.squeeze_with(-1) } else { Ok(product) }
        })
    }

    /// The products of vectors along the last dimension, which broadcast in the others.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2, 3], DType::F32)?;
    /// assert_eq!(x.linalg_vecdot(&x)?.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_vecdot(&self, other: &Tensor) -> Result<Tensor> {
        self.linalg_vecdot_with(other, LinalgVecdotOptions::new())
    }

    /// [`Tensor::linalg_vecdot`] along another dimension.
    #[track_caller]
    pub fn linalg_vecdot_with(
        &self,
        other: &Tensor,
        options: LinalgVecdotOptions,
    ) -> Result<Tensor> {
        composed("linalg_vecdot", Site::caller(), || {
            let last = |x: &Tensor| {
                let dim = normalize_dim("linalg_vecdot", options.dim, x.rank())? as i64;
                let others = (0..x.rank() as i64).filter(|&other| other != dim);
                x.permute(&others.chain([dim]).collect::<Vec<_>>())
            };
            let row = last(self)?.unsqueeze(-2)?;
            let column = last(other)?.unsqueeze(-1)?;
            row.matmul(&column)?.squeeze_with([-2, -1].as_slice())
        })
    }

    /// The vector that stands upright on two vectors of three numbers, along the first dimension of
    /// size 3.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0, 0.0], &[3], Device::cpu())?;
    /// let y = Tensor::from_slice(&[0.0f32, 1.0, 0.0], &[3], Device::cpu())?;
    /// assert_eq!(x.cross(&y)?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cross(&self, other: &Tensor) -> Result<Tensor> {
        self.cross_with(other, CrossOptions::new())
    }

    /// [`Tensor::cross`] along another dimension.
    #[track_caller]
    pub fn cross_with(&self, other: &Tensor, options: CrossOptions) -> Result<Tensor> {
        composed("cross", Site::caller(), || {
            let found = || self.shape().iter().position(|&size| size == 3);
            match options.dim.or_else(|| found().map(|dim| dim as i64)) {
                Some(dim) => cross_along("cross", self, other, dim),
                None => {
                    let why = format!("no dimension of {:?} has size 3", self.shape());
                    Err(Error::shape("cross", why))
                }
            }
        })
    }

    /// The vector that stands upright on two vectors of three numbers, along the last dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0, 0.0], &[3], Device::cpu())?;
    /// let y = Tensor::from_slice(&[0.0f32, 1.0, 0.0], &[3], Device::cpu())?;
    /// assert_eq!(x.linalg_cross(&y)?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_cross(&self, other: &Tensor) -> Result<Tensor> {
        self.linalg_cross_with(other, LinalgCrossOptions::new())
    }

    /// [`Tensor::linalg_cross`] along another dimension.
    #[track_caller]
    pub fn linalg_cross_with(&self, other: &Tensor, options: LinalgCrossOptions) -> Result<Tensor> {
        composed("linalg_cross", Site::caller(), || {
            cross_along("linalg_cross", self, other, options.dim)
        })
    }
}

#[track_caller]
fn cross_along(op: &'static str, a: &Tensor, b: &Tensor, dim: i64) -> Result<Tensor> {
    if a.rank() != b.rank() {
        let why = format!("{:?} and {:?} have not as many dimensions", a.shape(), b.shape());
        return Err(Error::shape(op, why));
    }
    let at = normalize_dim(op, dim, a.rank())?;
    for x in [a, b] {
        if x.shape().get(at) != Some(&3) {
            let why = format!("dimension {at} of {:?} should have size 3", x.shape());
            return Err(Error::shape(op, why));
        }
    }
    let part = |x: &Tensor, index: i64| x.select(at as i64, index);
    let component = |i: i64| {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        part(a, j)?.mul(&part(b, k)?)?.sub(&part(a, k)?.mul(&part(b, j)?)?)
    };
    let parts = [component(0)?, component(1)?, component(2)?];
    Tensor::stack(&parts.each_ref(), at as i64)
}

/// For each run of a chain, where its last product is: the classic dynamic programme over runs of
/// growing length, by the number of multiplications.
fn best_splits(chain: &[Tensor]) -> Vec<Vec<usize>> {
    let count = chain.len();
    let mut sizes: Vec<f64> = chain.iter().map(|x| x.shape()[0] as f64).collect();
    sizes.push(chain[count - 1].shape()[1] as f64);
    let mut cost = vec![vec![0.0; count]; count];
    let mut split = vec![vec![0; count]; count];
    for length in 1..count {
        for first in 0..count - length {
            let last = first + length;
            cost[first][last] = f64::INFINITY;
            for at in first..last {
                let own = sizes[first] * sizes[at + 1] * sizes[last + 1];
                let total = cost[first][at] + cost[at + 1][last] + own;
                if total < cost[first][last] {
                    cost[first][last] = total;
                    split[first][last] = at;
                }
            }
        }
    }
    split
}

#[track_caller]
fn multiply_chain(
    chain: &[Tensor],
    split: &[Vec<usize>],
    first: usize,
    last: usize,
) -> Result<Tensor> {
    if first == last {
        return Ok(chain[first].clone());
    }
    let at = split[first][last];
    let left = multiply_chain(chain, split, first, at)?;
    left.mm(&multiply_chain(chain, split, at + 1, last)?)
}

/// The sum over a dimension, which stays; integers keep their dtype, as products of them do.
fn summed(x: &Tensor, dim: usize) -> Result<Tensor> {
    x.sum_with(SumOptions::from(dim as i64).keepdim(true).dtype(x.dtype()))
}
