//! Schedulers by the user's functions of the epoch, one for all groups or one for each. Functions
//! are no part of a state.

use std::fmt;
use std::sync::Arc;

use plimsoll_tensor::{Error, Result};

use super::scheduler::{Progress, Schedule, rates_of};
use crate::optim::Optimizer;
use crate::saved::Value;

/// A function of the epoch.
pub type RateFunction = Arc<dyn Fn(i64) -> f64 + Send + Sync>;

#[derive(Clone)]
struct Functions(Vec<RateFunction>);

impl Functions {
    fn new(optimizer: &dyn Optimizer, functions: Vec<RateFunction>) -> Result<Functions> {
        let count = optimizer.num_groups();
        match functions.len() {
            1 => Ok(Functions(vec![functions[0].clone(); count])),
            given if given == count => Ok(Functions(functions)),
            given => {
                let why = format!("Expected {count} lr_lambdas, but got {given}");
                Err(Error::invalid_argument(why))
            }
        }
    }

    fn of(&self, rates: &[f64], epoch: i64) -> Vec<f64> {
        rates.iter().zip(&self.0).map(|(rate, function)| rate * function(epoch)).collect()
    }

    fn state(&self) -> Vec<(&'static str, Value)> {
        vec![("lr_lambdas", Value::List(vec![Value::None; self.0.len()]))]
    }
}

/// The first rates, multiplied by a function of the epoch.
///
/// ```
/// use plimsoll_nn::optim::lr_scheduler::{LRScheduler, LambdaLR};
/// use plimsoll_nn::{Parameter, optim, optim::Optimizer};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F32)?)?;
/// let mut optimizer = optim::SGD::new([weight], optim::SGDOptions::new().lr(0.5))?;
/// let warm_up = |epoch: i64| ((epoch + 1) as f64 / 4.0).min(1.0);
/// let mut scheduler = LambdaLR::new(&mut optimizer, warm_up)?;
/// assert_eq!(optimizer.lr(0), 0.125);
/// scheduler.step(&mut optimizer)?;
/// assert_eq!(optimizer.lr(0), 0.25);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct LambdaLR {
    progress: Progress,
    functions: Functions,
}

impl LambdaLR {
    /// By one function for all groups.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        function: impl Fn(i64) -> f64 + Send + Sync + 'static,
    ) -> Result<LambdaLR> {
        LambdaLR::with_each(optimizer, vec![Arc::new(function)])
    }

    /// By a function for each group.
    pub fn with_each(
        optimizer: &mut dyn Optimizer,
        functions: Vec<RateFunction>,
    ) -> Result<LambdaLR> {
        let functions = Functions::new(optimizer, functions)?;
        LambdaLR { progress: Progress::begin(optimizer), functions }.begun(optimizer)
    }
}

impl Schedule for LambdaLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, _optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        Ok(self.functions.of(&self.progress.base_lrs, self.progress.last_epoch))
    }

    fn more_state(&self) -> Vec<(&'static str, Value)> {
        self.functions.state()
    }
}

/// The rates of the epoch before, multiplied by a function of the epoch.
#[derive(Clone)]
pub struct MultiplicativeLR {
    progress: Progress,
    functions: Functions,
}

impl MultiplicativeLR {
    /// By one function for all groups.
    pub fn new(
        optimizer: &mut dyn Optimizer,
        function: impl Fn(i64) -> f64 + Send + Sync + 'static,
    ) -> Result<MultiplicativeLR> {
        MultiplicativeLR::with_each(optimizer, vec![Arc::new(function)])
    }

    /// By a function for each group.
    pub fn with_each(
        optimizer: &mut dyn Optimizer,
        functions: Vec<RateFunction>,
    ) -> Result<MultiplicativeLR> {
        let functions = Functions::new(optimizer, functions)?;
        MultiplicativeLR { progress: Progress::begin(optimizer), functions }.begun(optimizer)
    }
}

impl Schedule for MultiplicativeLR {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn get_lr(&mut self, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
        let rates = rates_of(optimizer);
        if self.progress.is_initial {
            return Ok(rates);
        }
        Ok(self.functions.of(&rates, self.progress.last_epoch))
    }

    fn more_state(&self) -> Vec<(&'static str, Value)> {
        self.functions.state()
    }
}

impl fmt::Debug for LambdaLR {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LambdaLR").field(&self.progress).finish()
    }
}

impl fmt::Debug for MultiplicativeLR {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MultiplicativeLR").field(&self.progress).finish()
    }
}
