//! Activations of networks as methods: `inplace` of their options writes over the tensor, as
//! PyTorch's functions do. Some are made of other operations.

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_memory::{Site, enter_operation, with_site};

use super::nn::SoftmaxOptions;
use super::options::options;
use crate::Tensor;
use crate::api::composed;
use crate::ops::activation as rows;
use crate::ops::elementwise::rounded;
use crate::ops::pointwise::{self, NONE, Numbers, PointwiseRow};

options! {
    /// Whether an activation without other options writes over its tensor.
    InplaceOptions {
        /// Writes over the tensor.
        inplace: bool = false,
    }
}

options! {
    /// The numbers of [`Tensor::elu_with`].
    EluOptions {
        /// What it goes down to is minus this.
        alpha: f64 = 1.0,
        /// Writes over the tensor.
        inplace: bool = false,
    }
}

options! {
    /// The numbers of [`Tensor::celu_with`].
    CeluOptions {
        /// What it goes down to is minus this.
        alpha: f64 = 1.0,
        /// Writes over the tensor.
        inplace: bool = false,
    }
}

options! {
    /// The numbers of [`Tensor::leaky_relu_with`].
    LeakyReluOptions {
        /// The slope below 0.
        negative_slope: f64 = 0.01,
        /// Writes over the tensor.
        inplace: bool = false,
    }
}

options! {
    /// The bounds of [`Tensor::hardtanh_with`].
    HardtanhOptions {
        /// The lower bound.
        min_val: f64 = -1.0,
        /// The upper bound.
        max_val: f64 = 1.0,
        /// Writes over the tensor.
        inplace: bool = false,
    }
}

options! {
    /// The numbers of [`Tensor::softplus_with`].
    SoftplusOptions {
        /// How sharp its bend is.
        beta: f64 = 1.0,
        /// Where `beta x` is above this the result is x.
        threshold: f64 = 20.0,
    }
}

options! {
    /// The width of [`Tensor::hardshrink_with`] and [`Tensor::softshrink_with`].
    HardshrinkOptions {
        /// How far from 0 the result is 0.
        lambd: f64 = 0.5,
    }
}

options! {
    /// How [`Tensor::threshold_with`] writes.
    ThresholdOptions {
        /// Writes over the tensor.
        inplace: bool = false,
    }
}

options! {
    /// The slopes of [`Tensor::rrelu_with`].
    RreluOptions {
        /// The least slope below 0.
        lower: f64 = 1.0 / 8.0,
        /// The largest slope below 0.
        upper: f64 = 1.0 / 3.0,
        /// Draws slopes, rather than taking the mean of both.
        training: bool = false,
        /// Writes over the tensor.
        inplace: bool = false,
    }
}

options! {
    /// How [`Tensor::softmin_with`] computes.
    SoftminOptions {
        /// The dimension that adds up to 1; `None` is 0 for tensors of 0, 1 and 3 dimensions, else
        /// 1.
        dim: Option<i64> = None,
        /// What PyTorch tells its own frames by; it has no meaning here.
        _stacklevel: i64 = 3,
        /// The dtype to compute in.
        dtype: Option<DType> = None,
    }
}

options! {
    /// The dimension of [`Tensor::glu_with`].
    GluOptions {
        /// The dimension that is halved.
        dim: i64 = -1,
    }
}

/// A bound as the tensor's dtype has it: halves are compared with a half.
fn own(x: &Tensor, bound: f64) -> f64 {
    rounded(Scalar::Float(bound), x.dtype()).to_f64()
}

/// How far [`Tensor::softshrink`] brings elements.
fn width(options: &HardshrinkOptions) -> Result<f64> {
    if options.lambd < 0.0 || options.lambd.is_nan() {
        return Err(Error::shape(
            "softshrink",
            format!("lambd is {}, and must be 0 or above", options.lambd),
        ));
    }
    Ok(options.lambd)
}

/// Runs a row, over `x` itself if it is to be written.
fn run(
    row: &'static PointwiseRow,
    x: &Tensor,
    numbers: Numbers,
    inplace: bool,
    site: Site,
) -> Result<Tensor> {
    if inplace {
        pointwise::in_place(row, &[x], numbers, site)?;
        return Ok(x.clone());
    }
    pointwise::new(row, &[x], numbers, site)
}

/// Exponential linear units. In place the result tells the derivative, unless `alpha` turns what is
/// below 0 above it.
fn elu(x: &Tensor, numbers: Numbers, inplace: bool, site: Site) -> Result<Tensor> {
    let row = if inplace && numbers[0] >= 0.0 { &rows::ELU_OVER } else { &rows::ELU };
    run(row, x, numbers, inplace, site)
}

/// Leaky rectified units; in place as [`elu`].
fn leaky_relu(x: &Tensor, slope: f64, inplace: bool, site: Site) -> Result<Tensor> {
    let row = if inplace && slope >= 0.0 { &rows::LEAKY_RELU_OVER } else { &rows::LEAKY_RELU };
    run(row, x, [slope, 0.0, 0.0], inplace, site)
}

impl Tensor {
    /// Each element, or where it is negative its exponential minus 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, f32::NEG_INFINITY], &[2], Device::cpu())?;
    /// assert_eq!(x.elu()?.to_vec::<f32>()?, [2.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn elu(&self) -> Result<Tensor> {
        self.elu_with(EluOptions::new())
    }

    /// [`Tensor::elu`] with its numbers.
    #[track_caller]
    pub fn elu_with(&self, options: EluOptions) -> Result<Tensor> {
        elu(self, [options.alpha, 1.0, 1.0], options.inplace, Site::caller())
    }

    /// [`Tensor::elu`] whose slope is 1 at 0 whatever its `alpha`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, f32::NEG_INFINITY], &[2], Device::cpu())?;
    /// assert_eq!(x.celu()?.to_vec::<f32>()?, [2.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn celu(&self) -> Result<Tensor> {
        self.celu_with(CeluOptions::new())
    }

    /// [`Tensor::celu`] with its numbers.
    #[track_caller]
    pub fn celu_with(&self, options: CeluOptions) -> Result<Tensor> {
        let _named = enter_operation("celu");
        if options.alpha == 0.0 {
            return Err(Error::shape(
                "celu",
                "alpha is 0, and the exponent is divided by it; give another",
            ));
        }
        let numbers = [options.alpha, 1.0, 1.0 / options.alpha];
        elu(self, numbers, options.inplace, Site::caller())
    }

    /// [`Tensor::elu`] with the numbers that keep mean 0 and variance 1 from layer to layer.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.selu()?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn selu(&self) -> Result<Tensor> {
        self.selu_with(InplaceOptions::new())
    }

    /// [`Tensor::selu`] with its numbers.
    #[track_caller]
    pub fn selu_with(&self, options: InplaceOptions) -> Result<Tensor> {
        /// By Klambauer and others, "Self-normalizing neural networks".
        const ALPHA: f64 = 1.673_263_242_354_377_2;
        const SCALE: f64 = 1.050_700_987_355_480_5;
        let _named = enter_operation("selu");
        elu(self, [ALPHA, SCALE, 1.0], options.inplace, Site::caller())
    }

    /// Each element, or a small part of it where it is negative.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, -100.0], &[2], Device::cpu())?;
    /// assert_eq!(x.leaky_relu()?.to_vec::<f32>()?, [2.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn leaky_relu(&self) -> Result<Tensor> {
        self.leaky_relu_with(LeakyReluOptions::new())
    }

    /// [`Tensor::leaky_relu`] with its numbers.
    #[track_caller]
    pub fn leaky_relu_with(&self, options: LeakyReluOptions) -> Result<Tensor> {
        leaky_relu(self, options.negative_slope, options.inplace, Site::caller())
    }

    /// Each element between -1 and 1, or between other bounds.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, -0.5], &[2], Device::cpu())?;
    /// assert_eq!(x.hardtanh()?.to_vec::<f32>()?, [1.0, -0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn hardtanh(&self) -> Result<Tensor> {
        self.hardtanh_with(HardtanhOptions::new())
    }

    /// [`Tensor::hardtanh`] with its numbers.
    #[track_caller]
    pub fn hardtanh_with(&self, options: HardtanhOptions) -> Result<Tensor> {
        if options.min_val > options.max_val {
            return Err(Error::invalid_argument(format!(
                "min_val {} is above max_val {}",
                options.min_val, options.max_val
            ))
            .in_operation("hardtanh"));
        }
        run(
            &rows::HARDTANH,
            self,
            [options.min_val, options.max_val, 0.0],
            options.inplace,
            Site::caller(),
        )
    }

    /// Each element between 0 and 6.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[8.0f32, -0.5], &[2], Device::cpu())?;
    /// assert_eq!(x.relu6()?.to_vec::<f32>()?, [6.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn relu6(&self) -> Result<Tensor> {
        self.relu6_with(InplaceOptions::new())
    }

    /// [`Tensor::relu6`] with its numbers.
    #[track_caller]
    pub fn relu6_with(&self, options: InplaceOptions) -> Result<Tensor> {
        let _named = enter_operation("relu6");
        run(&rows::HARDTANH, self, [0.0, 6.0, 0.0], options.inplace, Site::caller())
    }

    /// The logarithm of 1 plus the exponential: [`Tensor::relu`] with a soft bend.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[30.0f32, f32::NEG_INFINITY], &[2], Device::cpu())?;
    /// assert_eq!(x.softplus()?.to_vec::<f32>()?, [30.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softplus(&self) -> Result<Tensor> {
        self.softplus_with(SoftplusOptions::new())
    }

    /// [`Tensor::softplus`] with its numbers.
    #[track_caller]
    pub fn softplus_with(&self, options: SoftplusOptions) -> Result<Tensor> {
        run(&rows::SOFTPLUS, self, [options.beta, options.threshold, 0.0], false, Site::caller())
    }

    /// Each element, or 0 where it is close to 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, -0.5], &[2], Device::cpu())?;
    /// assert_eq!(x.hardshrink()?.to_vec::<f32>()?, [2.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn hardshrink(&self) -> Result<Tensor> {
        self.hardshrink_with(HardshrinkOptions::new())
    }

    /// [`Tensor::hardshrink`] with its numbers.
    #[track_caller]
    pub fn hardshrink_with(&self, options: HardshrinkOptions) -> Result<Tensor> {
        run(&rows::HARDSHRINK, self, [own(self, options.lambd), 0.0, 0.0], false, Site::caller())
    }

    /// Each element brought closer to 0, and no further than 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, -0.5], &[2], Device::cpu())?;
    /// assert_eq!(x.softshrink()?.to_vec::<f32>()?, [1.5, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softshrink(&self) -> Result<Tensor> {
        self.softshrink_with(HardshrinkOptions::new())
    }

    /// [`Tensor::softshrink`] with its numbers.
    #[track_caller]
    pub fn softshrink_with(&self, options: HardshrinkOptions) -> Result<Tensor> {
        let numbers = [own(self, width(&options)?), 0.0, 0.0];
        run(&rows::SOFTSHRINK, self, numbers, false, Site::caller())
    }

    /// Each element times its [`Tensor::sigmoid`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 100.0], &[2], Device::cpu())?;
    /// assert_eq!(x.silu()?.to_vec::<f32>()?, [0.0, 100.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn silu(&self) -> Result<Tensor> {
        self.silu_with(InplaceOptions::new())
    }

    /// [`Tensor::silu`] with its numbers.
    #[track_caller]
    pub fn silu_with(&self, options: InplaceOptions) -> Result<Tensor> {
        run(&rows::SILU, self, NONE, options.inplace, Site::caller())
    }

    /// Each element times the tangent of its [`Tensor::softplus`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 100.0], &[2], Device::cpu())?;
    /// assert_eq!(x.mish()?.to_vec::<f32>()?, [0.0, 100.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn mish(&self) -> Result<Tensor> {
        self.mish_with(InplaceOptions::new())
    }

    /// [`Tensor::mish`] with its numbers.
    #[track_caller]
    pub fn mish_with(&self, options: InplaceOptions) -> Result<Tensor> {
        run(&rows::MISH, self, NONE, options.inplace, Site::caller())
    }

    /// [`Tensor::sigmoid`] made of three straight lines.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 100.0], &[2], Device::cpu())?;
    /// assert_eq!(x.hardsigmoid()?.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn hardsigmoid(&self) -> Result<Tensor> {
        self.hardsigmoid_with(InplaceOptions::new())
    }

    /// [`Tensor::hardsigmoid`] with its numbers.
    #[track_caller]
    pub fn hardsigmoid_with(&self, options: InplaceOptions) -> Result<Tensor> {
        run(&rows::HARDSIGMOID, self, NONE, options.inplace, Site::caller())
    }

    /// Each element times its [`Tensor::hardsigmoid`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 100.0], &[2], Device::cpu())?;
    /// assert_eq!(x.hardswish()?.to_vec::<f32>()?, [0.0, 100.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn hardswish(&self) -> Result<Tensor> {
        self.hardswish_with(InplaceOptions::new())
    }

    /// [`Tensor::hardswish`] with its numbers.
    #[track_caller]
    pub fn hardswish_with(&self, options: InplaceOptions) -> Result<Tensor> {
        run(&rows::HARDSWISH, self, NONE, options.inplace, Site::caller())
    }

    /// The logarithm of [`Tensor::sigmoid`], exact far from 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[f32::INFINITY, -200.0], &[2], Device::cpu())?;
    /// assert_eq!(x.logsigmoid()?.to_vec::<f32>()?, [0.0, -200.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn logsigmoid(&self) -> Result<Tensor> {
        run(&rows::LOGSIGMOID, self, NONE, false, Site::caller())
    }

    /// Each element over 1 plus its magnitude.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, -3.0], &[2], Device::cpu())?;
    /// assert_eq!(x.softsign()?.to_vec::<f32>()?, [0.5, -0.75]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softsign(&self) -> Result<Tensor> {
        composed("softsign", Site::caller(), || self.div(&self.abs()?.add(1.0)?))
    }

    /// What its hyperbolic tangent leaves of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 40.0], &[2], Device::cpu())?;
    /// assert_eq!(x.tanhshrink()?.to_vec::<f32>()?, [0.0, 39.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tanhshrink(&self) -> Result<Tensor> {
        composed("tanhshrink", Site::caller(), || self.sub(&self.tanh()?))
    }

    /// [`Tensor::softplus_with`] into `out`.
    #[track_caller]
    pub fn softplus_with_out(&self, options: SoftplusOptions, out: &Tensor) -> Result<()> {
        let numbers = [options.beta, options.threshold, 0.0];
        pointwise::into(&rows::SOFTPLUS, &[self], numbers, out, Site::caller())
    }

    /// [`Tensor::hardshrink_with`] into `out`.
    #[track_caller]
    pub fn hardshrink_with_out(&self, options: HardshrinkOptions, out: &Tensor) -> Result<()> {
        let numbers = [own(self, options.lambd), 0.0, 0.0];
        pointwise::into(&rows::HARDSHRINK, &[self], numbers, out, Site::caller())
    }

    /// [`Tensor::softshrink_with`] into `out`.
    #[track_caller]
    pub fn softshrink_with_out(&self, options: HardshrinkOptions, out: &Tensor) -> Result<()> {
        let numbers = [own(self, width(&options)?), 0.0, 0.0];
        pointwise::into(&rows::SOFTSHRINK, &[self], numbers, out, Site::caller())
    }

    /// [`Tensor::logsigmoid`] into `out`.
    #[track_caller]
    pub fn logsigmoid_out(&self, out: &Tensor) -> Result<()> {
        pointwise::into(&rows::LOGSIGMOID, &[self], NONE, out, Site::caller())
    }

    /// Each element, or `value` where it is not above `threshold`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, 0.5], &[2], Device::cpu())?;
    /// assert_eq!(x.threshold(1.0, -1.0)?.to_vec::<f32>()?, [2.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn threshold(&self, threshold: f64, value: f64) -> Result<Tensor> {
        self.threshold_with(threshold, value, ThresholdOptions::new())
    }

    /// [`Tensor::threshold`], over the tensor itself if the options say so.
    #[track_caller]
    pub fn threshold_with(
        &self,
        threshold: f64,
        value: f64,
        options: ThresholdOptions,
    ) -> Result<Tensor> {
        run(
            &rows::THRESHOLD,
            self,
            [own(self, threshold), value, 0.0],
            options.inplace,
            Site::caller(),
        )
    }

    /// Each element, or where it is negative its product with a weight: one for all, or one for
    /// each place along dimension 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, -1.0], &[2], Device::cpu())?;
    /// let weight = Tensor::full(&[1], 0.25, DType::F32)?;
    /// assert_eq!(x.prelu(&weight)?.to_vec::<f32>()?, [2.0, -0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn prelu(&self, weight: &Tensor) -> Result<Tensor> {
        let site = Site::caller();
        let channels = if self.rank() > 1 { self.shape()[1] } else { 1 };
        if weight.rank() > 1 || (weight.numel() != 1 && weight.numel() != channels) {
            return Err(Error::shape(
                "prelu",
                format!(
                    "the weight has shape {:?}; it takes one element, or one for each of the {channels} channels of \
                     {:?}",
                    weight.shape(),
                    self.shape()
                ),
            ));
        }
        if weight.dtype() != self.dtype() {
            return Err(Error::dtype(
                "prelu",
                format!(
                    "the weight is {} and the input {}; convert one",
                    weight.dtype(),
                    self.dtype()
                ),
            ));
        }
        let weight = with_site(site, || {
            let _named = enter_operation("prelu");
            let mut shape = vec![1; self.rank()];
            if self.rank() > 1 {
                shape[1] = weight.numel() as i64;
            }
            weight.reshape(&shape)
        })?;
        pointwise::new(&rows::PRELU, &[self, &weight], NONE, site)
    }

    /// Each element, or where it is negative its product with a slope that is drawn for it.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, -24.0], &[2], Device::cpu())?;
    /// assert_eq!(x.rrelu()?.to_vec::<f32>()?, [2.0, -5.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rrelu(&self) -> Result<Tensor> {
        self.rrelu_with(RreluOptions::new())
    }

    /// [`Tensor::rrelu`] with other slopes, or in training, where they are drawn.
    #[track_caller]
    pub fn rrelu_with(&self, options: RreluOptions) -> Result<Tensor> {
        let site = Site::caller();
        let RreluOptions { lower, upper, training, inplace } = options;
        if lower > upper {
            return Err(Error::shape("rrelu", format!("lower {lower} is above upper {upper}")));
        }
        let _named = enter_operation("rrelu");
        if !training {
            return leaky_relu(self, 0.5 * (lower + upper), inplace, site);
        }
        with_site(site, || {
            let slopes = self.detach().zeros_like()?;
            slopes.uniform_(lower, upper)?;
            let slopes = Tensor::where_(&self.gt(0)?, 1.0, &slopes)?;
            if inplace { self.mul_(&slopes).cloned() } else { self.mul(&slopes) }
        })
    }

    /// The first half of the elements along a dimension times the [`Tensor::sigmoid`] of the
    /// second.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.glu()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn glu(&self) -> Result<Tensor> {
        self.glu_with(GluOptions::new())
    }

    /// [`Tensor::glu`] along a dimension.
    #[track_caller]
    pub fn glu_with(&self, options: GluOptions) -> Result<Tensor> {
        let _named = enter_operation("glu");
        let site = Site::caller();
        if self.rank() == 0 {
            return Err(Error::shape("glu", "a tensor without dimensions has no halves"));
        }
        with_site(site, || {
            let dim = plimsoll_core::normalize_dim("glu", options.dim, self.rank())?;
            let size = self.shape()[dim];
            if !size.is_multiple_of(2) {
                return Err(Error::shape(
                    "glu",
                    format!("dimension {dim} of shape {:?} has no halves", self.shape()),
                ));
            }
            let half = size as i64 / 2;
            let (values, gates) =
                (self.narrow(dim as i64, 0, half)?, self.narrow(dim as i64, half, half)?);
            values.mul(&gates.sigmoid()?)
        })
    }

    /// The softmax of the negated elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[2], DType::F32)?.softmin()?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softmin(&self) -> Result<Tensor> {
        self.softmin_with(SoftminOptions::new())
    }

    /// [`Tensor::softmin`] along a dimension, and in another dtype.
    #[track_caller]
    pub fn softmin_with(&self, options: SoftminOptions) -> Result<Tensor> {
        let dim = options.dim.unwrap_or(if matches!(self.rank(), 0 | 1 | 3) { 0 } else { 1 });
        composed("softmin", Site::caller(), || {
            self.neg()?.softmax_with(dim, SoftmaxOptions::new().dtype(options.dtype))
        })
    }
}
