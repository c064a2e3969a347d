//! A copy of a tensor with the part that a view shows replaced: PyTorch's `*_scatter` of views.

use plimsoll_core::{Error, Result};
use plimsoll_memory::enter_operation;

use super::reshape::sizes_of;
use crate::Tensor;

impl Tensor {
    /// A copy with one index of a dimension replaced by `src`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, row) = (Tensor::zeros(&[2, 2], DType::I64)?, Tensor::ones(&[2], DType::I64)?);
    /// assert_eq!(x.select_scatter(&row, 0, 1)?.to_vec::<i64>()?, [0, 0, 1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn select_scatter(&self, src: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
        let _named = enter_operation("select_scatter");
        let copy = self.clone_tensor()?;
        replace("select_scatter", &copy.select(dim, index)?, src)?;
        Ok(copy)
    }

    /// A copy with `x[start:end:step]` of a dimension replaced by `src`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, part) = (Tensor::zeros(&[4], DType::I64)?, Tensor::ones(&[2], DType::I64)?);
    /// let y = x.slice_scatter(&part, 0, 0, i64::MAX, 2)?;
    /// assert_eq!(y.to_vec::<i64>()?, [1, 0, 1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn slice_scatter(
        &self,
        src: &Tensor,
        dim: i64,
        start: i64,
        end: i64,
        step: i64,
    ) -> Result<Tensor> {
        let _named = enter_operation("slice_scatter");
        let copy = self.clone_tensor()?;
        replace("slice_scatter", &copy.slice(dim, start, end, step)?, src)?;
        Ok(copy)
    }

    /// A copy with a diagonal replaced by `src`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, part) = (Tensor::zeros(&[2, 2], DType::I64)?, Tensor::ones(&[2], DType::I64)?);
    /// assert_eq!(x.diagonal_scatter(&part, 0, 0, 1)?.to_vec::<i64>()?, [1, 0, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn diagonal_scatter(
        &self,
        src: &Tensor,
        offset: i64,
        dim1: i64,
        dim2: i64,
    ) -> Result<Tensor> {
        let _named = enter_operation("diagonal_scatter");
        let copy = self.clone_tensor()?;
        replace("diagonal_scatter", &copy.diagonal(offset, dim1, dim2)?, src)?;
        Ok(copy)
    }

    /// A copy with what [`Tensor::as_strided`] shows replaced by `src`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, part) = (Tensor::zeros(&[4], DType::I64)?, Tensor::ones(&[2], DType::I64)?);
    /// let y = x.as_strided_scatter(&part, &[2], &[3], 0)?;
    /// assert_eq!(y.to_vec::<i64>()?, [1, 0, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn as_strided_scatter(
        &self,
        src: &Tensor,
        sizes: &[i64],
        strides: &[i64],
        offset: i64,
    ) -> Result<Tensor> {
        let _named = enter_operation("as_strided_scatter");
        // The view looks at the storage, so the copy has all of it.
        let copy = if self.is_contiguous() && self.storage_nbytes() == self.nbytes() {
            self.clone_tensor()?
        } else {
            let whole = (self.storage_nbytes() / self.element_size()) as i64;
            let strides: Vec<i64> = self.strides().iter().map(|&stride| stride as i64).collect();
            let flat = self.as_strided(&[whole], &[1], 0)?.clone_tensor()?;
            flat.as_strided(&sizes_of(self), &strides, self.storage_offset() as i64)?
        };
        replace("as_strided_scatter", &copy.as_strided(sizes, strides, offset)?, src)?;
        Ok(copy)
    }
}

#[track_caller]
fn replace(op: &'static str, part: &Tensor, src: &Tensor) -> Result<()> {
    if part.shape() != src.shape() {
        return Err(Error::shape(
            op,
            format!(
                "the source has shape {:?}, and what it replaces {:?}; they must be equal",
                src.shape(),
                part.shape()
            ),
        ));
    }
    part.copy_(src).map(drop)
}
