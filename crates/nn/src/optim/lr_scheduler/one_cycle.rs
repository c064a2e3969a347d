//! One cycle of rates over the whole training.

use std::f64::consts::PI;

use plimsoll_tensor::{Error, Result};

use super::momentum::first_momenta;
use super::scheduler::{Progress, Schedule, one_each};
use crate::StateSlot;
use crate::optim::Optimizer;
use crate::saved::Value;

/// Along what the rates go from one bound to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnealStrategy {
    /// Half a cosine.
    Cos,
    /// A straight line.
    Linear,
}

impl AnnealStrategy {
    pub(in crate::optim) fn name(self) -> &'static str {
        if self == AnnealStrategy::Cos { "cos" } else { "linear" }
    }

    pub(in crate::optim) fn by_name(name: Option<&str>) -> Result<AnnealStrategy> {
        match name {
            Some("cos") => Ok(AnnealStrategy::Cos),
            Some("linear") => Ok(AnnealStrategy::Linear),
            other => Err(Error::invalid_argument(format!(
                "anneal_strategy must be one of 'cos' or 'linear', instead got {other:?}"
            ))),
        }
    }

    fn between(self, start: f64, end: f64, share: f64) -> f64 {
        match self {
            AnnealStrategy::Linear => (end - start) * share + start,
            AnnealStrategy::Cos => end + (start - end) / 2.0 * ((PI * share).cos() + 1.0),
        }
    }
}

plimsoll_tensor::options! {
    /// The options of [`OneCycleLR`], with PyTorch's defaults.
    OneCycleOptions {
        /// How much of the steps the rates rise.
        pct_start: f64 = 0.3,
        /// Along what the rates go.
        anneal_strategy: AnnealStrategy = AnnealStrategy::Cos,
        /// Whether the momentum goes the other way.
        cycle_momentum: bool = true,
        /// The least momentum, for all groups or for each.
        base_momentum: Vec<f64> = vec![0.85],
        /// The largest momentum, for all groups or for each.
        max_momentum: Vec<f64> = vec![0.95],
        /// How far below the largest rate the first one is.
        div_factor: f64 = 25.0,
        /// How far below the first rate the last one is.
        final_div_factor: f64 = 1e4,
        /// Whether the rates fall as long as they rose, and then go on to the last one.
        three_phase: bool = false,
    }
}

/// A part of the cycle: when it ends, and between which numbers of a group it leads.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    end_step: f64,
    /// Start and end of the rates, then of the momenta.
    between: [String; 4],
}

/// The names of [`Part::between`] in a state.
const BETWEEN: [&str; 4] = ["start_lr", "end_lr", "start_momentum", "end_momentum"];

impl Part {
    fn new(end_step: f64, rates: [&str; 2], momenta: [&str; 2]) -> Part {
        let [a, b] = rates;
        let [c, d] = momenta;
        Part { end_step, between: [a, b, c, d].map(str::to_string) }
    }

    fn state(&self) -> Value {
        let names = BETWEEN.into_iter().zip(&self.between);
        let names = names.map(|(key, name)| (key, name.as_str().into()));
        Value::dict([("end_step", self.end_step.into())].into_iter().chain(names))
    }

    fn loaded(state: &Value) -> Result<Part> {
        let whose = "OneCycleLR";
        let text = |key: &str| {
            let text = state.entry(whose, key)?.as_str().map(str::to_string);
            text.ok_or_else(|| Error::invalid_argument(format!("\"{key}\" is a text")))
        };
        let end_step = state.entry(whose, "end_step")?.to_f64();
        let [a, b, c, d] = BETWEEN;
        Ok(Part {
            end_step: end_step
                .ok_or_else(|| Error::invalid_argument("\"end_step\" is a number"))?,
            between: [text(a)?, text(b)?, text(c)?, text(d)?],
        })
    }
}

/// Rates that rise to `max_lr` and fall far below where they began, once in `total_steps`; the
/// momentum goes the other way.
#[derive(Clone, Debug)]
pub struct OneCycleLR {
    progress: Progress,
    total_steps: i64,
    parts: Vec<Part>,
    strategy: AnnealStrategy,
    cycle_momentum: bool,
}

impl OneCycleLR {
    /// A cycle of `total_steps`; `max_lr` is one for all groups, or one for each.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        max_lr: &[f64],
        total_steps: i64,
        options: OneCycleOptions,
    ) -> Result<OneCycleLR> {
        let refused = |why: String| Err(Error::invalid_argument(why).in_operation("OneCycleLR"));
        if total_steps <= 0 {
            return refused(format!(
                "Expected positive integer total_steps, but got {total_steps}"
            ));
        }
        if !(0.0..=1.0).contains(&options.pct_start) {
            let given = options.pct_start;
            return refused(format!("Expected float between 0 and 1 pct_start, but got {given}"));
        }
        for (group, most) in one_each("max_lr", optimizer, max_lr)?.into_iter().enumerate() {
            let first = most / options.div_factor;
            optimizer.set_number(group, "initial_lr", first);
            optimizer.set_number(group, "max_lr", most);
            optimizer.set_number(group, "min_lr", first / options.final_div_factor);
        }
        if options.cycle_momentum {
            let (least, most) = (&options.base_momentum, &options.max_momentum);
            first_momenta("OneCycleLR", optimizer, least, most)?;
        }
        let scheduler = OneCycleLR {
            progress: Progress::begin(optimizer),
            total_steps,
            parts: parts(total_steps as f64, options.pct_start, options.three_phase),
            strategy: options.anneal_strategy,
            cycle_momentum: options.cycle_momentum,
        };
        scheduler.begun(optimizer)
    }
}

fn parts(steps: f64, share: f64, three: bool) -> Vec<Part> {
    let back = ["base_momentum", "max_momentum"];
    let up =
        Part::new(share * steps - 1.0, ["initial_lr", "max_lr"], ["max_momentum", "base_momentum"]);
    if !three {
        return vec![up, Part::new(steps - 1.0, ["max_lr", "min_lr"], back)];
    }
    let down = Part::new(2.0 * share * steps - 2.0, ["max_lr", "initial_lr"], back);
    let last = ["max_momentum", "max_momentum"];
    vec![up, down, Part::new(steps - 1.0, ["initial_lr", "min_lr"], last)]
}

impl Schedule for OneCycleLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let step = self.progress.last_epoch;
        if step > self.total_steps {
            let why = format!(
                "Tried to step {step} times. The specified number of total steps is {}",
                self.total_steps
            );
            return Err(Error::invalid_argument(why).in_operation("OneCycleLR"));
        }
        let step = step as f64;
        let last = self.parts.len() - 1;
        let at = self.parts.iter().position(|part| step <= part.end_step).unwrap_or(last);
        let start = if at == 0 { 0.0 } else { self.parts[at - 1].end_step };
        let part = &self.parts[at];
        let share = (step - start) / (part.end_step - start);
        let between = |optimizer: &dyn Optimizer, group: usize, names: &[String]| {
            let [start, end] = [0, 1].map(|at| optimizer.number(group, &names[at]).unwrap_or(0.0));
            self.strategy.between(start, end, share)
        };
        let mut rates = Vec::new();
        for group in 0..optimizer.num_groups() {
            rates.push(between(optimizer, group, &part.between[..2]));
            if self.cycle_momentum {
                let momentum = between(optimizer, group, &part.between[2..]);
                optimizer.set_momentum(group, momentum);
            }
        }
        Ok(rates)
    }

    fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        let total_steps = ("total_steps", StateSlot::Int(&mut self.total_steps));
        vec![total_steps, ("cycle_momentum", StateSlot::Bool(&mut self.cycle_momentum))]
    }

    fn more_state(&self) -> Vec<(&'static str, Value)> {
        let parts = Value::List(self.parts.iter().map(Part::state).collect());
        let strategy = ("_anneal_func_type", self.strategy.name().into());
        vec![("_schedule_phases", parts), strategy]
    }

    fn load_more(&mut self, state: &Value) -> Result<()> {
        let parts = state.entry("OneCycleLR", "_schedule_phases")?.as_list().unwrap_or(&[]);
        let parts = parts.iter().map(Part::loaded).collect::<Result<Vec<_>>>()?;
        if parts.is_empty() {
            let why = "\"_schedule_phases\" is empty";
            return Err(Error::invalid_argument(why).in_operation("OneCycleLR"));
        }
        self.parts = parts;
        let strategy = state.entry("OneCycleLR", "_anneal_func_type")?.as_str();
        self.strategy = AnnealStrategy::by_name(strategy)?;
        Ok(())
    }
}
