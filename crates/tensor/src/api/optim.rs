//! Steps of optimizers over many parameters at once.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::options::options;
use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::optim::AdamW;
use crate::prepare::apply;
use plimsoll_kernels::cpu::optim::AdamW as Numbers;

const OP: &str = "fused_adamw_";

options! {
    /// The numbers of [`Tensor::fused_adamw_`], with PyTorch's defaults.
    AdamWOptions {
        /// How far a step goes.
        lr: f64 = 1e-3,
        /// How much of the running mean of gradients stays.
        beta1: f64 = 0.9,
        /// How much of the running mean of their squares stays.
        beta2: f64 = 0.999,
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 1e-2,
        /// Up instead of down.
        maximize: bool = false,
    }
}

impl Tensor {
    /// One step of AdamW over all `params` at once: one operation, in place, without temporaries.
    /// `step` counts from 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let param = Tensor::ones(&[2], DType::F64)?;
    /// let (mean, square) = (param.zeros_like()?, param.zeros_like()?);
    /// let grad = Tensor::ones(&[2], DType::F64)?;
    /// let options = AdamWOptions::new().weight_decay(0.0);
    /// Tensor::fused_adamw_(&[&param], &[&grad], &[&mean], &[&square], 1.0, options)?;
    /// assert!((param.to_vec::<f64>()?[0] - 0.999).abs() < 1e-9);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn fused_adamw_(
        params: &[&Tensor],
        grads: &[&Tensor],
        exp_avgs: &[&Tensor],
        exp_avg_sqs: &[&Tensor],
        step: f64,
        options: AdamWOptions,
    ) -> Result<()> {
        let numbers = options.numbers(Some(step), false);
        let lists = Lists { params, grads, exp_avgs, exp_avg_sqs, largest: &[], steps: &[] };
        lists.step(numbers, Site::caller())
    }

    /// [`Tensor::fused_adamw_`] with each parameter's own step in a tensor of one float32, as
    /// PyTorch's optimizers keep them, and with AMSGrad if `max_exp_avg_sqs` are given.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let param = Tensor::ones(&[2], DType::F64)?;
    /// let (mean, square) = (param.zeros_like()?, param.zeros_like()?);
    /// let largest = param.zeros_like()?;
    /// let (grad, step) = (Tensor::ones(&[2], DType::F64)?, Tensor::ones(&[], DType::F32)?);
    /// let options = AdamWOptions::new().weight_decay(0.0);
    /// Tensor::fused_adamw_from_(
    ///     &[&param], &[&grad], &[&mean], &[&square], &[&largest], &[&step], options,
    /// )?;
    /// assert!((param.to_vec::<f64>()?[0] - 0.999).abs() < 1e-9);
    /// assert_eq!(largest.to_vec::<f64>()?, square.to_vec::<f64>()?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn fused_adamw_from_(
        params: &[&Tensor],
        grads: &[&Tensor],
        exp_avgs: &[&Tensor],
        exp_avg_sqs: &[&Tensor],
        max_exp_avg_sqs: &[&Tensor],
        state_steps: &[&Tensor],
        options: AdamWOptions,
    ) -> Result<()> {
        let numbers = options.numbers(None, !max_exp_avg_sqs.is_empty());
        let (largest, steps) = (max_exp_avg_sqs, state_steps);
        let lists = Lists { params, grads, exp_avgs, exp_avg_sqs, largest, steps };
        lists.step(numbers, Site::caller())
    }
}

impl AdamWOptions {
    fn numbers(self, step: Option<f64>, amsgrad: bool) -> Numbers {
        let AdamWOptions { lr, beta1, beta2, eps, weight_decay, maximize } = self;
        Numbers { learning_rate: lr, beta1, beta2, eps, weight_decay, step, maximize, amsgrad }
    }
}

/// The tensors of a step.
struct Lists<'a> {
    params: &'a [&'a Tensor],
    grads: &'a [&'a Tensor],
    exp_avgs: &'a [&'a Tensor],
    exp_avg_sqs: &'a [&'a Tensor],
    largest: &'a [&'a Tensor],
    steps: &'a [&'a Tensor],
}

impl Lists<'_> {
    fn step(&self, numbers: Numbers, site: Site) -> Result<()> {
        self.check_alike("gradients", self.grads)?;
        self.check_alike("exp_avgs", self.exp_avgs)?;
        self.check_alike("exp_avg_sqs", self.exp_avg_sqs)?;
        if numbers.amsgrad {
            self.check_alike("max_exp_avg_sqs", self.largest)?;
        }
        if numbers.step.is_none() {
            self.check_count("state_steps", self.steps)?;
            self.check_steps()?;
        }
        if self.params.is_empty() {
            return Ok(());
        }
        let read: SmallVec<[&Tensor; 8]> = self.grads.iter().chain(self.steps).copied().collect();
        let written = self.params.iter().chain(self.exp_avgs).chain(self.exp_avg_sqs);
        let written: SmallVec<[&Tensor; 8]> = written.chain(self.largest).copied().collect();
        apply(&AdamW(numbers), &read, Dest::Mutating(&written), site).map(drop)
    }

    fn check_count(&self, what: &str, list: &[&Tensor]) -> Result<()> {
        if list.len() == self.params.len() {
            return Ok(());
        }
        let why = format!("{} parameters and {} {what}", self.params.len(), list.len());
        Err(Error::invalid_argument(why).in_operation(OP))
    }

    /// Refuses a list that does not go with the parameters one by one.
    fn check_alike(&self, what: &str, list: &[&Tensor]) -> Result<()> {
        self.check_count(what, list)?;
        let alike =
            |(a, b): &(&&Tensor, &&Tensor)| a.shape() == b.shape() && a.dtype() == b.dtype();
        match self.params.iter().zip(list).find(|pair| !alike(pair)) {
            None => Ok(()),
            Some((param, other)) => Err(Error::shape(
                OP,
                format!(
                    "a parameter of shape {:?} and {} goes with {what} of shape {:?} and {}",
                    param.shape(),
                    param.dtype(),
                    other.shape(),
                    other.dtype()
                ),
            )),
        }
    }

    fn check_steps(&self) -> Result<()> {
        let is_number = |step: &&&Tensor| step.numel() == 1 && step.dtype() == DType::F32;
        match self.steps.iter().find(|step| !is_number(step)) {
            None => Ok(()),
            Some(step) => Err(Error::shape(
                OP,
                format!(
                    "a step is one number of float32, not a tensor of shape {:?} and {}",
                    step.shape(),
                    step.dtype()
                ),
            )),
        }
    }
}
