//! Sorting.

use plimsoll_core::{Result, normalize_dim};
use plimsoll_memory::Site;

use super::options::options;
use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::sort::Sort;
use crate::prepare::apply;

options! {
    /// How [`Tensor::sort_with`] sorts.
    SortOptions {
        /// Along which dimension.
        dim: i64 = -1,
        /// Largest first.
        descending: bool = false,
        /// Whether equal elements keep their order; they always do.
        stable: bool = false,
    }
}

impl Tensor {
    /// The elements in order along a dimension (the last), and the index that each had before.
    /// Equal elements keep their order; NaN counts as the largest.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0], &[3], Device::cpu())?;
    /// let (values, indices) = x.sort()?;
    /// assert_eq!(values.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sort(&self) -> Result<(Tensor, Tensor)> {
        self.sort_with(SortOptions::new())
    }

    /// [`Tensor::sort`] along another dimension, or largest first.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0], &[3], Device::cpu())?;
    /// let (values, _) = x.sort_with(SortOptions::new().descending(true))?;
    /// assert_eq!(values.to_vec::<f32>()?, [3.0, 2.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sort_with(&self, options: SortOptions) -> Result<(Tensor, Tensor)> {
        let mut outputs = apply(&operation(self, &options)?, &[self], Dest::New, Site::caller())?;
        match (outputs.pop(), outputs.pop()) {
            (Some(indices), Some(values)) => Ok((values, indices)),
            _ => Err(plimsoll_core::Error::invalid_argument("a sort gives two tensors")
                .in_operation("sort")),
        }
    }

    /// [`Tensor::sort_with`] into `values` and `indices`.
    #[track_caller]
    pub fn sort_with_out(
        &self,
        options: SortOptions,
        values: &Tensor,
        indices: &Tensor,
    ) -> Result<()> {
        let dest = Dest::Out(&[values, indices]);
        apply(&operation(self, &options)?, &[self], dest, Site::caller()).map(drop)
    }
}

fn operation(x: &Tensor, options: &SortOptions) -> Result<Sort> {
    let dim = normalize_dim("sort", options.dim, x.rank())?;
    Ok(Sort { dim, descending: options.descending })
}
