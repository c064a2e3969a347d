//! Averages of a model's weights over training: of all that were shown (SWA), or running ones
//! (EMA); and the running statistics of batch norms that go with them.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

use plimsoll_memory::{Site, with_site};
use plimsoll_tensor::{DType, Error, NoGrad, Result, Tensor, TensorOptions};

use super::lr_scheduler::{AnnealStrategy, Progress, Schedule};
use super::optimizer::Optimizer;
use crate::batch_norm::running_statistics_of;
use crate::saved::Value;
use crate::{Buffer, Forward, Module, StateSlot, Values};

/// An average of one's own: of the average so far, a value, and how many values there were.
pub type AverageFunction = Arc<dyn Fn(&Tensor, &Tensor, i64) -> Result<Tensor> + Send + Sync>;

/// How values become an average.
#[derive(Clone)]
pub enum Average {
    /// The mean of all values: stochastic weight averaging.
    Swa,
    /// A running mean of which this share stays, as 0.999: an exponential moving average.
    Ema(f64),
    /// One of one's own.
    By(AverageFunction),
}

impl fmt::Debug for Average {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Average::Swa => write!(f, "Swa"),
            Average::Ema(decay) => write!(f, "Ema({decay})"),
            Average::By(_) => write!(f, "By(..)"),
        }
    }
}

impl Average {
    /// Takes one more value into an average, in place.
    fn update(&self, average: &Tensor, value: &Tensor, seen: i64) -> Result<()> {
        let share = match self {
            Average::Swa => 1.0 / (seen as f64 + 1.0),
            Average::Ema(decay) => 1.0 - decay,
            Average::By(function) => {
                return average.copy_(&function(average, value, seen)?).map(drop);
            }
        };
        if average.dtype().is_float() {
            return average.lerp_(value, share).map(drop);
        }
        // Whole numbers are averaged as fractions, and rounded by the copy.
        let mixed = match self {
            Average::Ema(decay) => average.mul(*decay)?.add(&value.mul(share)?)?,
            _ => average.add(&value.sub(average)?.mul(share)?)?,
        };
        average.copy_(&mixed).map(drop)
    }
}

/// A model whose parameters are averages of those that [`AveragedModel::update_parameters`] was
/// shown. Its state has PyTorch's keys: `n_averaged`, and the model's under `module`.
///
/// ```
/// use plimsoll_nn::optim::swa_utils::{AveragedModel, Average};
/// use plimsoll_nn::{Linear, Module, init};
/// let model = Linear::new(2, 1)?;
/// // A second model of the same shape; its own values do not matter.
/// let averaged = AveragedModel::new(Linear::new(2, 1)?, Average::Ema(0.75))?;
/// for value in [1.0, 5.0] {
///     init::constant_(&model.weight.tensor(), value)?;
///     averaged.update_parameters(&model)?;
/// }
/// assert_eq!(averaged.module.weight.tensor().to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
pub struct AveragedModel<M> {
    /// How many times parameters were shown.
    pub n_averaged: Buffer,
    /// The model with the averages.
    pub module: M,
    #[module(skip)]
    average: Average,
    /// Whether buffers are averaged too; otherwise the last ones are taken.
    pub use_buffers: bool,
}

impl<M: Module> AveragedModel<M> {
    /// Averages in `module`, a second model that is made like the first one.
    #[track_caller]
    pub fn new(module: M, average: Average) -> Result<AveragedModel<M>> {
        if let Average::Ema(decay) = average
            && !(0.0..=1.0).contains(&decay)
        {
            let why = format!(
                "Invalid decay value {decay} provided. Please provide a value in [0,1] range."
            );
            return Err(Error::invalid_argument(why).in_operation("AveragedModel"));
        }
        let device = module.parameters().first().map(|parameter| parameter.tensor().device());
        let made = TensorOptions { dtype: Some(DType::I64), device, ..TensorOptions::default() };
        let n_averaged = Buffer::new(&Tensor::zeros(&[], made)?);
        Ok(AveragedModel { n_averaged, module, average, use_buffers: false })
    }

    /// Averages the buffers too, such as the running statistics of batch norms.
    #[must_use]
    pub fn with_buffers(mut self) -> AveragedModel<M> {
        self.use_buffers = true;
        self
    }

    /// Takes the model's parameters into the averages. The first ones are copied.
    #[track_caller]
    pub fn update_parameters(&self, model: &M) -> Result<()> {
        with_site(Site::caller(), || {
            let _plain = NoGrad::enter();
            let seen = self.n_averaged.tensor().item::<i64>()?;
            let (averages, values) = (tensors(&self.module), tensors(model));
            check_alike(&averages, &values)?;
            let pairs = averages.iter().zip(&values);
            for ((name, average, is_buffer), (_, value, _)) in pairs {
                // Without a copy where they are together already.
                let value = value.to(average.device())?;
                if seen == 0 || (*is_buffer && !self.use_buffers) {
                    average.copy_(&value)?;
                } else {
                    self.average
                        .update(average, &value, seen)
                        .map_err(|error| error.in_operation(&format!("AveragedModel, {name}")))?;
                }
            }
            self.n_averaged.tensor().add_(1)?;
            Ok(())
        })
    }
}

/// Parameters and buffers outside of any graph, by name; and whether they are buffers.
fn tensors(module: &dyn Module) -> Vec<(String, Tensor, bool)> {
    let parameters = module.named_parameters().into_iter();
    let parameters = parameters.map(|(name, own)| (name, own.tensor().detach(), false));
    let buffers = module.named_buffers().into_iter();
    parameters.chain(buffers.map(|(name, own)| (name, own.tensor().detach(), true))).collect()
}

fn check_alike(
    averages: &[(String, Tensor, bool)],
    values: &[(String, Tensor, bool)],
) -> Result<()> {
    let facts = |list: &[(String, Tensor, bool)]| -> Vec<(String, Vec<usize>)> {
        list.iter().map(|(name, tensor, _)| (name.clone(), tensor.shape().to_vec())).collect()
    };
    let (own, given) = (facts(averages), facts(values));
    if own == given {
        return Ok(());
    }
    let differ = own.iter().zip(&given).find(|(own, given)| own != given);
    let what = match differ {
        Some((own, given)) => format!("{own:?} here is {given:?} there"),
        None => format!("{} tensors here and {} there", own.len(), given.len()),
    };
    Err(Error::invalid_argument(format!("the models are not alike: {what}"))
        .in_operation("AveragedModel"))
}

impl<Input: Values, M: Forward<Input>> Forward<Input> for AveragedModel<M> {
    type Output = M::Output;

    #[track_caller]
    fn forward(&self, input: Input) -> Result<Self::Output> {
        self.module.call(input)
    }
}

/// Computes the running statistics of all batch norms below `model` anew, over all batches; each
/// counts alike. `run` calls the model with a batch.
///
/// ```
/// use plimsoll_nn::optim::swa_utils::update_bn;
/// use plimsoll_nn::{BatchNorm1d, Forward};
/// use plimsoll_tensor::{DType, Tensor};
/// let model = BatchNorm1d::new(1)?;
/// let batches = [1.0, 3.0].map(|value| Tensor::full(&[4, 1], value, DType::F32));
/// update_bn(&model, batches, |batch| model.call(&batch?).map(drop))?;
/// assert_eq!(model.running_mean.as_ref().unwrap().tensor().to_vec::<f32>()?, [2.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn update_bn<B>(
    model: &dyn Module,
    batches: impl IntoIterator<Item = B>,
    mut run: impl FnMut(B) -> Result<()>,
) -> Result<()> {
    let modules = model.named_modules();
    let norms: Vec<_> =
        modules.iter().filter_map(|(_, module)| running_statistics_of(*module)).collect();
    if norms.is_empty() {
        return Ok(());
    }
    let was_training = model.is_training();
    model.train();
    let _plain = NoGrad::enter();
    let mut outcome = norms.iter().try_for_each(|norm| {
        norm.set_counts_alike(true);
        norm.reset_running_stats()
    });
    for batch in batches {
        if outcome.is_err() {
            break;
        }
        outcome = run(batch);
    }
    norms.iter().for_each(|norm| norm.set_counts_alike(false));
    model.set_training(was_training);
    outcome
}

/// Rates that go to `swa_lr` in `anneal_epochs` epochs and stay there.
#[derive(Clone, Debug)]
pub struct SWALR {
    progress: Progress,
    anneal_epochs: i64,
    strategy: AnnealStrategy,
}

impl SWALR {
    /// One rate for all groups, or one for each. PyTorch's defaults are 10 epochs, along a cosine.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        swa_lr: &[f64],
        anneal_epochs: i64,
        strategy: AnnealStrategy,
    ) -> Result<SWALR> {
        if anneal_epochs < 0 {
            let why = format!("anneal_epochs must be equal or greater than 0, got {anneal_epochs}");
            return Err(Error::invalid_argument(why).in_operation("SWALR"));
        }
        let goals = super::lr_scheduler::one_each("swa_lr", optimizer, swa_lr)?;
        for (group, goal) in goals.into_iter().enumerate() {
            optimizer.set_number(group, "swa_lr", goal);
        }
        SWALR { progress: Progress::begin(optimizer), anneal_epochs, strategy }.begun(optimizer)
    }

    /// How much of the new rate there is after so many steps.
    fn share(&self, step: i64) -> f64 {
        let at = (step as f64 / self.anneal_epochs.max(1) as f64).clamp(0.0, 1.0);
        match self.strategy {
            AnnealStrategy::Linear => at,
            AnnealStrategy::Cos => (1.0 - (PI * at).cos()) / 2.0,
        }
    }
}

impl Schedule for SWALR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let mut step = self.progress.step_count - 1;
        if self.anneal_epochs == 0 {
            step = step.max(1);
        }
        let (before, now) = (self.share(step - 1), self.share(step));
        let rate = |group: usize| {
            let lr = optimizer.lr(group);
            let goal = optimizer.number(group, "swa_lr").unwrap_or(lr);
            // What the rate would be without the steps so far.
            let plain = if before == 1.0 { goal } else { (lr - before * goal) / (1.0 - before) };
            goal * now + plain * (1.0 - now)
        };
        Ok((0..optimizer.num_groups()).map(rate).collect())
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![("anneal_epochs", StateSlot::Int(&mut self.anneal_epochs))]
    }

    fn more_state(&self) -> Vec<(&'static str, Value)> {
        vec![("_anneal_strategy", self.strategy.name().into())]
    }

    fn load_more(&mut self, state: &Value) -> Result<()> {
        let strategy = state.entry("SWALR", "_anneal_strategy")?.as_str();
        self.strategy = AnnealStrategy::by_name(strategy)?;
        Ok(())
    }
}
