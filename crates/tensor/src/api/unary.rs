//! Elementwise methods of one input. Each comes in three forms: a new tensor, in place (`exp_`),
//! and into a given tensor (`exp_out`). Of integers the new tensor is float32 where the operation
//! needs floats.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use super::options::options;
use crate::Tensor;
use crate::dispatch::{Dest, apply, apply_one};
use crate::ops::unary::{self, Unary, UnaryRow};

/// The three forms of one operation.
macro_rules! unary {
    ($(#[$doc:meta])* $name:ident, $in_place:ident, $into:ident => $row:path) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Result<Tensor> {
                apply_one(&Unary(&$row), &[self], Site::caller())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place.")]
            #[track_caller]
            pub fn $in_place(&self) -> Result<&Tensor> {
                in_place(&$row, self, Site::caller())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`.")]
            #[track_caller]
            pub fn $into(&self, out: &Tensor) -> Result<()> {
                into(&$row, self, out, Site::caller())
            }
        }
    };
}

unary! {
    /// Each element without its sign.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.5f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.abs()?.to_vec::<f32>()?, [1.5, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    abs, abs_, abs_out => unary::ABS
}
unary! {
    /// The error function of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 9.0], &[2], Device::cpu())?;
    /// assert_eq!(x.erf()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    erf, erf_, erf_out => unary::ERF
}
unary! {
    /// `e` to the power of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.exp()?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    exp, exp_, exp_out => unary::EXP
}
unary! {
    /// `x` times the normal distribution's mass below `x`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 20.0], &[2], Device::cpu())?;
    /// assert_eq!(x.gelu()?.to_vec::<f32>()?, [0.0, 20.0]);
    /// # Ok::<(), Error>(())
    /// ```
    gelu, gelu_, gelu_out => unary::GELU
}
unary! {
    /// The natural logarithm of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.log()?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    log, log_, log_out => unary::LOG
}
unary! {
    /// The natural logarithm of 1 plus each element, exact near 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1e-10], &[2], Device::cpu())?;
    /// assert_eq!(x.log1p()?.to_vec::<f32>()?, [0.0, 1e-10]);
    /// # Ok::<(), Error>(())
    /// ```
    log1p, log1p_, log1p_out => unary::LOG1P
}
unary! {
    /// Each element with its sign turned.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.0f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.neg()?.to_vec::<f32>()?, [1.0, -2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    neg, neg_, neg_out => unary::NEG
}
unary! {
    /// 1 over each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, 4.0], &[2], Device::cpu())?;
    /// assert_eq!(x.reciprocal()?.to_vec::<f32>()?, [0.5, 0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    reciprocal, reciprocal_, reciprocal_out => unary::RECIPROCAL
}
unary! {
    /// Each element, or 0 where it is negative.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.0f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    relu, relu_, relu_out => unary::RELU
}
unary! {
    /// 1 over the square root of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[4.0f32, 16.0], &[2], Device::cpu())?;
    /// assert_eq!(x.rsqrt()?.to_vec::<f32>()?, [0.5, 0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    rsqrt, rsqrt_, rsqrt_out => unary::RSQRT
}
unary! {
    /// `1 / (1 + exp(-x))` of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 40.0], &[2], Device::cpu())?;
    /// assert_eq!(x.sigmoid()?.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sigmoid, sigmoid_, sigmoid_out => unary::SIGMOID
}
unary! {
    /// -1, 0 or 1 by the sign of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-3.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.sign()?.to_vec::<f32>()?, [-1.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sign, sign_, sign_out => unary::SIGN
}
unary! {
    /// The square root of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[4.0f32, 9.0], &[2], Device::cpu())?;
    /// assert_eq!(x.sqrt()?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sqrt, sqrt_, sqrt_out => unary::SQRT
}
unary! {
    /// The hyperbolic tangent of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 40.0], &[2], Device::cpu())?;
    /// assert_eq!(x.tanh()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    tanh, tanh_, tanh_out => unary::TANH
}

options! {
    /// How [`Tensor::gelu_with`] computes.
    GeluOptions {
        /// Exactly, or by tanh.
        approximate: Approximate = Approximate::None,
    }
}

/// Whether `gelu` is approximated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approximate {
    /// By the error function.
    None,
    /// By tanh, as GPT-2 does.
    Tanh,
}

impl std::str::FromStr for Approximate {
    type Err = Error;

    fn from_str(word: &str) -> Result<Approximate> {
        match word {
            "none" => Ok(Approximate::None),
            "tanh" => Ok(Approximate::Tanh),
            _ => Err(Error::invalid_argument(format!(
                "approximate is \"none\" or \"tanh\", and not {word:?}"
            ))
            .in_operation("gelu")),
        }
    }
}

impl Tensor {
    /// [`Tensor::gelu`], exactly or by tanh.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F64)?;
    /// let y = x.gelu_with(GeluOptions::new().approximate(Approximate::Tanh))?;
    /// assert!((y.item::<f64>()? - 0.841_19).abs() < 1e-5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gelu_with(&self, options: GeluOptions) -> Result<Tensor> {
        apply_one(&Unary(gelu(&options)), &[self], Site::caller())
    }

    /// [`Tensor::gelu_with`] in place.
    #[track_caller]
    pub fn gelu_with_(&self, options: GeluOptions) -> Result<&Tensor> {
        in_place(gelu(&options), self, Site::caller())
    }

    /// [`Tensor::gelu_with`] into `out`.
    #[track_caller]
    pub fn gelu_with_out(&self, options: GeluOptions, out: &Tensor) -> Result<()> {
        into(gelu(&options), self, out, Site::caller())
    }
}

fn gelu(options: &GeluOptions) -> &'static UnaryRow {
    match options.approximate {
        Approximate::None => &unary::GELU,
        Approximate::Tanh => &unary::GELU_TANH,
    }
}

fn in_place<'a>(row: &'static UnaryRow, x: &'a Tensor, site: Site) -> Result<&'a Tensor> {
    apply(&Unary(row), &[x], Dest::InPlace, site)?;
    Ok(x)
}

fn into(row: &'static UnaryRow, x: &Tensor, out: &Tensor, site: Site) -> Result<()> {
    apply(&Unary(row), &[x], Dest::Out(&[out]), site).map(drop)
}
