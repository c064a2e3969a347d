//! Methods of one input with numbers beside it, and small ones that are made of other operations.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::{Site, enter_operation, with_site};

use super::options::options;
use crate::Tensor;
use crate::ops::numeric::{LOGIT, NAN_TO_NUM, POLYGAMMA, ROUND_DECIMALS};
use crate::ops::pointwise::{self, Numbers, PointwiseRow};
use crate::ops::unary;
use crate::ops::unary::rounding::ROUND;

options! {
    /// The bound of [`Tensor::logit_with`].
    LogitOptions {
        /// How close to 0 and 1 elements are let; `None` takes them as they are.
        eps: Option<f64> = None,
    }
}

options! {
    /// What [`Tensor::nan_to_num_with`] puts in place of what is not finite.
    NanToNumOptions {
        /// For NaN; 0 if `None`.
        nan: Option<f64> = None,
        /// For infinity; the dtype's largest number if `None`.
        posinf: Option<f64> = None,
        /// For minus infinity; the dtype's lowest number if `None`.
        neginf: Option<f64> = None,
    }
}

options! {
    /// How [`Tensor::round_with`] rounds.
    RoundOptions {
        /// Places behind the point; negative ones are before it.
        decimals: i64 = 0,
    }
}

/// The three forms of a row under `_with` names, where the options become the row's numbers.
macro_rules! with_options {
    ($($(#[$doc:meta])* $name:ident, $in_place:ident, $into:ident, $options:ident => $row:expr, |$x:ident, $o:ident| $numbers:expr)*) => {
        impl Tensor {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, options: $options) -> Result<Tensor> {
                let ($x, $o) = (self, options);
                pointwise::new(&$row, &[self], $numbers, Site::caller())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place.")]
            #[track_caller]
            pub fn $in_place(&self, options: $options) -> Result<&Tensor> {
                let ($x, $o) = (self, options);
                pointwise::in_place(&$row, &[self], $numbers, Site::caller())?;
                Ok(self)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`.")]
            #[track_caller]
            pub fn $into(&self, options: $options, out: &Tensor) -> Result<()> {
                let ($x, $o) = (self, options);
                pointwise::into(&$row, &[self], $numbers, out, Site::caller())
            }
        )*}
    };
}

with_options! {
    /// [`Tensor::logit`], as the options say.
    logit_with, logit_with_, logit_with_out, LogitOptions => LOGIT,
        |_x, options| [options.eps.unwrap_or(f64::NAN), 0.0, 0.0]
    /// [`Tensor::nan_to_num`], as the options say.
    nan_to_num_with, nan_to_num_with_, nan_to_num_with_out, NanToNumOptions => NAN_TO_NUM,
        |x, options| replacements(x.dtype(), &options)
}

fn replacements(dtype: DType, options: &NanToNumOptions) -> Numbers {
    let largest = match dtype {
        DType::F16 => 65504.0,
        // (2 - 2^-7) 2^127.
        DType::BF16 => 3.389_531_389_251_535_5e38,
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    [
        options.nan.unwrap_or(0.0),
        options.posinf.unwrap_or(largest),
        options.neginf.unwrap_or(-largest),
    ]
}

impl Tensor {
    /// The logarithm of each element's odds.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.logit()?.to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn logit(&self) -> Result<Tensor> {
        self.logit_with(LogitOptions::new())
    }

    /// Each element, with finite numbers in place of NaN and the infinities.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[f32::NAN, f32::INFINITY], &[2], Device::cpu())?;
    /// assert_eq!(x.nan_to_num()?.to_vec::<f32>()?, [0.0, f32::MAX]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn nan_to_num(&self) -> Result<Tensor> {
        self.nan_to_num_with(NanToNumOptions::new())
    }

    /// [`Tensor::round`] to so many decimals.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.126f64], &[1], Device::cpu())?;
    /// assert_eq!(x.round_with(RoundOptions::new().decimals(2))?.to_vec::<f64>()?, [0.13]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn round_with(&self, options: RoundOptions) -> Result<Tensor> {
        match decimals(self, &options)? {
            None => unary::new(&ROUND, self, Site::caller()),
            Some((row, numbers)) => pointwise::new(row, &[self], numbers, Site::caller()),
        }
    }

    /// [`Tensor::round_with`] in place.
    #[track_caller]
    pub fn round_with_(&self, options: RoundOptions) -> Result<&Tensor> {
        match decimals(self, &options)? {
            None => unary::in_place(&ROUND, self, Site::caller()),
            Some((row, numbers)) => {
                pointwise::in_place(row, &[self], numbers, Site::caller())?;
                Ok(self)
            }
        }
    }

    /// [`Tensor::round_with`] into `out`.
    #[track_caller]
    pub fn round_with_out(&self, options: RoundOptions, out: &Tensor) -> Result<()> {
        match decimals(self, &options)? {
            None => unary::into(&ROUND, self, out, Site::caller()),
            Some((row, numbers)) => pointwise::into(row, &[self], numbers, out, Site::caller()),
        }
    }

    /// The derivative of order n of [`Tensor::digamma`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F64)?;
    /// let sixth = std::f64::consts::PI.powi(2) / 6.0;
    /// assert!((x.polygamma(1)?.item::<f64>()? - sixth).abs() < 1e-12);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn polygamma(&self, n: i64) -> Result<Tensor> {
        pointwise::new(&POLYGAMMA, &[self], order(n)?, Site::caller())
    }

    /// [`Tensor::polygamma`] in place.
    #[track_caller]
    pub fn polygamma_(&self, n: i64) -> Result<&Tensor> {
        pointwise::in_place(&POLYGAMMA, &[self], order(n)?, Site::caller())?;
        Ok(self)
    }

    /// [`Tensor::polygamma`] into `out`.
    #[track_caller]
    pub fn polygamma_out(&self, n: i64, out: &Tensor) -> Result<()> {
        pointwise::into(&POLYGAMMA, &[self], order(n)?, out, Site::caller())
    }

    /// The logarithm of the multivariate gamma function of dimension `p`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[1], 3.0, DType::F64)?;
    /// assert_eq!(x.mvlgamma(1)?.item::<f64>()?, 2f64.ln());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn mvlgamma(&self, p: i64) -> Result<Tensor> {
        let _named = enter_operation("mvlgamma");
        if p < 1 {
            return Err(Error::shape("mvlgamma", format!("p is {p}, and must be 1 or more")));
        }
        with_site(Site::caller(), || {
            let x = if self.dtype().is_float() { self.clone() } else { self.float()? };
            let steps = Tensor::arange(0, p, 1, (x.dtype(), x.device()))?.mul(-0.5)?;
            let terms = x.unsqueeze(-1)?.add(&steps)?.lgamma()?;
            let p = p as f64;
            terms.sum_with(-1)?.add(p * (p - 1.0) / 4.0 * std::f64::consts::PI.ln())
        })
    }

    /// [`Tensor::mvlgamma`] in place, of floats.
    #[track_caller]
    pub fn mvlgamma_(&self, p: i64) -> Result<&Tensor> {
        let _named = enter_operation("mvlgamma");
        if !self.dtype().is_float() {
            return Err(Error::dtype(
                "mvlgamma_",
                format!("the result is no {}; convert to a float dtype first", self.dtype()),
            ));
        }
        // Of a copy: backward reads what is overwritten here.
        with_site(Site::caller(), || self.copy_(&self.clone_tensor()?.mvlgamma(p)?).map(drop))?;
        Ok(self)
    }

    /// [`Tensor::square`] in place.
    #[track_caller]
    pub fn square_(&self) -> Result<&Tensor> {
        let _named = enter_operation("square");
        self.pow_(2)
    }

    /// [`Tensor::deg2rad`] in place.
    #[track_caller]
    pub fn deg2rad_(&self) -> Result<&Tensor> {
        let _named = enter_operation("deg2rad");
        self.mul_(std::f64::consts::PI / 180.0)
    }

    /// [`Tensor::rad2deg`] in place.
    #[track_caller]
    pub fn rad2deg_(&self) -> Result<&Tensor> {
        let _named = enter_operation("rad2deg");
        self.mul_(180.0 / std::f64::consts::PI)
    }

    /// The square of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-3.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.square()?.to_vec::<f32>()?, [9.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn square(&self) -> Result<Tensor> {
        let _named = enter_operation("square");
        self.pow(2)
    }

    /// Degrees as radians.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[1], 180.0, DType::F64)?;
    /// assert_eq!(x.deg2rad()?.item::<f64>()?, std::f64::consts::PI);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn deg2rad(&self) -> Result<Tensor> {
        let _named = enter_operation("deg2rad");
        self.mul(std::f64::consts::PI / 180.0)
    }

    /// Radians as degrees.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[1], std::f64::consts::PI, DType::F64)?;
    /// assert_eq!(x.rad2deg()?.item::<f64>()?, 180.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rad2deg(&self) -> Result<Tensor> {
        let _named = enter_operation("rad2deg");
        self.mul(180.0 / std::f64::consts::PI)
    }

    /// The tensor itself: what `+x` is of numbers.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?;
    /// assert_eq!(x.positive()?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn positive(&self) -> Result<Tensor> {
        if self.dtype() == DType::Bool {
            return Err(Error::dtype("positive", "bools have no sign; convert with `to` first"));
        }
        Ok(self.clone())
    }

    /// The sign of each element: another name of [`Tensor::sign`] for real numbers.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::full(&[1], -3.0, DType::F32)?.sgn()?.to_vec::<f32>()?, [-1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sgn(&self) -> Result<Tensor> {
        let _named = enter_operation("sgn");
        self.sign()
    }

    /// The complex conjugate: a real tensor itself.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.conj()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn conj(&self) -> Result<Tensor> {
        Ok(self.clone())
    }

    /// The complex conjugate in memory of its own: a real tensor itself, as in PyTorch.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.conj_physical()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn conj_physical(&self) -> Result<Tensor> {
        Ok(self.clone())
    }

    /// The real part: a real tensor itself.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.real()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn real(&self) -> Result<Tensor> {
        Ok(self.clone())
    }

    /// The tensor with its conjugation carried out: a real tensor itself.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.resolve_conj()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn resolve_conj(&self) -> Result<Tensor> {
        Ok(self.clone())
    }

    /// The tensor with its negation carried out: the tensor itself.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.resolve_neg()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn resolve_neg(&self) -> Result<Tensor> {
        Ok(self.clone())
    }

    /// Where elements have no imaginary part: everywhere.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[2], DType::F32)?.isreal()?.to_bools()?, [true, true]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn isreal(&self) -> Result<Tensor> {
        let _named = enter_operation("isreal");
        self.full_like_with(true, DType::Bool)
    }
}

/// How a tensor is rounded to decimals; `None` if to whole numbers.
fn decimals(
    x: &Tensor,
    options: &RoundOptions,
) -> Result<Option<(&'static PointwiseRow, Numbers)>> {
    if options.decimals == 0 {
        return Ok(None);
    }
    if !x.dtype().is_float() {
        return Err(Error::dtype(
            "round",
            format!("{} has no decimals; convert to a float dtype first", x.dtype()),
        ));
    }
    Ok(Some((&ROUND_DECIMALS, [options.decimals as f64, 0.0, 0.0])))
}

fn order(n: i64) -> Result<Numbers> {
    if n < 0 {
        return Err(Error::shape("polygamma", format!("the order is {n}, and must be 0 or more")));
    }
    Ok([n as f64, 0.0, 0.0])
}
