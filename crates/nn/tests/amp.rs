//! The scaler of gradients: several optimizers and devices, float16, what is refused, and that
//! nothing makes the host wait. Values beside PyTorch's are in `golden_optim/scalers.rs`.

use std::slice::from_ref;

use plimsoll_nn::amp::{GradScaler, GradScalerOptions};
use plimsoll_nn::optim::{self, Optimizer};
use plimsoll_nn::{Parameter, saved::Value};
use plimsoll_tensor::{DType, Device, Result, Tensor, device, memory};

fn devices() -> Result<[Device; 2]> {
    Ok([device::private_cpu(&Default::default())?, device::stand_in(Default::default())?])
}

fn parameter(own: Device) -> Result<Parameter> {
    Parameter::new(&Tensor::ones(&[4], (DType::F32, own))?)
}

fn sgd(parameters: &[Parameter]) -> Result<optim::SGD> {
    optim::SGD::new(parameters.to_vec(), optim::SGDOptions::new().lr(0.5))
}

fn scaler() -> Result<GradScaler> {
    GradScaler::new(GradScalerOptions::new().init_scale(16.0).growth_interval(2))
}

fn first(parameter: &Parameter) -> Result<f32> {
    Ok(parameter.tensor().to_vec::<f32>()?[0])
}

/// One optimizer's infinite gradient skips its step alone, and the scale falls for all.
#[test]
fn several_optimizers_share_a_scale() -> Result<()> {
    for own in devices()? {
        let (a, b) = (parameter(own)?, parameter(own)?);
        let (mut first_one, mut second) = (sgd(from_ref(&a))?, sgd(from_ref(&b))?);
        let mut scaler = scaler()?;
        let loss = a.tensor().sum()?.add(&b.tensor().mul(f64::INFINITY)?.sum()?)?;
        scaler.scale(&loss)?.backward()?;
        scaler.unscale_(&first_one)?;
        assert_eq!(a.tensor().grad().unwrap().to_vec::<f32>()?, [1.0; 4]);
        scaler.step(&mut first_one)?;
        scaler.step(&mut second)?;
        scaler.update()?;
        assert_eq!((first(&a)?, first(&b)?, scaler.get_scale()?), (0.5, 1.0, 8.0));
    }
    Ok(())
}

/// A gradient on one device that is not finite keeps parameters on all devices.
#[test]
fn gradients_on_two_devices_are_looked_at_together() -> Result<()> {
    let [here, there] = devices()?;
    let both = [parameter(here)?, parameter(there)?];
    let mut optimizer = sgd(&both)?;
    let mut scaler = scaler()?;
    for (factor, expected) in [(1.0, 0.5), (f64::NAN, 0.5)] {
        optimizer.zero_grad()?;
        scaler.scale(&both[0].tensor().sum()?)?.backward()?;
        scaler.scale(&both[1].tensor().mul(factor)?.sum()?)?.backward()?;
        scaler.step(&mut optimizer)?;
        scaler.update()?;
        assert_eq!((first(&both[0])?, first(&both[1])?), (expected, expected));
    }
    assert_eq!(scaler.get_scale()?, 8.0);
    Ok(())
}

/// Gradients of float16 parameters are divided inside the step, in float32.
#[test]
fn float16_gradients_are_unscaled_by_the_step() -> Result<()> {
    let weight = Parameter::new(&Tensor::ones(&[4], DType::F16)?)?;
    let options = optim::SGDOptions::new().lr(1024.0).master_weights(true);
    let mut optimizer = optim::SGD::new([weight.clone()], options)?;
    let mut scaler = GradScaler::new(GradScalerOptions::new().init_scale(65536.0))?;
    // A gradient of 2^-26 is 0 in float16; scaled by 2^16 it is not, and the step sees it.
    let loss = weight.tensor().to(DType::F32)?.mul(2f64.powi(-26))?.sum()?;
    scaler.scale(&loss)?.backward()?;
    let error = scaler.unscale_(&optimizer).unwrap_err().to_string();
    assert!(error.contains("Attempting to unscale FP16 gradients."), "{error}");
    scaler.step(&mut optimizer)?;
    scaler.update()?;
    let state = optimizer.state_dict();
    let Value::Dict(entries) = state.get("state").unwrap() else { panic!("a map") };
    let copy = entries.get(0).unwrap().get("master_param").and_then(Value::as_tensor).unwrap();
    assert_eq!(copy.to_vec::<f32>()?, [1.0 - 2f32.powi(-16); 4]);
    Ok(())
}

#[test]
fn what_comes_out_of_order_is_refused() -> Result<()> {
    let says = |outcome: Result<()>, what: &str| {
        let error = outcome.unwrap_err();
        assert!(error.is_invalid_argument() && error.to_string().contains(what), "{error}");
    };
    let options = GradScalerOptions::new;
    says(GradScaler::new(options().growth_factor(1.0)).map(drop), "growth factor must be > 1.0");
    says(GradScaler::new(options().backoff_factor(1.0)).map(drop), "backoff factor must be < 1.0");
    let weight = parameter(Device::cpu())?;
    let mut optimizer = sgd(from_ref(&weight))?;
    let mut scaler = scaler()?;
    says(scaler.unscale_(&optimizer), "Attempted unscale_ but _scale is None");
    says(scaler.step(&mut optimizer), "Attempted step but _scale is None");
    says(scaler.update(), "Attempted update but _scale is None");
    let loss = scaler.scale(&weight.tensor().sum()?)?;
    says(scaler.step(&mut optimizer), "No inf checks were recorded for this optimizer");
    says(scaler.update(), "No inf checks were recorded prior to update.");
    loss.backward()?;
    scaler.unscale_(&optimizer)?;
    says(scaler.unscale_(&optimizer), "unscale_() has already been called on this optimizer");
    scaler.step(&mut optimizer)?;
    says(scaler.unscale_(&optimizer), "unscale_() is being called after step().");
    says(scaler.step(&mut optimizer), "step() has already been called since the last update().");
    scaler.update()?;
    scaler.update_to(128.0)?;
    assert_eq!(scaler.get_scale()?, 128.0);
    says(scaler.load_state_dict(&Value::dict([])), "source state dict is empty");
    Ok(())
}

#[test]
fn a_scaler_that_is_off_passes_through() -> Result<()> {
    let weight = parameter(Device::cpu())?;
    let mut optimizer = sgd(from_ref(&weight))?;
    let mut scaler = GradScaler::new(GradScalerOptions::new().enabled(false))?;
    let loss = weight.tensor().mul(f64::INFINITY)?.sum()?;
    assert!(scaler.scale(&loss)?.shares_storage_with(&loss));
    weight.tensor().sum()?.backward()?;
    scaler.unscale_(&optimizer)?;
    scaler.step(&mut optimizer)?;
    scaler.update()?;
    assert_eq!((first(&weight)?, scaler.get_scale()?, scaler.is_enabled()), (0.5, 1.0, false));
    assert!(scaler.state_dict()?.as_dict().unwrap().is_empty());
    Ok(())
}

/// Unscaling takes a few numbers of memory, whatever the gradients' size; a state is gone on with.
#[test]
fn unscaling_takes_no_memory_of_a_gradients_size() -> Result<()> {
    for own in devices()? {
        device::set_chaos(own, None);
        let weight = Parameter::new(&Tensor::ones(&[1 << 16], (DType::F32, own))?)?;
        let mut optimizer = sgd(from_ref(&weight))?;
        let mut scaler = scaler()?;
        scaler.scale(&weight.tensor().sum()?)?.backward()?;
        let before = memory::memory_allocated(own);
        memory::reset_peak_memory_stats(own);
        scaler.unscale_(&optimizer)?;
        scaler.step(&mut optimizer)?;
        scaler.update()?;
        let above = memory::max_memory_allocated(own) - before;
        assert!(above <= 8 * 512, "{above} bytes");
        let mut again = GradScaler::new(GradScalerOptions::new())?;
        again.load_state_dict(&scaler.state_dict()?)?;
        assert_eq!(again.get_scale()?, 16.0);
        // One step more makes it two in a row.
        optimizer.zero_grad()?;
        again.scale(&weight.tensor().sum()?)?.backward()?;
        again.step(&mut optimizer)?;
        again.update()?;
        assert_eq!(again.get_scale()?, 32.0);
    }
    Ok(())
}
