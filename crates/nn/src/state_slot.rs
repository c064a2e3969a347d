//! One number of an optimizer's, a scheduler's or a scaler's options, by reference: what writes a
//! state and what reads one are then the same list. The values of a state are `saved/value.rs`.

use plimsoll_tensor::{Error, Result};

use crate::saved::Value;

/// One number of a struct that a state tells of.
///
/// ```
/// use plimsoll_nn::{StateSlot, saved::Value};
/// let mut lr = 0.1;
/// let mut slot = StateSlot::Float(&mut lr);
/// assert_eq!(slot.value().as_float(), Some(0.1));
/// slot.load("SGD", "lr", &Value::from(2))?;
/// assert!(slot.load("SGD", "lr", &Value::from("fast")).is_err());
/// assert_eq!(lr, 2.0);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
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
    pub fn value(&self) -> Value {
        match self {
            StateSlot::Float(value) => Value::Float(**value),
            StateSlot::Int(value) => (**value).into(),
            StateSlot::MaybeInt(value) => (**value).into(),
            StateSlot::Bool(value) => Value::Bool(**value),
            StateSlot::Pair(pair) => Value::Tuple(vec![pair.0.into(), pair.1.into()]),
            StateSlot::Floats(values) => values.to_vec().into(),
        }
    }

    /// Takes a value over; an error says what it should be.
    pub fn load(&mut self, whose: &str, key: &str, given: &Value) -> Result<()> {
        let wrong = |wanted: &str| {
            let what = format!("\"{key}\" is {wanted}, and the state has a {}", given.type_name());
            Error::invalid_argument(what).in_operation(whose)
        };
        let numbers = || given.as_list()?.iter().map(Value::to_f64).collect::<Option<Vec<_>>>();
        match self {
            StateSlot::Float(value) => **value = given.to_f64().ok_or_else(|| wrong("a number"))?,
            StateSlot::Int(value) => {
                **value = given.to_i64().ok_or_else(|| wrong("a whole number"))?
            }
            StateSlot::MaybeInt(value) => {
                let is_none = matches!(given, Value::None);
                let found = given.to_i64();
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
