//! Batch normalization, in training and in evaluation.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::dispatch::{Dest, first};
use crate::ops::batch_norm::{BatchNorm, check_parameters};
use crate::prepare::apply;
use plimsoll_kernels::Meta;
use plimsoll_kernels::cpu::batch_norm::BatchNormArgs;

/// How [`Tensor::batch_norm_with`] computes, and goes on from the normalized elements.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormOptions<'a> {
    /// Multiplies each channel.
    pub weight: Option<&'a Tensor>,
    /// Is added to each channel.
    pub bias: Option<&'a Tensor>,
    /// Normalizes by the batch's own statistics, and puts them into the running ones.
    pub training: bool,
    /// How much of the batch's statistics goes into the running ones.
    pub momentum: f64,
    /// Keeps the variance away from 0.
    pub eps: f64,
}

impl Default for BatchNormOptions<'_> {
    fn default() -> Self {
        BatchNormOptions { weight: None, bias: None, training: false, momentum: 0.1, eps: 1e-5 }
    }
}

impl<'a> BatchNormOptions<'a> {
    /// PyTorch's defaults: evaluation, neither weight nor bias.
    pub fn new() -> BatchNormOptions<'a> {
        BatchNormOptions::default()
    }

    /// Multiplies each channel.
    #[must_use]
    pub fn weight(mut self, weight: impl Into<Option<&'a Tensor>>) -> BatchNormOptions<'a> {
        self.weight = weight.into();
        self
    }

    /// Is added to each channel.
    #[must_use]
    pub fn bias(mut self, bias: impl Into<Option<&'a Tensor>>) -> BatchNormOptions<'a> {
        self.bias = bias.into();
        self
    }

    /// Normalizes by the batch's own statistics, and puts them into the running ones.
    #[must_use]
    pub fn training(mut self, training: bool) -> BatchNormOptions<'a> {
        self.training = training;
        self
    }

    /// How much of the batch's statistics goes into the running ones.
    #[must_use]
    pub fn momentum(mut self, momentum: f64) -> BatchNormOptions<'a> {
        self.momentum = momentum;
        self
    }

    /// Keeps the variance away from 0.
    #[must_use]
    pub fn eps(mut self, eps: f64) -> BatchNormOptions<'a> {
        self.eps = eps;
        self
    }
}

const OP: &str = "batch_norm";

impl Tensor {
    /// Mean 0 and variance 1 of each channel (dimension 1), by running statistics.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[2, 1, 3], 5.0, DType::F32)?;
    /// let mean = Tensor::full(&[1], 3.0, DType::F32)?;
    /// let var = Tensor::full(&[1], 4.0, DType::F32)?;
    /// let y = x.batch_norm(&mean, &var)?;
    /// assert!((y.to_vec::<f32>()?[0] - 1.0).abs() < 1e-5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn batch_norm<'a>(
        &self,
        running_mean: impl Into<Option<&'a Tensor>>,
        running_var: impl Into<Option<&'a Tensor>>,
    ) -> Result<Tensor> {
        self.batch_norm_with(running_mean, running_var, BatchNormOptions::new())
    }

    /// [`Tensor::batch_norm`], then times a weight, plus a bias. In training by the batch's own
    /// statistics, which go into the running ones, if there are: those are written in place.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 10.0, 3.0, 30.0], &[2, 2], Device::cpu())?;
    /// let (mean, var) = (Tensor::zeros(&[2], DType::F32)?, Tensor::ones(&[2], DType::F32)?);
    /// let options = BatchNormOptions::new().training(true).momentum(0.5);
    /// let y = x.batch_norm_with(&mean, &var, options)?;
    /// assert!((y.sum()?.item::<f32>()?).abs() < 1e-5);
    /// assert_eq!(mean.to_vec::<f32>()?, [1.0, 10.0]);
    /// assert_eq!(var.to_vec::<f32>()?, [1.5, 100.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn batch_norm_with<'a>(
        &self,
        running_mean: impl Into<Option<&'a Tensor>>,
        running_var: impl Into<Option<&'a Tensor>>,
        options: BatchNormOptions<'_>,
    ) -> Result<Tensor> {
        let site = Site::caller();
        let BatchNormOptions { weight, bias, training, momentum, eps } = options;
        let running = match (running_mean.into(), running_var.into()) {
            (Some(mean), Some(var)) => Some([mean, var]),
            (None, None) if training => None,
            given => return Err(missing(given.0.is_none(), training)),
        };
        if let Some(running) = running {
            check_constant(running)?;
        }
        let names = ["running_mean", "running_var"];
        let named = running.into_iter().flatten().zip(names);
        let named = named.chain(weight.map(|t| (t, "weight"))).chain(bias.map(|t| (t, "bias")));
        let metas: SmallVec<[(&str, &Meta); 4]> =
            named.map(|(tensor, role)| (role, tensor.meta())).collect();
        check_parameters(self.meta(), &metas)?;
        let op = BatchNorm(BatchNormArgs {
            training,
            running: running.is_some(),
            weight: weight.is_some(),
            bias: bias.is_some(),
            momentum,
            eps,
        });
        let read = running.filter(|_| !training).into_iter().flatten();
        let inputs: SmallVec<[&Tensor; 5]> =
            std::iter::once(self).chain(read).chain(weight).chain(bias).collect();
        let dest = match &running {
            Some(running) if training => Dest::Mutating(running),
            _ => Dest::New,
        };
        apply(&op, &inputs, dest, site).map(first)
    }
}

#[cold]
fn missing(mean: bool, training: bool) -> Error {
    let which = if mean { "running_mean" } else { "running_var" };
    let why = if training {
        "running_mean and running_var must either both be None or neither be None".to_string()
    } else {
        format!("{which} must be defined in evaluation mode")
    };
    Error::invalid_argument(why).in_operation(OP)
}

/// Running statistics have no gradient.
fn check_constant(running: [&Tensor; 2]) -> Result<()> {
    if !is_grad_enabled() || running.iter().all(|tensor| !tensor.requires_grad()) {
        return Ok(());
    }
    Err(Error::autograd(
        OP,
        "it is not differentiable with respect to running_mean and running_var, one of which requires gradients; \
         `detach` it first",
    ))
}
