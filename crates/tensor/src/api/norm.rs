//! Norms of vectors and matrices, distances, and the logarithm of a sum of exponentials.

use plimsoll_core::{DType, Error, Result, Scalar, normalize_dim, normalize_dims};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::options::{DimList, options};
use super::reduce::{ReduceOptions, SumOptions};
use crate::Tensor;
use crate::api::composed;
use crate::ops::norm::{LogSumExp, VectorNorm};
use crate::prepare::apply_one;

options! {
    /// How [`Tensor::logsumexp_with`] answers.
    LogsumexpOptions {
        /// Whether the dimensions stay, with size 1.
        keepdim: bool = false,
    }
}

options! {
    /// Which norm [`Tensor::linalg_vector_norm_with`] takes, over what.
    LinalgVectorNormOptions {
        /// The order; infinite for the largest absolute value.
        ord: f64 = 2.0,
        /// The dimensions; none means all.
        dim: DimList = DimList::default(),
        /// Whether they stay, with size 1.
        keepdim: bool = false,
        /// The dtype to compute in, and of the result.
        dtype: Option<DType> = None,
    }
}

options! {
    /// Which norm [`Tensor::linalg_matrix_norm_with`] takes, of which dimensions.
    LinalgMatrixNormOptions {
        /// The norm by its name.
        ord: NormOrder = NormOrder::Fro,
        /// Rows and columns.
        dim: DimList = DimList::from([-2, -1]),
        /// Whether they stay, with size 1.
        keepdim: bool = false,
        /// The dtype to compute in, and of the result.
        dtype: Option<DType> = None,
    }
}

options! {
    /// Which norm [`Tensor::linalg_norm_with`] takes, over what.
    LinalgNormOptions {
        /// The order; none means the root of the sum of squares.
        ord: Option<Scalar> = None,
        /// One dimension for vectors, two for matrices; none means all.
        dim: DimList = DimList::default(),
        /// Whether they stay, with size 1.
        keepdim: bool = false,
        /// The dtype to compute in, and of the result.
        dtype: Option<DType> = None,
    }
}

options! {
    /// Which norm [`Tensor::norm_with`] takes, over what.
    NormOptions {
        /// The norm by its name.
        p: NormOrder = NormOrder::Fro,
        /// The dimensions; none means all.
        dim: DimList = DimList::default(),
        /// Whether they stay, with size 1.
        keepdim: bool = false,
        /// The dtype to compute in, and of the result.
        dtype: Option<DType> = None,
    }
}

options! {
    /// Which distance [`Tensor::dist_with`] takes.
    DistOptions {
        /// The order of the norm.
        p: f64 = 2.0,
    }
}

/// A norm that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormOrder {
    /// The root of the sum of squares.
    Fro,
    /// The sum of the singular values.
    Nuc,
}

impl std::str::FromStr for NormOrder {
    type Err = Error;

    fn from_str(word: &str) -> Result<NormOrder> {
        match word {
            "fro" => Ok(NormOrder::Fro),
            "nuc" => Ok(NormOrder::Nuc),
            _ => Err(Error::shape("norm", format!("a norm is \"fro\" or \"nuc\", not {word:?}"))),
        }
    }
}

impl Tensor {
    /// The logarithm of the sum of exponentials over dimensions, which cannot overflow.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1000.0f32, 1000.0], &[2], Device::cpu())?;
    /// assert_eq!(x.logsumexp(&[0])?.item::<f32>()?, 1000.0 + 2f32.ln());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn logsumexp(&self, dim: &[i64]) -> Result<Tensor> {
        self.logsumexp_with(dim, LogsumexpOptions::new())
    }

    /// [`Tensor::logsumexp`], with the dimensions kept.
    #[track_caller]
    pub fn logsumexp_with(&self, dim: &[i64], options: LogsumexpOptions) -> Result<Tensor> {
        let site = Site::caller();
        composed("logsumexp", site, || {
            let x = if self.dtype().is_float() { self.clone() } else { self.float()? };
            let mut dims = normalize_dims("logsumexp", dim, x.rank())?;
            if x.rank() == 0 {
                return apply_one(&LogSumExp { dim: 0 }, &[&x], site);
            }
            dims.sort_unstable();
            let result = match dims.as_slice() {
                [] => x.clone(),
                &[dim] => apply_one(&LogSumExp { dim }, &[&x], site)?,
                &[first, .., last] => {
                    // Dimensions that lie together are one, and are brought together where they
                    // do not: one after the other, parts that are empty would have no derivative.
                    let together = last - first + 1 == dims.len() && x.is_contiguous();
                    let (flat, dim) = match together {
                        true => (x.flatten(first as i64, last as i64)?, first),
                        false => behind(&x, &dims)?,
                    };
                    let flat = apply_one(&LogSumExp { dim }, &[&flat], site)?;
                    let sizes: SmallVec<[i64; 6]> = (0..x.rank())
                        .map(|d| if dims.contains(&d) { 1 } else { x.shape()[d] as i64 })
                        .collect();
                    flat.reshape(&sizes)?
                }
            };
            without(&result, &dims, options.keepdim)
        })
    }

    /// The Euclidean length of all elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, -4.0], &[2], Device::cpu())?;
    /// assert_eq!(x.linalg_vector_norm()?.item::<f32>()?, 5.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_vector_norm(&self) -> Result<Tensor> {
        self.linalg_vector_norm_with(LinalgVectorNormOptions::new())
    }

    /// A norm of some order over some dimensions.
    #[track_caller]
    pub fn linalg_vector_norm_with(&self, options: LinalgVectorNormOptions) -> Result<Tensor> {
        let LinalgVectorNormOptions { ord, dim, keepdim, dtype } = options;
        let site = Site::caller();
        vector_norm("linalg_vector_norm", self, ord, &dim, (keepdim, dtype), site)
    }

    /// The root of the sum of squares of each matrix.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2, 2], DType::F32)?;
    /// assert_eq!(x.linalg_matrix_norm()?.item::<f32>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_matrix_norm(&self) -> Result<Tensor> {
        self.linalg_matrix_norm_with(LinalgMatrixNormOptions::new())
    }

    /// A norm of each matrix by its name.
    #[track_caller]
    pub fn linalg_matrix_norm_with(&self, options: LinalgMatrixNormOptions) -> Result<Tensor> {
        let LinalgMatrixNormOptions { ord, dim, keepdim, dtype } = options;
        check_matrix("linalg_matrix_norm", self, &dim)?;
        named("linalg_matrix_norm", self, ord, &dim, (keepdim, dtype), Site::caller())
    }

    /// A norm of each matrix by its order: 1 and infinity are the largest sums of columns and rows.
    #[track_caller]
    pub fn linalg_matrix_norm_of(
        &self,
        ord: impl Into<Scalar>,
        options: LinalgMatrixNormOptions,
    ) -> Result<Tensor> {
        let LinalgMatrixNormOptions { dim, keepdim, dtype, .. } = options;
        let (ord, site) = (ord.into().to_f64(), Site::caller());
        matrix_norm("linalg_matrix_norm", self, ord, &dim, (keepdim, dtype), site)
    }

    /// The norm of a vector or of each matrix.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, -4.0], &[2], Device::cpu())?;
    /// let by_size = LinalgNormOptions::new().ord(Scalar::Float(f64::INFINITY));
    /// let largest = x.linalg_norm_with(by_size)?;
    /// assert_eq!((x.linalg_norm()?.item::<f32>()?, largest.item::<f32>()?), (5.0, 4.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_norm(&self) -> Result<Tensor> {
        self.linalg_norm_with(LinalgNormOptions::new())
    }

    /// [`Tensor::linalg_norm`] of an order: of vectors over one dimension, of matrices over two.
    #[track_caller]
    pub fn linalg_norm_with(&self, options: LinalgNormOptions) -> Result<Tensor> {
        let LinalgNormOptions { ord, dim, keepdim, dtype } = options;
        let (name, site, how) = ("linalg_norm", Site::caller(), (keepdim, dtype));
        let Some(ord) = ord else {
            return vector_norm(name, self, 2.0, &dim, how, site);
        };
        let dims = if dim.as_slice().is_empty() { self.rank() } else { dim.as_slice().len() };
        match dims {
            0 | 1 => vector_norm(name, self, ord.to_f64(), &dim, how, site),
            2 => {
                let dim = if dim.as_slice().is_empty() { DimList::from([-2, -1]) } else { dim };
                matrix_norm(name, self, ord.to_f64(), &dim, how, site)
            }
            _ => Err(Error::shape(
                name,
                format!("an order is that of a vector or a matrix, and not of {dims} dimensions"),
            )),
        }
    }

    /// [`Tensor::linalg_norm`] by its name.
    #[track_caller]
    pub fn linalg_norm_named(&self, ord: NormOrder, options: LinalgNormOptions) -> Result<Tensor> {
        let LinalgNormOptions { dim, keepdim, dtype, .. } = options;
        let dim = if dim.as_slice().is_empty() { DimList::from([-2, -1]) } else { dim };
        if self.rank() < 2 || dim.as_slice().len() != 2 {
            return Err(Error::shape("linalg_norm", "a norm with a name is that of matrices"));
        }
        named("linalg_norm", self, ord, &dim, (keepdim, dtype), Site::caller())
    }

    /// The Euclidean length of all elements, as [`Tensor::linalg_vector_norm`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, -4.0], &[2], Device::cpu())?;
    /// assert_eq!(x.norm()?.item::<f32>()?, 5.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn norm(&self) -> Result<Tensor> {
        self.norm_with(NormOptions::new())
    }

    /// A norm by its name.
    #[track_caller]
    pub fn norm_with(&self, options: NormOptions) -> Result<Tensor> {
        let NormOptions { p, dim, keepdim, dtype } = options;
        named("norm", self, p, &dim, (keepdim, dtype), Site::caller())
    }

    /// A norm of an order over some dimensions, which are taken as one vector.
    #[track_caller]
    pub fn norm_of(&self, p: impl Into<Scalar>, options: NormOptions) -> Result<Tensor> {
        let NormOptions { dim, keepdim, dtype, .. } = options;
        vector_norm("norm", self, p.into().to_f64(), &dim, (keepdim, dtype), Site::caller())
    }

    /// The Euclidean distance of two tensors, which broadcast.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, -4.0], &[2], Device::cpu())?;
    /// assert_eq!(x.dist(&x.zeros_like()?)?.item::<f32>()?, 5.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dist(&self, other: &Tensor) -> Result<Tensor> {
        self.dist_with(other, DistOptions::new())
    }

    /// [`Tensor::dist`] by another norm.
    #[track_caller]
    pub fn dist_with(&self, other: &Tensor, options: DistOptions) -> Result<Tensor> {
        let site = Site::caller();
        composed("dist", site, || {
            let apart = self.sub(other)?;
            vector_norm("dist", &apart, options.p, &DimList::default(), (false, None), site)
        })
    }

    /// A copy in which every slice along `dim` whose norm of order `p` is above `maxnorm` is scaled
    /// down to it.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 4.0, 0.0, 1.0], &[2, 2], Device::cpu())?;
    /// let y = x.renorm(2.0, 0, 1.0)?.to_vec::<f32>()?;
    /// assert!((y[1] - 0.8).abs() < 1e-6 && y[3] == 1.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn renorm(&self, p: f64, dim: i64, maxnorm: f64) -> Result<Tensor> {
        let site = Site::caller();
        if self.rank() < 2 || p <= 0.0 || maxnorm < 0.0 {
            return Err(Error::shape(
                "renorm",
                format!(
                    "two dimensions, a positive order and a norm that is not negative are needed, not shape {:?}, \
                     {p} and {maxnorm}",
                    self.shape()
                ),
            ));
        }
        composed("renorm", site, || {
            let along = normalize_dim("renorm", dim, self.rank())?;
            let others: SmallVec<[i64; 6]> =
                (0..self.rank()).filter(|&d| d != along).map(|d| d as i64).collect();
            let wide = if matches!(self.dtype(), DType::F16 | DType::BF16) {
                self.float()?
            } else {
                self.clone()
            };
            let others = DimList::from(&others[..]);
            let norm = vector_norm("renorm", &wide, p, &others, (true, None), site)?;
            let scale = norm.add(1e-7)?.rdiv(maxnorm)?;
            let scale = Tensor::where_(&norm.gt(maxnorm)?, &scale, 1.0)?;
            self.mul(&scale.to(self.dtype())?)
        })
    }

    /// [`Tensor::renorm`] in place.
    #[track_caller]
    pub fn renorm_(&self, p: f64, dim: i64, maxnorm: f64) -> Result<&Tensor> {
        composed("renorm", Site::caller(), || {
            // Backward reads the elements as they were.
            let before = if self.requires_grad() { self.clone_tensor()? } else { self.clone() };
            self.copy_(&before.renorm(p, dim, maxnorm)?).map(drop)
        })?;
        Ok(self)
    }
}

/// The tensor with `dims` as one behind the others, and the place of that one.
fn behind(x: &Tensor, dims: &[usize]) -> Result<(Tensor, usize)> {
    let others = (0..x.rank()).filter(|dim| !dims.contains(dim));
    let order: SmallVec<[i64; 6]> =
        others.chain(dims.iter().copied()).map(|dim| dim as i64).collect();
    let place = x.rank() - dims.len();
    Ok((x.permute(&order)?.flatten(place as i64, -1)?, place))
}

/// Without the dimensions that have size 1 now, unless they are kept.
pub(super) fn without(x: &Tensor, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    if keepdim || dims.is_empty() {
        return Ok(x.clone());
    }
    let dims: SmallVec<[i64; 6]> = dims.iter().map(|&dim| dim as i64).collect();
    x.squeeze_with(&dims[..])
}

/// Whether dimensions stay, and the dtype to compute in.
type How = (bool, Option<DType>);

fn vector_norm(
    name: &'static str,
    x: &Tensor,
    order: f64,
    dims: &DimList,
    (keepdim, dtype): How,
    site: Site,
) -> Result<Tensor> {
    composed(name, site, || {
        if dtype.is_some_and(|dtype| !dtype.is_float()) {
            return Err(Error::shape(name, "the dtype of a norm is a float"));
        }
        let x = x.to_dtype(dtype.unwrap_or(x.dtype()), site)?;
        let dims = normalize_dims(name, dims.as_slice(), x.rank())?;
        let norm = apply_one(&VectorNorm { order, dims: dims.clone() }, &[&x], site)?;
        without(&norm, &dims, keepdim)
    })
}

fn check_matrix(name: &'static str, x: &Tensor, dims: &DimList) -> Result<[usize; 2]> {
    let wrong = |why: &str| Error::shape(name, format!("shape {:?}: {why}", x.shape()));
    if x.rank() < 2 {
        return Err(wrong("a matrix has two dimensions"));
    }
    let [row, column] = *dims.as_slice() else { return Err(wrong("two dimensions are needed")) };
    let (row, column) =
        (normalize_dim(name, row, x.rank())?, normalize_dim(name, column, x.rank())?);
    if row == column {
        return Err(wrong("rows and columns are two dimensions"));
    }
    Ok([row, column])
}

fn matrix_norm(
    name: &'static str,
    x: &Tensor,
    order: f64,
    dims: &DimList,
    (keepdim, dtype): How,
    site: Site,
) -> Result<Tensor> {
    let [row, column] = check_matrix(name, x, dims)?;
    composed(name, site, || {
        let x = x.to_dtype(dtype.unwrap_or(x.dtype()), site)?;
        if !x.dtype().is_float() {
            return Err(Error::dtype(name, "the norm of a matrix is that of floats"));
        }
        let (summed, chosen) = match order.abs() {
            1.0 => (row, column),
            f64::INFINITY => (column, row),
            2.0 => {
                let values = singular_values(name, &x, [row, column])?;
                let norm = extreme(&values, -1, order > 0.0)?.squeeze_with(-1i64)?;
                return if keepdim { kept(&norm, [row, column]) } else { Ok(norm) };
            }
            _ => {
                return Err(Error::shape(
                    name,
                    format!("the order of a matrix norm is 1, 2 or infinity, not {order}"),
                ));
            }
        };
        let sums = x.abs()?.sum_with(SumOptions::from(summed as i64).keepdim(true))?;
        let norm = extreme(&sums, chosen as i64, order > 0.0)?;
        without(&norm, &[row, column], keepdim)
    })
}

fn named(
    name: &'static str,
    x: &Tensor,
    order: NormOrder,
    dims: &DimList,
    how: How,
    site: Site,
) -> Result<Tensor> {
    match order {
        NormOrder::Fro => vector_norm(name, x, 2.0, dims, how, site),
        NormOrder::Nuc => nuclear_norm(name, x, dims, how, site),
    }
}

/// The greatest along a dimension, or the least; the greatest of nothing is 0, as a norm is.
fn extreme(x: &Tensor, dim: i64, greatest: bool) -> Result<Tensor> {
    let over = ReduceOptions::from(dim).keepdim(true);
    match greatest {
        true if x.shape()[normalize_dim("norm", dim, x.rank())?] == 0 => {
            x.sum_with(SumOptions::from(dim).keepdim(true))
        }
        true => x.amax_with(over),
        false => x.amin_with(over),
    }
}

/// The sum of the singular values.
fn nuclear_norm(
    name: &'static str,
    x: &Tensor,
    dims: &DimList,
    (keepdim, dtype): How,
    site: Site,
) -> Result<Tensor> {
    let last = DimList::from([-2, -1]);
    let dims = if dims.as_slice().is_empty() && x.rank() == 2 { &last } else { dims };
    let places = check_matrix(name, x, dims)?;
    composed(name, site, || {
        let x = x.to_dtype(dtype.unwrap_or(x.dtype()), site)?;
        let norm = singular_values(name, &x, places)?.sum_with(-1i64)?;
        if keepdim { kept(&norm, places) } else { Ok(norm) }
    })
}

/// Those of the matrices whose rows and columns are these dimensions.
fn singular_values(name: &'static str, x: &Tensor, [row, column]: [usize; 2]) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Err(Error::dtype(name, "the norm of a matrix is that of floats"));
    }
    let others = (0..x.rank()).filter(|&dim| dim != row && dim != column);
    let order: SmallVec<[i64; 6]> = others.chain([row, column]).map(|dim| dim as i64).collect();
    x.permute(&order)?.linalg_svdvals()
}

/// With both dimensions back, of size 1.
fn kept(x: &Tensor, [row, column]: [usize; 2]) -> Result<Tensor> {
    let (low, high) = (row.min(column) as i64, row.max(column) as i64);
    x.unsqueeze(low)?.unsqueeze(high)
}
