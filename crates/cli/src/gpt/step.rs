//! One step of training, the same for the run and for the dry run that foretells its memory:
//! gradients of one batch or several, their norm bounded, and a step of AdamW.

use plimsoll_core::{DType, Device, Error, Result};
use plimsoll_nn::optim::lr_scheduler::LRScheduler;
use plimsoll_nn::{Forward, Module, clip_grad_norm_, optim};
use plimsoll_tensor::{AutocastOptions, Tensor, autocast_with, no_grad};

use super::batches::{Batch, placed};
use super::model::{Gpt, Shape};
use super::schedule::schedule;
use super::settings::Precision;

/// Gradients longer than this are shortened.
const MOST_NORM: f64 = 1.0;
const WEIGHT_DECAY: f64 = 0.1;
const BETAS: (f64, f64) = (0.9, 0.99);

/// All that says how a run goes.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    pub(crate) batch: usize,
    /// Batches to a step.
    pub(crate) accumulate: usize,
    pub(crate) precision: Precision,
    pub(crate) learning_rate: f64,
    pub(crate) steps: u64,
}

/// A model that learns.
pub(crate) struct Trainer {
    pub(crate) model: Gpt,
    pub(crate) optimizer: optim::AdamW,
    pub(crate) scheduler: Box<dyn LRScheduler>,
    plan: Plan,
    device: Device,
}

impl Trainer {
    pub(crate) fn new(plan: &Plan, device: Device) -> Result<Trainer> {
        let model = Gpt::new(plan.shape, device)?;
        let has_masters = plan.precision == Precision::Bfloat16Parameters;
        if has_masters {
            model.to_dtype(DType::BF16)?;
        }
        let options = optim::AdamWOptions::new().lr(plan.learning_rate).betas(BETAS);
        let options = options.master_weights(has_masters);
        // Weights decay, biases and norms do not.
        let (weights, others): (Vec<_>, Vec<_>) = model
            .named_parameters()
            .into_iter()
            .partition(|(_, parameter)| parameter.tensor().rank() > 1);
        let mut optimizer = optim::AdamW::new(weights, options.clone().weight_decay(WEIGHT_DECAY))?;
        optimizer.add_param_group(others, options.weight_decay(0.0))?;
        let scheduler = schedule(&mut optimizer, plan.steps)?;
        Ok(Trainer { model, optimizer, scheduler, plan: plan.clone(), device })
    }

    /// One step with the next batches; their mean loss, on the device.
    pub(crate) fn step(
        &mut self,
        batches: &mut impl Iterator<Item = Result<Batch>>,
    ) -> Result<Tensor> {
        let parts = self.plan.accumulate;
        let mut sum: Option<Tensor> = None;
        for _ in 0..parts {
            let ended = || Error::invalid_argument("the batches ended").in_operation("train");
            let (tokens, next) = batches.next().ok_or_else(ended)??;
            let loss = self.loss(&tokens, &next)?;
            let loss = if parts > 1 { loss.div(parts as f64)? } else { loss };
            loss.backward()?;
            let loss = loss.detach();
            sum = Some(match sum {
                Some(sum) => sum.add(&loss)?,
                None => loss,
            });
        }
        clip_grad_norm_(&self.model.parameters(), MOST_NORM)?;
        self.optimizer.step()?;
        self.scheduler.step(&mut self.optimizer)?;
        self.optimizer.zero_grad()?;
        Ok(sum.unwrap_or(Tensor::scalar(f64::NAN, DType::F32)?))
    }

    /// The names of the optimizer's parameters, in its order.
    pub(crate) fn optimizer_names(&self) -> Vec<String> {
        let groups = self.optimizer.groups().iter().flat_map(|group| group.names());
        groups.flatten().map(str::to_string).collect()
    }

    fn loss(&self, tokens: &Tensor, next: &Tensor) -> Result<Tensor> {
        if self.plan.precision != Precision::Bfloat16 {
            return self.model.call((tokens, next));
        }
        let options = AutocastOptions { dtype: Some(DType::BF16), ..AutocastOptions::default() };
        autocast_with(self.device.kind(), options, || self.model.call((tokens, next)))
    }

    /// The mean loss over batches; nothing is learnt.
    pub(crate) fn evaluate(&self, batches: impl Iterator<Item = Result<Batch>>) -> Result<f64> {
        self.model.eval();
        let (mut sum, mut rows) = (0.0, 0.0);
        for batch in batches {
            let (tokens, next) = placed(batch?, self.device)?;
            let loss = no_grad(|| self.loss(&tokens, &next))?;
            let count = tokens.numel() as f64;
            sum += count * if self.device.is_dry() { f64::NAN } else { loss.to_scalar()?.to_f64() };
            rows += count;
        }
        self.model.train();
        Ok(sum / rows)
    }
}
