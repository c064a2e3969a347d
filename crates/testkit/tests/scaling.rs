//! Scaled gradients on hosts and accelerators, with memory that is taken away between operations.
//! The programs are in `checks/devices/scaling.rs`.

use plimsoll_tensor::{DType, Device, Result, Tensor, device, memory};
use plimsoll_testkit::checks::devices::scaling;

fn devices() -> Result<Vec<Device>> {
    let mut all = vec![device::private_cpu(&Default::default())?];
    all.push(device::stand_in(device::StandIn::default())?);
    all.extend(device::cuda(0).ok());
    Ok(all)
}

#[test]
fn gradients_are_unscaled_and_looked_at() -> Result<()> {
    for own in devices()? {
        device::set_chaos(own, None);
        scaling::gradients_are_unscaled_and_looked_at(own)?;
        scaling::unscaling_allocates_nothing(own)?;
        assert_eq!(memory::memory_allocated(own), 0, "everything was given back");
        if let Ok(dry) = device::dry(own) {
            scaling::unscaling_allocates_nothing(dry)?;
        }
    }
    Ok(())
}

#[test]
fn norms_of_many_are_those_of_each() -> Result<()> {
    devices()?.into_iter().try_for_each(scaling::norms_of_many_are_those_of_each)
}

#[test]
fn scales_grow_and_back_off() -> Result<()> {
    devices()?.into_iter().try_for_each(scaling::scales_grow_and_back_off)?;
    let own = device::stand_in(device::StandIn::default())?;
    device::set_chaos(own, Some(5));
    scaling::scales_grow_and_back_off(own)
}

#[test]
fn what_is_no_scale_is_refused() -> Result<()> {
    let (one, whole) = (Tensor::ones(&[], DType::F32)?, Tensor::ones(&[3], DType::I64)?);
    let two = Tensor::ones(&[2], DType::F32)?;
    let unscale = Tensor::amp_foreach_non_finite_check_and_unscale_;
    let error = unscale(&[&whole], &one, &one).unwrap_err();
    assert!(error.is_dtype() && error.to_string().contains("int64"), "{error}");
    let error = unscale(&[&two], &two, &one).unwrap_err();
    assert!(error.to_string().contains("found_inf must be a 1-element tensor"), "{error}");
    let error = one.amp_update_scale_(&one, &one, 2.0, 0.5, 3).unwrap_err();
    assert!(error.to_string().contains("growth_tracker must be a int32 tensor"), "{error}");
    unscale(&[], &one, &one)
}
