//! `max` and `min` of all elements or along a dimension, and both at once.

use plimsoll_core::{DType, Error, Result, normalize_dim};
use plimsoll_memory::Site;

use super::options::options;
use super::reduce::ReduceOptions;
use crate::Tensor;
use crate::api::composed;
use crate::autograd::is_grad_enabled;
use crate::operation::OpInfo;
use crate::ops::extremes::{Chosen, MAX, MIN};
use crate::ops::reduce::{Reduce, Reduction};
use crate::prepare::apply_one;

options! {
    /// How [`Tensor::max_along`] and [`Tensor::min_along`] answer.
    ExtremeOptions {
        /// Whether the dimension stays, with size 1.
        keepdim: bool = false,
    }
}

options! {
    /// Along what [`Tensor::aminmax_with`] looks.
    AminmaxOptions {
        /// The dimension; none means all elements.
        dim: Option<i64> = None,
        /// Whether it stays, with size 1.
        keepdim: bool = false,
    }
}

impl Tensor {
    /// The largest element; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 4, 1, DType::F32)?.max()?.item::<f32>()?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn max(&self) -> Result<Tensor> {
        let site = Site::caller();
        composed("max", site, || {
            chosen(&MAX, self, not_empty("max", &self.detach())?.amax()?, site)
        })
    }

    /// The largest element along `dim`, and where the first of them is; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0, 9.0], &[2, 2], Device::cpu())?;
    /// let (values, indices) = x.max_along(1, ExtremeOptions::new())?;
    /// assert_eq!(values.to_vec::<f32>()?, [3.0, 9.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn max_along(&self, dim: i64, options: ExtremeOptions) -> Result<(Tensor, Tensor)> {
        along("max", Reduction::Argmax, self, dim, options, Site::caller())
    }

    /// The smallest element; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 4, 1, DType::F32)?.min()?.item::<f32>()?, 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn min(&self) -> Result<Tensor> {
        let site = Site::caller();
        composed("min", site, || {
            chosen(&MIN, self, not_empty("min", &self.detach())?.amin()?, site)
        })
    }

    /// The smallest element along `dim`, and where the first of them is; NaN wins.
    #[track_caller]
    pub fn min_along(&self, dim: i64, options: ExtremeOptions) -> Result<(Tensor, Tensor)> {
        along("min", Reduction::Argmin, self, dim, options, Site::caller())
    }

    /// The smallest and the largest element; NaN is both.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (min, max) = Tensor::arange(0, 4, 1, DType::F32)?.aminmax()?;
    /// assert_eq!((min.item::<f32>()?, max.item::<f32>()?), (0.0, 3.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn aminmax(&self) -> Result<(Tensor, Tensor)> {
        self.aminmax_with(AminmaxOptions::new())
    }

    /// The smallest and the largest element along a dimension; NaN is both.
    #[track_caller]
    pub fn aminmax_with(&self, options: AminmaxOptions) -> Result<(Tensor, Tensor)> {
        composed("aminmax", Site::caller(), || {
            if options.dim.is_none() {
                not_empty("aminmax", self)?;
            }
            let over = match options.dim {
                Some(dim) => ReduceOptions::from(dim),
                None => ReduceOptions::new(),
            };
            let over = over.keepdim(options.keepdim);
            Ok((self.amin_with(over.clone())?, self.amax_with(over)?))
        })
    }
}

/// An element of `x` that an operation chose among all, with a history if `x` has one.
pub(super) fn chosen(by: &'static OpInfo, x: &Tensor, value: Tensor, site: Site) -> Result<Tensor> {
    if !x.requires_grad() || !is_grad_enabled() {
        return Ok(value);
    }
    apply_one(&Chosen { by }, &[&value, x], site)
}

fn not_empty<'a>(name: &'static str, x: &'a Tensor) -> Result<&'a Tensor> {
    if x.numel() > 0 {
        return Ok(x);
    }
    Err(Error::shape(name, format!("shape {:?} has no elements to choose from", x.shape())))
}

fn along(
    name: &'static str,
    reduction: Reduction,
    x: &Tensor,
    dim: i64,
    options: ExtremeOptions,
    site: Site,
) -> Result<(Tensor, Tensor)> {
    composed(name, site, || {
        let along = normalize_dim(name, dim, x.rank())?;
        if x.rank() == 0 {
            let zero = Tensor::zeros(&[], (DType::I64, x.device()))?;
            return Ok((x.clone_tensor()?, zero));
        }
        let dims = smallvec::smallvec![along];
        let op = Reduce { reduction, dims, keepdim: true, dtype: DType::I64 };
        // Bools are in order too, as numbers.
        let plain = match x.dtype() {
            DType::Bool => x.to_dtype(DType::U8, site)?,
            _ => x.detach(),
        };
        let indices = apply_one(&op, &[&plain], site)?;
        let values = x.gather(dim, &indices)?;
        if options.keepdim {
            return Ok((values, indices));
        }
        Ok((values.squeeze_with(dim)?, indices.squeeze_with(dim)?))
    })
}
