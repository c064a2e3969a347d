//! Sorting.

use plimsoll_core::{Result, normalize_dim};
use plimsoll_memory::Site;

use super::overlap::check_separate;
use crate::Tensor;
use crate::dispatch::{Dest, apply};
use crate::ops::sort::Sort;

impl Tensor {
    /// The elements in order along `dim`, and the index that each had before. Equal elements keep their order; NaN counts as the
    /// largest.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0], &[3], Device::cpu())?;
    /// let (values, indices) = x.sort(-1, false)?;
    /// assert_eq!(values.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sort(&self, dim: i64, descending: bool) -> Result<(Tensor, Tensor)> {
        let dim = normalize_dim("sort", dim, self.rank())?;
        let mut outputs = apply(&Sort { dim, descending }, &[self], Dest::New, Site::caller())?;
        match (outputs.pop(), outputs.pop()) {
            (Some(indices), Some(values)) => Ok((values, indices)),
            _ => Err(plimsoll_core::Error::invalid_argument("a sort gives two tensors")
                .in_operation("sort")),
        }
    }

    /// [`Tensor::sort`] into `values` and `indices`.
    #[track_caller]
    pub fn sort_out(
        &self,
        dim: i64,
        descending: bool,
        values: &Tensor,
        indices: &Tensor,
    ) -> Result<()> {
        check_separate("sort", values, &[self, indices])?;
        check_separate("sort", indices, &[self])?;
        let dim = normalize_dim("sort", dim, self.rank())?;
        let dest = Dest::Out(&[values, indices]);
        apply(&Sort { dim, descending }, &[self], dest, Site::caller()).map(drop)
    }
}
