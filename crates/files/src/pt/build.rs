//! Turns what the machine made into values, and storages of the archive into tensors. Each storage
//! is read once, whoever refers to it; tensors and containers that are one object in the file are
//! one here.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use plimsoll_core::{DType, Device, Error, Result};
use plimsoll_tensor::{NoGrad, Tensor};

use super::globals::{Global, storage_class};
use super::heap::{DictClass, Heap, Item, Object, StorageFacts, TensorFacts, budget_bytes};
use crate::fault::{bad, unpickling};
use crate::source::Source;
use crate::zip::Entry;
use crate::{Dict, Value};

/// How deep containers may nest.
const DEPTH: usize = 500;
/// Where storages come from and go to.
pub(super) struct Storages<'a> {
    pub(super) source: &'a Source,
    pub(super) entries: HashMap<&'a str, &'a Entry>,
    /// The device for a location of the file.
    pub(super) place: &'a mut dyn FnMut(&str) -> Result<Device>,
    pub(super) on_file: bool,
}

/// The value of `item`.
pub(super) fn value<'a>(
    heap: &'a Heap,
    item: Item,
    pickle_bytes: usize,
    storages: Storages<'a>,
) -> Result<Value> {
    // One object may stand in many places, and counts in each.
    let budget = budget_bytes(pickle_bytes);
    let _plain = NoGrad::enter();
    let shared = shared(heap, item);
    let (read, tensors) = (HashMap::new(), HashMap::new());
    let (made, open) = (HashMap::new(), HashMap::new());
    Builder { heap, storages, budget, read, tensors, shared, made, open }.value(item, 0)
}

struct Builder<'a> {
    heap: &'a Heap,
    storages: Storages<'a>,
    budget: usize,
    /// By key: what was read, as what.
    read: HashMap<&'a str, (&'a StorageFacts, Tensor)>,
    /// By object.
    tensors: HashMap<u32, Tensor>,
    /// Containers that stand in several places, and those of them that were made, with the bytes
    /// that they were charged.
    shared: HashSet<u32>,
    made: HashMap<u32, (Arc<Value>, usize)>,
    /// Those of them that are being made.
    open: HashMap<u32, Weak<Value>>,
}

/// The containers that several places refer to.
fn shared(heap: &Heap, root: Item) -> HashSet<u32> {
    let (mut seen, mut several) = (HashSet::new(), HashSet::new());
    let mut waiting = vec![root];
    while let Some(item) = waiting.pop() {
        let Item::Object(at) = item else { continue };
        let object = &heap.objects[at as usize];
        let items: &[Item] = match object {
            Object::List(items) | Object::Tuple(items) | Object::Set(items) => items,
            Object::Dict { items, .. } => items,
            Object::Attributed { state, .. } => std::slice::from_ref(state),
            _ => continue,
        };
        if !seen.insert(at) {
            several.insert(at);
            continue;
        }
        waiting.extend(items);
        if let Object::Dict { attributes: Some(attributes), .. } = object {
            waiting.push(*attributes);
        }
    }
    several
}

impl<'a> Builder<'a> {
    fn value(&mut self, item: Item, depth: usize) -> Result<Value> {
        self.charge(size_of::<Value>())?;
        let heap = self.heap;
        Ok(match item {
            Item::None => Value::None,
            Item::Flag(flag) => Value::Bool(flag),
            Item::Int(number) => Value::Int(number.into()),
            Item::Float(number) => Value::Float(number),
            Item::Global(Global::DType(dtype)) => Value::DType(dtype),
            Item::Global(global) => {
                return Err(unpickling(format!("data.pkl: {global:?} stands for itself"), None));
            }
            Item::Object(at) => match &heap.objects[at as usize] {
                Object::Wide(number) => Value::Int(*number),
                Object::Text(text) => {
                    self.charge(text.len())?;
                    Value::Str(text.clone())
                }
                Object::Bytes(bytes) => {
                    self.charge(bytes.len())?;
                    Value::Bytes(bytes.clone())
                }
                Object::ByteArray(bytes) => {
                    self.charge(bytes.len())?;
                    Value::ByteArray(bytes.clone())
                }
                Object::Complex(real, imaginary) => Value::Complex(*real, *imaginary),
                Object::Size(sizes) => {
                    self.charge(8 * sizes.len())?;
                    Value::Size(sizes.clone())
                }
                Object::Device(name) => {
                    self.charge(name.len())?;
                    Value::Device(name.clone())
                }
                Object::Tensor(facts) => Value::Tensor(self.tensor(at, facts)?),
                Object::Parameter { tensor, requires_grad } => {
                    self.parameter(at, *tensor, *requires_grad)?
                }
                Object::Storage(at) => {
                    let facts = &heap.storages[*at as usize];
                    let (key, class) = (&facts.key, storage_class(facts.dtype));
                    return Err(unpickling(
                        format!(
                            "data.pkl: the storage `data/{key}` stands there without a tensor, which is not read: save \
                             the tensor"
                        ),
                        Some(format!("torch.{class}")),
                    ));
                }
                container if self.shared.contains(&at) => {
                    self.shared_container(at, container, depth + 1)?
                }
                container => self.container(container, depth + 1)?,
            },
        })
    }

    /// A container that stands in several places. Each of them counts with all that is in it, for
    /// whoever walks over the value comes by there each time.
    fn shared_container(&mut self, at: u32, object: &'a Object, depth: usize) -> Result<Value> {
        if let Some((value, bytes)) = self.made.get(&at) {
            let (value, bytes) = (value.clone(), *bytes);
            self.charge(bytes)?;
            return Ok(Value::Shared(value));
        }
        if let Some(within) = self.open.get(&at) {
            return match object {
                Object::List(_) | Object::Dict { .. } => Ok(Value::Within(within.clone())),
                _ => Err(unpickling(
                    "data.pkl: a container other than a list or dict holds itself",
                    None,
                )),
            };
        }
        let before = self.budget;
        let mut fault = None;
        let value = Arc::new_cyclic(|within| {
            self.open.insert(at, within.clone());
            self.container(object, depth).unwrap_or_else(|error| {
                fault = Some(error);
                Value::None
            })
        });
        self.open.remove(&at);
        if let Some(fault) = fault {
            return Err(fault);
        }
        self.made.insert(at, (value.clone(), before - self.budget));
        Ok(Value::Shared(value))
    }

    fn container(&mut self, object: &'a Object, depth: usize) -> Result<Value> {
        if depth > DEPTH {
            let what = format!("data.pkl: containers are nested more than {DEPTH} deep");
            return Err(unpickling(what, None));
        }
        Ok(match object {
            Object::List(items) => Value::List(self.values(items, depth)?),
            Object::Tuple(items) => Value::Tuple(self.values(items, depth)?),
            Object::Set(items) => Value::Set(self.values(items, depth)?),
            Object::Dict { items, class, attributes } => {
                let mut dict = match class {
                    DictClass::Dict => Dict::new(),
                    DictClass::OrderedDict => Dict::ordered(),
                    DictClass::Counter => Dict::counter(),
                };
                for pair in items.chunks_exact(2) {
                    // The entry, and its place in the index.
                    self.charge(128)?;
                    let key = self.value(pair[0], depth)?;
                    let word = key.type_name();
                    if !dict.insert(key, self.value(pair[1], depth)?) {
                        return Err(unpickling(format!("data.pkl: a {word} as a key"), None));
                    }
                }
                if let Some(attributes) = attributes {
                    dict.set_attributes(Some(self.attributes(*attributes, depth)?));
                }
                Value::Dict(dict)
            }
            Object::Attributed { tensor, state } => {
                let tensor = self.value(Item::Object(*tensor), depth)?;
                Value::Attributed(Box::new((tensor, self.attributes(*state, depth)?)))
            }
            _ => Value::None,
        })
    }

    /// What Python keeps beside an object: a dict.
    fn attributes(&mut self, item: Item, depth: usize) -> Result<Dict> {
        let attributes = self.value(item, depth)?;
        attributes.as_dict().cloned().ok_or_else(|| {
            let word = attributes.type_name();
            unpickling(format!("data.pkl: attributes that are a {word}"), None)
        })
    }

    fn values(&mut self, items: &[Item], depth: usize) -> Result<Vec<Value>> {
        items.iter().map(|item| self.value(*item, depth)).collect()
    }

    /// Takes bytes from what values may use.
    fn charge(&mut self, bytes: usize) -> Result<()> {
        self.budget = self.budget.checked_sub(bytes).ok_or_else(|| {
            let what =
                "data.pkl: its values would take far more memory than a file of this size needs";
            unpickling(what, None)
        })?;
        Ok(())
    }

    fn parameter(&mut self, at: u32, tensor: u32, requires_grad: bool) -> Result<Value> {
        if let Some(known) = self.tensors.get(&at) {
            return Ok(Value::Parameter(known.clone()));
        }
        let Object::Tensor(facts) = &self.heap.objects[tensor as usize] else {
            return Err(unpickling("data.pkl: a parameter without a tensor", None));
        };
        let data = self.tensor(tensor, facts)?.detach();
        let parameter = data.requires_grad_(requires_grad)?.mark_parameter();
        self.tensors.insert(at, parameter.clone());
        Ok(Value::Parameter(parameter))
    }

    fn tensor(&mut self, at: u32, facts: &'a TensorFacts) -> Result<Tensor> {
        if let Some(known) = self.tensors.get(&at) {
            return Ok(known.clone());
        }
        let storage = &self.heap.storages[facts.storage as usize];
        let whole = self.storage(storage)?;
        let named = |error: Error| {
            bad(format!(
                "the tensor of sizes {:?}, strides {:?} and offset {} does not fit its storage `data/{}` of {} {} \
                 ({error})",
                facts.sizes, facts.strides, facts.offset, storage.key, storage.numel, storage.dtype
            ))
        };
        let whole = match facts.dtype == whole.dtype() {
            true => whole,
            // A file's bytes may be bools only if somebody looked at them (`source.rs`).
            false if facts.dtype == DType::Bool => {
                return Err(named(Error::dtype("load", "bools lie in a BoolStorage")));
            }
            false => whole.view(facts.dtype).map_err(named)?,
        };
        let view = whole.as_strided(&facts.sizes, &facts.strides, facts.offset).map_err(named)?;
        let mut tensor = view.detach();
        if facts.requires_grad {
            tensor = tensor.requires_grad_(true)?;
        }
        self.tensors.insert(at, tensor.clone());
        Ok(tensor)
    }

    /// All of a storage as a flat tensor, read when it is first asked for.
    fn storage(&mut self, facts: &'a StorageFacts) -> Result<Tensor> {
        let StorageFacts { key, dtype, numel, location } = facts;
        let place = match self.read.entry(key) {
            MapEntry::Occupied(known) => {
                let (before, tensor) = known.get();
                return match *before == facts {
                    true => Ok(tensor.clone()),
                    false => Err(bad(format!(
                        "entry `data/{key}` is a storage of {} {} and one of {numel} {dtype} at once",
                        before.numel, before.dtype
                    ))),
                };
            }
            MapEntry::Vacant(place) => place,
        };
        let entry = self.storages.entries.get(key.as_str());
        let entry = entry.ok_or_else(|| bad(format!("entry `data/{key}` is missing")))?;
        let range = &entry.range;
        let bytes = numel.checked_mul(dtype.size_bytes());
        let bytes = bytes.filter(|bytes| *bytes <= range.len()).ok_or_else(|| {
            let len = range.len();
            bad(format!("entry `data/{key}` has {len} bytes, too few for {numel} {dtype}"))
        })?;
        let device = (self.storages.place)(location)?;
        let range = range.start..range.start + bytes;
        let tensor = self.storages.source.tensor(range, *dtype, device, self.storages.on_file);
        let tensor =
            tensor.ok_or_else(|| bad(format!("entry `data/{key}` is not in the file")))??;
        Ok(place.insert((facts, tensor)).1.clone())
    }
}
