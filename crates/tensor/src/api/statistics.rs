//! Variance, standard deviation, covariance, medians and quantiles.

use plimsoll_core::{DType, Error, MemoryFormat, Result, Scalar, normalize_dim, normalize_dims};
use plimsoll_memory::Site;

use super::extremes::chosen;
use super::norm::without;
use super::options::{DimList, options, options_with_tensors};
use super::reduce::SumOptions;
use super::sort::SortOptions;
use crate::api::composed;
use crate::ops::statistics::{MEDIAN, NANMEDIAN, Variance};
use crate::prepare::apply_one;
use crate::{DivOptions, RoundingMode, Tensor};

options! {
    /// Over what [`Tensor::var_with`] goes, and what it divides by. A dimension or a list of them
    /// will do.
    VarOptions {
        /// The dimensions; none means all.
        dim: DimList = DimList::default(),
        /// Whether to divide by one less than the count; a correction says it better.
        unbiased: bool = true,
        /// What is taken from the count.
        correction: Option<Scalar> = None,
        /// Whether the dimensions stay, with size 1.
        keepdim: bool = false,
    }
}

impl<T: Into<DimList>> From<T> for VarOptions {
    fn from(dims: T) -> VarOptions {
        VarOptions::new().dim(dims)
    }
}

options_with_tensors! {
    /// How observations count in [`Tensor::cov_with`].
    CovOptions {
        /// What is taken from the count.
        correction: i64 = 1,
        /// How often each was made.
        fweights: Option<&'a Tensor> = None,
        /// How much each weighs.
        aweights: Option<&'a Tensor> = None,
    }
}

options! {
    /// How [`Tensor::median_along`] and [`Tensor::nanmedian_along`] answer.
    MedianOptions {
        /// Whether the dimension stays, with size 1.
        keepdim: bool = false,
    }
}

options! {
    /// Over what [`Tensor::quantile_with`] goes, and what it does between elements.
    QuantileOptions {
        /// The dimension; none means all elements.
        dim: Option<i64> = None,
        /// Whether it stays, with size 1.
        keepdim: bool = false,
        /// What lies between two elements.
        interpolation: Interpolation = Interpolation::Linear,
    }
}

/// What a quantile between two elements is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// On the line between them.
    Linear,
    /// The smaller one.
    Lower,
    /// The larger one.
    Higher,
    /// Half of both.
    Midpoint,
    /// The nearer one; the one with an even place if both are as near.
    Nearest,
}

impl std::str::FromStr for Interpolation {
    type Err = Error;

    fn from_str(word: &str) -> Result<Interpolation> {
        match word {
            "linear" => Ok(Interpolation::Linear),
            "lower" => Ok(Interpolation::Lower),
            "higher" => Ok(Interpolation::Higher),
            "midpoint" => Ok(Interpolation::Midpoint),
            "nearest" => Ok(Interpolation::Nearest),
            _ => Err(Error::shape(
                "quantile",
                format!(
                    "an interpolation is linear, lower, higher, midpoint or nearest, not {word:?}"
                ),
            )),
        }
    }
}

impl Tensor {
    /// The variance of the elements, around their mean and over one less than their count.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], &[2], Device::cpu())?;
    /// assert_eq!(x.var()?.item::<f32>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn var(&self) -> Result<Tensor> {
        variance("var", self, VarOptions::new(), Site::caller())
    }

    /// [`Tensor::var`] over some dimensions, or with another correction.
    #[track_caller]
    pub fn var_with(&self, options: impl Into<VarOptions>) -> Result<Tensor> {
        variance("var", self, options.into(), Site::caller())
    }

    /// The standard deviation of the elements: the root of their variance.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 5.0], &[2], Device::cpu())?;
    /// assert_eq!(x.std_with(VarOptions::new().unbiased(false))?.item::<f32>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn std(&self) -> Result<Tensor> {
        variance("std", self, VarOptions::new(), Site::caller())
    }

    /// [`Tensor::std`] over some dimensions, or with another correction.
    #[track_caller]
    pub fn std_with(&self, options: impl Into<VarOptions>) -> Result<Tensor> {
        variance("std", self, options.into(), Site::caller())
    }

    /// The variance and the mean of the elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], &[2], Device::cpu())?;
    /// let (var, mean) = x.var_mean()?;
    /// assert_eq!((var.item::<f32>()?, mean.item::<f32>()?), (2.0, 2.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn var_mean(&self) -> Result<(Tensor, Tensor)> {
        self.var_mean_with(VarOptions::new())
    }

    /// [`Tensor::var_mean`] over some dimensions, or with another correction.
    #[track_caller]
    pub fn var_mean_with(&self, options: impl Into<VarOptions>) -> Result<(Tensor, Tensor)> {
        let (options, site) = (options.into(), Site::caller());
        let mean = SumOptions::new().dim(options.dim.clone()).keepdim(options.keepdim);
        let var = variance("var", self, options, site)?;
        composed("var_mean", site, || Ok((var, self.mean_with(mean)?)))
    }

    /// The standard deviation and the mean of the elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 1.0], &[2], Device::cpu())?;
    /// let (std, mean) = x.std_mean()?;
    /// assert_eq!((std.item::<f32>()?, mean.item::<f32>()?), (0.0, 1.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn std_mean(&self) -> Result<(Tensor, Tensor)> {
        self.std_mean_with(VarOptions::new())
    }

    /// [`Tensor::std_mean`] over some dimensions, or with another correction.
    #[track_caller]
    pub fn std_mean_with(&self, options: impl Into<VarOptions>) -> Result<(Tensor, Tensor)> {
        let (options, site) = (options.into(), Site::caller());
        let mean = SumOptions::new().dim(options.dim.clone()).keepdim(options.keepdim);
        let std = variance("std", self, options, site)?;
        composed("std_mean", site, || Ok((std, self.mean_with(mean)?)))
    }

    /// The covariance of variables, a row each, over their observations.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 2.0, 1.0, -1.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(x.cov()?.to_vec::<f32>()?, [2.0, -2.0, -2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cov(&self) -> Result<Tensor> {
        self.cov_with(CovOptions::new())
    }

    /// [`Tensor::cov`] with weights, or with another correction.
    #[track_caller]
    pub fn cov_with(&self, options: CovOptions<'_>) -> Result<Tensor> {
        composed("cov", Site::caller(), || covariance(self, options))
    }

    /// The correlations of variables, a row each, over their observations.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 2.0, 1.0, -1.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(x.corrcoef()?.select(0, 1)?.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn corrcoef(&self) -> Result<Tensor> {
        composed("corrcoef", Site::caller(), || {
            if self.rank() > 2 {
                return Err(too_many("corrcoef", self));
            }
            let cov = self.cov()?;
            if cov.rank() == 0 {
                return cov.div(&cov);
            }
            let deviation = cov.diagonal_view()?.sqrt()?;
            let result = cov.div(&deviation.unsqueeze(1)?)?.div(&deviation.unsqueeze(0)?)?;
            // Rounding must not lead past a perfect correlation.
            let below = Tensor::where_(&result.gt(1.0)?, 1.0, &result)?;
            Tensor::where_(&below.lt(-1.0)?, -1.0, &below)
        })
    }

    /// The main diagonal of a matrix, as a view.
    pub(crate) fn diagonal_view(&self) -> Result<Tensor> {
        let (rows, columns) = (self.shape()[0], self.shape()[1]);
        let stride = (self.strides()[0] + self.strides()[1]) as i64;
        let offset = self.storage_offset() as i64;
        self.as_strided(&[rows.min(columns) as i64], &[stride], offset)
    }

    /// The lower median of all elements; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[5.0f32, 1.0, 3.0, 2.0], &[4], Device::cpu())?;
    /// assert_eq!(x.median()?.item::<f32>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn median(&self) -> Result<Tensor> {
        let site = Site::caller();
        composed("median", site, || median_of_all(self, false, site))
    }

    /// The lower median along `dim`, and where it is; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[5.0f32, 1.0, 3.0], &[3], Device::cpu())?;
    /// let (value, index) = x.median_along(0, MedianOptions::new())?;
    /// assert_eq!((value.item::<f32>()?, index.item::<i64>()?), (3.0, 2));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn median_along(&self, dim: i64, options: MedianOptions) -> Result<(Tensor, Tensor)> {
        composed("median", Site::caller(), || median(self, dim, options.keepdim, false))
    }

    /// The lower median of all elements that are not NaN.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[5.0f32, f32::NAN, 3.0], &[3], Device::cpu())?;
    /// assert_eq!(x.nanmedian()?.item::<f32>()?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn nanmedian(&self) -> Result<Tensor> {
        let site = Site::caller();
        composed("nanmedian", site, || median_of_all(self, true, site))
    }

    /// The lower median along `dim` of what is not NaN, and where it is.
    #[track_caller]
    pub fn nanmedian_along(&self, dim: i64, options: MedianOptions) -> Result<(Tensor, Tensor)> {
        composed("nanmedian", Site::caller(), || median(self, dim, options.keepdim, true))
    }

    /// The elements below which the fractions `q` of all elements lie.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 5, 1, DType::F32)?;
    /// let q = Tensor::from_slice(&[0.0f32, 0.625], &[2], Device::cpu())?;
    /// assert_eq!(x.quantile(&q)?.to_vec::<f32>()?, [0.0, 2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn quantile(&self, q: &Tensor) -> Result<Tensor> {
        self.quantile_with(q, QuantileOptions::new())
    }

    /// [`Tensor::quantile`] along a dimension.
    #[track_caller]
    pub fn quantile_with(&self, q: &Tensor, options: QuantileOptions) -> Result<Tensor> {
        composed("quantile", Site::caller(), || quantile("quantile", self, q, &options))
    }

    /// [`Tensor::quantile`] of one fraction.
    #[track_caller]
    pub fn quantile_of(&self, q: f64, options: QuantileOptions) -> Result<Tensor> {
        composed("quantile", Site::caller(), || {
            let q = Tensor::full(&[], q, (self.dtype(), self.device()))?;
            quantile("quantile", self, &q, &options)
        })
    }

    /// [`Tensor::quantile`] of the elements that are not NaN.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN, 3.0], &[3], Device::cpu())?;
    /// let half = Tensor::full(&[], 0.5, DType::F32)?;
    /// assert_eq!(x.nanquantile(&half)?.item::<f32>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn nanquantile(&self, q: &Tensor) -> Result<Tensor> {
        self.nanquantile_with(q, QuantileOptions::new())
    }

    /// [`Tensor::nanquantile`] along a dimension.
    #[track_caller]
    pub fn nanquantile_with(&self, q: &Tensor, options: QuantileOptions) -> Result<Tensor> {
        composed("nanquantile", Site::caller(), || quantile("nanquantile", self, q, &options))
    }

    /// [`Tensor::nanquantile`] of one fraction.
    #[track_caller]
    pub fn nanquantile_of(&self, q: f64, options: QuantileOptions) -> Result<Tensor> {
        composed("nanquantile", Site::caller(), || {
            let q = Tensor::full(&[], q, (self.dtype(), self.device()))?;
            quantile("nanquantile", self, &q, &options)
        })
    }
}

fn variance(name: &'static str, x: &Tensor, options: VarOptions, site: Site) -> Result<Tensor> {
    let VarOptions { dim, unbiased, correction, keepdim } = options;
    let dims = normalize_dims(name, dim.as_slice(), x.rank())?;
    let correction = correction.map_or(f64::from(u8::from(unbiased)), Scalar::to_f64);
    composed(name, site, || {
        let op = Variance { dims: dims.clone(), correction, root: name == "std" };
        without(&apply_one(&op, &[x], site)?, &dims, keepdim)
    })
}

fn too_many(name: &'static str, x: &Tensor) -> Error {
    Error::shape(
        name,
        format!("variables are rows of a matrix, and this has shape {:?}", x.shape()),
    )
}

fn covariance(x: &Tensor, options: CovOptions<'_>) -> Result<Tensor> {
    let CovOptions { correction, fweights, aweights } = options;
    if x.rank() > 2 {
        return Err(too_many("cov", x));
    }
    if x.dtype() == DType::Bool {
        return Err(Error::shape("cov", "bools have no covariance; convert with `to` first"));
    }
    let x = if x.rank() < 2 { x.reshape(&[1, -1])? } else { x.clone() };
    let observations = x.shape()[1];
    for (weights, whole) in [(fweights, true), (aweights, false)] {
        let Some(weights) = weights else { continue };
        let class_fits = weights.dtype().is_float() != whole && weights.dtype() != DType::Bool;
        if weights.rank() > 1 || !class_fits || weights.numel() != observations {
            return Err(Error::shape(
                "cov",
                format!(
                    "weights are a number for each of {observations} observations (integers for fweights, floats \
                     for aweights), and these are {} of shape {:?}",
                    weights.dtype(),
                    weights.shape()
                ),
            ));
        }
        if weights.lt(0)?.any()?.to_bools()?[0] {
            return Err(Error::shape("cov", "weights must not be negative"));
        }
    }
    let weights = match (fweights, aweights) {
        (Some(f), Some(a)) => Some(f.mul(a)?),
        (one, other) => one.or(other).cloned(),
    };
    let total = weights.as_ref().map(Tensor::sum).transpose()?;
    let mean = match (&weights, &total) {
        (Some(weights), Some(total)) => {
            x.mul(weights)?.sum_with(SumOptions::from(1).keepdim(true))?.div(total)?
        }
        _ => x.sum_with(SumOptions::from(1).keepdim(true))?.div(observations as i64)?,
    };
    let centred = x.sub(&mean)?;
    let weighted = match &weights {
        Some(weights) => centred.mul(weights)?,
        None => centred.clone(),
    };
    let product = weighted.matmul(&centred.t()?.to(weighted.dtype())?)?;
    let result = match (&total, aweights) {
        (None, _) => product.div((observations as f64 - correction as f64).max(0.0))?,
        (Some(total), None) => product.div(&total.sub(correction)?.maximum(0)?)?,
        (Some(total), Some(a)) => {
            let spread = weights.as_ref().map_or_else(|| a.sum(), |w| w.mul(a)?.sum())?;
            let rest = total.sub(&spread.div(total)?.mul(correction)?)?;
            product.div(&rest.maximum(0)?)?
        }
    };
    result.squeeze()
}

fn median_of_all(x: &Tensor, ignores_nan: bool, site: Site) -> Result<Tensor> {
    let flat = x.detach().reshape(&[-1])?;
    if flat.numel() == 0 {
        // PyTorch's stand-in for an integer that is none: the least int64, cut to the dtype's bits.
        let of = |dtype| if x.dtype().is_float() { x.dtype() } else { dtype };
        let none =
            if x.dtype().is_float() { Scalar::Float(f64::NAN) } else { Scalar::Int(i64::MIN) };
        return Tensor::full(&[], none, (of(DType::I64), x.device()))?.to(x.dtype());
    }
    let by = if ignores_nan { &NANMEDIAN } else { &MEDIAN };
    chosen(by, x, median(&flat, 0, false, ignores_nan)?.0, site)
}

fn median(x: &Tensor, dim: i64, keepdim: bool, ignores_nan: bool) -> Result<(Tensor, Tensor)> {
    let along = normalize_dim("median", dim, x.rank())?;
    if x.rank() == 0 {
        let zero = Tensor::zeros(&[], (DType::I64, x.device()))?;
        return Ok((x.clone_tensor()?, zero));
    }
    let len = x.shape()[along];
    if len == 0 {
        return Err(Error::index("median", format!("dimension {dim} has no elements")));
    }
    let plain = x.detach();
    let (_, order) = plain.sort_with(SortOptions::new().dim(dim))?;
    let indices = if x.dtype().is_float() {
        // NaNs stand last, in their order.
        let count = plain.eq(&plain)?.sum_with(SumOptions::from(dim).keepdim(true))?;
        let middle = |count: &Tensor| {
            count
                .sub(1)?
                .maximum(0)?
                .div_with(2, DivOptions::new().rounding_mode(RoundingMode::Floor))
        };
        let place = if ignores_nan {
            middle(&count)?
        } else {
            Tensor::where_(&count.lt(len as i64)?, &count, (len as i64 - 1) / 2)?
        };
        order.gather(dim, &place)?
    } else {
        let middle = order.narrow(dim, (len as i64 - 1) / 2, 1)?;
        middle.clone_with(MemoryFormat::Contiguous)?
    };
    let values = x.gather(dim, &indices)?;
    Ok((without(&values, &[along], keepdim)?, without(&indices, &[along], keepdim)?))
}

fn quantile(
    name: &'static str,
    x: &Tensor,
    q: &Tensor,
    options: &QuantileOptions,
) -> Result<Tensor> {
    let wrong = |why: &str| Err(Error::shape(name, why.to_string()));
    if x.numel() == 0 {
        return wrong("the input has no elements");
    }
    if q.rank() > 1 {
        return wrong("q is a number or a list of them");
    }
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        return wrong("the input must be float32 or float64");
    }
    if q.dtype() != x.dtype() {
        return wrong("q must have the dtype of the input");
    }
    if q.device() != x.device() {
        return wrong("q must be where the input is");
    }
    if !q.ge(0.0)?.all()?.to_bools()?[0] || !q.le(1.0)?.all()?.to_bools()?[0] {
        return wrong("fractions are from 0 to 1");
    }
    // Lines along the last dimension.
    let (lines, along) = match options.dim {
        None => (x.reshape(&[-1])?, None),
        Some(dim) if x.rank() == 0 => {
            normalize_dim(name, dim, 0)?;
            (x.reshape(&[-1])?, None)
        }
        Some(dim) => {
            let dim = normalize_dim(name, dim, x.rank())?;
            (x.unsqueeze(-1)?.transpose(dim as i64, -1)?.squeeze_with(dim as i64)?, Some(dim))
        }
    };
    let (sorted, _) = lines.sort()?;
    let len = sorted.shape()[sorted.rank() - 1] as i64;
    let fractions = if q.rank() == 0 { q.unsqueeze(0)? } else { q.clone() };
    let plain = sorted.detach();
    let count = plain.eq(&plain)?.to(x.dtype())?.sum_with(SumOptions::from(-1).keepdim(true))?;
    let ranks = if name == "nanquantile" {
        let ranks = fractions.mul(&count.sub(1.0)?)?;
        Tensor::where_(&ranks.lt(0.0)?, 0.0, &ranks)?.to(x.dtype())?
    } else {
        // A line with a NaN answers with its last element, which is one.
        let all = fractions.mul((len - 1) as f64)?;
        Tensor::where_(&count.lt(len as f64)?, (len - 1) as f64, &all)?.to(x.dtype())?
    };
    let result = between(&sorted, &ranks, options.interpolation)?;
    // The fractions come first; a single one is no dimension.
    let rank = result.rank() as i64;
    let mut order: Vec<i64> = vec![rank - 1];
    order.extend(0..rank - 1);
    let mut result = result.permute(&order)?;
    if options.keepdim {
        result = match along {
            Some(dim) => result.unsqueeze(dim as i64 + 1)?,
            None => {
                let mut sizes = vec![result.shape()[0] as i64];
                sizes.extend(std::iter::repeat_n(1, x.rank()));
                result.reshape(&sizes)?
            }
        };
    }
    if q.rank() == 0 { result.squeeze_with(0) } else { Ok(result) }
}

/// The elements of sorted lines at `ranks`, which may lie between two.
fn between(sorted: &Tensor, ranks: &Tensor, interpolation: Interpolation) -> Result<Tensor> {
    let below = ranks.detach().to(DType::I64)?;
    let rest = ranks.sub(&below.to(ranks.dtype())?)?;
    let above = below.add(&rest.gt(0.0)?.to(DType::I64)?)?;
    let at = |places: &Tensor| sorted.gather(-1, places);
    match interpolation {
        Interpolation::Lower => at(&below),
        Interpolation::Higher => at(&above),
        Interpolation::Nearest => {
            let half = DivOptions::new().rounding_mode(RoundingMode::Floor);
            let odd = below.sub(&below.div_with(2, half)?.mul(2)?)?;
            let up = Tensor::where_(&rest.eq(0.5)?, &odd, &rest.gt(0.5)?.to(DType::I64)?)?;
            at(&below.add(&up)?)
        }
        Interpolation::Linear | Interpolation::Midpoint => {
            let (low, high) = (at(&below)?, at(&above)?);
            let weight =
                if interpolation == Interpolation::Linear { rest } else { rest.full_like(0.5)? };
            low.lerp(&high, &weight)
        }
    }
}
