//! Schedulers that multiply all rates by one factor at a time. A step multiplies what the rates are
//! now, so that others may change them too; the closed form goes by the epoch alone.

use plimsoll_tensor::{Error, Result};

use super::scheduler::{Progress, Schedule, rates_of};
use crate::StateSlot;
use crate::optim::Optimizer;

/// The rates multiplied, unless they stay.
pub(super) fn multiplied(optimizer: &dyn Optimizer, factor: Option<f64>) -> Vec<f64> {
    let rates = rates_of(optimizer).into_iter();
    rates.map(|rate| factor.map_or(rate, |factor| rate * factor)).collect()
}

/// The first rates multiplied.
pub(super) fn whole(progress: &Progress, factor: f64) -> Option<Vec<f64>> {
    Some(progress.base_lrs.iter().map(|rate| rate * factor).collect())
}

fn refused(scheduler: &str, why: &str) -> Error {
    Error::invalid_argument(why).in_operation(scheduler)
}

/// Multiplies the rates by `gamma` every `step_size` epochs.
#[derive(Clone, Debug)]
pub struct StepLR {
    progress: Progress,
    step_size: i64,
    gamma: f64,
}

impl StepLR {
    /// PyTorch's default of `gamma` is 0.1.
    pub fn new(optimizer: &mut dyn Optimizer, step_size: i64, gamma: f64) -> Result<StepLR> {
        if step_size == 0 {
            return Err(refused("StepLR", "step_size must not be 0"));
        }
        StepLR { progress: Progress::begin(optimizer), step_size, gamma }.begun(optimizer)
    }
}

impl Schedule for StepLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let epoch = self.progress.last_epoch;
        let stays = epoch == 0 || epoch % self.step_size != 0;
        Ok(multiplied(optimizer, (!stays).then_some(self.gamma)))
    }

    fn closed_form(&self) -> Option<Vec<f64>> {
        let times = self.progress.last_epoch.div_euclid(self.step_size);
        whole(&self.progress, self.gamma.powf(times as f64))
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        let step_size = ("step_size", StateSlot::Int(&mut self.step_size));
        vec![step_size, ("gamma", StateSlot::Float(&mut self.gamma))]
    }
}

/// Multiplies the rates by `factor` until epoch `total_iters`.
#[derive(Clone, Debug)]
pub struct ConstantLR {
    progress: Progress,
    factor: f64,
    total_iters: i64,
}

impl ConstantLR {
    /// PyTorch's defaults are a factor of 1/3 for 5 epochs.
    pub fn new(optimizer: &mut dyn Optimizer, factor: f64, total_iters: i64) -> Result<ConstantLR> {
        if !(0.0..=1.0).contains(&factor) {
            let why = "Constant multiplicative factor expected to be between 0 and 1.";
            return Err(refused("ConstantLR", why));
        }
        ConstantLR { progress: Progress::begin(optimizer), factor, total_iters }.begun(optimizer)
    }
}

impl Schedule for ConstantLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let factor = match self.progress.last_epoch {
            0 => Some(self.factor),
            epoch if epoch == self.total_iters => Some(1.0 / self.factor),
            _ => None,
        };
        Ok(multiplied(optimizer, factor))
    }

    fn closed_form(&self) -> Option<Vec<f64>> {
        let is_over = f64::from(self.progress.last_epoch >= self.total_iters);
        whole(&self.progress, self.factor + is_over * (1.0 - self.factor))
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        let factor = ("factor", StateSlot::Float(&mut self.factor));
        vec![factor, ("total_iters", StateSlot::Int(&mut self.total_iters))]
    }
}

/// A factor that goes straight from `start_factor` to `end_factor` in `total_iters` epochs.
#[derive(Clone, Debug)]
pub struct LinearLR {
    progress: Progress,
    start_factor: f64,
    end_factor: f64,
    total_iters: i64,
}

impl LinearLR {
    /// PyTorch's defaults go from 1/3 to 1 in 5 epochs.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        start_factor: f64,
        end_factor: f64,
        total_iters: i64,
    ) -> Result<LinearLR> {
        if !(start_factor > 0.0 && start_factor <= 1.0) {
            let why = "Starting multiplicative factor expected to be greater than 0 and less or equal to 1.";
            return Err(refused("LinearLR", why));
        }
        if !(0.0..=1.0).contains(&end_factor) {
            let why = "Ending multiplicative factor expected to be between 0 and 1.";
            return Err(refused("LinearLR", why));
        }
        let progress = Progress::begin(optimizer);
        LinearLR { progress, start_factor, end_factor, total_iters }.begun(optimizer)
    }
}

impl Schedule for LinearLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let (epoch, total) = (self.progress.last_epoch, self.total_iters as f64);
        let rise = self.end_factor - self.start_factor;
        let factor = if epoch == 0 {
            Some(self.start_factor)
        } else if self.progress.is_initial || epoch > self.total_iters {
            None
        } else {
            Some(1.0 + rise / (total * self.start_factor + (epoch - 1) as f64 * rise))
        };
        Ok(multiplied(optimizer, factor))
    }

    fn closed_form(&self) -> Option<Vec<f64>> {
        let rise = self.end_factor - self.start_factor;
        let at = self.total_iters.min(self.progress.last_epoch) as f64;
        whole(&self.progress, self.start_factor + rise * at / self.total_iters as f64)
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("start_factor", StateSlot::Float(&mut self.start_factor)),
            ("end_factor", StateSlot::Float(&mut self.end_factor)),
            ("total_iters", StateSlot::Int(&mut self.total_iters)),
        ]
    }
}

/// Multiplies the rates by `gamma` every epoch.
#[derive(Clone, Debug)]
pub struct ExponentialLR {
    progress: Progress,
    gamma: f64,
}

impl ExponentialLR {
    /// By `gamma` every epoch.
    pub fn new(optimizer: &mut dyn Optimizer, gamma: f64) -> Result<ExponentialLR> {
        ExponentialLR { progress: Progress::begin(optimizer), gamma }.begun(optimizer)
    }
}

impl Schedule for ExponentialLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        Ok(multiplied(optimizer, (!self.progress.is_initial).then_some(self.gamma)))
    }

    fn closed_form(&self) -> Option<Vec<f64>> {
        whole(&self.progress, self.gamma.powf(self.progress.last_epoch as f64))
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![("gamma", StateSlot::Float(&mut self.gamma))]
    }
}

/// Rates that fall to 0 in `total_iters` epochs, as a power of what is left.
#[derive(Clone, Debug)]
pub struct PolynomialLR {
    progress: Progress,
    total_iters: i64,
    power: f64,
}

impl PolynomialLR {
    /// PyTorch's defaults are 5 epochs and a power of 1.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        total_iters: i64,
        power: f64,
    ) -> Result<PolynomialLR> {
        PolynomialLR { progress: Progress::begin(optimizer), total_iters, power }.begun(optimizer)
    }
}

impl Schedule for PolynomialLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let (epoch, total) = (self.progress.last_epoch, self.total_iters as f64);
        if self.progress.is_initial || epoch > self.total_iters {
            return Ok(rates_of(optimizer));
        }
        let [left, before] = [epoch, epoch - 1].map(|epoch| 1.0 - epoch as f64 / total);
        Ok(multiplied(optimizer, Some((left / before).powf(self.power))))
    }

    fn closed_form(&self) -> Option<Vec<f64>> {
        let at = self.total_iters.min(self.progress.last_epoch) as f64;
        whole(&self.progress, (1.0 - at / self.total_iters as f64).powf(self.power))
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        let total_iters = ("total_iters", StateSlot::Int(&mut self.total_iters));
        vec![total_iters, ("power", StateSlot::Float(&mut self.power))]
    }
}
