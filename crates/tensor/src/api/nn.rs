//! Operations of neural networks: softmax, layer normalization, dropout.

use plimsoll_core::{Error, Result, normalize_dim, sizes_from_i64};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::overlap::check_separate;
use crate::Tensor;
use crate::dispatch::{Dest, apply, apply_one, first};
use crate::ops::layer_norm::LayerNorm;
use crate::ops::nn::{Dropout, Softmax};
use crate::random::Drawn;
use plimsoll_kernels::cpu::random::{self, Distribution};

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
        let dim = normalize_dim("softmax", dim, self.rank())?;
        apply_one(&Softmax { dim, log: false }, &[self], Site::caller())
    }

    /// [`Tensor::softmax`] into `out`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[1, 2], DType::F32)?;
    /// let out = x.empty_like()?;
    /// x.softmax_out(1, &out)?;
    /// assert_eq!(out.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softmax_out(&self, dim: i64, out: &Tensor) -> Result<()> {
        check_separate("softmax", out, &[self])?;
        let dim = normalize_dim("softmax", dim, self.rank())?;
        apply(&Softmax { dim, log: false }, &[self], Dest::Out(&[out]), Site::caller()).map(drop)
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
        let dim = normalize_dim("log_softmax", dim, self.rank())?;
        apply_one(&Softmax { dim, log: true }, &[self], Site::caller())
    }

    /// [`Tensor::log_softmax`] into `out`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[1, 1], DType::F32)?;
    /// let out = x.empty_like()?;
    /// x.log_softmax_out(1, &out)?;
    /// assert_eq!(out.item::<f32>()?, 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax_out(&self, dim: i64, out: &Tensor) -> Result<()> {
        check_separate("log_softmax", out, &[self])?;
        let dim = normalize_dim("log_softmax", dim, self.rank())?;
        apply(&Softmax { dim, log: true }, &[self], Dest::Out(&[out]), Site::caller()).map(drop)
    }

    /// Mean 0 and variance 1 over the last dimensions, which must be `normalized_shape`; then times `weight`, plus `bias`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 10.0, 30.0], &[2, 2], Device::cpu())?;
    /// let y = x.layer_norm(&[2], None, None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn layer_norm(
        &self,
        normalized_shape: &[i64],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let op = LayerNorm {
            normalized: sizes_from_i64("layer_norm", normalized_shape)?,
            weight: weight.is_some(),
            bias: bias.is_some(),
            eps,
        };
        let inputs: SmallVec<[&Tensor; 3]> =
            std::iter::once(self).chain(weight).chain(bias).collect();
        Ok(first(apply(&op, &inputs, Dest::New, Site::caller())?))
    }

    /// In training, zeros each element with probability `p` and scales the others by `1 / (1 - p)`; otherwise this very tensor.
    /// Nothing is kept for backward: the mask is drawn again.
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
        let (dropout, state) = self.dropout_draws(p);
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
            let (dropout, state) = self.dropout_draws(p);
            let inputs: SmallVec<[&Tensor; 2]> = std::iter::once(self).chain(&state).collect();
            apply(&dropout, &inputs, Dest::InPlace, Site::caller())?;
        }
        Ok(self)
    }

    /// The operation, and the input that it starts drawing from in a capture.
    fn dropout_draws(&self, p: f64) -> (Dropout, Option<Tensor>) {
        let words = random::draws_per_element(self.dtype(), Distribution::Dropout) as u64;
        let counters = (self.numel() as u64).saturating_mul(words).div_ceil(4);
        let Drawn { draws, state } = crate::random::draw(self.entry(), counters);
        (Dropout { p, draws }, state)
    }
}

fn check_probability(p: f64) -> Result<()> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("the probability must be from 0 to 1, and is {p}"))
        .in_operation("dropout"))
}
