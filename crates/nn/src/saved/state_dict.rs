//! A module's state as a value, and back.

use plimsoll_tensor::Error;

use super::{Dict, Value};
use crate::StateDict;

impl From<&StateDict> for Value {
    fn from(state: &StateDict) -> Value {
        let mut dict = Dict::ordered();
        for (key, tensor) in state.iter() {
            dict.insert(key, tensor);
        }
        Value::Dict(dict)
    }
}

impl From<StateDict> for Value {
    fn from(state: StateDict) -> Value {
        Value::from(&state)
    }
}

/// What is no tensor under a key that is a text is an error, which lists all such entries.
///
/// ```
/// use plimsoll_nn::{Linear, Module, StateDict, saved::Value};
/// let linear = Linear::new(2, 3)?;
/// let value = Value::from(linear.state_dict());
/// let state = StateDict::try_from(&value)?;
/// linear.load_state_dict(&state)?;
/// assert!(StateDict::try_from(&Value::from(1)).is_err());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
impl TryFrom<&Value> for StateDict {
    type Error = Error;

    fn try_from(value: &Value) -> Result<StateDict, Error> {
        let Some(dict) = value.as_dict() else {
            return Err(Error::invalid_argument(format!(
                "a state_dict is a dict, and this is a {}",
                value.type_name()
            )));
        };
        let mut state = StateDict::new();
        let mut wrong = Vec::new();
        for (key, value) in dict.iter() {
            match (key.as_str(), value.as_tensor()) {
                (Some(key), Some(tensor)) => state.insert(key, tensor.clone()),
                (Some(key), None) => wrong.push(format!("\"{key}\" is a {}", value.type_name())),
                (None, _) => wrong.push(format!("the key {key:?} is a {}", key.type_name())),
            }
        }
        if wrong.is_empty() {
            return Ok(state);
        }
        let wrong = wrong.join(", ");
        Err(Error::invalid_argument(format!(
            "a state_dict holds tensors by name, but {wrong}; pick its part first"
        )))
    }
}
