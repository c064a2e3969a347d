//! The state of a training run as one file: what must be known to go on as if it had never stopped.
//! It is an ordinary `.pt`, so PyTorch opens it too. Optimizers, schedulers, scalers and loaders
//! give their states as values; this page knows only where each has its place.

use std::path::Path;

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{Site, with_site};
use plimsoll_nn::StateDict;
use plimsoll_tensor::{RngState, device, get_rng_state, set_rng_state};

use crate::fault::{bad, in_file};
use crate::{Dict, LoadOptions, Value, load, load_with, save};

/// What the file calls itself, and the version of its layout.
const FORMAT: &str = "plimsoll.checkpoint";
const VERSION: i64 = 1;

/// A checkpoint of training.
///
/// ```
/// use plimsoll_files::{Checkpoint, RandomState};
/// use plimsoll_nn::{Linear, Module};
/// use plimsoll_tensor::{DType, Device, Tensor};
///
/// let path = std::env::temp_dir().join(format!("plimsoll-run-{}.pt", std::process::id()));
/// let model = Linear::new(2, 3)?;
/// let checkpoint = Checkpoint {
///     model: model.state_dict(),
///     random: RandomState::of(&[Device::cpu()]),
///     step: 100,
///     ..Checkpoint::default()
/// };
/// checkpoint.save(&path)?;
/// let next = Tensor::rand(&[2], DType::F32)?;
///
/// let checkpoint = Checkpoint::load(&path, Device::cpu())?;
/// model.load_state_dict(&checkpoint.model)?;
/// checkpoint.random.restore()?;
/// assert_eq!(checkpoint.step, 100);
/// assert_eq!(Tensor::rand(&[2], DType::F32)?.to_vec::<f32>()?, next.to_vec::<f32>()?);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Checkpoint {
    /// Parameters and buffers.
    pub model: StateDict,
    /// The optimizer's state.
    pub optimizer: Value,
    /// The scheduler's.
    pub scheduler: Value,
    /// The gradient scaler's.
    pub scaler: Value,
    /// What decides the next random numbers.
    pub random: RandomState,
    /// Where the loader is in its data.
    pub loader: Value,
    /// Steps that are done.
    pub step: u64,
    /// Whatever else the program wants to find again.
    pub extra: Dict,
}

impl Checkpoint {
    /// Writes it in place of what is there, as a whole; see [`crate::replace`].
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut dict = Dict::new();
        dict.insert("format", FORMAT);
        dict.insert("version", VERSION);
        dict.insert("step", self.step);
        dict.insert("model", &self.model);
        dict.insert("optimizer", self.optimizer.clone());
        dict.insert("scheduler", self.scheduler.clone());
        dict.insert("scaler", self.scaler.clone());
        dict.insert("random", self.random.to_value());
        dict.insert("loader", self.loader.clone());
        dict.insert("extra", self.extra.clone());
        with_site(Site::caller(), || save(path, &dict.into()))
    }

    /// Reads one, with its tensors on `device`.
    #[track_caller]
    pub fn load(path: impl AsRef<Path>, device: Device) -> Result<Checkpoint> {
        let path = path.as_ref();
        let site = Site::caller();
        let value = with_site(site, || load(path, device))?;
        Checkpoint::of(&value).map_err(|error| in_file(path, error))
    }

    /// Reads one whose tensors lie on the mapped file, so that a large one costs nothing before it
    /// is used. [`Module::load_state_dict`](plimsoll_nn::Module::load_state_dict) copies; what
    /// keeps the tensors that it is given, as optimizers do, gets copies by [`Value::copied_to`].
    ///
    /// ```
    /// use plimsoll_files::Checkpoint;
    /// use plimsoll_nn::{Linear, Module};
    /// use plimsoll_tensor::{Device, memory};
    ///
    /// let path = std::env::temp_dir().join(format!("plimsoll-mapped-{}.pt", std::process::id()));
    /// let model = Linear::new(20, 30)?;
    /// Checkpoint { model: model.state_dict(), ..Checkpoint::default() }.save(&path)?;
    /// let before = memory::memory_allocated(Device::cpu());
    /// let checkpoint = Checkpoint::load_mapped(&path)?;
    /// model.load_state_dict(&checkpoint.model)?;
    /// assert_eq!(memory::memory_allocated(Device::cpu()), before);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn load_mapped(path: impl AsRef<Path>) -> Result<Checkpoint> {
        let path = path.as_ref();
        let options = LoadOptions::new().device(Device::cpu()).mmap(true);
        let value = with_site(Site::caller(), || load_with(path, options))?;
        Checkpoint::of(&value).map_err(|error| in_file(path, error))
    }

    /// From the value that the file holds.
    fn of(value: &Value) -> Result<Checkpoint> {
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(bad("this is not a training checkpoint: read it with `load`"));
        }
        match value.get("version").and_then(Value::as_int) {
            Some(1..=VERSION) => {}
            other => {
                return Err(bad(format!(
                    "the checkpoint's layout is version {other:?}, and this program knows 1 to {VERSION}: use a newer one"
                )));
            }
        }
        let part = |key: &str| value.get(key).cloned().unwrap_or_default();
        let missing = |key: &str| bad(format!("the checkpoint has no `{key}`"));
        let named = |key: &str, error: Error| bad(format!("`{key}` of the checkpoint: {error}"));
        let model = value.get("model").ok_or_else(|| missing("model"))?;
        let step = value.get("step").and_then(Value::as_int).and_then(|step| step.try_into().ok());
        Ok(Checkpoint {
            model: StateDict::try_from(model).map_err(|error| named("model", error))?,
            optimizer: part("optimizer"),
            scheduler: part("scheduler"),
            scaler: part("scaler"),
            random: RandomState::of_value(&part("random"))
                .map_err(|error| named("random", error))?,
            loader: part("loader"),
            step: step.ok_or_else(|| missing("step"))?,
            extra: part("extra").as_dict().cloned().unwrap_or_default(),
        })
    }
}

/// What decides the next random numbers of devices, by their names: another process may have other
/// devices under these.
///
/// ```
/// use plimsoll_files::RandomState;
/// use plimsoll_tensor::{Device, manual_seed};
/// manual_seed(7);
/// let state = RandomState::of(&[Device::cpu()]);
/// manual_seed(8);
/// state.restore()?;
/// assert_eq!(RandomState::of(&[Device::cpu()]), state);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RandomState {
    states: Vec<(String, RngState)>,
}

impl RandomState {
    /// The state of the default generators of devices.
    pub fn of(devices: &[Device]) -> RandomState {
        let state = |device: &Device| (device.to_string(), get_rng_state(*device));
        RandomState { states: devices.iter().map(state).collect() }
    }

    /// Sets the default generators of these devices. A device that is not here is an error, and
    /// nothing is set.
    pub fn restore(&self) -> Result<()> {
        let mut found = Vec::with_capacity(self.states.len());
        for (name, state) in &self.states {
            // Devices that this process made (a stand-in) are known by no other name.
            let open = device::all().into_iter().find(|device| device.to_string() == *name);
            let device = open.map_or_else(|| device::named(name), Ok).map_err(|error| {
                let what = format!(
                    "the checkpoint has the random state of `{name}`, which is not here: take it out with `without`"
                );
                Error::device("restore", what).because(error)
            })?;
            found.push((device, *state));
        }
        for (device, state) in found {
            set_rng_state(device, state);
        }
        Ok(())
    }

    /// The states of all devices but one, for a run that goes on elsewhere.
    #[must_use]
    pub fn without(mut self, device: &str) -> RandomState {
        self.states.retain(|(name, _)| name != device);
        self
    }

    /// The state of one device as that of another, for a run that goes on there: it draws the
    /// numbers that would have come, as kernels draw the same on every device.
    ///
    /// ```
    /// use plimsoll_files::RandomState;
    /// use plimsoll_tensor::{Device, device, manual_seed_on};
    /// let other = device::stand_in(Default::default())?;
    /// manual_seed_on(Device::cpu(), 7);
    /// RandomState::of(&[Device::cpu()]).moved("cpu", other).restore()?;
    /// manual_seed_on(Device::cpu(), 8);
    /// assert_eq!(RandomState::of(&[other]).moved(&other.to_string(), Device::cpu()), {
    ///     manual_seed_on(Device::cpu(), 7);
    ///     RandomState::of(&[Device::cpu()])
    /// });
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[must_use]
    pub fn moved(mut self, from: &str, to: Device) -> RandomState {
        for (name, _) in &mut self.states {
            if name == from {
                *name = to.to_string();
            }
        }
        self
    }

    /// The names of the devices.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.states.iter().map(|(name, _)| name.as_str())
    }

    /// Seeds and offsets as numbers: they are wanted in this process, whatever the tensors go to.
    fn to_value(&self) -> Value {
        let of =
            |state: &RngState| Dict::from_iter([("seed", state.seed), ("offset", state.offset)]);
        Dict::from_iter(self.states.iter().map(|(name, state)| (name.as_str(), of(state)))).into()
    }

    fn of_value(value: &Value) -> Result<RandomState> {
        let mut states = Vec::new();
        for (name, state) in value.as_dict().into_iter().flat_map(Dict::iter) {
            let number = |key: &str| match state.get(key) {
                Some(Value::Int(number)) => u64::try_from(*number).ok(),
                _ => None,
            };
            let (Some(name), Some(seed), Some(offset)) =
                (name.as_str(), number("seed"), number("offset"))
            else {
                return Err(bad("a random state is a seed and an offset by a device's name"));
            };
            states.push((name.to_string(), RngState { seed, offset }));
        }
        Ok(RandomState { states })
    }
}
