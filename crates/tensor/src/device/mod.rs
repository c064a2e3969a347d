//! Devices: an append-only table, each entry with its own arena (allocator and ledger), spill
//! space, random numbers and way to run kernels. A [`Device`] is a small copyable id into it;
//! storages hold their entry directly, so operations never look it up.
//!
//! This file makes host devices and dry runs; `entry.rs` is what one device can do, `stand_in.rs`
//! the stand-in accelerator, `gpu.rs` GPUs, `stream.rs` streams and events, `pinned.rs` host memory
//! that devices copy from without waiting, `pool.rs` memory that a graph or a part of a program has
//! for itself, `captures.rs` which
//! streams write down what they are given.

pub(crate) mod captures;
mod capturing;
mod entry;
mod gpu;
mod mark;
mod pinned;
mod pool;
pub(crate) mod queue;
mod stand_in;
mod stream;
mod stream_pool;
mod table;

use plimsoll_core::{Device, DeviceKind, Error, Result};
use plimsoll_memory::{Arena, Configuration, DrySource, HostSource, Source};

use crate::Tensor;
use crate::lock::Mutex;

pub(crate) use entry::{Backend, Entry};
pub use gpu::{
    cuda, cuda_count, cuda_is_initialized, cuda_memory_info, cuda_ordinal, cuda_unavailable,
    dry_named, in_place_of_gpus, named, private_cuda_over, properties,
};
pub(crate) use mark::Mark;
pub use pinned::pinned_arena;
pub(crate) use pinned::{is_pinned_block, pinned_if_open, record_pinned_history};
pub(crate) use pool::{CaptureOfPool, current_pool};
pub use pool::{MemPool, PoolScope, with_pool};
pub use stand_in::{StandIn, stand_in};
#[doc(hidden)]
pub use stream::Pause;
pub use stream::{Event, Stream, StreamScope, TimedEvent, synchronize, with_stream};
pub(crate) use table::{entry, for_each};

/// Every device that this process has opened, the host's first.
///
/// ```
/// use plimsoll_tensor::{Device, device};
/// let own = device::private_cpu(&Default::default())?;
/// let all = device::all();
/// assert!(all[0] == Device::cpu() && all.contains(&own));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn all() -> Vec<Device> {
    let mut all = Vec::new();
    for_each(|entry| all.push(entry.device()));
    all
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
    private_cpu_over(Box::new(host_source(configuration)), configuration)
}

/// As [`private_cpu`], over a source of the caller's own that gives host memory: tests bring
/// sources that fail.
pub fn private_cpu_over(source: Box<dyn Source>, configuration: &Configuration) -> Result<Device> {
    table::add(DeviceKind::Cpu, false, |device| {
        let arena = Arena::open(device, source, configuration);
        Ok(Entry::new(device, arena, Backend::Cpu, configuration.clone()))
    })
}

/// A device that imitates `of` without memory: operations check, account and allocate addresses,
/// and compute nothing. Peaks are those of the real run.
///
/// ```
/// use plimsoll_tensor::{DType, Device, Tensor, device, memory};
/// let dry = device::dry(Device::cpu())?;
/// let x = Tensor::zeros(&[1 << 30], (DType::U8, dry))?; // a gibibyte, of addresses only
/// assert_eq!(memory::memory_allocated(dry), 1 << 30);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn dry(of: Device) -> Result<Device> {
    if of.is_dry() {
        return Err(Error::device("dry", format!("{of} is a dry run already")));
    }
    let model = entry(of);
    let configuration = model.configuration().clone();
    let as_cuda = of.answers_as_cuda() && !of.is_cuda();
    table::add_called(of.kind(), true, as_cuda, |device| {
        let arena = Arena::open(
            device,
            Box::new(DrySource::imitating(model.arena().source())),
            &configuration,
        );
        Ok(Entry::new(device, arena, model.backend().dry(device), configuration.clone()))
    })
}

/// What [`meta`] gives, once somebody asked.
static META: Mutex<Option<Device>> = Mutex::new(None);

/// Whether this is the device of tensors without memory.
///
/// ```
/// use plimsoll_tensor::{Device, device};
/// assert!(device::is_meta(device::meta()?) && !device::is_meta(Device::cpu()));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn is_meta(device: Device) -> bool {
    device.is_dry() && *META.lock() == Some(device)
}

/// The device of tensors without memory: PyTorch's `meta`, a dry run of the CPU that no machine's
/// memory bounds, only the numbers of addresses. Every call gives the same.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device};
/// let x = Tensor::zeros(&[1 << 20, 1 << 20], (DType::F32, device::meta()?))?; // 4 TiB
/// assert_eq!(x.matmul(&x)?.shape(), [1 << 20, 1 << 20]);
/// assert!(x.cpu().is_err());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn meta() -> Result<Device> {
    let mut meta = META.lock();
    if let Some(device) = *meta {
        return Ok(device);
    }
    let configuration = Configuration::default();
    let device = table::add(DeviceKind::Cpu, true, |device| {
        let arena = Arena::open(device, Box::new(DrySource::new(None)), &configuration);
        Ok(Entry::new(device, arena, Backend::Cpu, configuration.clone()))
    })?;
    Ok(*meta.insert(device))
}

/// Turns the chaos of tests on (with a seed) or off for a device: unpinned storages lose their
/// memory at random between operations and must come back by themselves.
#[doc(hidden)]
pub fn set_chaos(device: Device, seed: Option<u64>) {
    entry(device).set_chaos(seed);
}

/// For tests: takes the memory of a tensor away now, if nobody uses it; it comes back with the next
/// use. Dropping it, rather than moving it to host memory, takes a recipe, which exists only on
/// devices that take memory back.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&plimsoll_memory::Configuration::parse("spill:true")?)?;
/// let x = Tensor::ones(&[256], (DType::F32, own))?;
/// assert!(device::take_back(&x, false));
/// assert_eq!(memory::memory_allocated(own), 0);
/// assert_eq!(x.sum()?.item::<f32>()?, 256.0); // it came home by itself
/// # Ok::<(), Error>(())
/// ```
#[doc(hidden)]
pub fn take_back(tensor: &Tensor, may_drop: bool) -> bool {
    tensor.storage().try_take_back(may_drop)
}

/// For tests: the bytes that operations read and write to compute a tensor's memory again; `None`
/// if that cannot be done.
#[doc(hidden)]
pub fn remaking_cost(tensor: &Tensor) -> Option<u64> {
    tensor.storage().recipe().map(|recipe| recipe.cost())
}

fn host_source(configuration: &Configuration) -> HostSource {
    HostSource::new(configuration.huge_pages())
}

/// The host arena that spilled storages of all devices go to.
pub(crate) fn spill_arena() -> &'static Arena {
    static SPILL: std::sync::OnceLock<&'static Arena> = std::sync::OnceLock::new();
    SPILL.get_or_init(|| {
        let configuration = Configuration::default();
        let source = Box::new(host_source(&configuration));
        Arena::open_named(Device::cpu(), "cpu:spill", source, &configuration)
    })
}
