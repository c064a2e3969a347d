//! Several schedulers of one optimizer: one after another, or all at once.

use std::fmt;

use plimsoll_tensor::{Error, Result};

use super::scheduler::{LRScheduler, rates_of};
use crate::optim::Optimizer;
use crate::saved::Value;

/// A scheduler of any type.
type Any = Box<dyn LRScheduler>;

/// One scheduler after another: the next begins at each milestone.
///
/// ```
/// use plimsoll_nn::optim::lr_scheduler::{ConstantLR, ExponentialLR, LRScheduler, SequentialLR};
/// use plimsoll_nn::{Parameter, optim, optim::Optimizer};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F32)?)?;
/// let mut optimizer = optim::SGD::new([weight], optim::SGDOptions::new().lr(1.0))?;
/// let first = ConstantLR::new(&mut optimizer, 0.25, 20)?;
/// let then = ExponentialLR::new(&mut optimizer, 0.5)?;
/// let mut scheduler =
///     SequentialLR::new(&mut optimizer, vec![Box::new(first), Box::new(then)], &[2])?;
/// let mut rates = vec![optimizer.lr(0)];
/// for _ in 0..4 {
///     scheduler.step(&mut optimizer)?;
///     rates.push(optimizer.lr(0));
/// }
/// assert_eq!(rates, [0.25, 0.25, 1.0, 0.5, 0.25]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub struct SequentialLR {
    schedulers: Vec<Any>,
    milestones: Vec<i64>,
    last_epoch: i64,
    last_lr: Vec<f64>,
}

impl SequentialLR {
    /// Schedulers that were made with the same optimizer, and where all but the first begin.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        mut schedulers: Vec<Box<dyn LRScheduler>>,
        milestones: &[i64],
    ) -> Result<SequentialLR> {
        check_some("SequentialLR", &schedulers)?;
        if milestones.len() != schedulers.len() - 1 {
            let why = format!(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of \
                 milestone points, but got number of schedulers {} and the number of milestones to be equal to {}",
                schedulers.len(),
                milestones.len()
            );
            return Err(Error::invalid_argument(why).in_operation("SequentialLR"));
        }
        // They took their first steps when they were made: all but the first one's are undone.
        for group in 0..optimizer.num_groups() {
            let first = optimizer.number(group, "initial_lr");
            let first = first.unwrap_or_else(|| optimizer.lr(group));
            optimizer.set_lr(group, first);
        }
        schedulers.iter_mut().for_each(|scheduler| scheduler.undo_first_step());
        let at = turn(milestones, 0);
        schedulers[at].first_step(optimizer)?;
        let last_lr = schedulers[at].get_last_lr().to_vec();
        Ok(SequentialLR { schedulers, milestones: milestones.to_vec(), last_epoch: 0, last_lr })
    }
}

/// Whose turn it is.
fn turn(milestones: &[i64], epoch: i64) -> usize {
    milestones.partition_point(|&milestone| milestone <= epoch)
}

fn check_some(name: &str, schedulers: &[Any]) -> Result<()> {
    if schedulers.is_empty() {
        let why = format!("{name} expects at least one scheduler, but got no scheduler.");
        return Err(Error::invalid_argument(why).in_operation(name));
    }
    Ok(())
}

fn states(schedulers: &[Any]) -> Value {
    Value::List(schedulers.iter().map(|scheduler| scheduler.state_dict()).collect())
}

/// Loads the states of several schedulers. Each takes its state over whole or not at all; those
/// before one that does not fit have theirs then.
fn load_states(name: &str, schedulers: &mut [Any], state: &Value) -> Result<()> {
    let states = state.entry(name, "_schedulers")?.as_list().unwrap_or(&[]);
    if states.len() != schedulers.len() {
        let (given, own) = (states.len(), schedulers.len());
        let why = format!("the state has {given} schedulers, and there are {own}");
        return Err(Error::invalid_argument(why).in_operation(name));
    }
    let mut pairs = schedulers.iter_mut().zip(states);
    pairs.try_for_each(|(scheduler, state)| scheduler.load_state_dict(state))
}

fn last_lr_of(name: &str, state: &Value) -> Result<Vec<f64>> {
    let rates = state.entry(name, "_last_lr")?.as_list().unwrap_or(&[]);
    Ok(rates.iter().filter_map(Value::to_f64).collect())
}

impl LRScheduler for SequentialLR {
    fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.last_epoch += 1;
        let at = turn(&self.milestones, self.last_epoch);
        let scheduler = &mut self.schedulers[at];
        if at > 0 && self.milestones[at - 1] == self.last_epoch {
            scheduler.restart(optimizer)?;
        } else {
            scheduler.step(optimizer)?;
        }
        self.last_lr = scheduler.get_last_lr().to_vec();
        Ok(())
    }

    fn get_last_lr(&self) -> &[f64] {
        &self.last_lr
    }

    fn state_dict(&self) -> Value {
        Value::dict([
            ("_milestones", self.milestones.clone().into()),
            ("last_epoch", self.last_epoch.into()),
            ("_last_lr", self.last_lr.clone().into()),
            ("_schedulers", states(&self.schedulers)),
        ])
    }

    fn load_state_dict(&mut self, state: &Value) -> Result<()> {
        const NAME: &str = "SequentialLR";
        let milestones = state.entry(NAME, "_milestones")?.as_list().unwrap_or(&[]);
        let milestones: Option<Vec<i64>> = milestones.iter().map(Value::to_i64).collect();
        let epoch = state.entry(NAME, "last_epoch")?.to_i64();
        let (Some(milestones), Some(epoch)) = (milestones, epoch) else {
            let why = "\"_milestones\" and \"last_epoch\" are whole numbers";
            return Err(Error::invalid_argument(why).in_operation(NAME));
        };
        if milestones.len() != self.milestones.len() {
            let why = "the state has another number of milestones";
            return Err(Error::invalid_argument(why).in_operation(NAME));
        }
        let last_lr = last_lr_of(NAME, state)?;
        load_states(NAME, &mut self.schedulers, state)?;
        (self.milestones, self.last_epoch, self.last_lr) = (milestones, epoch, last_lr);
        Ok(())
    }

    fn undo_first_step(&mut self) {
        self.schedulers.iter_mut().for_each(|scheduler| scheduler.undo_first_step());
    }

    fn first_step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.step(optimizer)
    }

    fn restart(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.last_epoch = 0;
        let first = &mut self.schedulers[turn(&self.milestones, 0)];
        first.restart(optimizer)?;
        self.last_lr = first.get_last_lr().to_vec();
        Ok(())
    }
}

/// All schedulers at once: each changes what those before it left.
pub struct ChainedScheduler {
    schedulers: Vec<Any>,
    last_lr: Vec<f64>,
}

impl ChainedScheduler {
    /// Schedulers that were made with the same optimizer.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        schedulers: Vec<Box<dyn LRScheduler>>,
    ) -> Result<ChainedScheduler> {
        check_some("ChainedScheduler", &schedulers)?;
        Ok(ChainedScheduler { schedulers, last_lr: rates_of(optimizer) })
    }
}

impl LRScheduler for ChainedScheduler {
    fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.schedulers.iter_mut().try_for_each(|scheduler| scheduler.step(optimizer))?;
        self.last_lr = rates_of(optimizer);
        Ok(())
    }

    fn get_last_lr(&self) -> &[f64] {
        &self.last_lr
    }

    fn state_dict(&self) -> Value {
        let last_lr = ("_last_lr", self.last_lr.clone().into());
        Value::dict([last_lr, ("_schedulers", states(&self.schedulers))])
    }

    fn load_state_dict(&mut self, state: &Value) -> Result<()> {
        let last_lr = last_lr_of("ChainedScheduler", state)?;
        load_states("ChainedScheduler", &mut self.schedulers, state)?;
        self.last_lr = last_lr;
        Ok(())
    }

    fn undo_first_step(&mut self) {
        self.schedulers.iter_mut().for_each(|scheduler| scheduler.undo_first_step());
    }

    fn first_step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        let mut all = self.schedulers.iter_mut();
        all.try_for_each(|scheduler| scheduler.first_step(optimizer))?;
        self.last_lr = rates_of(optimizer);
        Ok(())
    }

    fn restart(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        let mut all = self.schedulers.iter_mut();
        all.try_for_each(|scheduler| scheduler.restart(optimizer))?;
        self.last_lr = rates_of(optimizer);
        Ok(())
    }
}

impl fmt::Debug for SequentialLR {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milestones = &self.milestones;
        write!(f, "SequentialLR({} schedulers, {milestones:?})", self.schedulers.len())
    }
}

impl fmt::Debug for ChainedScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChainedScheduler({} schedulers)", self.schedulers.len())
    }
}
