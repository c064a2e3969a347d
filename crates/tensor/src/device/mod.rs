//! Devices: an append-only table, each entry with its own arena (allocator and ledger), spill space, random numbers and way to
//! run kernels. A [`Device`] is a small copyable id into it; storages hold their entry directly, so operations never look it up.

mod table;

use parking_lot::Mutex;
use plimsoll_core::{Device, DeviceKind, Error, Result};
use plimsoll_memory::{Arena, Configuration, DrySource, HostSource, StreamId};

use crate::operation::Metas;
use crate::random::Generator;
use crate::storage::chaos::Chaos;

pub(crate) use table::{entry, for_each};

/// How a device runs kernels.
pub(crate) enum Backend {
    /// At once, on the calling thread and the fork-join pool.
    Cpu,
}

/// One device.
pub(crate) struct Entry {
    device: Device,
    arena: &'static Arena,
    /// Host memory for storages that are taken off this device.
    spill: &'static Arena,
    backend: Backend,
    generator: Mutex<Generator>,
    chaos: Chaos,
    configuration: Configuration,
    /// What is wrong with the configuration in force, if something is.
    fault: Option<&'static Error>,
}

impl Entry {
    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// Refuses work on a device whose configuration has a mistake.
    pub(crate) fn check_configuration(&self) -> Result<()> {
        match self.fault {
            None => Ok(()),
            Some(error) => Err(Error::configuration(error.to_string())),
        }
    }

    pub(crate) fn arena(&self) -> &'static Arena {
        self.arena
    }

    pub(crate) fn spill_arena(&self) -> &'static Arena {
        self.spill
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    pub(crate) fn generator(&self) -> &Mutex<Generator> {
        &self.generator
    }

    pub(crate) fn chaos(&self) -> &Chaos {
        &self.chaos
    }

    /// The stream that this thread's work goes to.
    #[inline]
    pub(crate) fn current_stream(&self) -> StreamId {
        match self.backend {
            Backend::Cpu => StreamId::DEFAULT,
        }
    }

    /// Copies `bytes` from this device's memory to host memory and waits.
    pub(crate) fn copy_to_host(&self, from: usize, to: usize, bytes: usize) -> Result<()> {
        copy_between(self, entry(Device::CPU), from, to, bytes)
    }

    /// Copies `bytes` from host memory to this device's memory and waits.
    pub(crate) fn copy_from_host(&self, from: usize, to: usize, bytes: usize) -> Result<()> {
        copy_between(entry(Device::CPU), self, from, to, bytes)
    }

    /// In a dry run, what stands in for a result whose size only data tells.
    pub(crate) fn dry_bound(&self, op: &'static str, bound: Metas) -> Result<Metas> {
        if self.configuration.dry_upper_bounds() {
            return Ok(bound);
        }
        Err(Error::unsupported(
            op,
            format!(
                "the size of its result depends on data, which a dry run does not have; set the configuration key \
                 `dry_upper_bounds` to count the largest possible result (here {:?}) instead",
                bound.first().map(|meta| meta.shape().to_vec()).unwrap_or_default()
            ),
        ))
    }
}

/// Copies `bytes` from one device's memory to another's, in the order of both. The caller owns both ranges: one pinned or just
/// moving, one fresh.
pub(crate) fn copy_between(
    from: &Entry,
    to: &Entry,
    source: usize,
    target: usize,
    bytes: usize,
) -> Result<()> {
    if from.device.is_dry() || to.device.is_dry() {
        return Ok(());
    }
    match (&from.backend, &to.backend) {
        (Backend::Cpu, Backend::Cpu) => {
            // SAFETY: both are live blocks of at least `bytes`; the caller owns them, so they do not overlap and nobody writes them.
            unsafe {
                std::ptr::copy_nonoverlapping(source as *const u8, target as *mut u8, bytes);
            }
            Ok(())
        }
    }
}

/// A host device with an arena of its own, so that a test or a tenant can count its bytes alone.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// let own = device::private_cpu(&Default::default())?;
/// let x = Tensor::zeros(&[256], (DType::F32, own))?;
/// assert_eq!(memory::memory_allocated(own), 1024);
/// drop(x);
/// assert_eq!(memory::memory_allocated(own), 0);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn private_cpu(configuration: &Configuration) -> Result<Device> {
    table::add(DeviceKind::Cpu, false, |device| {
        let arena = Arena::open(device, Box::new(host_source(configuration)), configuration);
        Ok(host_entry(device, arena, configuration.clone()))
    })
}

/// A device that imitates `of` without memory: operations check, account and allocate addresses, and compute nothing. Peaks are
/// those of the real run.
///
/// ```
/// use plimsoll_tensor::{DType, Device, Tensor, device, memory};
/// let dry = device::dry(Device::cpu())?;
/// let x = Tensor::zeros(&[1 << 40], (DType::U8, dry))?; // a tebibyte, of addresses only
/// assert_eq!(memory::memory_allocated(dry), 1 << 40);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn dry(of: Device) -> Result<Device> {
    if of.is_dry() {
        return Err(Error::device("dry", format!("{of} is a dry run already")));
    }
    let model = entry(of);
    let configuration = model.configuration.clone();
    table::add(of.kind(), true, |device| {
        let arena = Arena::open(
            device,
            Box::new(DrySource::imitating(model.arena.source())),
            &configuration,
        );
        Ok(host_entry(device, arena, configuration.clone()))
    })
}

/// Turns the chaos of tests on (with a seed) or off for a device: unpinned storages lose their memory at random between
/// operations and must come back by themselves.
#[doc(hidden)]
pub fn set_chaos(device: Device, seed: Option<u64>) {
    entry(device).chaos.set(seed);
}

fn host_entry(device: Device, arena: &'static Arena, configuration: Configuration) -> Entry {
    Entry {
        device,
        arena,
        spill: spill_arena(),
        backend: Backend::Cpu,
        generator: Mutex::new(Generator::DEFAULT),
        chaos: Chaos::new(),
        configuration,
        fault: None,
    }
}

fn host_source(configuration: &Configuration) -> HostSource {
    HostSource::new(configuration.huge_pages())
}

/// The host arena that spilled storages of all devices go to.
fn spill_arena() -> &'static Arena {
    static SPILL: std::sync::OnceLock<&'static Arena> = std::sync::OnceLock::new();
    SPILL.get_or_init(|| {
        let configuration = Configuration::default();
        Arena::open(Device::cpu(), Box::new(host_source(&configuration)), &configuration)
    })
}
