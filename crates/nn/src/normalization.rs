//! Normalization of each sample by itself: over layers, groups of channels and neighbouring
//! channels. Over batches: `batch_norm.rs`.

use plimsoll_tensor::{
    DType, DimList, Error, GroupNormOptions as GroupNormArguments,
    LayerNormOptions as LayerNormArguments, Parameter, Result, SumOptions, Tensor,
};

use crate::call::at_caller;
use crate::frames::Entered;
use crate::options::{layer_options, number, parameter, truth, tuple};
use crate::stateless::layers;
use crate::{Forward, Hooks, Module, init};

layer_options! {
    /// How [`LayerNorm::with`] is made.
    LayerNormOptions {
        /// Keeps the variance away from 0.
        eps: f64 = 1e-5,
        /// Whether a scale and a shift of each element are trained.
        elementwise_affine: bool = true,
        /// Whether there is a shift.
        bias: bool = true,
    }
}

/// A scale of ones and a shift of zeros.
pub(crate) fn affine(
    sizes: &[i64],
    [scale, shift]: [bool; 2],
    made: plimsoll_tensor::TensorOptions,
) -> Result<(Option<Parameter>, Option<Parameter>)> {
    let weight = scale.then(|| parameter(sizes, made)).transpose()?;
    let bias = shift.then(|| parameter(sizes, made)).transpose()?;
    reset_affine(weight.as_ref(), bias.as_ref())?;
    Ok((weight, bias))
}

pub(crate) fn reset_affine(weight: Option<&Parameter>, bias: Option<&Parameter>) -> Result<()> {
    if let Some(weight) = weight {
        init::ones_(&weight.tensor())?;
    }
    bias.map_or(Ok(()), |bias| init::zeros_(&bias.tensor()))
}

/// Mean 0 and variance 1 over the last dimensions, then a trained scale and shift.
///
/// ```
/// use plimsoll_nn::{Forward, LayerNorm};
/// use plimsoll_tensor::{DType, Tensor};
/// let layer = LayerNorm::new(4)?;
/// assert_eq!(layer.call(&Tensor::ones(&[2, 4], DType::F32)?)?.to_vec::<f32>()?, [0.0; 8]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin, extra_repr = LayerNorm::describe)]
pub struct LayerNorm {
    /// The scale.
    pub weight: Option<Parameter>,
    /// The shift.
    pub bias: Option<Parameter>,
    /// The sizes of the last dimensions.
    pub normalized_shape: Vec<i64>,
    /// Keeps the variance away from 0.
    pub eps: f64,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl LayerNorm {
    /// PyTorch's defaults.
    #[track_caller]
    pub fn new(normalized_shape: impl Into<DimList>) -> Result<LayerNorm> {
        LayerNorm::with(normalized_shape, LayerNormOptions::new())
    }

    /// Without a shift, or with another `eps`.
    #[track_caller]
    pub fn with(
        normalized_shape: impl Into<DimList>,
        options: LayerNormOptions,
    ) -> Result<LayerNorm> {
        let _site = at_caller();
        let normalized_shape = normalized_shape.into().as_slice().to_vec();
        let scale = options.elementwise_affine;
        let (weight, bias) =
            affine(&normalized_shape, [scale, scale && options.bias], options.made())?;
        Ok(LayerNorm { weight, bias, normalized_shape, eps: options.eps, hooks: Hooks::default() })
    }

    fn describe(&self) -> String {
        format!(
            "{}, eps={}, elementwise_affine={}, bias={}",
            tuple(&self.normalized_shape),
            number(self.eps),
            truth(self.weight.is_some()),
            truth(self.bias.is_some())
        )
    }

    /// The sum of two tensors and its norm, in one reading of both: see [`Tensor::add_layer_norm`].
    ///
    /// ```
    /// use plimsoll_nn::{Forward, LayerNorm};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let norm = LayerNorm::new([3])?;
    /// let (x, y) = (Tensor::arange(0, 3, 1, DType::F32)?, Tensor::ones(&[3], DType::F32)?);
    /// let (sum, normed) = norm.call_on_sum(&x, &y)?;
    /// assert!(sum.equal(&x.add(&y)?)? && normed.allclose(&norm.call(&sum)?)?);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn call_on_sum(&self, x: &Tensor, y: &Tensor) -> Result<(Tensor, Tensor)> {
        let _site = at_caller();
        if !self.hooks.is_empty() {
            // They see the sum.
            let sum = x.add(y)?;
            let normed = self.call(&sum)?;
            return Ok((sum, normed));
        }
        let _entered = Entered::enter(self);
        let (weight, bias) = (tensor(&self.weight), tensor(&self.bias));
        x.add_layer_norm(y, &self.normalized_shape, self.arguments([&weight, &bias]))
    }

    fn arguments<'a>(&self, [weight, bias]: [&'a Option<Tensor>; 2]) -> LayerNormArguments<'a> {
        LayerNormArguments { weight: weight.as_ref(), bias: bias.as_ref(), eps: self.eps }
    }
}

impl Forward<&Tensor> for LayerNorm {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        let (weight, bias) = (tensor(&self.weight), tensor(&self.bias));
        input.layer_norm_with(&self.normalized_shape, self.arguments([&weight, &bias]))
    }
}

pub(crate) fn tensor(parameter: &Option<Parameter>) -> Option<Tensor> {
    parameter.as_ref().map(Parameter::tensor)
}

layer_options! {
    /// How [`RMSNorm::with`] is made.
    RMSNormOptions {
        /// Keeps the mean square away from 0; the dtype's precision if nothing is said.
        eps: Option<f64> = None,
        /// Whether a scale of each element is trained.
        elementwise_affine: bool = true,
    }
}

/// The input over the root of its mean square over the last dimensions, times a trained scale.
#[derive(Debug, Module)]
#[module(builtin, extra_repr = RMSNorm::describe)]
pub struct RMSNorm {
    /// The scale.
    pub weight: Option<Parameter>,
    /// The sizes of the last dimensions.
    pub normalized_shape: Vec<i64>,
    /// Keeps the mean square away from 0.
    pub eps: Option<f64>,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl RMSNorm {
    /// PyTorch's defaults.
    #[track_caller]
    pub fn new(normalized_shape: impl Into<DimList>) -> Result<RMSNorm> {
        RMSNorm::with(normalized_shape, RMSNormOptions::new())
    }

    /// Without a scale, or with another `eps`.
    #[track_caller]
    pub fn with(normalized_shape: impl Into<DimList>, options: RMSNormOptions) -> Result<RMSNorm> {
        let _site = at_caller();
        let normalized_shape = normalized_shape.into().as_slice().to_vec();
        let scale = options.elementwise_affine;
        let (weight, _) = affine(&normalized_shape, [scale, false], options.made())?;
        Ok(RMSNorm { weight, normalized_shape, eps: options.eps, hooks: Hooks::default() })
    }

    fn describe(&self) -> String {
        format!(
            "{}, eps={}, elementwise_affine={}",
            tuple(&self.normalized_shape),
            self.eps.map_or("None".to_string(), number),
            truth(self.weight.is_some())
        )
    }
}

impl Forward<&Tensor> for RMSNorm {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        let shape = &self.normalized_shape;
        let last = input.rank().checked_sub(shape.len()).map(|lead| &input.shape()[lead..]);
        if last.is_none_or(|last| last.iter().zip(shape).any(|(a, b)| *a as i64 != *b)) {
            return Err(Error::shape(
                "rms_norm",
                format!(
                    "the normalized shape {shape:?} must be the last dimensions of the input, whose shape is {:?}",
                    input.shape()
                ),
            ));
        }
        let is_half = matches!(input.dtype(), DType::F16 | DType::BF16);
        let wide = if is_half { input.to(DType::F32)? } else { input.clone() };
        let precision = if wide.dtype() == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
        let dims: Vec<i64> = (-(shape.len() as i64)..0).collect();
        let over = SumOptions::new().dim(&dims).keepdim(true);
        let mean = wide.mul(&wide)?.mean_with(over)?.add(self.eps.unwrap_or(precision))?;
        let mut result = wide.mul(&mean.rsqrt()?)?;
        if let Some(weight) = &self.weight {
            result = result.mul(&weight.tensor())?;
        }
        if is_half { result.to(input.dtype()) } else { Ok(result) }
    }
}

layer_options! {
    /// How [`GroupNorm::with`] is made.
    GroupNormOptions {
        /// Keeps the variance away from 0.
        eps: f64 = 1e-5,
        /// Whether a scale and a shift of each channel are trained.
        affine: bool = true,
        /// Whether there is a shift.
        bias: bool = true,
    }
}

/// Mean 0 and variance 1 over groups of channels, then a trained scale and shift of each channel.
///
/// ```
/// use plimsoll_nn::{Forward, GroupNorm};
/// use plimsoll_tensor::{DType, Tensor};
/// let layer = GroupNorm::new(2, 4)?;
/// assert_eq!(layer.call(&Tensor::ones(&[1, 4, 3], DType::F32)?)?.shape(), [1, 4, 3]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin, extra_repr = GroupNorm::describe)]
pub struct GroupNorm {
    /// The scale.
    pub weight: Option<Parameter>,
    /// The shift.
    pub bias: Option<Parameter>,
    /// How many groups.
    pub num_groups: i64,
    /// How many channels.
    pub num_channels: i64,
    /// Keeps the variance away from 0.
    pub eps: f64,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl GroupNorm {
    /// PyTorch's defaults.
    #[track_caller]
    pub fn new(num_groups: i64, num_channels: i64) -> Result<GroupNorm> {
        GroupNorm::with(num_groups, num_channels, GroupNormOptions::new())
    }

    /// Without a scale, or with another `eps`.
    #[track_caller]
    pub fn with(
        num_groups: i64,
        num_channels: i64,
        options: GroupNormOptions,
    ) -> Result<GroupNorm> {
        let _site = at_caller();
        if num_groups <= 0 || num_channels % num_groups != 0 {
            return Err(Error::invalid_argument(format!(
                "num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            ))
            .in_operation("GroupNorm"));
        }
        let scale = options.affine;
        let (weight, bias) =
            affine(&[num_channels], [scale, scale && options.bias], options.made())?;
        let hooks = Hooks::default();
        Ok(GroupNorm { weight, bias, num_groups, num_channels, eps: options.eps, hooks })
    }

    fn describe(&self) -> String {
        format!(
            "{}, {}, eps={}, affine={}, bias={}",
            self.num_groups,
            self.num_channels,
            number(self.eps),
            truth(self.weight.is_some()),
            truth(self.bias.is_some())
        )
    }
}

impl Forward<&Tensor> for GroupNorm {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        let (weight, bias) = (tensor(&self.weight), tensor(&self.bias));
        let arguments =
            GroupNormArguments::new().weight(weight.as_ref()).bias(bias.as_ref()).eps(self.eps);
        input.group_norm_with(self.num_groups, arguments)
    }
}

layers! {
    /// Each element over a power of the mean square of its neighbours in other channels.
    LocalResponseNorm(
        /// How many channels are neighbours.
        size: i64
    ) {
        /// The factor of the mean square.
        alpha: f64 = 1e-4,
        /// The power.
        beta: f64 = 0.75,
        /// What is added.
        k: f64 = 1.0,
    }
    prints(of) format!(
        "{}, alpha={}, beta={}, k={}", of.size, number(of.alpha), number(of.beta), number(of.k)
    );
    computes(this, x = &Tensor) -> Tensor {
        if x.rank() < 3 || this.size < 1 {
            let what = format!(
                "Expected 3D or higher dimensionality input and a size above 0 (got {} dimensions and {})",
                x.rank(), this.size
            );
            return Err(Error::shape("LocalResponseNorm", what));
        }
        // Zeros before and after the channels, and the mean over windows of them.
        let mut ends = vec![0; 2 * (x.rank() - 1)];
        let last = ends.len();
        ends[last - 2] = this.size / 2;
        ends[last - 1] = (this.size - 1) / 2;
        let windows = x.mul(x)?.constant_pad_nd(&ends, 0.0)?.unfold(1, this.size, 1)?;
        let mean = windows.mean_with([-1])?;
        x.div(&mean.mul(this.alpha)?.add(this.k)?.pow(this.beta)?)
    }

    /// [`LocalResponseNorm`] of images with the window of Torch 7: as many channels before as
    /// after. The first channel counts once more where the window does not reach it, as in PyTorch,
    /// whose gradient leaves that out.
    CrossMapLRN2d(
        /// How many channels are neighbours.
        size: i64
    ) {
        /// The factor of the mean square.
        alpha: f64 = 1e-4,
        /// The power.
        beta: f64 = 0.75,
        /// What is added.
        k: f64 = 1.0,
    }
    prints(of) format!(
        "{}, alpha={}, beta={}, k={}", of.size, number(of.alpha), number(of.beta), number(of.k)
    );
    computes(this, x = &Tensor) -> Tensor {
        if x.rank() != 4 || this.size < 1 {
            let what = format!(
                "Expected input to be 4D and a size above 0, got {}D and {} instead", x.rank(), this.size
            );
            return Err(Error::shape("CrossMapLRN2d", what));
        }
        let (reach, channels) = ((this.size - 1) / 2 + 1, x.size(1)?);
        let squares = x.mul(x)?;
        let mut sums = Vec::with_capacity(channels as usize);
        for at in 0..channels {
            let (first, end) = ((at - reach + 1).max(0), (at + reach).min(channels));
            let over = SumOptions::new().dim(1).keepdim(true);
            let window = squares.narrow(1, first, end - first)?.sum_with(over)?;
            sums.push(if first > 0 { window.add(&squares.narrow(1, 0, 1)?)? } else { window });
        }
        let sums = Tensor::cat(&sums.iter().collect::<Vec<_>>(), 1)?;
        let scale = sums.mul(this.alpha / this.size as f64)?.add(this.k)?;
        x.mul(&scale.pow(-this.beta)?)
    }
}
