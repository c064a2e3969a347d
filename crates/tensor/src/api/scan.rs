//! Scans along a dimension, and differences and integrals, which are composed.

use plimsoll_core::{DType, Error, Result, normalize_dim};
use plimsoll_memory::Site;

use super::options::{options, options_with_tensors};
use crate::Tensor;
use crate::api::composed;
use crate::dispatch::Dest;
use crate::ops::scan::{Cumulative, CumulativeExtreme};
use crate::prepare::{apply, apply_one};
use plimsoll_kernels::cpu::scan::Scan;

options! {
    /// How [`Tensor::cumsum_with`] and [`Tensor::cumprod_with`] compute.
    ScanOptions {
        /// The dtype to compute in, and of the result.
        dtype: Option<DType> = None,
    }
}

options! {
    /// Where the points of [`Tensor::trapezoid_with`] are.
    TrapezoidOptions {
        /// The distance between neighbours.
        dx: f64 = 1.0,
        /// Along which dimension.
        dim: i64 = -1,
    }
}

options_with_tensors! {
    /// Which differences [`Tensor::diff_with`] takes.
    DiffOptions {
        /// How often.
        n: i64 = 1,
        /// Along which dimension.
        dim: i64 = -1,
        /// What stands before the elements.
        prepend: Option<&'a Tensor> = None,
        /// What stands after the elements.
        append: Option<&'a Tensor> = None,
    }
}

impl Tensor {
    /// Running sums along `dim`; integers are added up as int64.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(1, 4, 1, DType::F32)?;
    /// assert_eq!(x.cumsum(0)?.to_vec::<f32>()?, [1.0, 3.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cumsum(&self, dim: i64) -> Result<Tensor> {
        scan("cumsum", Scan::Sum, self, dim, None, Site::caller())
    }

    /// [`Tensor::cumsum`], computed in another dtype.
    #[track_caller]
    pub fn cumsum_with(&self, dim: i64, options: ScanOptions) -> Result<Tensor> {
        scan("cumsum", Scan::Sum, self, dim, options.dtype, Site::caller())
    }

    /// Running products along `dim`; integers are multiplied as int64.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(1, 5, 1, DType::I64)?;
    /// assert_eq!(x.cumprod(0)?.to_vec::<i64>()?, [1, 2, 6, 24]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cumprod(&self, dim: i64) -> Result<Tensor> {
        scan("cumprod", Scan::Product, self, dim, None, Site::caller())
    }

    /// [`Tensor::cumprod`], computed in another dtype.
    #[track_caller]
    pub fn cumprod_with(&self, dim: i64, options: ScanOptions) -> Result<Tensor> {
        scan("cumprod", Scan::Product, self, dim, options.dtype, Site::caller())
    }

    /// [`Tensor::cumprod_with`] in place.
    #[track_caller]
    pub fn cumprod_with_(&self, dim: i64, options: ScanOptions) -> Result<&Tensor> {
        composed("cumprod", Site::caller(), || {
            // Backward reads the elements as they were.
            let before = if self.requires_grad() { self.clone_tensor()? } else { self.clone() };
            self.copy_(&before.cumprod_with(dim, options)?).map(drop)
        })?;
        Ok(self)
    }

    /// The logarithms of running sums of exponentials along `dim`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2], DType::F64)?;
    /// assert_eq!(x.logcumsumexp(0)?.to_vec::<f64>()?, [0.0, 2f64.ln()]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn logcumsumexp(&self, dim: i64) -> Result<Tensor> {
        let site = Site::caller();
        let dim = normalize_dim("logcumsumexp", dim, self.rank())?;
        apply_one(&Cumulative { scan: Scan::LogSumExp, dim, reverse: false }, &[self], site)
    }

    /// The largest element so far along `dim`, and where it is; of equal ones the last, and a NaN
    /// stays.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, 1.0, 3.0], &[3], Device::cpu())?;
    /// let (values, indices) = x.cummax(0)?;
    /// assert_eq!(values.to_vec::<f32>()?, [2.0, 2.0, 3.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 0, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cummax(&self, dim: i64) -> Result<(Tensor, Tensor)> {
        let dim = normalize_dim("cummax", dim, self.rank())?;
        two(apply(&CumulativeExtreme { dim, max: true }, &[self], Dest::New, Site::caller())?)
    }

    /// The smallest element so far along `dim`, and where it is; of equal ones the last, and a NaN
    /// stays.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, 1.0, 3.0], &[3], Device::cpu())?;
    /// assert_eq!(x.cummin(0)?.0.to_vec::<f32>()?, [2.0, 1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cummin(&self, dim: i64) -> Result<(Tensor, Tensor)> {
        let dim = normalize_dim("cummin", dim, self.rank())?;
        two(apply(&CumulativeExtreme { dim, max: false }, &[self], Dest::New, Site::caller())?)
    }

    /// The differences of neighbours along the last dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1i64, 4, 9], &[3], Device::cpu())?;
    /// assert_eq!(x.diff()?.to_vec::<i64>()?, [3, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn diff(&self) -> Result<Tensor> {
        self.diff_with(DiffOptions::new())
    }

    /// [`Tensor::diff`] along another dimension, several times, or with elements before and after.
    #[track_caller]
    pub fn diff_with(&self, options: DiffOptions<'_>) -> Result<Tensor> {
        composed("diff", Site::caller(), || diff(self, options))
    }

    /// The integral by trapezoids over the last dimension, whose points are 1 apart.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let y = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3], Device::cpu())?;
    /// assert_eq!(y.trapezoid()?.item::<f32>()?, 4.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn trapezoid(&self) -> Result<Tensor> {
        self.trapezoid_with(TrapezoidOptions::new())
    }

    /// [`Tensor::trapezoid`] with points `dx` apart.
    #[track_caller]
    pub fn trapezoid_with(&self, options: TrapezoidOptions) -> Result<Tensor> {
        composed("trapezoid", Site::caller(), || {
            let areas = areas(self, None, &options)?;
            areas.sum_with(options.dim)
        })
    }

    /// [`Tensor::trapezoid`] with points at `x`.
    #[track_caller]
    pub fn trapezoid_at(&self, x: &Tensor, options: TrapezoidOptions) -> Result<Tensor> {
        composed("trapezoid", Site::caller(), || {
            let areas = areas(self, Some(x), &options)?;
            areas.sum_with(options.dim)
        })
    }

    /// Another name of [`Tensor::trapezoid_with`].
    #[track_caller]
    pub fn trapz_with(&self, options: TrapezoidOptions) -> Result<Tensor> {
        self.trapezoid_with(options)
    }

    /// The running integral by trapezoids over the last dimension, whose points are 1 apart.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let y = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3], Device::cpu())?;
    /// assert_eq!(y.cumulative_trapezoid()?.to_vec::<f32>()?, [1.5, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cumulative_trapezoid(&self) -> Result<Tensor> {
        self.cumulative_trapezoid_with(TrapezoidOptions::new())
    }

    /// [`Tensor::cumulative_trapezoid`] with points `dx` apart.
    #[track_caller]
    pub fn cumulative_trapezoid_with(&self, options: TrapezoidOptions) -> Result<Tensor> {
        composed("cumulative_trapezoid", Site::caller(), || {
            areas(self, None, &options)?.cumsum(options.dim)
        })
    }

    /// [`Tensor::cumulative_trapezoid`] with points at `x`.
    #[track_caller]
    pub fn cumulative_trapezoid_at(&self, x: &Tensor, options: TrapezoidOptions) -> Result<Tensor> {
        composed("cumulative_trapezoid", Site::caller(), || {
            areas(self, Some(x), &options)?.cumsum(options.dim)
        })
    }
}

/// Both results of an operation that has two.
pub(super) fn two(outputs: crate::operation::Outputs) -> Result<(Tensor, Tensor)> {
    let mut outputs = outputs.into_iter();
    match (outputs.next(), outputs.next()) {
        (Some(values), Some(indices)) => Ok((values, indices)),
        _ => Err(Error::invalid_argument("the operation gives two tensors")),
    }
}

fn scan(
    name: &'static str,
    scan: Scan,
    x: &Tensor,
    dim: i64,
    dtype: Option<DType>,
    site: Site,
) -> Result<Tensor> {
    let dim = normalize_dim(name, dim, x.rank())?;
    let own = if x.dtype().is_float() { x.dtype() } else { DType::I64 };
    let x = composed(name, site, || x.to_dtype(dtype.unwrap_or(own), site))?;
    apply_one(&Cumulative { scan, dim, reverse: false }, &[&x], site)
}

fn diff(x: &Tensor, options: DiffOptions<'_>) -> Result<Tensor> {
    let DiffOptions { n, dim, prepend, append } = options;
    if x.rank() == 0 {
        return Err(Error::shape("diff", "a tensor without dimensions has no neighbours"));
    }
    if n < 0 {
        return Err(Error::shape("diff", format!("the order must not be negative, and is {n}")));
    }
    let along = normalize_dim("diff", dim, x.rank())?;
    for other in [prepend, append].into_iter().flatten() {
        let fits = other.rank() == x.rank()
            && (0..x.rank()).all(|d| d == along || other.shape()[d] == x.shape()[d]);
        if !fits {
            return Err(Error::shape(
                "diff",
                format!(
                    "what is put before or after, of shape {:?}, must fit shape {:?} but along {dim}",
                    other.shape(),
                    x.shape()
                ),
            ));
        }
    }
    if n == 0 {
        // What is put before and after has no neighbours to be taken from, as in PyTorch.
        return x.clone_tensor();
    }
    let parts: Vec<&Tensor> = prepend.into_iter().chain([x]).chain(append).collect();
    let mut x = if parts.len() == 1 { x.clone() } else { Tensor::cat(&parts, dim)? };
    for _ in 0..n {
        let len = x.shape()[along] as i64;
        if len == 0 {
            break;
        }
        let left = len - 1;
        let (early, late) = (x.narrow(dim, 0, left)?, x.narrow(dim, 1, left)?);
        x = if x.dtype() == DType::Bool { late.ne(&early)? } else { late.sub(&early)? };
    }
    Ok(x)
}

/// The area of each trapezoid between neighbours.
fn areas(y: &Tensor, x: Option<&Tensor>, options: &TrapezoidOptions) -> Result<Tensor> {
    if y.dtype() == DType::Bool {
        return Err(Error::dtype("trapezoid", "truths have no area; convert them with `to`"));
    }
    let dim = normalize_dim("trapezoid", options.dim, y.rank())?;
    let len = y.shape().get(dim).map_or(0, |&size| size as i64);
    let left = (len - 1).max(0);
    let along = dim as i64;
    let heights = y.narrow(along, 0, left)?.add(&y.narrow(along, i64::from(len > 0), left)?)?;
    let Some(x) = x else { return heights.mul(options.dx / 2.0) };
    // Points along one line serve all lines.
    let (x, own) = if x.rank() == 1 && y.rank() > 1 {
        if x.shape()[0] as i64 != len {
            return Err(Error::shape(
                "trapezoid",
                format!("{} points do not fit shape {:?} along {dim}", x.shape()[0], y.shape()),
            ));
        }
        let mut sizes = vec![1i64; y.rank()];
        sizes[dim] = len;
        (x.reshape(&sizes)?, along)
    } else {
        (x.clone(), options.dim)
    };
    let steps = composed("trapezoid", Site::in_force(), || diff(&x, DiffOptions::new().dim(own)))?;
    heights.mul(&steps)?.div(2.0)
}
