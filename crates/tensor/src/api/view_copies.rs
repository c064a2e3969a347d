//! Views with memory of their own, row-major: PyTorch's `*_copy`.

use plimsoll_core::Result;
use plimsoll_memory::{Site, enter_operation, with_site};

use super::options::DimList;
use super::reshape::sizes_of;
use crate::Tensor;
use crate::api::composed;
use crate::ops::copy::Format;

impl Tensor {
    /// All of it, in memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert!(!x.alias_copy()?.shares_storage_with(&x));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn alias_copy(&self) -> Result<Tensor> {
        let _named = enter_operation("alias_copy");
        self.view(&sizes_of(self))?.row_major_copy()
    }

    /// [`Tensor::as_strided`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.as_strided_copy(&[2], &[2], 1)?.to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn as_strided_copy(&self, sizes: &[i64], strides: &[i64], offset: i64) -> Result<Tensor> {
        let _named = enter_operation("as_strided_copy");
        self.as_strided(sizes, strides, offset)?.row_major_copy()
    }

    /// [`Tensor::diagonal`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.diagonal_copy(0, 0, 1)?.to_vec::<i64>()?, [0, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn diagonal_copy(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        let _named = enter_operation("diagonal_copy");
        self.diagonal(offset, dim1, dim2)?.row_major_copy()
    }

    /// [`Tensor::expand`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert!(x.expand_copy(&[2, 2, 2])?.is_contiguous());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn expand_copy(&self, sizes: &[i64]) -> Result<Tensor> {
        let _named = enter_operation("expand_copy");
        self.expand(sizes)?.row_major_copy()
    }

    /// [`Tensor::narrow`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.narrow_copy(1, 1, 1)?.to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn narrow_copy(&self, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        let _named = enter_operation("narrow_copy");
        self.narrow(dim, start, length)?.row_major_copy()
    }

    /// [`Tensor::permute`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.permute_copy(&[1, 0])?.to_vec::<i64>()?, [0, 2, 1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn permute_copy(&self, dims: &[i64]) -> Result<Tensor> {
        let _named = enter_operation("permute_copy");
        self.permute(dims)?.row_major_copy()
    }

    /// [`Tensor::squeeze`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.squeeze_copy()?.shape(), [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn squeeze_copy(&self) -> Result<Tensor> {
        let _named = enter_operation("squeeze_copy");
        self.squeeze()?.row_major_copy()
    }

    /// [`Tensor::squeeze_with`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.squeeze_copy_with(0)?.shape(), [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn squeeze_copy_with(&self, dims: impl Into<DimList>) -> Result<Tensor> {
        let _named = enter_operation("squeeze_copy");
        self.squeeze_with(dims)?.row_major_copy()
    }

    /// [`Tensor::t`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.t_copy()?.to_vec::<i64>()?, [0, 2, 1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn t_copy(&self) -> Result<Tensor> {
        let _named = enter_operation("t_copy");
        self.t()?.row_major_copy()
    }

    /// [`Tensor::transpose`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert!(x.transpose_copy(0, 1)?.is_contiguous());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn transpose_copy(&self, dim0: i64, dim1: i64) -> Result<Tensor> {
        let _named = enter_operation("transpose_copy");
        self.transpose(dim0, dim1)?.row_major_copy()
    }

    /// [`Tensor::unfold`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.unfold_copy(0, 1, 1)?.shape(), [2, 2, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unfold_copy(&self, dim: i64, size: i64, step: i64) -> Result<Tensor> {
        let _named = enter_operation("unfold_copy");
        self.unfold(dim, size, step)?.row_major_copy()
    }

    /// [`Tensor::unsqueeze`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.unsqueeze_copy(0)?.shape(), [1, 2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unsqueeze_copy(&self, dim: i64) -> Result<Tensor> {
        let _named = enter_operation("unsqueeze_copy");
        self.unsqueeze(dim)?.row_major_copy()
    }

    /// [`Tensor::view`] with memory of its own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.view_copy(&[4])?.to_vec::<i64>()?, [0, 1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn view_copy(&self, sizes: &[i64]) -> Result<Tensor> {
        let _named = enter_operation("view_copy");
        self.view(sizes)?.row_major_copy()
    }

    /// [`Tensor::unbind`] with memory of their own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.unbind_copy(1)?[0].to_vec::<i64>()?, [0, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unbind_copy(&self, dim: i64) -> Result<Vec<Tensor>> {
        let _named = enter_operation("unbind_copy");
        let site = Site::caller();
        with_site(site, || self.unbind(dim)?.iter().map(|part| part.row_major_copy()).collect())
    }

    /// [`Tensor::split_with_sizes`] with memory of their own.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?;
    /// assert_eq!(x.split_with_sizes_copy(&[1, 3], 0)?[1].to_vec::<i64>()?, [1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn split_with_sizes_copy(&self, sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        composed("split_with_sizes_copy", Site::caller(), || {
            let parts = self.split_with_sizes(sizes, dim)?;
            parts.iter().map(|part| part.row_major_copy()).collect()
        })
    }

    #[track_caller]
    fn row_major_copy(&self) -> Result<Tensor> {
        self.copied(self.dtype(), Format::Contiguous, Site::caller())
    }
}
