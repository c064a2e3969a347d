//! NVIDIA GPUs as devices: opened at their first use, once each; and GPUs that are only named, for
//! dry runs on machines that have none.

use plimsoll_core::{Device, DeviceKind, Error, ErrorKind, Result};
use plimsoll_cuda::{Context, DeviceSource, Fault, Properties};
use plimsoll_memory::{Arena, Configuration, DrySource, OriginId, Source, StreamId};

use super::stream_pool::StreamPool;
use super::{Backend, Entry, entry, pinned, table};
use crate::lock::Mutex;

/// A GPU as the device table has it: what it is, and the way to it, which a dry run has not.
pub(crate) struct Gpu {
    properties: Properties,
    context: Option<&'static Context>,
    streams: StreamPool,
}

impl Gpu {
    fn open(properties: Properties, context: Option<&'static Context>) -> &'static Gpu {
        let streams = StreamPool::default();
        Box::leak(Box::new(Gpu { properties, context, streams }))
    }

    /// One that imitates this one's streams and runs nothing.
    pub(super) fn dry(&self) -> &'static Gpu {
        Gpu::open(self.properties.clone(), None)
    }

    /// What decides how many bytes operations take.
    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The way to the GPU; a dry run has none.
    pub(crate) fn context(&self) -> Option<&'static Context> {
        self.context
    }

    /// Tells of what an earlier kernel found wrong, once, or of a driver that failed. `device` is
    /// the one that was waited for.
    pub(super) fn surface(&self, device: Device) -> Result<()> {
        let Some(context) = self.context else { return Ok(()) };
        context.check()?;
        context.take_fault().map_or(Ok(()), |fault| Err(told(fault, device)))
    }

    pub(super) fn new_stream(&self, priority: i32) -> Result<StreamId> {
        let stream = self.streams.next(priority)?;
        if let Some(context) = self.context {
            context.open_stream(stream, priority)?;
        }
        Ok(stream)
    }
}

/// A fault as an error of the operation that was queued.
#[cold]
fn told(fault: Fault, device: Device) -> Error {
    let Fault { value, dim, size, .. } = fault;
    let (kind, what) = match (fault.wrong, dim) {
        (0, 0..) => (
            ErrorKind::Index,
            format!("index {value} is out of bounds for dimension {dim} with size {size}"),
        ),
        (0, _) => (ErrorKind::Index, format!("index {value} is out of range for size {size}")),
        (_, 0..) => (
            ErrorKind::InvalidArgument,
            format!("value {value} at place {dim} is wrong, where {size} is the bound"),
        ),
        _ => (
            ErrorKind::InvalidArgument,
            format!("value {value} is wrong, where {size} is the bound"),
        ),
    };
    let origin = OriginId::from_number(fault.origin as usize);
    let message = format!(
        "{what}; {device} found it after its caller had gone on: it was the {origin}. What was computed since is \
         undefined; the device itself works"
    );
    Error::new(kind, message).in_operation(origin.get().operation)
}

/// GPUs opened so far, by ordinal.
static OPEN: Mutex<Vec<(usize, Device)>> = Mutex::new(Vec::new());

/// The GPU `cuda:index`, or an error that says why it cannot be used.
///
/// ```
/// use plimsoll_tensor::device;
/// match device::cuda(0) {
///     Ok(gpu) => assert!(gpu.is_cuda()),
///     Err(why) => assert!(why.is_device()),
/// }
/// ```
pub fn cuda(index: usize) -> Result<Device> {
    let mut open = OPEN.lock();
    if let Some(&(_, device)) = open.iter().find(|(ordinal, _)| *ordinal == index) {
        return Ok(device);
    }
    let context = Context::open(index)?;
    let configuration = Configuration::process()?;
    let source = DeviceSource::new(context);
    check_expandable(&source, configuration, index)?;
    let device = table::add_at(DeviceKind::Cuda, index, |device| {
        let arena = Arena::open(device, Box::new(source), configuration);
        let gpu = Gpu::open(context.properties().clone(), Some(context));
        Ok(Entry::new(device, arena, Backend::Cuda(gpu), configuration.clone()))
    })?;
    pinned::gpu_opened(context);
    open.push((index, device));
    Ok(device)
}

/// Refuses expandable segments where the GPU cannot have them: a setting that does nothing in
/// silence is worse than none.
fn check_expandable(source: &dyn Source, configuration: &Configuration, gpu: usize) -> Result<()> {
    match source.address_space() {
        Err(why) if configuration.requires_expandable_segments() => Err(Error::configuration(
            format!("`expandable_segments` cannot be had on cuda:{gpu}: {why}. Leave the key out"),
        )),
        _ => Ok(()),
    }
}

/// A device on a GPU with an arena of its own over a source that `wrap` makes of the GPU's: tests
/// count its bytes alone, and bring sources that fail.
#[doc(hidden)]
pub fn private_cuda_over(
    index: usize,
    wrap: impl FnOnce(Box<dyn Source>) -> Box<dyn Source>,
    configuration: &Configuration,
) -> Result<Device> {
    let context = Context::open(index)?;
    pinned::gpu_opened(context);
    table::add(DeviceKind::Cuda, false, |device| {
        let source = wrap(Box::new(DeviceSource::new(context)));
        check_expandable(&*source, configuration, index)?;
        let arena = Arena::open(device, source, configuration);
        let gpu = Gpu::open(context.properties().clone(), Some(context));
        Ok(Entry::new(device, arena, Backend::Cuda(gpu), configuration.clone()))
    })
}

/// A dry run on a GPU model by name, on a machine that need not have one: operations check, account
/// and allocate addresses as on that GPU, and compute nothing. The models are `h200`, `h100`,
/// `a100`, `l40s` and `rtx4090`. Each call makes another device.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// let h200 = device::dry_named("h200")?;
/// let x = Tensor::zeros(&[8192, 8192], (DType::BF16, h200))?;
/// let y = x.matmul(&x)?;
/// // Two matrices of 128 MiB, and beside them the workspace of the product.
/// assert_eq!(memory::memory_allocated(h200), 256 << 20);
/// assert_eq!(memory::max_memory_allocated(h200), (256 << 20) + (32 << 20));
/// assert!(device::dry_named("abacus").is_err());
/// # drop(y);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn dry_named(model: &str) -> Result<Device> {
    let Some(properties) = Properties::named(model) else {
        let known: Vec<&str> = Properties::names().collect();
        return Err(Error::device(
            "dry",
            format!("no GPU is known as `{model}`; the known ones are {}", known.join(", ")),
        ));
    };
    let configuration = Configuration::process()?;
    table::add(DeviceKind::Cuda, true, |device| {
        let source = DrySource::new(Some(properties.memory_bytes));
        let arena = Arena::open(device, Box::new(source), configuration);
        let gpu = Gpu::open(properties, None);
        Ok(Entry::new(device, arena, Backend::Cuda(gpu), configuration.clone()))
    })
}

/// The device that a text names: `cpu`, `cuda` or `cuda:1`, `meta`, `dry:h200` for a dry run on a
/// GPU model, and a stand-in that is open, as it calls itself. A text names the same device every
/// time.
///
/// ```
/// use plimsoll_tensor::{Device, device};
/// assert_eq!(device::named("cpu")?, Device::cpu());
/// let h200 = device::named("dry:h200")?;
/// assert!(h200.is_cuda() && h200.is_dry() && device::named("dry:H200")? == h200);
/// assert!(device::named("dry:abacus").is_err() && device::named("xpu").is_err());
/// let stand_in = device::stand_in(Default::default())?;
/// assert_eq!(device::named(&stand_in.to_string())?, stand_in);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn named(text: &str) -> Result<Device> {
    /// Dry runs that were named so far.
    static DRY: Mutex<Vec<(String, Device)>> = Mutex::new(Vec::new());
    let (kind, rest) = text.split_once(':').unwrap_or((text, "0"));
    match (kind, rest.parse::<usize>()) {
        ("cpu", Ok(0)) => Ok(Device::CPU),
        ("meta", Ok(_)) => super::meta(),
        ("cuda", Ok(index)) => {
            let stand_ins = in_place_of_gpus();
            match (stand_ins.get(index), stand_ins.len()) {
                (Some(stand_in), _) => Ok(*stand_in),
                (None, 0) => cuda(index),
                (None, count) => Err(Error::device(
                    "cuda",
                    format!(
                        "there is no cuda:{index}; stand-ins answer as {count} GPUs, from cuda:0 on"
                    ),
                )),
            }
        }
        ("standin", Ok(index)) => open_stand_in(index),
        ("dry", Err(_)) => {
            let model = rest.to_ascii_lowercase();
            let mut named = DRY.lock();
            if let Some(&(_, device)) = named.iter().find(|(known, _)| *known == model) {
                return Ok(device);
            }
            let device = dry_named(&model)?;
            named.push((model, device));
            Ok(device)
        }
        _ => Err(Error::device(
            "device",
            format!("`{text}` is not a device: use `cpu`, `cuda:0`, or `dry:h200` for a dry run"),
        )),
    }
}

/// The stand-ins that answer as `cuda`, by their numbers. A machine with a GPU needs none.
///
/// ```standalone_crate
/// # use plimsoll_tensor::{device, device::StandIn};
/// let stand_in = device::stand_in(StandIn { as_cuda: true, ..StandIn::default() })?;
/// assert_eq!(device::in_place_of_gpus(), [stand_in]);
/// assert_eq!((device::named("cuda")?, stand_in.to_string().as_str()), (stand_in, "cuda:0"));
/// assert!(device::named("cuda:7").unwrap_err().to_string().contains("there is no cuda:7"));
/// assert!(stand_in.answers_as_cuda() && !stand_in.is_cuda());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn in_place_of_gpus() -> Vec<Device> {
    let mut found = super::all();
    found.retain(|device| device.answers_as_cuda() && !device.is_cuda() && !device.is_dry());
    found
}

fn open_stand_in(index: usize) -> Result<Device> {
    let is_it = |device: &Device| {
        let is_other = device.is_dry() || device.answers_as_cuda();
        device.kind() == DeviceKind::StandIn && device.index() == index && !is_other
    };
    super::all().into_iter().find(is_it).ok_or_else(|| {
        let why = format!("no stand-in number {index} is open; `stand_in` opens another one");
        Error::device("device", why)
    })
}

/// The facts of a GPU, or of the one that a dry run imitates.
///
/// ```
/// use plimsoll_tensor::device;
/// let gpu = device::properties(device::dry_named("a100")?)?;
/// assert_eq!((gpu.multiprocessors, gpu.capability), (108, 80));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn properties(device: Device) -> Result<Properties> {
    match entry(device).backend() {
        Backend::Cuda(gpu) => Ok(gpu.properties().clone()),
        _ => Err(Error::device("properties", format!("{device} is not a GPU"))),
    }
}

/// The driver's number of a GPU, which other libraries of the process know it by.
pub fn cuda_ordinal(device: Device) -> Result<usize> {
    if let Backend::Cuda(gpu) = entry(device).backend()
        && let Some(context) = gpu.context()
    {
        return Ok(context.ordinal());
    }
    Err(Error::device("cuda_ordinal", format!("{device} is not a GPU of this machine")))
}

/// How many GPUs this machine has.
///
/// ```
/// # use plimsoll_tensor::*;
/// assert_eq!(device::cuda_count() == 0, device::cuda_unavailable().is_some());
/// # Ok::<(), Error>(())
/// ```
pub fn cuda_count() -> usize {
    plimsoll_cuda::count()
}

/// Why there is no GPU to use; `None` if there is one.
pub fn cuda_unavailable() -> Option<&'static str> {
    plimsoll_cuda::unavailable()
}

/// Whether this process has opened a GPU; finding out opens none.
///
/// ```
/// # use plimsoll_tensor::*;
/// let pinned = Tensor::ones(&[4], DType::F32)?.pin_memory()?; // needs no GPU, and opens none
/// assert!(pinned.is_pinned());
/// assert!(device::cuda_count() > 0 || !device::cuda_is_initialized());
/// # Ok::<(), Error>(())
/// ```
pub fn cuda_is_initialized() -> bool {
    pinned::knows_a_gpu()
}

/// Free and total bytes of a GPU's memory as the driver counts them, all processes together.
pub fn cuda_memory_info(device: Device) -> Result<(usize, usize)> {
    if let Backend::Cuda(gpu) = entry(device).backend()
        && let Some(context) = gpu.context()
    {
        return context.memory_info();
    }
    Err(Error::device("cuda_memory_info", format!("{device} is not a GPU of this machine")))
}
