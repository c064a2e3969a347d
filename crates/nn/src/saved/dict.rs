//! A Python dict: values by key, in the order in which they were put in.

use std::collections::HashMap;

use plimsoll_tensor::{Device, Result};

use super::Value;

/// Values by key. Keys are usually texts, in optimizers' states numbers too.
///
/// ```
/// use plimsoll_nn::saved::{Dict, Value};
/// let mut dict = Dict::new();
/// dict.insert("lr", 0.1);
/// dict.insert(3, Value::None);
/// dict.insert("lr", 0.2); // in its old place
/// assert_eq!(dict.len(), 2);
/// assert_eq!(dict.get("lr").and_then(Value::as_float), Some(0.2));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Dict {
    entries: Vec<(Value, Value)>,
    places: HashMap<Key, usize>,
    class: Class,
    attributes: Option<Box<Dict>>,
}

/// What a dict is in Python.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Class {
    #[default]
    Dict,
    OrderedDict,
    Counter,
}

/// What decides whether two keys are one, as in Python: `True` is 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    None,
    Int(i128),
    Float(u64),
    Complex(u64, u64),
    Text(String),
    Bytes(Vec<u8>),
    Tuple(Vec<Key>),
    /// A dtype or a device, by name.
    Name(String),
}

impl Key {
    /// The key of a value; lists, dicts and tensors have none.
    fn of(value: &Value) -> Option<Key> {
        Some(match value {
            Value::None => Key::None,
            Value::Bool(flag) => Key::Int((*flag).into()),
            Value::Int(number) => Key::Int(*number),
            Value::Float(number) => Key::Float(number.to_bits()),
            Value::Complex(real, imaginary) => Key::Complex(real.to_bits(), imaginary.to_bits()),
            Value::Str(text) => Key::Text(text.clone()),
            Value::Bytes(bytes) => Key::Bytes(bytes.clone()),
            Value::Tuple(items) => Key::Tuple(items.iter().map(Key::of).collect::<Option<_>>()?),
            Value::Size(sizes) => {
                Key::Tuple(sizes.iter().map(|size| Key::Int((*size).into())).collect())
            }
            Value::DType(dtype) => Key::Name(dtype.name().to_string()),
            Value::Device(name) => Key::Name(name.clone()),
            Value::List(_) | Value::Set(_) | Value::Dict(_) | Value::ByteArray(_) => return None,
            Value::Tensor(_) | Value::Parameter(_) | Value::Attributed(_) => return None,
            Value::Within(_) => return None,
            Value::Shared(inner) => Key::of(inner)?,
        })
    }
}

impl Dict {
    /// An empty one.
    pub fn new() -> Dict {
        Dict::default()
    }

    /// An empty one that is a `collections.OrderedDict` in Python, as a `state_dict` is.
    pub fn ordered() -> Dict {
        Dict { class: Class::OrderedDict, ..Dict::default() }
    }

    /// An empty one that is a `collections.Counter` in Python, as the milestones of a `MultiStepLR`
    /// are.
    ///
    /// ```
    /// use plimsoll_nn::saved::Dict;
    /// let mut milestones = Dict::counter();
    /// milestones.insert(30, 1);
    /// assert!(milestones.is_counter() && !milestones.is_ordered());
    /// ```
    pub fn counter() -> Dict {
        Dict { class: Class::Counter, ..Dict::default() }
    }

    /// Whether it is an `OrderedDict` in Python.
    pub fn is_ordered(&self) -> bool {
        self.class == Class::OrderedDict
    }

    /// Whether it is a `Counter` in Python.
    pub fn is_counter(&self) -> bool {
        self.class == Class::Counter
    }

    /// What Python keeps beside the entries of an `OrderedDict`: the versions of modules, in a
    /// `state_dict` that PyTorch made.
    pub fn attributes(&self) -> Option<&Dict> {
        self.attributes.as_deref()
    }

    /// Sets what Python keeps beside the entries.
    pub fn set_attributes(&mut self, attributes: Option<Dict>) {
        self.attributes = attributes.map(Box::new);
    }

    /// Puts a value in, in place of what has its key. A list, a dict or a tensor cannot be a key:
    /// the answer is whether this could.
    pub fn insert(&mut self, key: impl Into<Value>, value: impl Into<Value>) -> bool {
        let key = key.into();
        let Some(place) = Key::of(&key) else { return false };
        match self.places.get(&place) {
            Some(&place) => self.entries[place].1 = value.into(),
            None => {
                self.places.insert(place, self.entries.len());
                self.entries.push((key, value.into()));
            }
        }
        true
    }

    /// The value of a key.
    pub fn get(&self, key: impl Into<Value>) -> Option<&Value> {
        let place = self.places.get(&Key::of(&key.into())?)?;
        Some(&self.entries[*place].1)
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The same with a copy of every tensor on a device. Keys have no tensors.
    #[track_caller]
    pub(super) fn copied(
        &self,
        device: Device,
        known: &mut HashMap<*const Value, Value>,
    ) -> Result<Dict> {
        let mut copy = self.clone();
        for (_, value) in &mut copy.entries {
            *value = value.copied(device, known)?;
        }
        Ok(copy)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl IntoIterator for Dict {
    type Item = (Value, Value);
    type IntoIter = std::vec::IntoIter<(Value, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<K: Into<Value>, V: Into<Value>> FromIterator<(K, V)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Dict {
        let mut dict = Dict::new();
        for (key, value) in entries {
            dict.insert(key, value);
        }
        dict
    }
}
