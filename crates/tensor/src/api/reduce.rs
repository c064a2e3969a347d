//! Reductions over all or some dimensions.

use plimsoll_core::{DType, Error, Result, normalize_dims};
use plimsoll_memory::{Site, enter_operation};

use super::overlap::check_separate;
use crate::Tensor;
use crate::dispatch::{Dest, apply, apply_one};
use crate::ops::reduce::{Reduce, Reduction};

impl Tensor {
    /// The sum of all elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 5, 1, DType::I64)?.sum()?.item::<i64>()?, 10);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sum(&self) -> Result<Tensor> {
        reduce(Reduction::Sum, self, &[], false, Site::caller())
    }

    /// The sum over `dims`; none named means all.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::F32)?.view(&[2, 3])?;
    /// assert_eq!(x.sum_dim(&[0], false)?.to_vec::<f32>()?, [3.0, 5.0, 7.0]);
    /// assert_eq!(x.sum_dim(&[-1], true)?.shape(), [2, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sum_dim(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        reduce(Reduction::Sum, self, dims, keepdim, Site::caller())
    }

    /// [`Tensor::sum_dim`] into `out`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2, 3], DType::F32)?;
    /// let out = Tensor::zeros(&[2], DType::F32)?;
    /// x.sum_out(&[1], false, &out)?;
    /// assert_eq!(out.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sum_out(&self, dims: &[i64], keepdim: bool, out: &Tensor) -> Result<()> {
        reduce_into(Reduction::Sum, self, dims, keepdim, out, Site::caller())
    }

    /// The mean of all elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 4, 1, DType::F32)?.mean()?.item::<f32>()?, 1.5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn mean(&self) -> Result<Tensor> {
        reduce(Reduction::Mean, self, &[], false, Site::caller())
    }

    /// The mean over `dims`; none named means all.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?.view(&[2, 2])?;
    /// assert_eq!(x.mean_dim(&[1], false)?.to_vec::<f32>()?, [0.5, 2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn mean_dim(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        reduce(Reduction::Mean, self, dims, keepdim, Site::caller())
    }

    /// [`Tensor::mean_dim`] into `out`.
    #[track_caller]
    pub fn mean_out(&self, dims: &[i64], keepdim: bool, out: &Tensor) -> Result<()> {
        reduce_into(Reduction::Mean, self, dims, keepdim, out, Site::caller())
    }

    /// The largest element over `dims`; none named means all. NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?.view(&[2, 2])?;
    /// assert_eq!(x.amax(&[0], false)?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn amax(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        reduce(Reduction::Amax, self, dims, keepdim, Site::caller())
    }

    /// [`Tensor::amax`] into `out`.
    #[track_caller]
    pub fn amax_out(&self, dims: &[i64], keepdim: bool, out: &Tensor) -> Result<()> {
        reduce_into(Reduction::Amax, self, dims, keepdim, out, Site::caller())
    }

    /// The smallest element over `dims`; none named means all. NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?.view(&[2, 2])?;
    /// assert_eq!(x.amin(&[1], false)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn amin(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        reduce(Reduction::Amin, self, dims, keepdim, Site::caller())
    }

    /// [`Tensor::amin`] into `out`.
    #[track_caller]
    pub fn amin_out(&self, dims: &[i64], keepdim: bool, out: &Tensor) -> Result<()> {
        reduce_into(Reduction::Amin, self, dims, keepdim, out, Site::caller())
    }

    /// The index of the first largest element: along `dim`, or among all elements in row-major order.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 9.0, 2.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(x.argmax(Some(1), false)?.to_vec::<i64>()?, [0, 0]);
    /// assert_eq!(x.argmax(None, false)?.item::<i64>()?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn argmax(&self, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
        reduce(Reduction::Argmax, self, dim.as_slice(), keepdim, Site::caller())
    }

    /// [`Tensor::argmax`] into `out`.
    #[track_caller]
    pub fn argmax_out(&self, dim: Option<i64>, keepdim: bool, out: &Tensor) -> Result<()> {
        reduce_into(Reduction::Argmax, self, dim.as_slice(), keepdim, out, Site::caller())
    }

    /// The index of the first smallest element; see [`Tensor::argmax`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(3, 0, -1, DType::F32)?;
    /// assert_eq!(x.argmin(None, false)?.item::<i64>()?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn argmin(&self, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
        reduce(Reduction::Argmin, self, dim.as_slice(), keepdim, Site::caller())
    }

    /// [`Tensor::argmin`] into `out`.
    #[track_caller]
    pub fn argmin_out(&self, dim: Option<i64>, keepdim: bool, out: &Tensor) -> Result<()> {
        reduce_into(Reduction::Argmin, self, dim.as_slice(), keepdim, out, Site::caller())
    }

    /// Whether any element is not zero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 2, 1, DType::I64)?.any()?.to_bools()?, [true]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn any(&self) -> Result<Tensor> {
        reduce(Reduction::Any, self, &[], false, Site::caller())
    }

    /// Whether all elements are not zero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 2, 1, DType::I64)?.all()?.to_bools()?, [false]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn all(&self) -> Result<Tensor> {
        reduce(Reduction::All, self, &[], false, Site::caller())
    }
}

fn reduce(
    reduction: Reduction,
    x: &Tensor,
    dims: &[i64],
    keepdim: bool,
    site: Site,
) -> Result<Tensor> {
    let result = apply_one(&operation(reduction, x, dims, keepdim)?, &[x], site)?;
    // PyTorch answers any and all of uint8, its bool of old, in uint8.
    match reduction {
        Reduction::Any | Reduction::All if x.dtype() == DType::U8 => {
            let _named = enter_operation(if reduction == Reduction::Any { "any" } else { "all" });
            result.to_dtype(DType::U8, site)
        }
        _ => Ok(result),
    }
}

fn reduce_into(
    reduction: Reduction,
    x: &Tensor,
    dims: &[i64],
    keepdim: bool,
    out: &Tensor,
    site: Site,
) -> Result<()> {
    let op = operation(reduction, x, dims, keepdim)?;
    check_separate(op.name(), out, &[x])?;
    apply(&op, &[x], Dest::Out(&[out]), site).map(drop)
}

fn operation(reduction: Reduction, x: &Tensor, dims: &[i64], keepdim: bool) -> Result<Reduce> {
    let dtype = match reduction {
        Reduction::Sum if !x.dtype().is_float() => DType::I64,
        Reduction::Argmax | Reduction::Argmin if x.dtype() != DType::Bool => DType::I64,
        Reduction::Argmax | Reduction::Argmin => {
            let name = if reduction == Reduction::Argmax { "argmax" } else { "argmin" };
            return Err(Error::dtype(
                name,
                "bools have no order to speak of; convert with `to` to an integer first",
            ));
        }
        Reduction::Any | Reduction::All => DType::Bool,
        Reduction::Mean if !x.dtype().is_float() => {
            return Err(Error::dtype(
                "mean",
                format!(
                    "the mean of {} is not defined; convert with `to` to a float first",
                    x.dtype()
                ),
            ));
        }
        _ => x.dtype(),
    };
    let mut op = Reduce { reduction, dims: Default::default(), keepdim, dtype };
    op.dims = normalize_dims(op.name(), dims, x.rank())?;
    Ok(op)
}
