//! What a file holds: a tree of containers, numbers, texts and tensors. The same tree for every
//! format, for Rust and for Python.

use plimsoll_core::DType;
use plimsoll_tensor::Tensor;

use crate::Dict;

/// A value of a file, as Python would have it.
///
/// ```
/// use plimsoll_files::Value;
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
    /// `bytes` (or a `bytearray`).
    Bytes(Vec<u8>),
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
    /// A `torch.nn.Parameter`: a tensor that a model learns. Whether it requires gradients is the
    /// tensor's own.
    Parameter(Tensor),
}

impl Value {
    /// The entry of a dict.
    ///
    /// ```
    /// use plimsoll_files::{Dict, Value};
    /// let value = Value::from(Dict::from_iter([("lr", 0.1)]));
    /// assert_eq!(value.get("lr").and_then(Value::as_float), Some(0.1));
    /// assert!(value.get("momentum").is_none() && Value::None.get("lr").is_none());
    /// ```
    pub fn get(&self, key: impl Into<Value>) -> Option<&Value> {
        self.as_dict()?.get(key)
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

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The items, if it is a list, a tuple or a set.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) | Value::Tuple(items) | Value::Set(items) => Some(items),
            _ => None,
        }
    }

    /// The dict, if it is one.
    pub fn as_dict(&self) -> Option<&Dict> {
        match self {
            Value::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// The tensor, if it is one or a parameter.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(tensor) | Value::Parameter(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// What it is, in Python's word, for messages.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Set(_) => "set",
            Value::Dict(_) => "dict",
            Value::Size(_) => "torch.Size",
            Value::DType(_) => "torch.dtype",
            Value::Device(_) => "torch.device",
            Value::Tensor(_) => "tensor",
            Value::Parameter(_) => "parameter",
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
