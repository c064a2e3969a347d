//! What tests of gradients count and start from: launches, the devices that must agree on bytes,
//! and numbers.

use std::sync::{Arc, Mutex};

use plimsoll_tensor::device;
use plimsoll_tensor::observe::{Launch, LaunchTime, Observer, observe};
use plimsoll_tensor::*;

/// Launches of one device, by name.
struct Log(Device, Mutex<Vec<&'static str>>);

impl Observer for Log {
    fn begin(&self, launch: &Launch) {
        if launch.device == self.0 {
            self.1.lock().unwrap().push(launch.operation);
        }
    }

    fn end(&self, _launch: &Launch, _time: &LaunchTime) {}
}

/// What `run` launches on `device`.
pub(crate) fn launches(
    device: Device,
    run: impl FnOnce() -> Result<()>,
) -> Result<Vec<&'static str>> {
    // Nothing may be computed again.
    device::set_chaos(device, None);
    let log = Arc::new(Log(device, Mutex::default()));
    let observing = observe(log.clone());
    run()?;
    device::synchronize(device)?;
    drop(observing);
    let found = std::mem::take(&mut *log.1.lock().unwrap());
    Ok(found)
}

/// The host and the stand-in, each with its dry run.
pub(crate) fn devices() -> Result<Vec<Device>> {
    let own = device::private_cpu(&Default::default())?;
    let stand_in = device::stand_in(Default::default())?;
    // Bytes and launches are counted, to which chaos would add its own.
    device::set_chaos(stand_in, None);
    Ok(vec![own, device::dry(own)?, stand_in, device::dry(stand_in)?])
}

/// Numbers without a pattern, the same each time.
pub(crate) fn numbers(sizes: &[i64], to: impl Into<To>) -> Result<Tensor> {
    let count: i64 = sizes.iter().product();
    let x = Tensor::arange(0, count, 1, DType::F64)?.mul(12.9898)?.sin()?.mul(43.7)?;
    x.sub(&x.floor()?)?.sub(0.5)?.view(sizes)?.to(to)
}
