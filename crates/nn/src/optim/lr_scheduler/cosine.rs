//! Rates that fall along half a cosine, once or with restarts.

use std::f64::consts::PI;

use plimsoll_tensor::{Error, Result};

use super::scheduler::{Progress, Schedule, rates_of};
use crate::StateSlot;
use crate::optim::Optimizer;

/// Where half a cosine from `most` down to `least` is after `at` of `of` epochs.
fn between(least: f64, most: f64, at: f64, of: f64) -> f64 {
    least + (most - least) * (1.0 + (PI * at / of).cos()) / 2.0
}

/// Rates that fall to `eta_min` in `t_max` epochs along half a cosine, and rise again as many
/// after.
#[derive(Clone, Debug)]
pub struct CosineAnnealingLR {
    progress: Progress,
    t_max: i64,
    eta_min: f64,
}

impl CosineAnnealingLR {
    /// PyTorch's default of `eta_min` is 0.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        t_max: i64,
        eta_min: f64,
    ) -> Result<CosineAnnealingLR> {
        if t_max == 0 {
            let why = "t_max must not be 0";
            return Err(Error::invalid_argument(why).in_operation("CosineAnnealingLR"));
        }
        CosineAnnealingLR { progress: Progress::begin(optimizer), t_max, eta_min }.begun(optimizer)
    }
}

impl Schedule for CosineAnnealingLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let (epoch, least, most) = (self.progress.last_epoch, self.eta_min, self.t_max as f64);
        let rates = rates_of(optimizer);
        if self.progress.is_initial {
            return Ok(rates);
        }
        if self.progress.step_count == 1 && epoch > 0 {
            return Ok(self.closed_form().unwrap_or(rates));
        }
        if (epoch - 1 - self.t_max).rem_euclid(2 * self.t_max) == 0 {
            // The rates are at their least, where the quotient below has a 0 under it.
            let rise = 1.0 - (PI / most).cos();
            let pairs = rates.iter().zip(&self.progress.base_lrs);
            return Ok(pairs.map(|(rate, first)| rate + (first - least) * rise / 2.0).collect());
        }
        let [now, before] = [epoch, epoch - 1].map(|at| 1.0 + (PI * at as f64 / most).cos());
        Ok(rates.iter().map(|rate| now / before * (rate - least) + least).collect())
    }

    fn closed_form(&self) -> Option<Vec<f64>> {
        let Progress { last_epoch, base_lrs, .. } = &self.progress;
        let at = |first: &f64| between(self.eta_min, *first, *last_epoch as f64, self.t_max as f64);
        Some(base_lrs.iter().map(at).collect())
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        let most = ("T_max", StateSlot::Int(&mut self.t_max));
        vec![most, ("eta_min", StateSlot::Float(&mut self.eta_min))]
    }
}

/// Rates that fall to `eta_min` along half a cosine and start again: after `t_0` epochs, then
/// `t_mult` times as many.
#[derive(Clone, Debug)]
pub struct CosineAnnealingWarmRestarts {
    progress: Progress,
    t_0: i64,
    t_i: i64,
    t_mult: i64,
    eta_min: f64,
    t_cur: f64,
}

impl CosineAnnealingWarmRestarts {
    /// PyTorch's defaults are a `t_mult` of 1 and an `eta_min` of 0.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        t_0: i64,
        t_mult: i64,
        eta_min: f64,
    ) -> Result<CosineAnnealingWarmRestarts> {
        let refused = |why: String| {
            Err(Error::invalid_argument(why).in_operation("CosineAnnealingWarmRestarts"))
        };
        if t_0 <= 0 {
            return refused(format!("Expected positive integer T_0, but got {t_0}"));
        }
        if t_mult < 1 {
            return refused(format!("Expected integer T_mult >= 1, but got {t_mult}"));
        }
        let progress = Progress::begin(optimizer);
        CosineAnnealingWarmRestarts { progress, t_0, t_i: t_0, t_mult, eta_min, t_cur: -1.0 }
            .begun(optimizer)
    }

    /// Goes to an epoch, which may be a fraction: for steps after each batch.
    pub fn step_to(&mut self, optimizer: &mut dyn Optimizer, epoch: f64) -> Result<()> {
        if epoch < 0.0 || !epoch.is_finite() {
            let why = format!("Expected non-negative epoch, but got {epoch}");
            return Err(Error::invalid_argument(why).in_operation("CosineAnnealingWarmRestarts"));
        }
        let first = self.t_0 as f64;
        if epoch < first {
            (self.t_i, self.t_cur) = (self.t_0, epoch);
        } else if self.t_mult == 1 {
            self.t_cur = epoch % first;
        } else {
            let times = self.t_mult as f64;
            let rounds = (epoch / first * (times - 1.0) + 1.0).log(times).floor();
            self.t_cur = epoch - first * (times.powf(rounds) - 1.0) / (times - 1.0);
            self.t_i = self.t_0 * self.t_mult.pow(rounds as u32);
        }
        self.progress.last_epoch = epoch.floor() as i64;
        let rates = self.get_lr(optimizer)?;
        for (group, rate) in rates.iter().enumerate() {
            optimizer.set_lr(group, *rate);
        }
        self.progress.last_lr = rates;
        Ok(())
    }
}

impl Schedule for CosineAnnealingWarmRestarts {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn advance(&mut self) {
        if self.progress.last_epoch < 0 {
            (self.t_cur, self.progress.last_epoch) = (0.0, 0);
            return;
        }
        self.progress.last_epoch += 1;
        self.t_cur += 1.0;
        if self.t_cur >= self.t_i as f64 {
            self.t_cur %= self.t_i as f64;
            self.t_i *= self.t_mult;
        }
    }

    fn get_lr(&mut self, _optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let at = |first: &f64| between(self.eta_min, *first, self.t_cur, self.t_i as f64);
        Ok(self.progress.base_lrs.iter().map(at).collect())
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("T_0", StateSlot::Int(&mut self.t_0)),
            ("T_i", StateSlot::Int(&mut self.t_i)),
            ("T_mult", StateSlot::Int(&mut self.t_mult)),
            ("eta_min", StateSlot::Float(&mut self.eta_min)),
            ("T_cur", StateSlot::Float(&mut self.t_cur)),
        ]
    }
}
