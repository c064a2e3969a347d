//! Elementwise methods of one input. Each comes in three forms: a new tensor, in place (`exp_`), and into a given tensor (`exp_out`).
//! Of integers the new tensor is float32 where the operation needs floats.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::{Site, enter_operation};

use crate::Tensor;
use crate::dispatch::{Dest, apply, apply_one};
use crate::ops::unary::{self, Row, Unary};

impl Tensor {
    /// Each element without its sign.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.5f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.abs()?.to_vec::<f32>()?, [1.5, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn abs(&self) -> Result<Tensor> {
        new(&unary::ABS, self, Site::caller())
    }

    /// [`Tensor::abs`] in place.
    #[track_caller]
    pub fn abs_(&self) -> Result<&Tensor> {
        in_place(&unary::ABS, self, Site::caller())
    }

    /// [`Tensor::abs`] into `out`.
    #[track_caller]
    pub fn abs_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::ABS, self, out, Site::caller())
    }

    /// The error function of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 9.0], &[2], Device::cpu())?;
    /// assert_eq!(x.erf()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn erf(&self) -> Result<Tensor> {
        new(&unary::ERF, self, Site::caller())
    }

    /// [`Tensor::erf`] in place.
    #[track_caller]
    pub fn erf_(&self) -> Result<&Tensor> {
        in_place(&unary::ERF, self, Site::caller())
    }

    /// [`Tensor::erf`] into `out`.
    #[track_caller]
    pub fn erf_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::ERF, self, out, Site::caller())
    }

    /// `e` to the power of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.exp()?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn exp(&self) -> Result<Tensor> {
        new(&unary::EXP, self, Site::caller())
    }

    /// [`Tensor::exp`] in place.
    #[track_caller]
    pub fn exp_(&self) -> Result<&Tensor> {
        in_place(&unary::EXP, self, Site::caller())
    }

    /// [`Tensor::exp`] into `out`.
    #[track_caller]
    pub fn exp_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::EXP, self, out, Site::caller())
    }

    /// `x` times the normal distribution's mass below `x`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 20.0], &[2], Device::cpu())?;
    /// assert_eq!(x.gelu()?.to_vec::<f32>()?, [0.0, 20.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gelu(&self) -> Result<Tensor> {
        of_floats(&unary::GELU, self, Site::caller())
    }

    /// [`Tensor::gelu`] in place.
    #[track_caller]
    pub fn gelu_(&self) -> Result<&Tensor> {
        in_place(&unary::GELU, self, Site::caller())
    }

    /// [`Tensor::gelu`] into `out`.
    #[track_caller]
    pub fn gelu_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::GELU, self, out, Site::caller())
    }

    /// `gelu` in the approximation by tanh: PyTorch's `gelu(approximate="tanh")`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 20.0], &[2], Device::cpu())?;
    /// assert_eq!(x.gelu_tanh()?.to_vec::<f32>()?, [0.0, 20.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gelu_tanh(&self) -> Result<Tensor> {
        of_floats(&unary::GELU_TANH, self, Site::caller())
    }

    /// [`Tensor::gelu_tanh`] in place.
    #[track_caller]
    pub fn gelu_tanh_(&self) -> Result<&Tensor> {
        in_place(&unary::GELU_TANH, self, Site::caller())
    }

    /// [`Tensor::gelu_tanh`] into `out`.
    #[track_caller]
    pub fn gelu_tanh_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::GELU_TANH, self, out, Site::caller())
    }

    /// The natural logarithm of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.log()?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn log(&self) -> Result<Tensor> {
        new(&unary::LOG, self, Site::caller())
    }

    /// [`Tensor::log`] in place.
    #[track_caller]
    pub fn log_(&self) -> Result<&Tensor> {
        in_place(&unary::LOG, self, Site::caller())
    }

    /// [`Tensor::log`] into `out`.
    #[track_caller]
    pub fn log_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::LOG, self, out, Site::caller())
    }

    /// The natural logarithm of 1 plus each element, exact near 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1e-10], &[2], Device::cpu())?;
    /// assert_eq!(x.log1p()?.to_vec::<f32>()?, [0.0, 1e-10]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn log1p(&self) -> Result<Tensor> {
        new(&unary::LOG1P, self, Site::caller())
    }

    /// [`Tensor::log1p`] in place.
    #[track_caller]
    pub fn log1p_(&self) -> Result<&Tensor> {
        in_place(&unary::LOG1P, self, Site::caller())
    }

    /// [`Tensor::log1p`] into `out`.
    #[track_caller]
    pub fn log1p_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::LOG1P, self, out, Site::caller())
    }

    /// Each element with its sign turned.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.0f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.neg()?.to_vec::<f32>()?, [1.0, -2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn neg(&self) -> Result<Tensor> {
        new(&unary::NEG, self, Site::caller())
    }

    /// [`Tensor::neg`] in place.
    #[track_caller]
    pub fn neg_(&self) -> Result<&Tensor> {
        in_place(&unary::NEG, self, Site::caller())
    }

    /// [`Tensor::neg`] into `out`.
    #[track_caller]
    pub fn neg_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::NEG, self, out, Site::caller())
    }

    /// 1 over each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, 4.0], &[2], Device::cpu())?;
    /// assert_eq!(x.reciprocal()?.to_vec::<f32>()?, [0.5, 0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn reciprocal(&self) -> Result<Tensor> {
        new(&unary::RECIPROCAL, self, Site::caller())
    }

    /// [`Tensor::reciprocal`] in place.
    #[track_caller]
    pub fn reciprocal_(&self) -> Result<&Tensor> {
        in_place(&unary::RECIPROCAL, self, Site::caller())
    }

    /// [`Tensor::reciprocal`] into `out`.
    #[track_caller]
    pub fn reciprocal_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::RECIPROCAL, self, out, Site::caller())
    }

    /// Each element, or 0 where it is negative.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.0f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn relu(&self) -> Result<Tensor> {
        new(&unary::RELU, self, Site::caller())
    }

    /// [`Tensor::relu`] in place.
    #[track_caller]
    pub fn relu_(&self) -> Result<&Tensor> {
        in_place(&unary::RELU, self, Site::caller())
    }

    /// [`Tensor::relu`] into `out`.
    #[track_caller]
    pub fn relu_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::RELU, self, out, Site::caller())
    }

    /// 1 over the square root of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[4.0f32, 16.0], &[2], Device::cpu())?;
    /// assert_eq!(x.rsqrt()?.to_vec::<f32>()?, [0.5, 0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rsqrt(&self) -> Result<Tensor> {
        new(&unary::RSQRT, self, Site::caller())
    }

    /// [`Tensor::rsqrt`] in place.
    #[track_caller]
    pub fn rsqrt_(&self) -> Result<&Tensor> {
        in_place(&unary::RSQRT, self, Site::caller())
    }

    /// [`Tensor::rsqrt`] into `out`.
    #[track_caller]
    pub fn rsqrt_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::RSQRT, self, out, Site::caller())
    }

    /// `1 / (1 + exp(-x))` of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 40.0], &[2], Device::cpu())?;
    /// assert_eq!(x.sigmoid()?.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sigmoid(&self) -> Result<Tensor> {
        new(&unary::SIGMOID, self, Site::caller())
    }

    /// [`Tensor::sigmoid`] in place.
    #[track_caller]
    pub fn sigmoid_(&self) -> Result<&Tensor> {
        in_place(&unary::SIGMOID, self, Site::caller())
    }

    /// [`Tensor::sigmoid`] into `out`.
    #[track_caller]
    pub fn sigmoid_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::SIGMOID, self, out, Site::caller())
    }

    /// -1, 0 or 1 by the sign of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-3.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.sign()?.to_vec::<f32>()?, [-1.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sign(&self) -> Result<Tensor> {
        new(&unary::SIGN, self, Site::caller())
    }

    /// [`Tensor::sign`] in place.
    #[track_caller]
    pub fn sign_(&self) -> Result<&Tensor> {
        in_place(&unary::SIGN, self, Site::caller())
    }

    /// [`Tensor::sign`] into `out`.
    #[track_caller]
    pub fn sign_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::SIGN, self, out, Site::caller())
    }

    /// The square root of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[4.0f32, 9.0], &[2], Device::cpu())?;
    /// assert_eq!(x.sqrt()?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sqrt(&self) -> Result<Tensor> {
        new(&unary::SQRT, self, Site::caller())
    }

    /// [`Tensor::sqrt`] in place.
    #[track_caller]
    pub fn sqrt_(&self) -> Result<&Tensor> {
        in_place(&unary::SQRT, self, Site::caller())
    }

    /// [`Tensor::sqrt`] into `out`.
    #[track_caller]
    pub fn sqrt_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::SQRT, self, out, Site::caller())
    }

    /// The hyperbolic tangent of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 40.0], &[2], Device::cpu())?;
    /// assert_eq!(x.tanh()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tanh(&self) -> Result<Tensor> {
        new(&unary::TANH, self, Site::caller())
    }

    /// [`Tensor::tanh`] in place.
    #[track_caller]
    pub fn tanh_(&self) -> Result<&Tensor> {
        in_place(&unary::TANH, self, Site::caller())
    }

    /// [`Tensor::tanh`] into `out`.
    #[track_caller]
    pub fn tanh_out(&self, out: &Tensor) -> Result<()> {
        into(&unary::TANH, self, out, Site::caller())
    }
}

fn new(row: &'static Row, x: &Tensor, site: Site) -> Result<Tensor> {
    if row.info.dtypes.contains(&x.dtype()) {
        return apply_one(&Unary(row), &[x], site);
    }
    if row.info.dtypes.contains(&DType::I64) {
        // It takes integers, so only bool is left, which PyTorch refuses here too.
        check_dtype(row, x)?;
    }
    let _named = enter_operation(row.info.name);
    apply_one(&Unary(row), &[&x.to_dtype(DType::F32, site)?], site)
}

/// As [`new`], for operations that PyTorch does not lift integers for.
fn of_floats(row: &'static Row, x: &Tensor, site: Site) -> Result<Tensor> {
    check_dtype(row, x)?;
    apply_one(&Unary(row), &[x], site)
}

fn in_place<'a>(row: &'static Row, x: &'a Tensor, site: Site) -> Result<&'a Tensor> {
    check_dtype(row, x)?;
    apply(&Unary(row), &[x], Dest::InPlace, site)?;
    Ok(x)
}

fn into(row: &'static Row, x: &Tensor, out: &Tensor, site: Site) -> Result<()> {
    check_dtype(row, x)?;
    apply(&Unary(row), &[x], Dest::Out(&[out]), site).map(drop)
}

fn check_dtype(row: &'static Row, x: &Tensor) -> Result<()> {
    if row.info.dtypes.contains(&x.dtype()) {
        return Ok(());
    }
    let takes: Vec<&str> = row.info.dtypes.iter().map(|dtype| dtype.name()).collect();
    Err(Error::dtype(
        row.info.name,
        format!(
            "{} is not supported here; convert with `to` to one of {}",
            x.dtype(),
            takes.join(", ")
        ),
    ))
}
