//! Memory that is taken off a device while nobody waits, and launches that are timed by marks in a
//! stream.

use std::sync::{Arc, Mutex};

use plimsoll_tensor::observe::{self, Launch, LaunchTime, Observer};
use plimsoll_tensor::{Device, Result, device, memory};

use super::values;

/// Keeps the times of launches on one device.
struct Times(Device, Mutex<Vec<LaunchTime>>);

impl Observer for Times {
    fn end(&self, launch: &Launch, time: &LaunchTime) {
        if launch.device == self.0 {
            self.1.lock().expect("no test panics while it holds this").push(time.clone());
        }
    }
}

/// A spilled tensor and a dropped one come back with their values, and each launch has a time.
pub fn memory_is_taken_back_without_waiting_and_launches_are_timed(device: Device) -> Result<()> {
    // Chaos that never strikes: the device remembers how tensors are made, and lets go of them when
    // it is told to.
    device::set_chaos(device, Some(1));
    device::set_chaos(device, None);
    let x = values(1 << 20).to(device)?;
    let truth = x.exp()?.mul(2.0)?.to_vec::<f32>()?;
    let times = Arc::new(Times(device, Mutex::default()));
    let observing = observe::observe(times.clone());
    let y = x.exp()?.mul(2.0)?; // nobody holds the result of exp
    drop(observing);
    let times = times.1.lock().expect("no test panics while it holds this").clone();
    let took: Vec<_> = times.iter().map(LaunchTime::wait).collect();
    assert_eq!(took.len(), 2);
    assert!(took.iter().all(Option::is_some), "{took:?}");
    assert!(device::take_back(&x, false) && device::take_back(&y, true));
    assert_eq!(memory::memory_spilled(device), 4 << 20, "one is spilled, one is dropped");
    assert_eq!(y.to_vec::<f32>()?, truth);
    assert_eq!(memory::memory_spilled(device), 0);
    device::synchronize(device)?;
    memory::arena(device).check_balanced().expect("the ledger is balanced");
    Ok(())
}
