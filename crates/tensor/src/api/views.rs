//! Views: other layouts over the same memory. None of them copies; those that do where no view
//! exists, and those that are made of these, are in `reshape.rs` and `split.rs`.

use plimsoll_core::{DType, Error, Result, normalize_dim};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::options::DimList;
use crate::Tensor;
use crate::operation::Operation;
use crate::ops::views::{View, ViewDtype};
use crate::prepare::apply_one;
use crate::tensor::versions::Versions;

/// What [`Tensor::view`] shows: the elements under other sizes, or the bytes as another dtype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewAs {
    /// Other sizes, of which one may be -1.
    Sizes(SmallVec<[i64; 6]>),
    /// Another dtype.
    DType(DType),
}

impl From<&[i64]> for ViewAs {
    fn from(sizes: &[i64]) -> ViewAs {
        ViewAs::Sizes(sizes.into())
    }
}

impl<const N: usize> From<&[i64; N]> for ViewAs {
    fn from(sizes: &[i64; N]) -> ViewAs {
        ViewAs::Sizes(sizes.as_slice().into())
    }
}

impl From<&SmallVec<[i64; 6]>> for ViewAs {
    fn from(sizes: &SmallVec<[i64; 6]>) -> ViewAs {
        ViewAs::Sizes(sizes.clone())
    }
}

impl From<&Vec<i64>> for ViewAs {
    fn from(sizes: &Vec<i64>) -> ViewAs {
        ViewAs::Sizes(sizes.as_slice().into())
    }
}

impl From<DType> for ViewAs {
    fn from(dtype: DType) -> ViewAs {
        ViewAs::DType(dtype)
    }
}

impl Tensor {
    /// The view that `op`, recorded before, makes of this tensor.
    pub(crate) fn viewed_by(&self, op: &dyn Operation) -> Result<Tensor> {
        apply_one(op, &[self], Site::in_force())
    }

    /// The same elements under other sizes, of which one may be -1; or the same bytes as another
    /// dtype. An error if that needs a copy.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?;
    /// let y = x.view(&[2, -1])?;
    /// assert_eq!(y.shape(), [2, 3]);
    /// assert!(y.shares_storage_with(&x));
    /// let bits = Tensor::ones(&[1], DType::F32)?.view(DType::I32)?;
    /// assert_eq!(bits.item::<i32>()?, 0x3F80_0000);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn view(&self, target: impl Into<ViewAs>) -> Result<Tensor> {
        match target.into() {
            ViewAs::Sizes(sizes) => apply_one(&View::Sizes(sizes), &[self], Site::caller()),
            ViewAs::DType(dtype) if dtype == self.dtype() => {
                let sizes = self.shape().iter().map(|&size| size as i64).collect();
                apply_one(&View::Sizes(sizes), &[self], Site::caller())
            }
            ViewAs::DType(dtype) if !self.storage().is_aligned_for(dtype.size_bytes()) => {
                Err(Error::invalid_argument(format!(
                    "this memory came from outside and does not start at a multiple of the {} bytes of a {dtype}; \
                     clone the tensor first",
                    dtype.size_bytes()
                ))
                .in_operation("view"))
            }
            ViewAs::DType(dtype) => apply_one(&ViewDtype(dtype), &[self], Site::caller()),
        }
    }

    /// Two dimensions swapped.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 3], DType::F32)?.transpose(0, 1)?;
    /// assert_eq!((x.shape(), x.strides()), (&[3, 2][..], &[1, 3][..]));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        apply_one(&View::Transpose(a, b), &[self], Site::caller())
    }

    /// Dimensions in another order.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 3, 4], DType::F32)?;
    /// assert_eq!(x.permute(&[2, 0, 1])?.shape(), [4, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn permute(&self, dims: &[i64]) -> Result<Tensor> {
        apply_one(&View::Permute(dims.into()), &[self], Site::caller())
    }

    /// `length` elements of a dimension from `start`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?.narrow(0, 2, 3)?;
    /// assert_eq!(x.to_vec::<i64>()?, [2, 3, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        let at = normalize_dim("narrow", dim, self.rank())?;
        if let Some(&size) = self.shape().get(at)
            && (start > size as i64 || start < -(size as i64))
        {
            return Err(Error::index(
                "narrow",
                format!("start {start} is outside dimension {at} of size {size}"),
            ));
        }
        apply_one(&View::Narrow { dim, start, length }, &[self], Site::caller())
    }

    /// [`Tensor::narrow`] from where a whole number in a tensor without dimensions says.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let start = Tensor::scalar(2, DType::I64)?;
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?.narrow_from(0, &start, 3)?;
    /// assert_eq!(x.to_vec::<i64>()?, [2, 3, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn narrow_from(&self, dim: i64, start: &Tensor, length: i64) -> Result<Tensor> {
        let whole = !start.dtype().is_float() && start.dtype() != DType::Bool;
        if start.rank() > 0 || !whole {
            return Err(Error::shape(
                "narrow",
                format!(
                    "the start must be a whole number without dimensions, not {} of shape {:?}",
                    start.dtype(),
                    start.shape()
                ),
            ));
        }
        self.narrow(dim, start.to_scalar()?.to_i64(), length)
    }

    /// `x[start:end:step]` in one dimension, clamped as in Python.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?.slice(0, 1, i64::MAX, 2)?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 3, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn slice(&self, dim: i64, start: i64, end: i64, step: i64) -> Result<Tensor> {
        apply_one(&View::Slice { dim, start, end, step }, &[self], Site::caller())
    }

    /// One index of a dimension, which goes away.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?.view(&[2, 3])?;
    /// assert_eq!(x.select(1, -1)?.to_vec::<i64>()?, [2, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        apply_one(&View::Select { dim, index }, &[self], Site::caller())
    }

    /// Dimensions of size 1 stretched by a stride of 0; -1 keeps a size.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[3, 1], DType::F32)?.expand(&[3, 4])?;
    /// assert_eq!((x.nbytes(), x.storage_nbytes()), (48, 12));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn expand(&self, sizes: &[i64]) -> Result<Tensor> {
        apply_one(&View::Expand(sizes.into()), &[self], Site::caller())
    }

    /// Dimensions of size 1 removed.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[1, 3, 1], DType::F32)?.squeeze()?.shape(), [3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn squeeze(&self) -> Result<Tensor> {
        let all = (0..self.rank() as i64).collect();
        apply_one(&View::Squeeze(all), &[self], Site::caller())
    }

    /// These dimensions removed where they have size 1; other sizes are left alone.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 1, 3, 1], DType::F32)?.squeeze_with(1)?.shape(), [2, 3, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn squeeze_with(&self, dims: impl Into<DimList>) -> Result<Tensor> {
        let dims = dims.into();
        apply_one(&View::Squeeze(dims.as_slice().into()), &[self], Site::caller())
    }

    /// A dimension of size 1 inserted at `dim`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3], DType::F32)?.unsqueeze(-1)?.shape(), [2, 3, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unsqueeze(&self, dim: i64) -> Result<Tensor> {
        apply_one(&View::Unsqueeze(dim), &[self], Site::caller())
    }

    /// Any sizes and strides over the storage, from `offset`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?;
    /// assert_eq!(x.as_strided(&[2, 2], &[3, 1], 1)?.to_vec::<i64>()?, [1, 2, 4, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn as_strided(&self, sizes: &[i64], strides: &[i64], offset: i64) -> Result<Tensor> {
        let storage_numel = self.storage_nbytes() / self.element_size();
        let view =
            View::AsStrided { sizes: sizes.into(), strides: strides.into(), offset, storage_numel };
        apply_one(&view, &[self], Site::caller())
    }

    /// The elements where index `dim2` is index `dim1` plus `offset`, along a new last dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?.view(&[2, 3])?;
    /// assert_eq!(x.diagonal(1, 0, 1)?.to_vec::<i64>()?, [1, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        apply_one(&View::Diagonal { offset, dim1, dim2 }, &[self], Site::caller())
    }

    /// Windows of `size` elements of a dimension, `step` apart, along a new last dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?;
    /// assert_eq!(x.unfold(0, 3, 1)?.to_vec::<i64>()?, [0, 1, 2, 1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unfold(&self, dim: i64, size: i64, step: i64) -> Result<Tensor> {
        apply_one(&View::Unfold { dim, size, step }, &[self], Site::caller())
    }

    /// The same memory outside the graph. Frees nothing; writes through it still count as versions.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// let y = x.mul(2)?.detach();
    /// assert!(!y.requires_grad());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn detach(&self) -> Tensor {
        self.alias(self.meta().clone(), None)
    }

    /// The same memory outside the graph, as [`Tensor::detach`], whose writes graphs do not see: a
    /// backward that needs the old values computes with the new ones, without an error. PyTorch's
    /// `.data`; prefer `detach`, or writes under [`no_grad`](crate::no_grad).
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[2], 3.0, DType::F32)?.requires_grad_(true)?;
    /// let loss = x.mul(&x)?.sum()?;
    /// x.data().mul_(10)?;
    /// loss.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [60.0, 60.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn data(&self) -> Tensor {
        self.alias_counting(Versions::apart(), self.meta().clone(), None)
    }
}
