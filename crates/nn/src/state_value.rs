//! What the states of optimizers, schedulers and scalers are made of: Python's plain values and
//! tensors, so that a checkpoint of PyTorch fits and the other way round. The state of a module
//! has tensors only (`state.rs`). Writing a state to a file is not done here.

use plimsoll_tensor::{Error, Result, Tensor};

/// A value in a state.
///
/// ```
/// use plimsoll_nn::StateValue;
/// let state = StateValue::map([("gamma", 0.5.into()), ("milestones", vec![3i64, 7].into())]);
/// assert_eq!(state.get("gamma").and_then(StateValue::as_f64), Some(0.5));
/// ```
#[derive(Clone, Debug, Default)]
pub enum StateValue {
    /// Python's `None`.
    #[default]
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// A tensor.
    Tensor(Tensor),
    /// A list.
    List(Vec<StateValue>),
    /// A tuple.
    Tuple(Vec<StateValue>),
    /// A dictionary, in the order in which it was filled.
    Map(Vec<(StateKey, StateValue)>),
}

/// The key of an entry of a [`StateValue::Map`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StateKey {
    /// A name.
    Text(String),
    /// A number, as parameters have.
    Int(i64),
}

impl StateValue {
    /// A dictionary with names for keys.
    pub fn map<'a>(entries: impl IntoIterator<Item = (&'a str, StateValue)>) -> StateValue {
        let entries = entries.into_iter();
        StateValue::Map(entries.map(|(key, value)| (key.into(), value)).collect())
    }

    /// The entry of a dictionary.
    pub fn get(&self, key: &str) -> Option<&StateValue> {
        let StateValue::Map(entries) = self else { return None };
        let is_it = |own: &StateKey| matches!(own, StateKey::Text(text) if text == key);
        entries.iter().find(|(own, _)| is_it(own)).map(|(_, value)| value)
    }

    /// The entry of a dictionary that must have it.
    pub fn entry(&self, whose: &str, key: &str) -> Result<&StateValue> {
        self.get(key).ok_or_else(|| {
            Error::invalid_argument(format!("the state has no \"{key}\"")).in_operation(whose)
        })
    }

    /// The values of a list or a tuple.
    pub fn items(&self) -> Option<&[StateValue]> {
        match self {
            StateValue::List(items) | StateValue::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The number, whole or not; also that of a tensor with one element, which is read.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            StateValue::Float(value) => Some(*value),
            StateValue::Int(value) => Some(*value as f64),
            StateValue::Bool(value) => Some(f64::from(*value)),
            StateValue::Tensor(tensor) if tensor.numel() == 1 => {
                tensor.to_scalar().ok().map(|scalar| scalar.to_f64())
            }
            _ => None,
        }
    }

    /// The whole number.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            StateValue::Int(value) => Some(*value),
            StateValue::Float(value) if value.fract() == 0.0 => Some(*value as i64),
            _ => None,
        }
    }

    /// The truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            StateValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            StateValue::Text(value) => Some(value),
            _ => None,
        }
    }

    /// The tensor.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            StateValue::Tensor(value) => Some(value),
            _ => None,
        }
    }

    /// What it is, for an error.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            StateValue::None => "nothing",
            StateValue::Bool(_) => "a truth value",
            StateValue::Int(_) => "a whole number",
            StateValue::Float(_) => "a number",
            StateValue::Text(_) => "a text",
            StateValue::Tensor(_) => "a tensor",
            StateValue::List(_) => "a list",
            StateValue::Tuple(_) => "a tuple",
            StateValue::Map(_) => "a dictionary",
        }
    }
}

impl From<&str> for StateKey {
    fn from(key: &str) -> StateKey {
        StateKey::Text(key.to_string())
    }
}

impl From<bool> for StateValue {
    fn from(value: bool) -> StateValue {
        StateValue::Bool(value)
    }
}

impl From<i64> for StateValue {
    fn from(value: i64) -> StateValue {
        StateValue::Int(value)
    }
}

impl From<f64> for StateValue {
    fn from(value: f64) -> StateValue {
        StateValue::Float(value)
    }
}

impl From<&str> for StateValue {
    fn from(value: &str) -> StateValue {
        StateValue::Text(value.to_string())
    }
}

impl From<Tensor> for StateValue {
    fn from(value: Tensor) -> StateValue {
        StateValue::Tensor(value)
    }
}

impl<T: Into<StateValue>> From<Vec<T>> for StateValue {
    fn from(values: Vec<T>) -> StateValue {
        StateValue::List(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<StateValue>> From<Option<T>> for StateValue {
    fn from(value: Option<T>) -> StateValue {
        value.map_or(StateValue::None, Into::into)
    }
}

/// One number of a struct that a state tells of, by reference: what writes a state and what reads
/// one are then the same list.
#[derive(Debug)]
pub enum StateSlot<'a> {
    /// A number.
    Float(&'a mut f64),
    /// A whole number.
    Int(&'a mut i64),
    /// A whole number that may be missing.
    MaybeInt(&'a mut Option<i64>),
    /// A truth value.
    Bool(&'a mut bool),
    /// Two numbers.
    Pair(&'a mut (f64, f64)),
    /// Any number of numbers.
    Floats(&'a mut Vec<f64>),
}

impl StateSlot<'_> {
    /// What it is now.
    pub fn value(&self) -> StateValue {
        match self {
            StateSlot::Float(value) => StateValue::Float(**value),
            StateSlot::Int(value) => StateValue::Int(**value),
            StateSlot::MaybeInt(value) => (**value).into(),
            StateSlot::Bool(value) => StateValue::Bool(**value),
            StateSlot::Pair(pair) => StateValue::Tuple(vec![pair.0.into(), pair.1.into()]),
            StateSlot::Floats(values) => values.to_vec().into(),
        }
    }

    /// Takes a value over; an error says what it should be.
    pub fn load(&mut self, whose: &str, key: &str, given: &StateValue) -> Result<()> {
        let wrong = |wanted: &str| {
            let what = format!("\"{key}\" is {wanted}, and the state has {}", given.kind());
            Error::invalid_argument(what).in_operation(whose)
        };
        let numbers = || given.items()?.iter().map(StateValue::as_f64).collect::<Option<Vec<_>>>();
        match self {
            StateSlot::Float(value) => **value = given.as_f64().ok_or_else(|| wrong("a number"))?,
            StateSlot::Int(value) => {
                **value = given.as_i64().ok_or_else(|| wrong("a whole number"))?
            }
            StateSlot::MaybeInt(value) => {
                let is_none = matches!(given, StateValue::None);
                let found = given.as_i64();
                if found.is_none() && !is_none {
                    return Err(wrong("a whole number or nothing"));
                }
                **value = found;
            }
            StateSlot::Bool(value) => {
                **value = given.as_bool().ok_or_else(|| wrong("a truth value"))?
            }
            StateSlot::Pair(pair) => match numbers().as_deref() {
                Some(&[first, second]) => **pair = (first, second),
                _ => return Err(wrong("two numbers")),
            },
            StateSlot::Floats(values) => {
                **values = numbers().ok_or_else(|| wrong("a list of numbers"))?
            }
        }
        Ok(())
    }
}
