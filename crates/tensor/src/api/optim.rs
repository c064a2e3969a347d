//! Steps of optimizers over many parameters at once.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::options::options;
use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::optim::AdamW;
use crate::prepare::apply;

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
        const OP: &str = "fused_adamw_";
        for (what, list) in
            [("gradients", grads), ("exp_avgs", exp_avgs), ("exp_avg_sqs", exp_avg_sqs)]
        {
            if list.len() != params.len() {
                let why = format!("{} parameters and {} {what}", params.len(), list.len());
                return Err(Error::invalid_argument(why).in_operation(OP));
            }
            let alike =
                |(a, b): &(&&Tensor, &&Tensor)| a.shape() == b.shape() && a.dtype() == b.dtype();
            if let Some((param, other)) = params.iter().zip(list).find(|pair| !alike(pair)) {
                return Err(Error::shape(
                    OP,
                    format!(
                        "a parameter of shape {:?} and {} goes with {what} of shape {:?} and {}",
                        param.shape(),
                        param.dtype(),
                        other.shape(),
                        other.dtype()
                    ),
                ));
            }
        }
        if params.is_empty() {
            return Ok(());
        }
        let AdamWOptions { lr, beta1, beta2, eps, weight_decay, maximize } = options;
        let numbers = plimsoll_kernels::cpu::optim::AdamW {
            learning_rate: lr,
            beta1,
            beta2,
            eps,
            weight_decay,
            step,
            maximize,
        };
        let written: SmallVec<[&Tensor; 8]> =
            params.iter().chain(exp_avgs).chain(exp_avg_sqs).copied().collect();
        apply(&AdamW(numbers), grads, Dest::Mutating(&written), Site::caller()).map(drop)
    }
}
