//! Rates that fall at milestones.

use plimsoll_tensor::{Error, Result};

use super::by_factor::{multiplied, whole};
use super::scheduler::{Progress, Schedule};
use crate::StateSlot;
use crate::optim::Optimizer;
use crate::saved::{Dict, Value};

/// Multiplies the rates by `gamma` at each milestone; one that is named twice, twice.
#[derive(Clone, Debug)]
pub struct MultiStepLR {
    progress: Progress,
    milestones: Vec<i64>,
    gamma: f64,
}

impl MultiStepLR {
    /// PyTorch's default of `gamma` is 0.1.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        milestones: &[i64],
        gamma: f64,
    ) -> Result<MultiStepLR> {
        let progress = Progress::begin(optimizer);
        MultiStepLR { progress, milestones: milestones.to_vec(), gamma }.begun(optimizer)
    }

    fn count(&self, is_it: impl Fn(i64) -> bool) -> f64 {
        self.milestones.iter().filter(|&&milestone| is_it(milestone)).count() as f64
    }
}

impl Schedule for MultiStepLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let times = self.count(|milestone| milestone == self.progress.last_epoch);
        Ok(multiplied(optimizer, (times > 0.0).then(|| self.gamma.powf(times))))
    }

    fn closed_form(&self) -> Option<Vec<f64>> {
        let times = self.count(|milestone| milestone <= self.progress.last_epoch);
        whole(&self.progress, self.gamma.powf(times))
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![("gamma", StateSlot::Float(&mut self.gamma))]
    }

    /// PyTorch counts each milestone in a dictionary.
    fn more_state(&self) -> Vec<(&'static str, Value)> {
        let times = |milestone: i64| self.count(|other| other == milestone) as i64;
        let counts = self.milestones.iter().map(|&milestone| (milestone, times(milestone)));
        vec![("milestones", Dict::from_iter(counts).into())]
    }

    fn load_more(&mut self, state: &Value) -> Result<()> {
        let wrong = || {
            let why = "\"milestones\" is a dictionary of whole numbers";
            Error::invalid_argument(why).in_operation("MultiStepLR")
        };
        let Some(counts) = state.entry("MultiStepLR", "milestones")?.as_dict() else {
            return Err(wrong());
        };
        let mut milestones = Vec::new();
        for (key, times) in counts.iter() {
            let (Some(milestone), Some(times)) = (key.as_int(), times.to_i64()) else {
                return Err(wrong());
            };
            milestones.extend((0..times).map(|_| milestone));
        }
        self.milestones = milestones;
        Ok(())
    }
}
