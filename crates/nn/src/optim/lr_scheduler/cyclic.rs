//! Rates that go up and down between two bounds.

use std::fmt;
use std::sync::Arc;

use plimsoll_tensor::{Error, Result};

use super::momentum::first_momenta;
use super::scheduler::{Progress, Schedule, one_each};
use crate::StateSlot;
use crate::optim::Optimizer;
use crate::saved::Value;

/// How high a cycle is, by the cycle's number or by the step's.
pub type ScaleFunction = Arc<dyn Fn(f64) -> f64 + Send + Sync>;

/// How the heights of cycles change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CyclicMode {
    /// All are alike.
    Triangular,
    /// Each is half as high as the one before.
    Triangular2,
    /// They shrink by `gamma` with each step.
    ExpRange,
}

/// What a function of the height is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleMode {
    /// The number of the cycle, from 1.
    Cycle,
    /// The number of the step, from 0.
    Iterations,
}

plimsoll_tensor::options! {
    /// The options of [`CyclicLR`], with PyTorch's defaults.
    CyclicOptions {
        /// Steps from the lower bound to the upper.
        step_size_up: i64 = 2000,
        /// Steps back; `None` is as many.
        step_size_down: Option<i64> = None,
        /// How the heights of cycles change.
        mode: CyclicMode = CyclicMode::Triangular,
        /// By what they shrink with each step, for [`CyclicMode::ExpRange`].
        gamma: f64 = 1.0,
        /// What a function of the height is given; without one the mode says it.
        scale_mode: ScaleMode = ScaleMode::Cycle,
        /// Whether the momentum goes the other way.
        cycle_momentum: bool = true,
        /// The least momentum, for all groups or for each.
        base_momentum: Vec<f64> = vec![0.8],
        /// The largest momentum, for all groups or for each.
        max_momentum: Vec<f64> = vec![0.9],
    }
}

/// Rates that rise from `base_lr` to `max_lr` and fall back, over and over; the momentum goes the
/// other way.
///
/// ```
/// use plimsoll_nn::optim::lr_scheduler::{CyclicLR, CyclicOptions, LRScheduler};
/// use plimsoll_nn::{Parameter, optim, optim::Optimizer};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F32)?)?;
/// let mut optimizer = optim::SGD::new([weight], optim::SGDOptions::new().momentum(0.9))?;
/// let options = CyclicOptions::new().step_size_up(2);
/// let mut scheduler = CyclicLR::new(&mut optimizer, &[0.0], &[1.0], options)?;
/// let mut rates = vec![optimizer.lr(0)];
/// for _ in 0..4 {
///     scheduler.step(&mut optimizer)?;
///     rates.push(optimizer.lr(0));
/// }
/// assert_eq!(rates, [0.0, 0.5, 1.0, 0.5, 0.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct CyclicLR {
    progress: Progress,
    max_lrs: Vec<f64>,
    total_size: f64,
    step_ratio: f64,
    mode: CyclicMode,
    gamma: f64,
    scale_mode: ScaleMode,
    scale_fn: Option<ScaleFunction>,
    cycle_momentum: bool,
    base_momentums: Vec<f64>,
    max_momentums: Vec<f64>,
}

impl CyclicLR {
    /// Between bounds that are one for all groups, or one for each.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        base_lr: &[f64],
        max_lr: &[f64],
        options: CyclicOptions,
    ) -> Result<CyclicLR> {
        CyclicLR::made(optimizer, base_lr, max_lr, options, None)
    }

    /// With a function of the height, which is no part of the state.
    pub fn with_scale(
        optimizer: &mut dyn Optimizer,
        base_lr: &[f64],
        max_lr: &[f64],
        options: CyclicOptions,
        scale: ScaleFunction,
    ) -> Result<CyclicLR> {
        CyclicLR::made(optimizer, base_lr, max_lr, options, Some(scale))
    }

    fn made(
        optimizer: &mut dyn Optimizer,
        base_lr: &[f64],
        max_lr: &[f64],
        options: CyclicOptions,
        scale_fn: Option<ScaleFunction>,
    ) -> Result<CyclicLR> {
        let base_lrs = one_each("base_lr", optimizer, base_lr)?;
        let max_lrs = one_each("max_lr", optimizer, max_lr)?;
        let up = options.step_size_up as f64;
        let total_size = up + options.step_size_down.map_or(up, |down| down as f64);
        if up <= 0.0 || total_size <= up {
            let why = "step_size_up and step_size_down must be above 0";
            return Err(Error::invalid_argument(why).in_operation("CyclicLR"));
        }
        for (group, rate) in base_lrs.iter().enumerate() {
            optimizer.set_lr(group, *rate);
        }
        let (base_momentums, max_momentums) = match options.cycle_momentum {
            true => {
                let (least, most) = (&options.base_momentum, &options.max_momentum);
                first_momenta("CyclicLR", optimizer, least, most)?
            }
            false => (Vec::new(), Vec::new()),
        };
        let scale_mode = match (&scale_fn, options.mode) {
            (Some(_), _) => options.scale_mode,
            (None, CyclicMode::ExpRange) => ScaleMode::Iterations,
            (None, _) => ScaleMode::Cycle,
        };
        let progress = Progress { base_lrs, ..Progress::begin(optimizer) };
        let CyclicOptions { mode, gamma, cycle_momentum, .. } = options;
        let scheduler = CyclicLR {
            progress,
            max_lrs,
            total_size,
            step_ratio: up / total_size,
            mode,
            gamma,
            scale_mode,
            scale_fn,
            cycle_momentum,
            base_momentums,
            max_momentums,
        };
        scheduler.begun(optimizer)
    }

    fn scale(&self, x: f64) -> f64 {
        match (&self.scale_fn, self.mode) {
            (Some(function), _) => function(x),
            (None, CyclicMode::Triangular) => 1.0,
            (None, CyclicMode::Triangular2) => 1.0 / 2f64.powf(x - 1.0),
            (None, CyclicMode::ExpRange) => self.gamma.powf(x),
        }
    }
}

impl Schedule for CyclicLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let epoch = self.progress.last_epoch as f64;
        let cycle = (1.0 + epoch / self.total_size).floor();
        let at = 1.0 + epoch / self.total_size - cycle;
        let ratio = self.step_ratio;
        let share = if at <= ratio { at / ratio } else { (at - 1.0) / (ratio - 1.0) };
        let by = if self.scale_mode == ScaleMode::Cycle { cycle } else { epoch };
        let height = |low: f64, high: f64| (high - low) * share;
        if self.cycle_momentum {
            let bounds = self.base_momentums.iter().zip(&self.max_momentums).enumerate();
            for (group, (low, high)) in bounds {
                let momentum = high - height(*low, *high) * self.scale(by);
                optimizer.set_momentum(group, momentum);
            }
        }
        let bounds = self.progress.base_lrs.iter().zip(&self.max_lrs);
        Ok(bounds.map(|(low, high)| low + height(*low, *high) * self.scale(by)).collect())
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        let mut slots = vec![
            ("max_lrs", StateSlot::Floats(&mut self.max_lrs)),
            ("total_size", StateSlot::Float(&mut self.total_size)),
            ("step_ratio", StateSlot::Float(&mut self.step_ratio)),
            ("gamma", StateSlot::Float(&mut self.gamma)),
            ("cycle_momentum", StateSlot::Bool(&mut self.cycle_momentum)),
        ];
        // A list that is not there says that the momentum stays.
        if !self.base_momentums.is_empty() {
            slots.push(("base_momentums", StateSlot::Floats(&mut self.base_momentums)));
            slots.push(("max_momentums", StateSlot::Floats(&mut self.max_momentums)));
        }
        slots
    }

    fn more_state(&self) -> Vec<(&'static str, Value)> {
        let mode = match self.mode {
            CyclicMode::Triangular => "triangular",
            CyclicMode::Triangular2 => "triangular2",
            CyclicMode::ExpRange => "exp_range",
        };
        let scale = match self.scale_mode {
            ScaleMode::Cycle => "cycle",
            ScaleMode::Iterations => "iterations",
        };
        let function = ("_scale_fn_custom", Value::None);
        vec![("mode", mode.into()), ("scale_mode", scale.into()), function]
    }

    fn load_more(&mut self, state: &Value) -> Result<()> {
        let text = |key: &str| {
            let text = state.entry("CyclicLR", key)?.as_str();
            text.ok_or_else(|| Error::invalid_argument(format!("\"{key}\" is a text")))
        };
        self.mode = match text("mode")? {
            "triangular" => CyclicMode::Triangular,
            "triangular2" => CyclicMode::Triangular2,
            "exp_range" => CyclicMode::ExpRange,
            other => {
                let why = format!("\"{other}\" is no mode of a cycle");
                return Err(Error::invalid_argument(why).in_operation("CyclicLR"));
            }
        };
        self.scale_mode = match text("scale_mode")? {
            "cycle" => ScaleMode::Cycle,
            _ => ScaleMode::Iterations,
        };
        Ok(())
    }
}

impl fmt::Debug for CyclicLR {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CyclicLR").field(&self.progress).finish()
    }
}
