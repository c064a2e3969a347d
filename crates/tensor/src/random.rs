//! Random state: a seed and how many counters of its Philox stream are used up. Operations carry the part of the stream
//! that they use in their value, so that they can be run again; the numbers themselves are made in `kernels/*/random`.

use plimsoll_core::Device;

use crate::device;

/// One device's generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generator {
    seed: u64,
    offset: u64,
}

/// A piece of a generator's stream, enough for one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    /// The key of the Philox stream.
    pub seed: u64,
    /// The first counter.
    pub offset: u64,
}

impl Draws {
    /// As the kernels take it.
    pub(crate) fn stream(self) -> plimsoll_kernels::cpu::random::Stream {
        plimsoll_kernels::cpu::random::Stream { seed: self.seed, offset: self.offset }
    }
}

impl Generator {
    /// PyTorch's default seed.
    pub(crate) const DEFAULT: Generator = Generator { seed: 67_280_421_310_721, offset: 0 };

    pub(crate) const fn new(seed: u64) -> Generator {
        Generator { seed, offset: 0 }
    }

    /// Hands out the next `counters` counters (each gives four 32-bit draws).
    pub(crate) fn take(&mut self, counters: u64) -> Draws {
        let draws = Draws { seed: self.seed, offset: self.offset };
        self.offset = self.offset.wrapping_add(counters);
        draws
    }
}

/// Restarts the random numbers of every device from `seed`.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, manual_seed};
/// manual_seed(7);
/// let a = Tensor::rand(&[3], DType::F32)?;
/// manual_seed(7);
/// assert_eq!(a.to_vec::<f32>()?, Tensor::rand(&[3], DType::F32)?.to_vec::<f32>()?);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn manual_seed(seed: u64) {
    device::for_each(|entry| *entry.generator().lock() = Generator::new(seed));
}

/// Restarts the random numbers of one device from `seed`.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&Default::default())?;
/// manual_seed_on(own, 5);
/// let first = Tensor::rand(&[4], (DType::F32, own))?.to_vec::<f32>()?;
/// manual_seed_on(own, 5);
/// assert_eq!(Tensor::rand(&[4], (DType::F32, own))?.to_vec::<f32>()?, first);
/// # Ok::<(), Error>(())
/// ```
pub fn manual_seed_on(device: Device, seed: u64) {
    *device::entry(device).generator().lock() = Generator::new(seed);
}
