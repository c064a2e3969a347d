//! The state of a fused optimizer as PyTorch writes it: what is kept by the numbers of the
//! parameters, and the groups with their options.

use plimsoll_memory::{Phase, enter_phase};
use plimsoll_tensor::{Error, NoGrad, Result, Tensor};

use super::group::ParamGroup;
use super::kept::{Kept, wants_copy};
use super::rule::FusedRule;
use crate::saved::{Dict, Value};

/// The state of all groups.
pub(super) fn of<O: FusedRule>(groups: &[ParamGroup<O>]) -> Value {
    let mut state = Dict::new();
    let mut packed = Vec::new();
    let mut number = 0;
    for group in groups {
        let first = number;
        for param in &group.params {
            if !param.kept.is_empty() {
                let entries = param.kept.iter().map(|(name, kept)| (name, kept.clone().into()));
                state.insert(number, Value::dict(entries));
            }
            number += 1;
        }
        packed.push(packed_group(group, first..number));
    }
    Value::dict([("state", state.into()), ("param_groups", packed.into())])
}

fn packed_group<O: FusedRule>(group: &ParamGroup<O>, numbers: std::ops::Range<i64>) -> Value {
    let mut options = group.options.clone();
    let own = options.slots();
    // PyTorch knows nothing of float32 copies.
    let is_told = |name: &str| name != "master_weights" || group.options.shared().master_weights;
    let own = own.iter().filter(|(name, _)| is_told(name));
    let own = own.map(|(name, slot)| (*name, slot.value()));
    let unused = O::UNUSED.iter().map(|(name, value)| (*name, (*value).into()));
    let extra = group.extra.iter().map(|(name, value)| (name.as_str(), value.clone()));
    let mut entries: Dict = own.chain(unused).chain(extra).collect();
    if let Some(names) = group.names() {
        entries.insert("param_names", names);
    }
    entries.insert("params", numbers.collect::<Vec<i64>>());
    entries.into()
}

/// Takes a state over; an error lists everything that does not fit, and then nothing is changed.
pub(super) fn load<O: FusedRule>(groups: &mut [ParamGroup<O>], state: &Value) -> Result<()> {
    let refused = |why: &str| Error::invalid_argument(why).in_operation(O::NAME);
    let saved = state.entry(O::NAME, "param_groups")?.as_list();
    let saved = saved.ok_or_else(|| refused("\"param_groups\" is not a list"))?;
    if saved.len() != groups.len() {
        return Err(refused("loaded state dict has a different number of parameter groups"));
    }
    let Some(entries) = state.entry(O::NAME, "state")?.as_dict() else {
        return Err(refused("\"state\" is not a dictionary"));
    };
    let mut wrong = Vec::new();
    let mut loaded = Vec::new();
    for (group, saved) in groups.iter().zip(saved) {
        let numbers = saved.entry(O::NAME, "params")?.as_list().unwrap_or(&[]);
        if numbers.len() != group.params.len() {
            return Err(refused(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
            ));
        }
        let mut new = group.clone();
        if let Err(error) = load_options(&mut new, saved) {
            wrong.push(error.to_string());
        }
        for (at, number) in numbers.iter().enumerate() {
            match load_kept(&new, at, entries.get(number.clone())) {
                Ok(kept) => new.params[at].kept = kept,
                Err(error) => wrong.push(format!("parameter {at}: {error}")),
            }
        }
        loaded.push(new);
    }
    if !wrong.is_empty() {
        return Err(refused(&format!("the state does not fit:\n\t{}", wrong.join("\n\t"))));
    }
    for (own, new) in groups.iter_mut().zip(loaded) {
        *own = new;
    }
    Ok(())
}

/// The options of a saved group; those that it lacks stay.
fn load_options<O: FusedRule>(group: &mut ParamGroup<O>, saved: &Value) -> Result<()> {
    let Some(entries) = saved.as_dict() else {
        return Err(Error::invalid_argument("a parameter group is not a dictionary"));
    };
    group.extra.clear();
    for (key, value) in entries.iter() {
        let Some(key) = key.as_str() else { continue };
        let is_unused = O::UNUSED.iter().any(|(name, _)| *name == key);
        if is_unused || key == "params" {
            continue;
        }
        if key == "param_names" {
            let names = value.as_list().unwrap_or(&[]);
            for (param, name) in group.params.iter_mut().zip(names) {
                param.name = name.as_str().map(str::to_string).or(param.name.take());
            }
            continue;
        }
        let mut slots = group.options.slots();
        match slots.iter_mut().find(|(name, _)| *name == key) {
            Some((name, slot)) => slot.load(O::NAME, name, value)?,
            None => {
                drop(slots);
                group.set_extra(key, value.clone());
            }
        }
    }
    group.options.check()
}

/// What is kept beside a parameter, with its dtype and device.
fn load_kept<O: FusedRule>(
    group: &ParamGroup<O>,
    at: usize,
    found: Option<&Value>,
) -> Result<Kept> {
    let mut kept = Kept::default();
    let Some(entries) = found.and_then(Value::as_dict) else { return Ok(kept) };
    let (_plain, _phase) = (NoGrad::enter(), enter_phase(Phase::Optimizer));
    let parameter = group.params[at].parameter.tensor();
    let copied = wants_copy(group.options.shared().master_weights, &parameter);
    for (key, value) in entries.iter() {
        let Some(key) = key.as_str() else { continue };
        match value {
            // A buffer that had no values yet.
            Value::None => {}
            Value::Tensor(tensor) | Value::Parameter(tensor) => {
                kept.load(key, tensor, &parameter, copied)?
            }
            // Older versions of PyTorch counted with numbers.
            Value::Int(_) | Value::Float(_) => {
                let number =
                    Tensor::scalar(value.as_float().unwrap_or(0.0), plimsoll_tensor::DType::F32)?;
                kept.load(key, &number, &parameter, copied)?;
            }
            other => {
                let what = format!("\"{key}\" is a {}, not a tensor", other.type_name());
                return Err(Error::invalid_argument(what));
            }
        }
    }
    Ok(kept)
}
