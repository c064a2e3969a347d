//! The state of a module: parameters and persistent buffers by PyTorch's keys, out and in.

use std::fmt::Write;

use plimsoll_tensor::{Error, NoGrad, Parameter, Result, Tensor};
use rustc_hash::FxHashMap;

use crate::name::joined;
use crate::{Buffer, Module, walk};

/// Tensors by key, in the order in which they were put in.
///
/// ```
/// use plimsoll_nn::{Linear, Module};
/// let state = Linear::new(2, 3)?.state_dict();
/// assert_eq!(state.keys().collect::<Vec<_>>(), ["weight", "bias"]);
/// assert_eq!(state.get("weight").unwrap().shape(), [3, 2]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StateDict {
    entries: Vec<(String, Tensor)>,
    places: FxHashMap<String, usize>,
}

impl StateDict {
    /// An empty one.
    pub fn new() -> StateDict {
        StateDict::default()
    }

    /// Puts a tensor in, in place of what has its key.
    pub fn insert(&mut self, key: impl Into<String>, tensor: Tensor) {
        let key = key.into();
        match self.places.get(&key) {
            Some(&place) => self.entries[place].1 = tensor,
            None => {
                self.places.insert(key.clone(), self.entries.len());
                self.entries.push((key, tensor));
            }
        }
    }

    /// The tensor of a key.
    pub fn get(&self, key: &str) -> Option<&Tensor> {
        self.places.get(key).map(|&place| &self.entries[place].1)
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.as_str())
    }

    /// Keys and tensors.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.entries.iter().map(|(key, tensor)| (key.as_str(), tensor))
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

impl FromIterator<(String, Tensor)> for StateDict {
    fn from_iter<I: IntoIterator<Item = (String, Tensor)>>(entries: I) -> StateDict {
        let mut state = StateDict::new();
        for (key, tensor) in entries {
            state.insert(key, tensor);
        }
        state
    }
}

impl IntoIterator for StateDict {
    type Item = (String, Tensor);
    type IntoIter = std::vec::IntoIter<(String, Tensor)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

plimsoll_tensor::options! {
    /// How [`Module::load_state_dict_with`] reads a state.
    LoadOptions {
        /// Whether keys that are missing or unexpected are an error.
        strict: bool = true,
        /// Whether the module takes the given tensors themselves, with their dtype and device,
        /// instead of copying them.
        assign: bool = false,
    }
}

/// Keys that a state and a module do not have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncompatibleKeys {
    /// Keys of the module that the state lacks.
    pub missing: Vec<String>,
    /// Keys of the state that the module lacks.
    pub unexpected: Vec<String>,
}

/// One entry of a module's state.
enum Entry {
    Parameter(Parameter),
    Buffer(Buffer),
}

impl Entry {
    fn tensor(&self) -> Tensor {
        match self {
            Entry::Parameter(parameter) => parameter.tensor(),
            Entry::Buffer(buffer) => buffer.tensor(),
        }
    }

    /// Copies `given` in, or takes it.
    #[track_caller]
    fn load(&self, given: &Tensor, assign: bool) -> Result<()> {
        match self {
            _ if !assign => self.tensor().copy_(given).map(drop),
            Entry::Parameter(parameter) => parameter.set_data(&given.detach()),
            Entry::Buffer(buffer) => {
                buffer.set(given);
                Ok(())
            }
        }
    }
}

/// Own parameters, then own buffers, then those of the children, as PyTorch orders them.
fn entries(module: &dyn Module) -> Vec<(String, Entry)> {
    let mut found = Vec::new();
    walk::each("", module, &mut |path, _, own| {
        for (name, parameter) in &own.parameters {
            found.push((joined(path, *name), Entry::Parameter((*parameter).clone())));
        }
        for (name, buffer) in own.buffers.iter().filter(|(_, buffer)| buffer.is_persistent()) {
            found.push((joined(path, *name), Entry::Buffer((*buffer).clone())));
        }
    });
    found
}

pub(crate) fn of(module: &dyn Module) -> StateDict {
    entries(module).into_iter().map(|(key, entry)| (key, entry.tensor().detach())).collect()
}

#[track_caller]
pub(crate) fn load(
    module: &dyn Module,
    state: &StateDict,
    options: &LoadOptions,
) -> Result<IncompatibleKeys> {
    let targets = entries(module);
    let mut keys = IncompatibleKeys::default();
    let mut misshapen = String::new();
    let mut found = Vec::with_capacity(targets.len());
    for (key, target) in &targets {
        let Some(given) = state.get(key) else {
            keys.missing.push(key.clone());
            continue;
        };
        let shape = target.tensor().shape().to_vec();
        if given.shape() == shape {
            found.push((target, given));
        } else {
            let _ = write!(
                misshapen,
                "\n\tsize mismatch for {key}: copying a param with shape torch.Size({:?}) from checkpoint, \
                 the shape in current model is torch.Size({shape:?}).",
                given.shape()
            );
        }
    }
    let known: FxHashMap<&str, ()> = targets.iter().map(|(key, _)| (key.as_str(), ())).collect();
    let unexpected = state.keys().filter(|key| !known.contains_key(key));
    keys.unexpected.extend(unexpected.map(str::to_string));

    let mut wrong = String::new();
    if options.strict {
        list(&mut wrong, "Missing", &keys.missing);
        list(&mut wrong, "Unexpected", &keys.unexpected);
    }
    wrong.push_str(&misshapen);
    if !wrong.is_empty() {
        let what = format!("Error(s) in loading state_dict for {}:{wrong}", module.type_name());
        return Err(Error::invalid_argument(what));
    }
    let _plain = NoGrad::enter();
    for (target, given) in found {
        target.load(given, options.assign)?;
    }
    Ok(keys)
}

fn list(wrong: &mut String, which: &str, keys: &[String]) {
    if !keys.is_empty() {
        let quoted: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
        let _ = write!(wrong, "\n\t{which} key(s) in state_dict: {}. ", quoted.join(", "));
    }
}
