//! Rates that fall when a measure no longer gets better. Its step is given the measure, so that it
//! cannot be part of other schedulers.

use plimsoll_tensor::{Error, Result};

use super::scheduler::rates_of;
use crate::StateSlot;
use crate::optim::Optimizer;
use crate::saved::Value;

/// Which measures are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlateauMode {
    /// Smaller ones.
    Min,
    /// Larger ones.
    Max,
}

/// What the threshold is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdMode {
    /// The share by which a measure must be better.
    Rel,
    /// The amount by which it must be better.
    Abs,
}

plimsoll_tensor::options! {
    /// The options of [`ReduceLROnPlateau`], with PyTorch's defaults.
    PlateauOptions {
        /// Which measures are better.
        mode: PlateauMode = PlateauMode::Min,
        /// What the rates are multiplied by.
        factor: f64 = 0.1,
        /// Epochs without a better measure that are waited for.
        patience: i64 = 10,
        /// By how much a measure must be better.
        threshold: f64 = 1e-4,
        /// Whether that is a share or an amount.
        threshold_mode: ThresholdMode = ThresholdMode::Rel,
        /// Epochs after a fall that are not counted.
        cooldown: i64 = 0,
        /// The least rate, for all groups or for each.
        min_lr: Vec<f64> = vec![0.0],
        /// A fall that is not larger is left out.
        eps: f64 = 1e-8,
    }
}

/// Multiplies the rates by `factor` when the measure given to `step` was not better for more than
/// `patience` epochs.
///
/// ```
/// use plimsoll_nn::optim::lr_scheduler::{PlateauOptions, ReduceLROnPlateau};
/// use plimsoll_nn::{Parameter, optim, optim::Optimizer};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F32)?)?;
/// let mut optimizer = optim::SGD::new([weight], optim::SGDOptions::new().lr(1.0))?;
/// let options = PlateauOptions::new().patience(1).factor(0.5);
/// let mut scheduler = ReduceLROnPlateau::new(&mut optimizer, options)?;
/// for loss in [3.0, 2.0, 2.0, 2.0] {
///     scheduler.step(&mut optimizer, loss)?;
/// }
/// assert_eq!(optimizer.lr(0), 0.5);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReduceLROnPlateau {
    options: PlateauOptions,
    min_lrs: Vec<f64>,
    last_epoch: i64,
    last_lr: Vec<f64>,
    best: f64,
    cooldown_counter: i64,
    num_bad_epochs: i64,
}

impl ReduceLROnPlateau {
    /// Of an optimizer.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        options: PlateauOptions,
    ) -> Result<ReduceLROnPlateau> {
        let refused =
            |why: String| Err(Error::invalid_argument(why).in_operation("ReduceLROnPlateau"));
        if options.factor >= 1.0 {
            return refused("Factor should be < 1.0.".into());
        }
        let count = optimizer.num_groups();
        let min_lrs = match options.min_lr.len() {
            1 => vec![options.min_lr[0]; count],
            given if given == count => options.min_lr.clone(),
            given => return refused(format!("expected {count} min_lrs, got {given}")),
        };
        let worst =
            if options.mode == PlateauMode::Min { f64::INFINITY } else { f64::NEG_INFINITY };
        Ok(ReduceLROnPlateau {
            options,
            min_lrs,
            last_epoch: 0,
            last_lr: rates_of(optimizer),
            best: worst,
            cooldown_counter: 0,
            num_bad_epochs: 0,
        })
    }

    /// Notes the epoch's measure, and lowers the rates if it is time.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer, metrics: f64) -> Result<()> {
        self.last_epoch += 1;
        if self.is_better(metrics) {
            (self.best, self.num_bad_epochs) = (metrics, 0);
        } else {
            self.num_bad_epochs += 1;
        }
        if self.in_cooldown() {
            self.cooldown_counter -= 1;
            self.num_bad_epochs = 0;
        }
        if self.num_bad_epochs > self.options.patience {
            self.reduce(optimizer)?;
            (self.cooldown_counter, self.num_bad_epochs) = (self.options.cooldown, 0);
        }
        self.last_lr = rates_of(optimizer);
        Ok(())
    }

    /// Whether epochs are not counted, so soon after the rates fell.
    pub fn in_cooldown(&self) -> bool {
        self.cooldown_counter > 0
    }

    /// The rates after the last step.
    pub fn get_last_lr(&self) -> &[f64] {
        &self.last_lr
    }

    fn is_better(&self, value: f64) -> bool {
        let &PlateauOptions { threshold, mode, threshold_mode, .. } = &self.options;
        match (mode, threshold_mode) {
            (PlateauMode::Min, ThresholdMode::Rel) => value < self.best * (1.0 - threshold),
            (PlateauMode::Min, ThresholdMode::Abs) => value < self.best - threshold,
            (PlateauMode::Max, ThresholdMode::Rel) => value > self.best * (threshold + 1.0),
            (PlateauMode::Max, ThresholdMode::Abs) => value > self.best + threshold,
        }
    }

    fn reduce(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        let count = optimizer.num_groups();
        if count != self.min_lrs.len() {
            let [one] = self.options.min_lr[..] else {
                let why = format!(
                    "The number of param groups in the `optimizer` ({count}) differs from when \
                     `ReduceLROnPlateau` was initialized ({}), usually due to a new param group being \
                     added to the optimizer. Make the scheduler anew with as many `min_lr`.",
                    self.min_lrs.len()
                );
                return Err(Error::invalid_argument(why).in_operation("ReduceLROnPlateau"));
            };
            self.min_lrs = vec![one; count];
        }
        for (group, least) in self.min_lrs.iter().enumerate() {
            let before = optimizer.lr(group);
            let after = (before * self.options.factor).max(*least);
            if before - after > self.options.eps {
                optimizer.set_lr(group, after);
            }
        }
        Ok(())
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        let options = &mut self.options;
        vec![
            ("factor", StateSlot::Float(&mut options.factor)),
            ("min_lrs", StateSlot::Floats(&mut self.min_lrs)),
            ("patience", StateSlot::Int(&mut options.patience)),
            ("cooldown", StateSlot::Int(&mut options.cooldown)),
            ("eps", StateSlot::Float(&mut options.eps)),
            ("last_epoch", StateSlot::Int(&mut self.last_epoch)),
            ("_last_lr", StateSlot::Floats(&mut self.last_lr)),
            ("threshold", StateSlot::Float(&mut options.threshold)),
            ("best", StateSlot::Float(&mut self.best)),
            ("cooldown_counter", StateSlot::Int(&mut self.cooldown_counter)),
            ("num_bad_epochs", StateSlot::Int(&mut self.num_bad_epochs)),
        ]
    }

    /// Everything but the optimizer, by PyTorch's names.
    pub fn state_dict(&self) -> Value {
        let is_min = self.options.mode == PlateauMode::Min;
        let is_rel = self.options.threshold_mode == ThresholdMode::Rel;
        let worst = if is_min { f64::INFINITY } else { f64::NEG_INFINITY };
        let mut own = self.clone();
        let slots = own.slots();
        let numbers = slots.iter().map(|(name, slot)| (*name, slot.value()));
        Value::dict(numbers.chain([
            ("mode", if is_min { "min" } else { "max" }.into()),
            ("threshold_mode", if is_rel { "rel" } else { "abs" }.into()),
            ("mode_worse", worst.into()),
        ]))
    }

    /// Takes over what [`ReduceLROnPlateau::state_dict`] gave.
    pub fn load_state_dict(&mut self, state: &Value) -> Result<()> {
        const NAME: &str = "ReduceLROnPlateau";
        let mut new = self.clone();
        for (name, mut slot) in new.slots() {
            slot.load(NAME, name, state.entry(NAME, name)?)?;
        }
        let text = |key: &str| {
            state.entry(NAME, key).map(|value| value.as_str().unwrap_or_default().to_string())
        };
        new.options.mode = match text("mode")?.as_str() {
            "min" => PlateauMode::Min,
            "max" => PlateauMode::Max,
            other => {
                let why = format!("mode {other} is unknown!");
                return Err(Error::invalid_argument(why).in_operation(NAME));
            }
        };
        new.options.threshold_mode = match text("threshold_mode")?.as_str() {
            "rel" => ThresholdMode::Rel,
            "abs" => ThresholdMode::Abs,
            other => {
                let why = format!("threshold mode {other} is unknown!");
                return Err(Error::invalid_argument(why).in_operation(NAME));
            }
        };
        *self = new;
        Ok(())
    }
}
