//! Steps of every optimizer against the oracle, on hosts and accelerators, with memory that is
//! taken away between operations, without memory to be had, and dry. The programs are in
//! `checks/devices/optimizers.rs`.

use plimsoll_tensor::{Device, Result, device, memory};
use plimsoll_testkit::checks::devices::optimizers;
use plimsoll_testkit::failing::failing_device;

fn devices() -> Result<Vec<Device>> {
    let mut all = vec![device::private_cpu(&Default::default())?];
    all.push(device::stand_in(device::StandIn::default())?);
    all.extend(device::cuda(0).ok());
    Ok(all)
}

#[test]
fn steps_of_every_optimizer_agree_with_the_oracle() -> Result<()> {
    devices()?.into_iter().try_for_each(optimizers::steps_of_every_optimizer_agree_with_the_oracle)
}

#[test]
fn steps_agree_with_the_oracle_while_memory_is_taken_away() -> Result<()> {
    let own = device::stand_in(device::StandIn::default())?;
    device::set_chaos(own, Some(11));
    optimizers::steps_of_every_optimizer_agree_with_the_oracle(own)?;
    device::set_chaos(own, None);
    assert_eq!(memory::memory_allocated(own), 0, "everything was given back");
    Ok(())
}

#[test]
fn steps_allocate_nothing() -> Result<()> {
    for own in devices()? {
        device::set_chaos(own, None);
        optimizers::steps_allocate_nothing(own)?;
        assert_eq!(memory::memory_allocated(own), 0, "everything was given back");
        if let Ok(dry) = device::dry(own) {
            optimizers::steps_allocate_nothing(dry)?;
        }
    }
    Ok(())
}

/// A step works where no memory is to be had, since it takes none.
#[test]
fn steps_need_no_memory() -> Result<()> {
    let (own, tap) = failing_device();
    optimizers::steps_run_on_a_closed_source(own, &tap)?;
    assert_eq!(memory::memory_allocated(own), 0, "everything was given back");
    Ok(())
}
