//! NVIDIA GPUs as devices: opened at their first use, once each.

use plimsoll_core::{Device, DeviceKind, Error, Result};
use plimsoll_cuda::{Context, DeviceSource};
use plimsoll_memory::{Arena, Configuration};

use super::{Backend, Entry, entry, table};
use crate::lock::Mutex;

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
    let device = table::add_at(DeviceKind::Cuda, index, |device| {
        let arena = Arena::open(device, Box::new(DeviceSource::new(context)), configuration);
        Ok(Entry::new(device, arena, Backend::Cuda(context), configuration.clone()))
    })?;
    open.push((index, device));
    Ok(device)
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

/// Free and total bytes of a GPU's memory as the driver counts them, all processes together.
pub fn cuda_memory_info(device: Device) -> Result<(usize, usize)> {
    match entry(device).backend() {
        Backend::Cuda(context) => context.memory_info(),
        _ => Err(Error::device("cuda_memory_info", format!("{device} is not a GPU"))),
    }
}
