//! A generator: a seed and how many counters of its Philox stream are used up. Operations carry the
//! part of the stream that they use in their value, so that they can be run again; the numbers
//! themselves are made in `kernels/copy/src/random`. Which generator a draw comes from is
//! `random.rs`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::{DType, Device, Error, Result};
use plimsoll_kernels::CpuLaunch;
use plimsoll_kernels::cpu::random::Stream;

use crate::Tensor;
use crate::cuda::Draw;
use crate::device::{self, captures::Capture};
use crate::lock::Mutex;

/// PyTorch's default seed.
const DEFAULT_SEED: u64 = 67_280_421_310_721;

/// A piece of a generator's stream, enough for one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    /// The key of the Philox stream.
    pub seed: u64,
    /// The first counter.
    pub offset: u64,
    /// Whether the operation's last input holds the seed, and what `offset` counts from.
    /// See Note [Draws of a captured graph].
    pub from_memory: bool,
}

impl Draws {
    /// The stream as kernels take it, and the launch without the input that it was read from.
    pub(crate) fn resolve<'a>(self, launch: &CpuLaunch<'a>) -> (Stream, CpuLaunch<'a>) {
        let (inputs, seed, offset) = match launch.inputs {
            [inputs @ .., state] if self.from_memory => {
                let state = state.first::<i64>();
                // SAFETY: the last input is a contiguous pair of int64 (`Generator::draw` made it),
                // and the launch may read its inputs.
                let (seed, base) = unsafe { (*state as u64, *state.wrapping_add(1) as u64) };
                (inputs, seed, base.wrapping_add(self.offset))
            }
            inputs => (inputs, self.seed, self.offset),
        };
        (Stream { seed, offset }, CpuLaunch { inputs, ..*launch })
    }

    /// The same for a launch on CUDA, whose kernels read the input themselves.
    pub(crate) fn on_cuda(self) -> Draw {
        let stream = Stream { seed: self.seed, offset: self.offset };
        Draw { stream, from_memory: self.from_memory }
    }
}

/// What an operation draws with: its piece of the stream, and the input to read its start from.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) draws: Draws,
    pub(crate) state: Option<Tensor>,
}

/// Everything that decides a generator's next numbers: 16 bytes, to be kept and set again.
///
/// ```
/// use plimsoll_tensor::{Device, RngState, get_rng_state};
/// let state = get_rng_state(Device::cpu());
/// assert_eq!(RngState::from_tensor(&state.to_tensor()?)?, state); // as checkpoints keep it
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RngState {
    /// The key of the Philox stream.
    pub seed: u64,
    /// The next counter that is not used up.
    pub offset: u64,
}

impl RngState {
    /// Its bytes as a tensor of uint8 on the CPU, as PyTorch's `get_rng_state` gives it.
    pub fn to_tensor(self) -> Result<Tensor> {
        let bytes = [self.seed.to_le_bytes(), self.offset.to_le_bytes()].concat();
        Tensor::from_slice(&bytes, &[bytes.len() as i64], Device::cpu())
    }

    /// From the bytes that [`RngState::to_tensor`] gave.
    pub fn from_tensor(bytes: &Tensor) -> Result<RngState> {
        const OP: &str = "set_rng_state";
        if bytes.dtype() != DType::U8 || !bytes.device().is_cpu() {
            return Err(Error::dtype(
                OP,
                format!(
                    "the state is {} on {}, and must be uint8 on the CPU",
                    bytes.dtype(),
                    bytes.device()
                ),
            ));
        }
        let [seed, offset] = match bytes.to_vec::<u8>()?.as_chunks::<8>() {
            (&[seed, offset], []) => [seed, offset].map(u64::from_le_bytes),
            _ => {
                let shape = bytes.shape();
                let why = format!("a state has 16 bytes, and this tensor has shape {shape:?}");
                return Err(Error::shape(OP, why));
            }
        };
        Ok(RngState { seed, offset })
    }
}

/// A source of random numbers for one device. Clones are the same generator. Every device has a
/// default one; others are for numbers that must not depend on what the rest of a program draws.
///
/// ```
/// use plimsoll_tensor::{DType, Device, Generator, Tensor, with_generator};
/// let own = Generator::new(Device::cpu(), 7);
/// let a = with_generator(&own, || Tensor::rand(&[3], DType::F32))?;
/// Tensor::rand(&[3], DType::F32)?; // draws from the default generator, and does not disturb
/// own.manual_seed(7);
/// let b = with_generator(&own, || Tensor::rand(&[3], DType::F32))?;
/// assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Generator {
    device: Device,
    pub(crate) shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: RngState,
    pub(crate) capture: Option<Arc<Capturing>>,
}

impl Shared {
    /// What records the draws of a stream that belongs to the capture `by`, or to none.
    fn recording(&self, by: Option<&Arc<Capture>>) -> Option<&Arc<Capturing>> {
        let ours = |of: &Arc<Capture>| by.is_some_and(|by| Arc::ptr_eq(by, of));
        self.capture.as_ref().filter(|capture| capture.of.as_ref().is_none_or(ours))
    }
}

/// Draws that are recorded. Whoever began the capture has it too, so that it ends its own and no
/// other.
#[derive(Debug)]
pub(crate) struct Capturing {
    /// Seed and offset on the device.
    pub(crate) memory: Tensor,
    /// Counters that its operations use up.
    pub(crate) counters: AtomicU64,
    /// The capture whose streams draw from it; every draw where there is none.
    pub(crate) of: Option<Arc<Capture>>,
}

/// Where a generator's draws go on: its state, and how far the capture that this thread's stream
/// belongs to has counted. A replay draws again what a checkpoint ran twice only if both runs count
/// from the same place.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    state: RngState,
    captured: Option<(Arc<Capturing>, u64)>,
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Generator({}, {:?})", self.device, self.state())
    }
}

impl Generator {
    /// A generator for tensors on `device` that starts from `seed`.
    pub fn new(device: Device, seed: u64) -> Generator {
        let shared = Shared { state: RngState { seed, offset: 0 }, capture: None };
        Generator { device, shared: Arc::new(Mutex::new(shared)) }
    }

    /// The one that a new device draws from.
    pub(crate) fn first_of(device: Device) -> Generator {
        Generator::new(device, DEFAULT_SEED)
    }

    /// The generator that `device` draws from unless another is named.
    pub fn default_of(device: Device) -> Generator {
        device::entry(device).generator().clone()
    }

    /// The device whose tensors it draws.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Starts it again from `seed`. A capture that draws from it cannot: its replays go on from
    /// wherever the generator is. There the same seed changes nothing, and another one makes the
    /// capture fail.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let gpu = device::stand_in(Default::default())?;
    /// let error = Graph::capture(gpu, || {
    ///     manual_seed_on(gpu, 5);
    ///     Tensor::rand(&[4], (DType::F32, gpu))
    /// });
    /// assert!(error.unwrap_err().to_string().contains("would be seeded anew"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn manual_seed(&self, seed: u64) {
        self.set_state(RngState { seed, offset: 0 });
    }

    /// The seed that it was started from.
    pub fn initial_seed(&self) -> u64 {
        self.state().seed
    }

    /// What decides its next numbers.
    pub fn state(&self) -> RngState {
        self.shared.lock().state
    }

    /// Goes on from `state`. A capture that draws from it cannot; see [`Generator::manual_seed`].
    pub fn set_state(&self, state: RngState) {
        let capture = self.capturing();
        let mut shared = self.shared.lock();
        let drawing = shared.capture.as_ref().and_then(|capturing| capturing.of.as_ref());
        match capture.filter(|own| drawing.is_some_and(|of| Arc::ptr_eq(of, own))) {
            None => shared.state = state,
            Some(_) if shared.state.seed == state.seed => {}
            Some(capture) => {
                drop(shared);
                drop(capture.refuse("a generator that the graph draws from would be seeded anew"));
            }
        }
    }

    /// Where the draws of this thread's stream go on.
    pub(crate) fn place(&self) -> Place {
        let by = self.capturing();
        let shared = self.shared.lock();
        let captured = shared
            .recording(by.as_ref())
            .map(|capturing| (capturing.clone(), capturing.counters.load(Ordering::Relaxed)));
        Place { state: shared.state, captured }
    }

    /// Goes on from `place`; `false` if the draws of this thread's stream cannot, because the
    /// capture that counts them now is not the one that counted them there: each of its replays
    /// starts from a state of its own.
    pub(crate) fn go_to(&self, place: &Place) -> bool {
        let by = self.capturing();
        let mut shared = self.shared.lock();
        shared.state = place.state;
        match (shared.recording(by.as_ref()), &place.captured) {
            (None, None) => true,
            (Some(open), Some((capturing, counters))) if Arc::ptr_eq(open, capturing) => {
                capturing.counters.store(*counters, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// Whether both are handles of one generator.
    pub(crate) fn is(&self, other: &Generator) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The capture that this thread's stream belongs to.
    fn capturing(&self) -> Option<Arc<Capture>> {
        let entry = device::entry(self.device);
        entry.captures().of(entry.current_stream())
    }

    /// Hands out the next `counters` counters (each gives four 32-bit draws) to a stream that
    /// belongs to the capture `by`, or to none: then what others capture meanwhile is not touched.
    pub(crate) fn draw(&self, counters: u64, by: Option<&Arc<Capture>>) -> Drawn {
        let mut shared = self.shared.lock();
        if let Some(capture) = shared.recording(by) {
            let offset = capture.counters.fetch_add(counters, Ordering::Relaxed);
            let state = Some(capture.memory.clone());
            return Drawn { draws: Draws { seed: 0, offset, from_memory: true }, state };
        }
        let RngState { seed, offset } = shared.state;
        shared.state.offset = offset.wrapping_add(counters);
        Drawn { draws: Draws { seed, offset, from_memory: false }, state: None }
    }
}
