//! Steps of optimizers over many parameters at once.

use plimsoll_core::{DType, Device, DeviceKind, Error, Result};
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
    AdamWOptions<'a> {
        /// How far a step goes.
        lr: f64 = 1e-3,
        /// How far a step goes, if that is in a tensor of one number.
        tensor_lr: Option<&'a Tensor> = None,
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
        /// What the gradients were multiplied by, one float32; they are divided by it, in place.
        grad_scale: Option<&'a Tensor> = None,
        /// One float32 that is 1 if nothing is to happen, because a gradient is infinite.
        found_inf: Option<&'a Tensor> = None,
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
        options: AdamWOptions<'_>,
    ) -> Result<()> {
        let lists = Lists { params, grads, exp_avgs, exp_avg_sqs, largest: &[], steps: &[] };
        lists.step(&options, Some(step), Site::caller())
    }

    /// [`Tensor::fused_adamw_`] with each parameter's own step in a tensor of one number, as
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
    ///     &[&param], &[&grad], &[&mean], &[&square], &[&largest], &[&step], options.clone(),
    /// )?;
    /// assert!((param.to_vec::<f64>()?[0] - 0.999).abs() < 1e-9);
    /// assert_eq!(largest.to_vec::<f64>()?, square.to_vec::<f64>()?);
    /// // A scaler saw an infinite gradient: nothing happens.
    /// let found = Tensor::ones(&[], DType::F32)?;
    /// let options = options.found_inf(&found);
    /// let (p, g, m, v) = ([&param], [&grad], [&mean], [&square]);
    /// Tensor::fused_adamw_from_(&p, &g, &m, &v, &[], &[&step], options)?;
    /// assert!((param.to_vec::<f64>()?[0] - 0.999).abs() < 1e-9);
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
        options: AdamWOptions<'_>,
    ) -> Result<()> {
        let site = Site::caller();
        state_steps.iter().try_for_each(|step| check_number("a step", step))?;
        let steps = state_steps.iter().map(|step| step.to_dtype(DType::F32, site));
        let steps = steps.collect::<Result<Vec<_>>>()?;
        let (largest, steps) = (max_exp_avg_sqs, steps.iter().collect::<Vec<_>>());
        let lists = Lists { params, grads, exp_avgs, exp_avg_sqs, largest, steps: &steps };
        lists.step(&options, None, site)
    }
}

/// Refuses what is not one number.
fn check_number(what: &str, number: &Tensor) -> Result<()> {
    if number.numel() == 1 {
        return Ok(());
    }
    let why = format!("{what} is one number, not a tensor of shape {:?}", number.shape());
    Err(Error::shape(OP, why))
}

impl AdamWOptions<'_> {
    fn numbers(&self, step: Option<f64>, amsgrad: bool) -> Numbers {
        let &AdamWOptions { lr, beta1, beta2, eps, weight_decay, maximize, .. } = self;
        Numbers {
            learning_rate: Some(lr),
            beta1,
            beta2,
            eps,
            weight_decay,
            step,
            maximize,
            amsgrad,
            scaled: self.grad_scale.is_some(),
            skips: self.found_inf.is_some(),
        }
    }

    /// The learning rate as an operand, if it is in a tensor; one that is elsewhere than the
    /// parameters is read now.
    fn learning_rate(
        &self,
        device: Device,
        numbers: &mut Numbers,
        site: Site,
    ) -> Result<Option<Tensor>> {
        let Some(lr) = self.tensor_lr else { return Ok(None) };
        check_number("lr", lr)?;
        let lr = lr.detach();
        if lr.device() != device {
            numbers.learning_rate = Some(lr.to_scalar()?.to_f64());
            return Ok(None);
        }
        numbers.learning_rate = None;
        // The CPU's kernel reads any dtype; CUDA's float32, as PyTorch's.
        match device.kind() {
            DeviceKind::Cpu => Ok(Some(lr)),
            _ => lr.to_dtype(DType::F32, site).map(Some),
        }
    }

    /// The other numbers that are in tensors, in the kernel's order.
    fn others(&self) -> Result<impl Iterator<Item = &Tensor>> {
        for (what, number) in [("grad_scale", self.grad_scale), ("found_inf", self.found_inf)] {
            let Some(number) = number else { continue };
            check_number(what, number)?;
            if number.dtype() != DType::F32 {
                let why = format!("{what} must be float32, not {}", number.dtype());
                return Err(Error::dtype(OP, why));
            }
        }
        Ok(self.grad_scale.into_iter().chain(self.found_inf))
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
    fn step(&self, options: &AdamWOptions<'_>, step: Option<f64>, site: Site) -> Result<()> {
        let mut numbers = options.numbers(step, !self.largest.is_empty());
        self.check_alike("gradients", self.grads)?;
        self.check_alike("exp_avgs", self.exp_avgs)?;
        self.check_alike("exp_avg_sqs", self.exp_avg_sqs)?;
        if numbers.amsgrad {
            self.check_alike("max_exp_avg_sqs", self.largest)?;
        }
        if numbers.step.is_none() {
            self.check_count("state_steps", self.steps)?;
        }
        let Some(first) = self.params.first() else { return Ok(()) };
        let rate = options.learning_rate(first.device(), &mut numbers, site)?;
        let (read, scaled): (&[&Tensor], &[&Tensor]) =
            if numbers.scaled { (&[], self.grads) } else { (self.grads, &[]) };
        let read = read.iter().chain(self.steps).copied().chain(&rate).chain(options.others()?);
        let read: SmallVec<[&Tensor; 8]> = read.collect();
        let written = self.params.iter().chain(self.exp_avgs).chain(self.exp_avg_sqs);
        let written = written.chain(self.largest).chain(scaled);
        let written: SmallVec<[&Tensor; 8]> = written.copied().collect();
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
}
