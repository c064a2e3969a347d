//! Operations of neural networks: softmax, layer normalization, dropout.

use plimsoll_core::{DType, Error, Result, normalize_dim, sizes_from_i64};
use plimsoll_memory::{Site, enter_operation, with_site};
use smallvec::SmallVec;

use super::options::options;
use crate::dispatch::{Dest, first};
use crate::generator::Drawn;
use crate::ops::add_layer_norm::add_layer_norm;
use crate::ops::layer_norm::LayerNorm;
use crate::ops::nn::{Dropout, Softmax};
use crate::prepare::{apply, apply_one};
use crate::{Tensor, autocast};
use plimsoll_kernels::cpu::random::{self, Distribution};

options! {
    /// How [`Tensor::softmax_with`] and [`Tensor::log_softmax_with`] compute.
    SoftmaxOptions {
        /// The dtype to compute in, and of the result.
        dtype: Option<DType> = None,
    }
}

/// How [`Tensor::layer_norm_with`] goes on from the normalized elements.
#[derive(Clone, Copy, Debug)]
pub struct LayerNormOptions<'a> {
    /// Multiplies each of the last dimensions' elements.
    pub weight: Option<&'a Tensor>,
    /// Is added to each.
    pub bias: Option<&'a Tensor>,
    /// Keeps the variance away from 0.
    pub eps: f64,
}

impl Default for LayerNormOptions<'_> {
    fn default() -> Self {
        LayerNormOptions { weight: None, bias: None, eps: 1e-5 }
    }
}

impl<'a> LayerNormOptions<'a> {
    /// PyTorch's defaults: neither weight nor bias.
    pub fn new() -> LayerNormOptions<'a> {
        LayerNormOptions::default()
    }

    /// Multiplies each of the last dimensions' elements.
    #[must_use]
    pub fn weight(mut self, weight: impl Into<Option<&'a Tensor>>) -> LayerNormOptions<'a> {
        self.weight = weight.into();
        self
    }

    /// Is added to each.
    #[must_use]
    pub fn bias(mut self, bias: impl Into<Option<&'a Tensor>>) -> LayerNormOptions<'a> {
        self.bias = bias.into();
        self
    }

    /// Keeps the variance away from 0.
    #[must_use]
    pub fn eps(mut self, eps: f64) -> LayerNormOptions<'a> {
        self.eps = eps;
        self
    }
}

impl Tensor {
    /// `exp(x)` over its sum along `dim`: positive numbers that add up to 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 4], DType::F32)?;
    /// assert_eq!(x.softmax(-1)?.to_vec::<f32>()?, [0.25; 8]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softmax(&self, dim: i64) -> Result<Tensor> {
        softmax("softmax", self, dim, false, None, Site::caller())
    }

    /// [`Tensor::softmax`], computed in another dtype.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[1], DType::F16)?;
    /// let y = x.softmax_with(0, SoftmaxOptions::new().dtype(DType::F32))?;
    /// assert_eq!(y.dtype(), DType::F32);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softmax_with(&self, dim: i64, options: SoftmaxOptions) -> Result<Tensor> {
        softmax("softmax", self, dim, false, options.dtype, Site::caller())
    }

    /// [`Tensor::softmax_with`] into `out`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[1, 1], DType::F32)?;
    /// let out = x.empty_like()?;
    /// x.softmax_with_out(1, SoftmaxOptions::new(), &out)?;
    /// assert_eq!(out.item::<f32>()?, x.softmax(1)?.item::<f32>()?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softmax_with_out(&self, dim: i64, options: SoftmaxOptions, out: &Tensor) -> Result<()> {
        let site = Site::caller();
        let dim = normalize_dim("softmax", dim, self.rank())?;
        let x = self.to_dtype(options.dtype.unwrap_or(self.dtype()), site)?;
        apply(&Softmax { dim, log: false }, &[&x], Dest::Out(&[out]), site).map(drop)
    }

    /// The logarithm of [`Tensor::softmax`], exact where the softmax itself would round to 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1000.0], &[2], Device::cpu())?;
    /// assert_eq!(x.log_softmax(0)?.to_vec::<f32>()?, [-1000.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax(&self, dim: i64) -> Result<Tensor> {
        softmax("log_softmax", self, dim, true, None, Site::caller())
    }

    /// [`Tensor::log_softmax`], computed in another dtype.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[1], DType::F16)?;
    /// let y = x.log_softmax_with(0, SoftmaxOptions::new().dtype(DType::F32))?;
    /// assert_eq!(y.dtype(), DType::F32);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax_with(&self, dim: i64, options: SoftmaxOptions) -> Result<Tensor> {
        softmax("log_softmax", self, dim, true, options.dtype, Site::caller())
    }

    /// [`Tensor::log_softmax_with`] into `out`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[1, 1], DType::F32)?;
    /// let out = x.empty_like()?;
    /// x.log_softmax_with_out(1, SoftmaxOptions::new(), &out)?;
    /// assert_eq!(out.item::<f32>()?, x.log_softmax(1)?.item::<f32>()?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax_with_out(
        &self,
        dim: i64,
        options: SoftmaxOptions,
        out: &Tensor,
    ) -> Result<()> {
        let site = Site::caller();
        let dim = normalize_dim("log_softmax", dim, self.rank())?;
        let x = self.to_dtype(options.dtype.unwrap_or(self.dtype()), site)?;
        apply(&Softmax { dim, log: true }, &[&x], Dest::Out(&[out]), site).map(drop)
    }

    /// Mean 0 and variance 1 over the last dimensions, which must be `normalized_shape`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 10.0, 30.0], &[2, 2], Device::cpu())?;
    /// let y = x.layer_norm(&[2])?;
    /// assert!((y.sum()?.item::<f32>()?).abs() < 1e-5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn layer_norm(&self, normalized_shape: &[i64]) -> Result<Tensor> {
        self.layer_norm_with(normalized_shape, LayerNormOptions::new())
    }

    /// [`Tensor::layer_norm`], then times a weight, plus a bias. Both have the input's dtype, or
    /// are float32 beside halves, which are then computed in float32 and rounded once.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], &[1, 2], Device::cpu())?;
    /// let weight = Tensor::full(&[2], 2.0, DType::F32)?;
    /// let y = x.layer_norm_with(&[2], LayerNormOptions::new().weight(&weight).eps(0.0))?;
    /// assert_eq!(y.to_vec::<f32>()?, [-2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn layer_norm_with(
        &self,
        normalized_shape: &[i64],
        options: LayerNormOptions<'_>,
    ) -> Result<Tensor> {
        let LayerNormOptions { weight, bias, .. } = options;
        let op = normalizing(self, normalized_shape, &options)?;
        let inputs: SmallVec<[&Tensor; 3]> =
            std::iter::once(self).chain(weight).chain(bias).collect();
        Ok(first(apply(&op, &inputs, Dest::New, Site::caller())?))
    }

    /// The sum of two tensors, and its [`Tensor::layer_norm_with`]: the results of both, which read
    /// and write each element once. A block of a network begins so, with what came around the block
    /// before it and what came out of it.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 5.0], &[1, 2], Device::cpu())?;
    /// let y = Tensor::from_slice(&[1.0f32, 1.0], &[1, 2], Device::cpu())?;
    /// let (sum, normed) = x.add_layer_norm(&y, &[2], LayerNormOptions::new().eps(0.0))?;
    /// assert_eq!(sum.to_vec::<f32>()?, [2.0, 6.0]);
    /// assert_eq!(normed.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn add_layer_norm(
        &self,
        other: &Tensor,
        normalized_shape: &[i64],
        options: LayerNormOptions<'_>,
    ) -> Result<(Tensor, Tensor)> {
        let site = Site::caller();
        let alike = self.shape() == other.shape() && self.dtype() == other.dtype();
        let parameters = [options.weight, options.bias];
        if !alike || autocast::is_on() {
            return with_site(site, || {
                let sum = self.add(other)?;
                let normed = sum.layer_norm_with(normalized_shape, options)?;
                Ok((sum, normed))
            });
        }
        let norm = normalizing(self, normalized_shape, &options)?;
        let (normed, sum) = add_layer_norm(self, other, norm, parameters, site)?;
        Ok((sum, normed))
    }

    /// In training, zeros each element with probability `p` and scales the others by `1 / (1 - p)`;
    /// otherwise this very tensor. Nothing is kept for backward: the mask is drawn again.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[100], DType::F32)?;
    /// assert!(x.dropout(0.5, true)?.to_vec::<f32>()?.iter().all(|&x| x == 0.0 || x == 2.0));
    /// assert_eq!(x.dropout(0.5, false)?.to_vec::<f32>()?, [1.0; 100]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dropout(&self, p: f64, training: bool) -> Result<Tensor> {
        check_probability(p)?;
        if !training || p == 0.0 {
            return Ok(self.clone());
        }
        let site = Site::caller();
        let (dropout, state) = self.dropout_draws(p)?;
        let inputs: SmallVec<[&Tensor; 2]> = std::iter::once(self).chain(&state).collect();
        apply_one(&dropout, &inputs, site)
    }

    /// [`Tensor::dropout`] in place.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[4], DType::F32)?;
    /// x.dropout_(0.5, false)?; // not training: nothing happens
    /// assert_eq!(x.to_vec::<f32>()?, [1.0; 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dropout_(&self, p: f64, training: bool) -> Result<&Tensor> {
        check_probability(p)?;
        if training && p > 0.0 {
            let (dropout, state) = self.dropout_draws(p)?;
            let inputs: SmallVec<[&Tensor; 2]> = std::iter::once(self).chain(&state).collect();
            apply(&dropout, &inputs, Dest::InPlace, Site::caller())?;
        }
        Ok(self)
    }

    /// The operation, and the input that it starts drawing from in a capture.
    fn dropout_draws(&self, p: f64) -> Result<(Dropout, Option<Tensor>)> {
        let words = random::draws_per_element(self.dtype(), Distribution::Dropout) as u64;
        let counters = (self.numel() as u64).saturating_mul(words).div_ceil(4);
        let Drawn { draws, state } = crate::random::draw(self.entry(), counters)?;
        Ok((Dropout { p, draws }, state))
    }
}

fn softmax(
    name: &'static str,
    x: &Tensor,
    dim: i64,
    log: bool,
    dtype: Option<DType>,
    site: Site,
) -> Result<Tensor> {
    let _named = enter_operation(name);
    let dim = normalize_dim(name, dim, x.rank())?;
    match dtype {
        Some(dtype) => apply_one(&Softmax { dim, log }, &[&x.to_dtype(dtype, site)?], site),
        None => apply_one(&Softmax { dim, log }, &[x], site),
    }
}

fn check_probability(p: f64) -> Result<()> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("the probability must be from 0 to 1, and is {p}"))
        .in_operation("dropout"))
}

fn normalizing(
    x: &Tensor,
    normalized_shape: &[i64],
    options: &LayerNormOptions<'_>,
) -> Result<LayerNorm> {
    Ok(LayerNorm {
        normalized: sizes_from_i64("layer_norm", normalized_shape)?,
        weight: options.weight.is_some(),
        bias: options.bias.is_some(),
        wide: are_wider(x, [options.weight, options.bias]),
        eps: options.eps,
    })
}

/// Whether `x` is of halves and its weight and bias, as far as there are any, are float32: PyTorch
/// computes in float32 then, and rounds the result.
pub(super) fn are_wider(x: &Tensor, parameters: [Option<&Tensor>; 2]) -> bool {
    let mut given = parameters.into_iter().flatten().peekable();
    matches!(x.dtype(), DType::F16 | DType::BF16)
        && given.peek().is_some()
        && given.all(|parameter| parameter.dtype() == DType::F32)
}
