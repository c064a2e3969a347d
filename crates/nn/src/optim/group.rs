//! A group of parameters that share their options, and one parameter of it with what is kept
//! beside it.

use plimsoll_tensor::{Error, Parameter, Result, Tensor};

use super::kept::Kept;
use super::rule::FusedRule;
use crate::StateSlot;
use crate::saved::Value;

/// A parameter as an optimizer takes it: alone, or with its name. What is kept beside it is booked
/// under the module that the parameter is, or, before any call, the one that its name says.
///
/// ```
/// use plimsoll_nn::{Linear, Module, optim};
/// let layer = Linear::new(2, 1)?;
/// let optimizer = optim::SGD::new(layer.named_parameters(), optim::SGDOptions::new())?;
/// assert_eq!(optimizer.groups()[0].names().unwrap(), ["weight", "bias"]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GroupedParameter {
    pub(super) name: Option<String>,
    pub(super) parameter: Parameter,
    pub(super) kept: Kept,
}

impl From<Parameter> for GroupedParameter {
    fn from(parameter: Parameter) -> GroupedParameter {
        GroupedParameter { name: None, parameter, kept: Kept::default() }
    }
}

impl From<(String, Parameter)> for GroupedParameter {
    fn from((name, parameter): (String, Parameter)) -> GroupedParameter {
        GroupedParameter { name: Some(name), parameter, kept: Kept::default() }
    }
}

/// Parameters with options of their own.
#[derive(Clone, Debug)]
pub struct ParamGroup<O> {
    /// The options; they may change between steps.
    pub options: O,
    pub(super) params: Vec<GroupedParameter>,
    /// What schedulers and others put into the group beside the options.
    pub(super) extra: Vec<(String, Value)>,
    /// The learning rate in memory of each device that has parameters, if steps are captured.
    pub(super) rates: Vec<Tensor>,
}

impl<O: FusedRule> ParamGroup<O> {
    pub(super) fn new(params: Vec<GroupedParameter>, options: O) -> Result<ParamGroup<O>> {
        let refused = |why: &str| Err(Error::invalid_argument(why).in_operation(O::NAME));
        options.check()?;
        if params.is_empty() {
            return refused("optimizer got an empty parameter list");
        }
        let named = params.iter().filter(|param| param.name.is_some()).count();
        if named != 0 && named != params.len() {
            return refused(
                "all optimizer params should be with/without names. Some param names are missing",
            );
        }
        for (at, param) in params.iter().enumerate() {
            if params[..at].iter().any(|other| other.parameter.is_same(&param.parameter)) {
                return refused(
                    "optimizer contains a parameter group with duplicate parameters; give each once",
                );
            }
            if !param.parameter.tensor().is_leaf() {
                return refused("can't optimize a non-leaf Tensor");
            }
        }
        Ok(ParamGroup { options, params, extra: Vec::new(), rates: Vec::new() })
    }

    /// The parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.params.iter().map(|param| &param.parameter)
    }

    /// The parameters' names, if they came with names.
    pub fn names(&self) -> Option<Vec<&str>> {
        self.params.iter().map(|param| param.name.as_deref()).collect()
    }

    /// A number of the options, or one that was put beside them.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        let mut options = self.options.clone();
        let slot = options.slots().into_iter().find(|(own, _)| *own == key);
        if let Some((_, slot)) = slot {
            return slot.value().to_f64();
        }
        self.extra.iter().find(|(own, _)| own == key)?.1.to_f64()
    }

    pub(super) fn set_number(&mut self, key: &str, value: f64) {
        match self.options.slots().into_iter().find(|(own, _)| *own == key) {
            Some((_, StateSlot::Float(slot))) => *slot = value,
            // Other options are no numbers.
            Some(_) => {}
            None => self.set_extra(key, value.into()),
        }
    }

    pub(super) fn set_extra(&mut self, key: &str, value: Value) {
        match self.extra.iter_mut().find(|(own, _)| own == key) {
            Some((_, own)) => *own = value,
            None => self.extra.push((key.to_string(), value)),
        }
    }

    pub(super) fn momentum(&self) -> Option<f64> {
        let mut options = self.options.clone();
        let mut slots = options.slots();
        if let Some((_, StateSlot::Pair(betas))) = slots.iter().find(|(own, _)| *own == "betas") {
            return Some(betas.0);
        }
        let slot = slots.iter_mut().find(|(own, _)| *own == "momentum")?;
        slot.1.value().to_f64()
    }

    pub(super) fn set_momentum(&mut self, momentum: f64) {
        for (name, slot) in self.options.slots() {
            match (name, slot) {
                ("betas", StateSlot::Pair(betas)) => betas.0 = momentum,
                ("momentum", StateSlot::Float(own)) => *own = momentum,
                _ => {}
            }
        }
    }
}
