//! Distinct elements, or distinct slices along a dimension.

use plimsoll_core::{DType, Error, Result, normalize_dim};
use plimsoll_memory::Site;

use super::options::options;
use crate::Tensor;
use crate::api::composed;
use crate::dispatch::Dest;
use crate::ops::unique::{RowOrder, Runs, SortValues};
use crate::prepare::{apply, apply_one};

options! {
    /// What [`Tensor::unique_with`] and [`Tensor::unique_consecutive_with`] give besides.
    UniqueOptions {
        /// Whether they come in order; they always do.
        sorted: bool = true,
        /// Whether to tell which distinct element each element is.
        return_inverse: bool = false,
        /// Whether to count them.
        return_counts: bool = false,
        /// Along which dimension slices are compared; none means single elements.
        dim: Option<i64> = None,
    }
}

impl Tensor {
    /// The distinct elements in order.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3i64, 1, 3], &[3], Device::cpu())?;
    /// assert_eq!(x.unique()?.to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unique(&self) -> Result<Tensor> {
        Ok(self.unique_with(UniqueOptions::new())?.swap_remove(0))
    }

    /// [`Tensor::unique`], and as the options ask where each element went and how often each
    /// occurs.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3i64, 1, 3], &[3], Device::cpu())?;
    /// let all = x.unique_with(UniqueOptions::new().return_inverse(true).return_counts(true))?;
    /// assert_eq!(all[1].to_vec::<i64>()?, [1, 0, 1]);
    /// assert_eq!(all[2].to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unique_with(&self, options: UniqueOptions) -> Result<Vec<Tensor>> {
        let site = Site::caller();
        composed("unique", site, || unique(self, &options, true, site))
    }

    /// The elements without those that equal the one before.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3i64, 3, 1, 3], &[4], Device::cpu())?;
    /// assert_eq!(x.unique_consecutive()?.to_vec::<i64>()?, [3, 1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unique_consecutive(&self) -> Result<Tensor> {
        Ok(self.unique_consecutive_with(UniqueOptions::new())?.swap_remove(0))
    }

    /// [`Tensor::unique_consecutive`], and as the options ask where each went and how many.
    #[track_caller]
    pub fn unique_consecutive_with(&self, options: UniqueOptions) -> Result<Vec<Tensor>> {
        let site = Site::caller();
        composed("unique_consecutive", site, || unique(self, &options, false, site))
    }
}

fn unique(x: &Tensor, options: &UniqueOptions, sorts: bool, site: Site) -> Result<Vec<Tensor>> {
    let x = x.detach();
    let Some(dim) = options.dim else {
        let flat = x.reshape(&[-1])?;
        let (values, order) = match (sorts, options.return_inverse) {
            (true, true) => {
                let (values, order) = flat.sort()?;
                (values, Some(order))
            }
            (true, false) => (apply_one(&SortValues, &[&flat.contiguous()?], site)?, None),
            (false, _) => (flat, None),
        };
        let rows = values.unsqueeze(1)?.contiguous()?;
        let sizes: Vec<i64> = x.shape().iter().map(|&size| size as i64).collect();
        return finish(&rows, order.as_ref(), options, site, |runs| runs.squeeze_with(1), &sizes);
    };
    let along = normalize_dim("unique", dim, x.rank())? as i64;
    if x.rank() == 0 {
        return Err(Error::shape("unique", "a tensor without dimensions has no slices"));
    }
    // Slices are compared in the order of their other dimensions.
    let front = x.movedim(&[along], &[0])?.contiguous()?;
    let count = front.shape()[0];
    let width: usize = front.shape()[1..].iter().product();
    if front.numel() == 0 && count > 0 {
        return Err(Error::shape("unique", format!("slices of shape {:?} are empty", x.shape())));
    }
    let mut rows = front.reshape(&[count as i64, width as i64])?;
    let order = if sorts { Some(apply_one(&RowOrder, &[&rows], site)?) } else { None };
    if let Some(order) = &order {
        rows = rows.index(&[Some(order)])?;
    }
    let back = |runs: &Tensor| {
        let mut sizes: Vec<i64> = front.shape().iter().map(|&size| size as i64).collect();
        sizes[0] = runs.shape()[0] as i64;
        runs.reshape(&sizes)?.movedim(&[0], &[along])
    };
    finish(&rows.contiguous()?, order.as_ref(), options, site, back, &[count as i64])
}

/// The runs of `rows`, which stood at `order` before, and what the options ask of them.
fn finish(
    rows: &Tensor,
    order: Option<&Tensor>,
    options: &UniqueOptions,
    site: Site,
    shaped: impl Fn(&Tensor) -> Result<Tensor>,
    places: &[i64],
) -> Result<Vec<Tensor>> {
    let op = Runs { ids: options.return_inverse, lengths: options.return_counts };
    let found = apply(&op, &[rows], Dest::New, site)?;
    let [runs, ids, lengths] = &found[..] else {
        return Err(Error::invalid_argument("runs are three tensors"));
    };
    let mut results = vec![shaped(runs)?];
    if options.return_inverse {
        let inverse = match order {
            Some(order) => Tensor::zeros(&[rows.shape()[0] as i64], (DType::I64, rows.device()))?
                .scatter_add(0, order, ids)?,
            None => ids.clone(),
        };
        results.push(inverse.reshape(places)?);
    }
    if options.return_counts {
        results.push(lengths.clone());
    }
    Ok(results)
}
