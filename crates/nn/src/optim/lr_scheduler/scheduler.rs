//! What all schedulers have: the count of epochs, the first learning rates, and state in PyTorch's
//! layout. A scheduler says [`Schedule`], and is an [`LRScheduler`] then.

use plimsoll_tensor::{Error, Result};

use crate::StateSlot;
use crate::optim::Optimizer;
use crate::saved::Value;

/// Sets the learning rates of an optimizer's groups, anew with each step.
pub trait LRScheduler: Send {
    /// Goes on to the next epoch, and sets its rates.
    fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()>;

    /// The rates that the last step set.
    fn get_last_lr(&self) -> &[f64];

    /// Everything but the optimizer, by PyTorch's names.
    fn state_dict(&self) -> Value;

    /// Takes over what [`LRScheduler::state_dict`] gave.
    fn load_state_dict(&mut self, state: &Value) -> Result<()>;

    /// Takes the first step back, for a scheduler whose turn comes later.
    #[doc(hidden)]
    fn undo_first_step(&mut self);

    /// Takes the first step.
    #[doc(hidden)]
    fn first_step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()>;

    /// Begins at epoch 0, whatever the rates are now.
    #[doc(hidden)]
    fn restart(&mut self, optimizer: &mut dyn Optimizer) -> Result<()>;
}

/// Where a scheduler is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The epoch, counted from 0.
    pub last_epoch: i64,
    /// The rates that the groups began with.
    pub base_lrs: Vec<f64>,
    /// The rates that the last step set.
    pub last_lr: Vec<f64>,
    /// Steps, the first one among them.
    pub step_count: i64,
    /// Whether the rates of the first epoch are being set.
    pub is_initial: bool,
}

impl Progress {
    /// Before the first step; what the groups have now are their first rates.
    pub fn begin(optimizer: &mut dyn Optimizer) -> Progress {
        let mut base_lrs = Vec::new();
        for group in 0..optimizer.num_groups() {
            let first = optimizer.number(group, "initial_lr");
            let first = first.unwrap_or_else(|| optimizer.lr(group));
            optimizer.set_number(group, "initial_lr", first);
            base_lrs.push(first);
        }
        Progress { last_epoch: -1, base_lrs, ..Progress::default() }
    }
}

/// What a scheduler of its own says: the rates of an epoch.
///
/// ```
/// use plimsoll_nn::optim::lr_scheduler::{LRScheduler, Progress, Schedule};
/// use plimsoll_nn::{Parameter, optim, optim::Optimizer};
/// use plimsoll_tensor::{DType, Result, Tensor};
///
/// #[derive(Clone)]
/// struct Halves(Progress);
///
/// impl Schedule for Halves {
///     fn progress(&self) -> &Progress {
///         &self.0
///     }
///     fn progress_mut(&mut self) -> &mut Progress {
///         &mut self.0
///     }
///     fn get_lr(&mut self, _: &mut dyn Optimizer) -> Result<Vec<f64>> {
///         let share = 0.5f64.powi(self.0.last_epoch as i32);
///         Ok(self.0.base_lrs.iter().map(|first| first * share).collect())
///     }
/// }
///
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F32)?)?;
/// let mut optimizer = optim::SGD::new([weight], optim::SGDOptions::new().lr(1.0))?;
/// let mut scheduler = Halves(Progress::begin(&mut optimizer)).begun(&mut optimizer)?;
/// scheduler.step(&mut optimizer)?;
/// assert_eq!(optimizer.lr(0), 0.5);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub trait Schedule: Clone + Send + 'static {
    /// Where it is.
    fn progress(&self) -> &Progress;

    /// Where it is, to go on.
    fn progress_mut(&mut self) -> &mut Progress;

    /// The rates of all groups for `progress().last_epoch`, from what they are now.
    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>>;

    /// The rates by the epoch alone, if there is such a form.
    fn closed_form(&self) -> Option<Vec<f64>> {
        None
    }

    /// Goes on to the next epoch.
    fn advance(&mut self) {
        let progress = self.progress_mut();
        progress.step_count += 1;
        progress.last_epoch += 1;
    }

    /// Its own numbers, by PyTorch's names.
    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        Vec::new()
    }

    /// What of its state is no number.
    fn more_state(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Takes that over.
    fn load_more(&mut self, state: &Value) -> Result<()> {
        let _ = state;
        Ok(())
    }

    /// The scheduler after its first step, which sets the rates of epoch 0.
    fn begun(mut self, optimizer: &mut dyn Optimizer) -> Result<Self> {
        self.first_step(optimizer)?;
        Ok(self)
    }
}

/// Sets the rates that the scheduler says.
fn set_rates<S: Schedule>(
    scheduler: &mut S,
    optimizer: &mut dyn Optimizer,
    closed: bool,
) -> Result<()> {
    let rates = match scheduler.closed_form().filter(|_| closed) {
        Some(rates) => rates,
        None => scheduler.get_lr(optimizer)?,
    };
    if rates.len() != optimizer.num_groups() {
        let what = format!(
            "the scheduler has rates for {} groups and the optimizer {} of them; make the scheduler \
             after all groups were added",
            rates.len(),
            optimizer.num_groups()
        );
        return Err(Error::invalid_argument(what).in_operation("LRScheduler"));
    }
    for (group, rate) in rates.iter().enumerate() {
        optimizer.set_lr(group, *rate);
    }
    scheduler.progress_mut().last_lr = rates;
    Ok(())
}

/// The numbers of `Progress`, by PyTorch's names.
fn progress_slots(progress: &mut Progress) -> [(&'static str, StateSlot<'_>); 5] {
    [
        ("base_lrs", StateSlot::Floats(&mut progress.base_lrs)),
        ("last_epoch", StateSlot::Int(&mut progress.last_epoch)),
        ("_step_count", StateSlot::Int(&mut progress.step_count)),
        ("_is_initial", StateSlot::Bool(&mut progress.is_initial)),
        ("_last_lr", StateSlot::Floats(&mut progress.last_lr)),
    ]
}

impl<S: Schedule> LRScheduler for S {
    fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.advance();
        set_rates(self, optimizer, false)
    }

    fn get_last_lr(&self) -> &[f64] {
        &self.progress().last_lr
    }

    fn state_dict(&self) -> Value {
        let mut own = self.clone();
        let mut entries: Vec<(&str, Value)> =
            own.slots().iter().map(|(name, slot)| (*name, slot.value())).collect();
        entries.extend(self.more_state());
        let progress = progress_slots(own.progress_mut());
        entries.extend(progress.iter().map(|(name, slot)| (*name, slot.value())));
        Value::dict(entries)
    }

    fn load_state_dict(&mut self, state: &Value) -> Result<()> {
        const NAME: &str = "LRScheduler.load_state_dict";
        let mut new = self.clone();
        for (name, mut slot) in new.slots() {
            slot.load(NAME, name, state.entry(NAME, name)?)?;
        }
        new.load_more(state)?;
        for (name, mut slot) in progress_slots(new.progress_mut()) {
            match state.get(name) {
                Some(value) => slot.load(NAME, name, value)?,
                // Older versions of PyTorch do not say it.
                None if name == "_is_initial" => {}
                None => return state.entry(NAME, name).map(drop),
            }
        }
        *self = new;
        Ok(())
    }

    fn undo_first_step(&mut self) {
        self.progress_mut().last_epoch -= 1;
    }

    fn first_step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        let progress = self.progress_mut();
        progress.step_count = 0;
        progress.is_initial = true;
        let outcome = self.step(optimizer);
        self.progress_mut().is_initial = false;
        outcome
    }

    fn restart(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.progress_mut().last_epoch = 0;
        set_rates(self, optimizer, true)
    }
}

/// The rates that the groups have now.
pub(super) fn rates_of(optimizer: &dyn Optimizer) -> Vec<f64> {
    (0..optimizer.num_groups()).map(|group| optimizer.lr(group)).collect()
}

/// A value for each group: those of the list, or the only one for all.
pub(in crate::optim) fn one_each(
    name: &str,
    optimizer: &dyn Optimizer,
    values: &[f64],
) -> Result<Vec<f64>> {
    let count = optimizer.num_groups();
    match values {
        [one] => Ok(vec![*one; count]),
        _ if values.len() == count => Ok(values.to_vec()),
        _ => Err(Error::invalid_argument(format!(
            "{name} must have the same length as optimizer.param_groups. {name} has {} values, \
             param_groups has {count}.",
            values.len()
        ))),
    }
}
