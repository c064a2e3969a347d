//! One step of training, the same for the run and for the dry run that foretells its memory:
//! gradients of one batch or several, their norm bounded, and a step of AdamW. Captured in a graph
//! it is `captured.rs`.

use plimsoll_core::{DType, Device, Error, Result};
use plimsoll_nn::optim::Optimizer;
use plimsoll_nn::optim::lr_scheduler::LRScheduler;
use plimsoll_nn::{Forward, Module, Parameter, optim};
use plimsoll_tensor::{AutocastOptions, Tensor, autocast_with, no_grad};

use super::batches::{Batch, placed};
use super::captured::CapturedStep;
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
    /// Whether steps after the first are replays of a graph.
    pub(crate) captures: bool,
}

/// A model that learns.
pub(crate) struct Trainer {
    pub(crate) model: Gpt,
    pub(crate) optimizer: optim::AdamW,
    pub(crate) scheduler: Box<dyn LRScheduler>,
    pub(super) plan: Plan,
    pub(super) device: Device,
    /// Whether a step was taken: what the optimizer keeps is there.
    is_begun: bool,
    captured: Option<CapturedStep>,
}

impl Trainer {
    pub(crate) fn new(plan: &Plan, device: Device) -> Result<Trainer> {
        let model = Gpt::new(plan.shape, device)?;
        let has_masters = plan.precision == Precision::Bfloat16Parameters;
        let norms = optim::AdamWOptions::new().lr(plan.learning_rate).betas(BETAS);
        let norms = norms.weight_decay(0.0);
        let biases = norms.clone().master_weights(has_masters);
        let weights = biases.clone().weight_decay(WEIGHT_DECAY);
        // Weights decay, biases and norms do not. Norms stay float32: a half near one is coarse.
        let mut of_kinds: [Vec<(String, Parameter)>; 3] = Default::default();
        for (name, parameter) in model.named_parameters() {
            let of_norm = name.split('.').any(|part| part.starts_with("norm"));
            let kind = match parameter.tensor().rank() {
                2.. => 0,
                _ if of_norm && has_masters => 2,
                _ => 1,
            };
            of_kinds[kind].push((name, parameter));
        }
        let [of_weights, of_biases, of_norms] = of_kinds;
        let mut optimizer = optim::AdamW::new(of_weights, weights)?;
        optimizer.add_param_group(of_biases, biases)?;
        if has_masters {
            optimizer.add_param_group(of_norms, norms)?;
            optimizer.cast_parameters(DType::BF16)?;
        }
        let scheduler = schedule(&mut optimizer, plan.steps)?;
        if plan.captures {
            optimizer.make_capturable()?;
        }
        let (plan, captured) = (plan.clone(), None);
        Ok(Trainer { model, optimizer, scheduler, plan, device, is_begun: false, captured })
    }

    /// One step with the next batches; their mean loss, on the device, until the next step.
    pub(crate) fn step(
        &mut self,
        batches: &mut impl Iterator<Item = Result<Batch>>,
    ) -> Result<Tensor> {
        let loss = if self.plan.captures && self.is_begun {
            self.replay(batches)?
        } else {
            let parts = (0..self.plan.accumulate).map(|_| next(batches));
            self.learn(parts)?
        };
        self.is_begun = true;
        self.scheduler.step(&mut self.optimizer)?;
        Ok(loss)
    }

    /// A step from its graph, which the first one captures.
    fn replay(&mut self, batches: &mut impl Iterator<Item = Result<Batch>>) -> Result<Tensor> {
        let captured = match self.captured.take() {
            Some(captured) => captured.take(batches).map(|()| captured)?,
            None => CapturedStep::capture(self, batches)?,
        };
        self.optimizer.write_rates()?;
        let loss = captured.replay()?;
        self.captured = Some(captured);
        Ok(loss)
    }

    /// Gradients of all parts, a step of the optimizer, and no gradients; the mean loss.
    pub(super) fn learn(&mut self, parts: impl Iterator<Item = Result<Batch>>) -> Result<Tensor> {
        let count = self.plan.accumulate;
        let mut sum: Option<Tensor> = None;
        for part in parts {
            let (tokens, next) = part?;
            let loss = self.loss(&tokens, &next)?;
            let loss = if count > 1 { loss.div(count as f64)? } else { loss };
            loss.backward()?;
            let loss = loss.detach();
            sum = Some(match sum {
                Some(sum) => sum.add(&loss)?,
                None => loss,
            });
        }
        self.optimizer.step_clipped(MOST_NORM)?;
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

/// The next batch; they do not end.
pub(super) fn next(batches: &mut impl Iterator<Item = Result<Batch>>) -> Result<Batch> {
    let ended = || Error::invalid_argument("the batches ended").in_operation("train");
    batches.next().ok_or_else(ended)?
}
