//! A tree of containers, numbers, texts and tensors: the states of optimizers, schedulers and
//! scalers, and what files hold, whatever their format. A module's own state has tensors only
//! (`state.rs`); its form as a value is `state_dict.rs`. Writing a tree to a file is not done here.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use plimsoll_tensor::{DType, Device, Error, Result, Tensor};

use super::Dict;

/// A value as Python would have it.
///
/// ```
/// use plimsoll_nn::saved::Value;
/// let value = Value::List(vec![1.into(), 2.5.into(), "x".into(), Value::None]);
/// assert_eq!(value.as_list().unwrap()[0].as_int(), Some(1));
/// ```
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `None`.
    #[default]
    None,
    /// A `bool`.
    Bool(bool),
    /// An `int`, of up to 128 bits.
    Int(i128),
    /// A `float`.
    Float(f64),
    /// A `str`.
    Str(String),
    /// A `complex`: its real and its imaginary part.
    Complex(f64, f64),
    /// `bytes`.
    Bytes(Vec<u8>),
    /// A `bytearray`.
    ByteArray(Vec<u8>),
    /// A `list`.
    List(Vec<Value>),
    /// A `tuple`.
    Tuple(Vec<Value>),
    /// A `set`, in the order of the file.
    Set(Vec<Value>),
    /// A `dict` or an `OrderedDict`.
    Dict(Dict),
    /// A `torch.Size`.
    Size(Vec<i64>),
    /// A `torch.dtype`.
    DType(DType),
    /// A `torch.device`, by its name. It need not be there.
    Device(String),
    /// A tensor. Tensors on one storage are written once, and come back on one storage.
    Tensor(Tensor),
    /// A list, tuple, set or dict, or a tensor with attributes, that stands in several places and
    /// is one object in all of them. What asks for one looks through it.
    Shared(Arc<Value>),
    /// A `torch.nn.Parameter`: a tensor that a model learns. Whether it requires gradients is the
    /// tensor's own.
    Parameter(Tensor),
    /// A tensor or a parameter with attributes of its own in Python, by name.
    Attributed(Box<(Value, Dict)>),
    /// The list or dict of a [`Value::Shared`] that this stands in: one that holds itself. What
    /// asks for a container does not look through it, so nobody goes round in a circle.
    Within(Weak<Value>),
}

impl Value {
    /// A dict with names for keys.
    ///
    /// ```
    /// use plimsoll_nn::saved::Value;
    /// let state = Value::dict([("gamma", 0.5.into()), ("milestones", vec![3i64, 7].into())]);
    /// assert_eq!(state.get("gamma").and_then(Value::as_float), Some(0.5));
    /// ```
    pub fn dict<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
        Value::Dict(entries.into_iter().collect())
    }

    /// The value itself, if it is one that stands in several places.
    ///
    /// ```
    /// use plimsoll_nn::saved::Value;
    /// let list = std::sync::Arc::new(Value::from(vec![1i64, 2]));
    /// let both = Value::List(vec![Value::Shared(list.clone()), Value::Shared(list)]);
    /// let first = &both.as_list().unwrap()[0];
    /// assert!(matches!(first.plain(), Value::List(_)) && first.as_list().unwrap().len() == 2);
    /// ```
    pub fn plain(&self) -> &Value {
        match self {
            Value::Shared(inner) => inner.plain(),
            other => other,
        }
    }

    /// The entry of a dict.
    ///
    /// ```
    /// use plimsoll_nn::saved::{Dict, Value};
    /// let value = Value::from(Dict::from_iter([("lr", 0.1)]));
    /// assert_eq!(value.get("lr").and_then(Value::as_float), Some(0.1));
    /// assert!(value.get("momentum").is_none() && Value::None.get("lr").is_none());
    /// ```
    pub fn get(&self, key: impl Into<Value>) -> Option<&Value> {
        self.as_dict()?.get(key)
    }

    /// The entry of a dict that must have it; `whose` the dict is, an error says.
    ///
    /// ```
    /// use plimsoll_nn::saved::Value;
    /// let state = Value::dict([("last_epoch", 3.into())]);
    /// assert_eq!(state.entry("StepLR", "last_epoch")?.as_int(), Some(3));
    /// let missing = state.entry("StepLR", "gamma").unwrap_err();
    /// assert!(missing.to_string().contains("the state has no \"gamma\""));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn entry(&self, whose: &str, key: &str) -> Result<&Value> {
        self.get(key).ok_or_else(|| {
            Error::invalid_argument(format!("the state has no \"{key}\"")).in_operation(whose)
        })
    }

    /// Whether it is `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    /// The flag, if it is a `bool`.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The number, if it is a whole one that fits.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => i64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The number, whole or not.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float(number) => Some(*number),
            Value::Int(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// The number that it stands for: also that of a flag, and of a tensor with one element, which
    /// is read. PyTorch writes learning rates in all these ways.
    ///
    /// ```
    /// use plimsoll_nn::saved::Value;
    /// use plimsoll_tensor::{DType, Tensor};
    /// let rate = Value::from(Tensor::scalar(0.5, DType::F32)?);
    /// assert_eq!((rate.to_f64(), rate.as_float()), (Some(0.5), None));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn to_f64(&self) -> Option<f64> {
        match (self, self.as_tensor()) {
            (Value::Bool(flag), _) => Some(f64::from(*flag)),
            (_, Some(tensor)) if tensor.numel() == 1 => {
                tensor.to_scalar().ok().map(|scalar| scalar.to_f64())
            }
            _ => self.as_float(),
        }
    }

    /// The whole number that it stands for: also that of a `float` without a fraction.
    ///
    /// ```
    /// use plimsoll_nn::saved::Value;
    /// assert_eq!((Value::from(3.0).to_i64(), Value::from(3.5).to_i64()), (Some(3), None));
    /// ```
    pub fn to_i64(&self) -> Option<i64> {
        match self {
            Value::Float(number) if number.fract() == 0.0 => Some(*number as i64),
            _ => self.as_int(),
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The items, if it is a list, a tuple or a set.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self.plain() {
            Value::List(items) | Value::Tuple(items) | Value::Set(items) => Some(items),
            _ => None,
        }
    }

    /// The dict, if it is one.
    pub fn as_dict(&self) -> Option<&Dict> {
        match self.plain() {
            Value::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// The tensor, if it is one or a parameter, with attributes or without.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self.plain() {
            Value::Tensor(tensor) | Value::Parameter(tensor) => Some(tensor),
            Value::Attributed(both) => both.0.as_tensor(),
            _ => None,
        }
    }

    /// The same tree with a copy of every tensor on a device, for one whose tensors lie on a mapped
    /// file.
    ///
    /// ```
    /// use plimsoll_nn::saved::Value;
    /// use plimsoll_tensor::{DType, Device, Tensor};
    /// let x = Tensor::ones(&[2], DType::F32)?;
    /// let copy = Value::dict([("x", (&x).into())]).copied_to(Device::cpu())?;
    /// assert!(!copy.get("x").unwrap().as_tensor().unwrap().shares_storage_with(&x));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn copied_to(&self, device: Device) -> Result<Value> {
        self.copied(device, &mut HashMap::new())
    }

    /// The same, with the copies of shared values that were made before.
    #[track_caller]
    pub(super) fn copied(
        &self,
        device: Device,
        known: &mut HashMap<*const Value, Value>,
    ) -> Result<Value> {
        let copied = |tensor: &Tensor| match tensor.device() == device {
            true => tensor.clone_tensor(),
            false => tensor.to(device),
        };
        let mut all = |items: &[Value]| -> Result<Vec<Value>> {
            items.iter().map(|item| item.copied(device, known)).collect()
        };
        Ok(match self {
            Value::Tensor(tensor) => Value::Tensor(copied(tensor)?),
            Value::Parameter(tensor) => Value::Parameter(copied(tensor)?),
            Value::List(items) => Value::List(all(items)?),
            Value::Tuple(items) => Value::Tuple(all(items)?),
            Value::Dict(dict) => Value::Dict(dict.copied(device, known)?),
            Value::Attributed(both) => {
                let tensor = both.0.copied(device, known)?;
                Value::Attributed(Box::new((tensor, both.1.copied(device, known)?)))
            }
            Value::Shared(inner) => {
                let place = Arc::as_ptr(inner);
                if !known.contains_key(&place) {
                    let mut fault = None;
                    let copy = Arc::new_cyclic(|within| {
                        known.insert(place, Value::Within(within.clone()));
                        inner.copied(device, known).unwrap_or_else(|error| {
                            fault = Some(error);
                            Value::None
                        })
                    });
                    if let Some(fault) = fault {
                        return Err(fault);
                    }
                    known.insert(place, Value::Shared(copy));
                }
                known[&place].clone()
            }
            Value::Within(container) => match known.get(&container.as_ptr()) {
                Some(copy) => copy.clone(),
                None => self.clone(),
            },
            other => other.clone(),
        })
    }

    /// Its type by Python's name, for messages.
    ///
    /// ```
    /// assert_eq!(plimsoll_nn::saved::Value::from("x").type_name(), "str");
    /// ```
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::Complex(..) => "complex",
            Value::Bytes(_) => "bytes",
            Value::ByteArray(_) => "bytearray",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Set(_) => "set",
            Value::Dict(_) => "dict",
            Value::Size(_) => "torch.Size",
            Value::DType(_) => "torch.dtype",
            Value::Device(_) => "torch.device",
            Value::Tensor(_) => "tensor",
            Value::Parameter(_) => "parameter",
            Value::Attributed(both) => both.0.type_name(),
            Value::Within(container) => container.upgrade().map_or("None", |held| held.type_name()),
            Value::Shared(inner) => inner.type_name(),
        }
    }
}

impl From<()> for Value {
    fn from((): ()) -> Value {
        Value::None
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Bool(flag)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Value {
        Value::Int(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number.into())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Int(number.into())
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Value {
        Value::Int(number as i128)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Float(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Str(text.to_string())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Str(text)
    }
}

impl From<DType> for Value {
    fn from(dtype: DType) -> Value {
        Value::DType(dtype)
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}

impl From<&Tensor> for Value {
    fn from(tensor: &Tensor) -> Value {
        Value::Tensor(tensor.clone())
    }
}

impl From<Dict> for Value {
    fn from(dict: Dict) -> Value {
        Value::Dict(dict)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Value {
        Value::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::None, Into::into)
    }
}
