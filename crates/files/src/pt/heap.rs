//! What the machine makes: objects that refer to each other by number, so that a pickle may share
//! them and even go round in a circle without harm. `build.rs` turns them into values.

use plimsoll_core::DType;

use super::globals::Global;

/// A value on the machine's stack, copied freely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Item {
    None,
    Flag(bool),
    Int(i64),
    Float(f64),
    Global(Global),
    /// A place in [`Heap::objects`].
    Object(u32),
}

/// Which class of Python's a dict is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DictClass {
    Dict,
    OrderedDict,
    Counter,
}

/// Something with an identity, or too large for the stack.
#[derive(Debug)]
pub(super) enum Object {
    Wide(i128),
    Text(String),
    Bytes(Vec<u8>),
    ByteArray(Vec<u8>),
    Complex(f64, f64),
    List(Vec<Item>),
    Tuple(Vec<Item>),
    Set(Vec<Item>),
    /// Keys and values in turn; the last value of a key counts.
    Dict {
        items: Vec<Item>,
        class: DictClass,
        attributes: Option<Item>,
    },
    Size(Vec<i64>),
    Device(String),
    /// A place in [`Heap::storages`].
    Storage(u32),
    Tensor(TensorFacts),
    /// A tensor, and whether it requires gradients.
    Parameter {
        tensor: u32,
        requires_grad: bool,
    },
    /// A tensor or a parameter, and the dict of what Python keeps beside it.
    Attributed {
        tensor: u32,
        state: Item,
    },
}

impl Object {
    /// Bytes besides its own place.
    fn content_bytes(&self) -> usize {
        match self {
            Object::Text(text) | Object::Device(text) => text.len(),
            Object::Bytes(bytes) | Object::ByteArray(bytes) => bytes.len(),
            Object::List(items) | Object::Tuple(items) | Object::Set(items) => {
                size_of_val(items.as_slice())
            }
            Object::Dict { items, .. } => size_of_val(items.as_slice()),
            Object::Size(sizes) => size_of_val(sizes.as_slice()),
            Object::Tensor(facts) => 2 * size_of_val(facts.sizes.as_slice()),
            Object::Wide(_) | Object::Complex(..) | Object::Storage(_) => 0,
            Object::Parameter { .. } | Object::Attributed { .. } => 0,
        }
    }
}

/// A storage that a pickle names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StorageFacts {
    pub(super) key: String,
    pub(super) dtype: DType,
    pub(super) numel: usize,
    /// Where PyTorch had it: `cpu`, `cuda:0`.
    pub(super) location: String,
}

/// A tensor on a storage. Not checked against it yet.
#[derive(Debug)]
pub(super) struct TensorFacts {
    pub(super) storage: u32,
    pub(super) dtype: DType,
    pub(super) offset: i64,
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) requires_grad: bool,
}

/// Everything that a pickle made.
#[derive(Debug)]
pub(super) struct Heap {
    pub(super) objects: Vec<Object>,
    pub(super) storages: Vec<StorageFacts>,
    /// Bytes that objects may still take: calls copy their arguments, and a short pickle can call
    /// often.
    budget: usize,
}

/// What the data of a pickle of so many bytes may take: a fixed part, and a share for each byte.
pub(super) fn budget_bytes(pickle_bytes: usize) -> usize {
    (16usize << 20).saturating_add(pickle_bytes.saturating_mul(64))
}

impl Heap {
    pub(super) fn new(pickle_bytes: usize) -> Heap {
        Heap { objects: Vec::new(), storages: Vec::new(), budget: budget_bytes(pickle_bytes) }
    }

    pub(super) fn add(&mut self, object: Object) -> Result<Item, String> {
        let bytes = size_of::<Object>().saturating_add(object.content_bytes());
        self.budget = self
            .budget
            .checked_sub(bytes)
            .ok_or("its data would take far more memory than a file of this size needs")?;
        let at = u32::try_from(self.objects.len()).map_err(|_| "too many objects")?;
        self.objects.push(object);
        Ok(Item::Object(at))
    }

    pub(super) fn get(&self, item: Item) -> Option<&Object> {
        match item {
            Item::Object(at) => self.objects.get(at as usize),
            _ => None,
        }
    }

    pub(super) fn text(&self, item: Item) -> Option<&str> {
        match self.get(item)? {
            Object::Text(text) => Some(text),
            // Python 2 wrote its texts as bytes.
            Object::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The items of a tuple.
    pub(super) fn tuple(&self, item: Item) -> Option<&[Item]> {
        match self.get(item)? {
            Object::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// Whole numbers: a tuple's, a list's, a size's.
    pub(super) fn numbers(&self, item: Item) -> Option<Vec<i64>> {
        match self.get(item)? {
            Object::Size(sizes) => Some(sizes.clone()),
            Object::Tuple(items) | Object::List(items) => items
                .iter()
                .map(|item| match item {
                    Item::Int(number) => Some(*number),
                    _ => None,
                })
                .collect(),
            _ => None,
        }
    }

    /// A number, whole or not.
    pub(super) fn float(&self, item: Item) -> Option<f64> {
        match item {
            Item::Float(number) => Some(number),
            Item::Int(number) => Some(number as f64),
            _ => None,
        }
    }

    /// A number of things.
    pub(super) fn count(&self, item: Item) -> Option<usize> {
        match item {
            Item::Int(number) => usize::try_from(number).ok(),
            _ => None,
        }
    }
}
