//! What the calls in a file's pickle make: for each global of the list, the data that PyTorch's
//! function of that name would make of these arguments.

use plimsoll_core::DType;
use plimsoll_pickle::Fault;

use super::globals::Global;
use super::heap::{DictClass, Heap, Item, Object, TensorFacts};

/// PyTorch's tensors have no more dimensions.
const DIMENSIONS: usize = 64;

impl Heap {
    pub(super) fn make(&mut self, global: Global, arguments: &[Item]) -> Result<Item, Fault> {
        let wrong = || format!("arguments that {global:?} does not take");
        match (global, arguments) {
            (Global::OrderedDict, []) => self.add_dict(Vec::new(), DictClass::OrderedDict),
            (Global::OrderedDict, [pairs]) => self.ordered_of(*pairs).ok_or_else(wrong)?,
            (Global::Counter, []) => self.add_dict(Vec::new(), DictClass::Counter),
            (Global::Counter, [counts]) => match self.get(*counts) {
                Some(Object::Dict { items, .. }) => {
                    let items = items.clone();
                    self.add_dict(items, DictClass::Counter)
                }
                _ => Err(wrong()),
            },
            (Global::Size, [sizes]) => {
                let sizes = self.numbers(*sizes).ok_or_else(wrong)?;
                self.add(Object::Size(sizes))
            }
            (Global::Device, [kind]) => {
                let name = self.text(*kind).ok_or_else(wrong)?.to_string();
                self.add(Object::Device(name))
            }
            (Global::Device, [kind, index]) => {
                let named = self.text(*kind).zip(self.count(*index)).ok_or_else(wrong)?;
                let name = format!("{}:{}", named.0, named.1);
                self.add(Object::Device(name))
            }
            (Global::Encode, [text, _]) => {
                let text = self.text(*text).ok_or_else(wrong)?;
                let bytes = text.chars().map(u8::try_from).collect::<Result<Vec<u8>, _>>();
                self.add(Object::Bytes(bytes.map_err(|_| "bytes above 255")?))
            }
            (Global::Bytes, []) => self.add(Object::Bytes(Vec::new())),
            (Global::Bytes, [bytes, ..]) => match self.get(*bytes) {
                Some(Object::Bytes(bytes)) => {
                    let bytes = bytes.clone();
                    self.add(Object::Bytes(bytes))
                }
                _ => Err(wrong()),
            },
            (Global::ByteArray, []) => self.add(Object::ByteArray(Vec::new())),
            (Global::ByteArray, [bytes]) => match self.get(*bytes) {
                Some(Object::Bytes(bytes)) => {
                    let bytes = bytes.clone();
                    self.add(Object::ByteArray(bytes))
                }
                _ => Err(wrong()),
            },
            (Global::Complex, [real, imaginary]) => {
                let parts = self.float(*real).zip(self.float(*imaginary)).ok_or_else(wrong)?;
                self.add(Object::Complex(parts.0, parts.1))
            }
            (Global::Set, []) => self.add(Object::Set(Vec::new())),
            (Global::Set, [items]) => match self.get(*items) {
                Some(Object::List(items) | Object::Tuple(items) | Object::Set(items)) => {
                    let items = items.clone();
                    self.add(Object::Set(items))
                }
                _ => Err(wrong()),
            },
            _ => self.make_tensor(global, arguments)?.ok_or_else(wrong),
        }
    }

    /// The tensors: `None` if the arguments are of no use.
    fn make_tensor(&mut self, global: Global, arguments: &[Item]) -> Result<Option<Item>, Fault> {
        let made = match (global, arguments) {
            (Global::RebuildTensor, [storage, offset, sizes, strides]) => {
                self.tensor([*storage, *offset, *sizes, *strides], Item::Flag(false), None)?
            }
            (Global::RebuildTensorV2, [storage, offset, sizes, strides, grad, ..]) => {
                self.tensor([*storage, *offset, *sizes, *strides], *grad, None)?
            }
            (Global::RebuildTensorV3, [storage, offset, sizes, strides, grad, _, dtype, ..]) => {
                let Item::Global(Global::DType(dtype)) = *dtype else { return Ok(None) };
                self.tensor([*storage, *offset, *sizes, *strides], *grad, Some(dtype))?
            }
            (Global::RebuildParameter, [tensor, Item::Flag(requires_grad), ..]) => {
                self.parameter(*tensor, *requires_grad)?
            }
            (
                Global::RebuildParameterWithState,
                [tensor, Item::Flag(requires_grad), _hooks, state],
            ) => match self.parameter(*tensor, *requires_grad)? {
                Some(parameter) => self.attributed(parameter, *state)?,
                None => None,
            },
            // (function, class, arguments of the function, state): a tensor with attributes.
            // Parameters and plain tensors are the only classes.
            (Global::RebuildFromType, [Item::Global(function), class, inner, state]) => {
                let Some(inner) = self.tuple(*inner).map(<[Item]>::to_vec) else {
                    return Ok(None);
                };
                if *function == Global::RebuildFromType {
                    return Ok(None);
                }
                let Some(tensor) = self.make_tensor(*function, &inner)? else { return Ok(None) };
                let tensor = match *class {
                    Item::Global(Global::Tensor) => Some(tensor),
                    Item::Global(Global::Parameter) => self.parameter(tensor, true)?,
                    _ => None,
                };
                match tensor {
                    Some(tensor) => self.attributed(tensor, *state)?,
                    None => None,
                }
            }
            _ => None,
        };
        Ok(made)
    }

    /// A tensor on `storage`; of `dtype`, if the storage's class does not say it.
    fn tensor(
        &mut self,
        [storage, offset, sizes, strides]: [Item; 4],
        requires_grad: Item,
        dtype: Option<DType>,
    ) -> Result<Option<Item>, Fault> {
        let Some(&Object::Storage(storage)) = self.get(storage) else { return Ok(None) };
        let (Item::Int(offset), Item::Flag(requires_grad)) = (offset, requires_grad) else {
            return Ok(None);
        };
        let (Some(sizes), Some(strides)) = (self.numbers(sizes), self.numbers(strides)) else {
            return Ok(None);
        };
        if sizes.len() > DIMENSIONS || sizes.len() != strides.len() {
            let (sizes, strides) = (sizes.len(), strides.len());
            return Err(format!("a tensor of {sizes} sizes and {strides} strides"));
        }
        let dtype = dtype.unwrap_or(self.storages[storage as usize].dtype);
        let facts = TensorFacts { storage, dtype, offset, sizes, strides, requires_grad };
        self.add(Object::Tensor(facts)).map(Some)
    }

    fn parameter(&mut self, tensor: Item, requires_grad: bool) -> Result<Option<Item>, Fault> {
        match (tensor, self.get(tensor)) {
            (Item::Object(tensor), Some(Object::Tensor(_))) => {
                self.add(Object::Parameter { tensor, requires_grad }).map(Some)
            }
            // A class that says it once more.
            (parameter, Some(Object::Parameter { .. })) => Ok(Some(parameter)),
            _ => Ok(None),
        }
    }

    /// The tensor with what Python keeps beside it, where there is anything. With slots, which no
    /// tensor has, the state is a pair.
    fn attributed(&mut self, tensor: Item, state: Item) -> Result<Option<Item>, Fault> {
        let state = match self.tuple(state) {
            Some(&[state, Item::None]) => state,
            _ => state,
        };
        let entries = match (state, self.get(state)) {
            (Item::None, _) => Some(0),
            (_, Some(Object::Dict { items, .. })) => Some(items.len()),
            _ => None,
        };
        match (tensor, entries) {
            (_, Some(0)) => Ok(Some(tensor)),
            (Item::Object(tensor), Some(_)) => {
                self.add(Object::Attributed { tensor, state }).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// An `OrderedDict` of a list of pairs, as Python 2 wrote it.
    fn ordered_of(&mut self, pairs: Item) -> Option<Result<Item, Fault>> {
        let Object::List(pairs) = self.get(pairs)? else { return None };
        let mut items = Vec::with_capacity(2 * pairs.len());
        for pair in pairs {
            match self.get(*pair)? {
                Object::List(pair) | Object::Tuple(pair) if pair.len() == 2 => items.extend(pair),
                _ => return None,
            }
        }
        Some(self.add_dict(items, DictClass::OrderedDict))
    }

    pub(super) fn add_dict(&mut self, items: Vec<Item>, class: DictClass) -> Result<Item, Fault> {
        self.add(Object::Dict { items, class, attributes: None })
    }
}
