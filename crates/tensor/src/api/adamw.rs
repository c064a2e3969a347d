//! A step of AdamW in the forms that PyTorch's fused one takes; `optim.rs` has the step itself.

use plimsoll_core::Result;

use super::optim::{StepCounts, StepOptions, StepTensors};
use super::options::options;
use crate::Tensor;
use plimsoll_kernels::cpu::optim::{Adam, Rule};

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
        options.step(params, grads, &[exp_avgs, exp_avg_sqs], StepCounts::At(step))
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
        let states = [exp_avgs, exp_avg_sqs, max_exp_avg_sqs];
        let kept = if max_exp_avg_sqs.is_empty() { &states[..2] } else { &states[..] };
        options.step(params, grads, kept, StepCounts::Given(state_steps))
    }
}

impl AdamWOptions<'_> {
    #[track_caller]
    fn step(
        &self,
        params: &[&Tensor],
        grads: &[&Tensor],
        states: &[&[&Tensor]],
        steps: StepCounts<'_>,
    ) -> Result<()> {
        let &AdamWOptions { lr, beta1, beta2, eps, weight_decay, maximize, .. } = self;
        let rule = Rule::Adam(Adam { beta1, beta2, eps, amsgrad: states.len() == 3 });
        let options = StepOptions {
            lr,
            tensor_lr: self.tensor_lr,
            weight_decay,
            decoupled_weight_decay: true,
            maximize,
            grad_scale: self.grad_scale,
            found_inf: self.found_inf,
        };
        let tensors = StepTensors { params, grads, states, masters: &[], products: &[], steps };
        Tensor::optimizer_step_(&rule, &tensors, options)
    }
}
