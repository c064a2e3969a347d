//! Steps of optimizers over parameters that share memory, and gradients that are there twice: one
//! after the other, as PyTorch's loops. The truth is the same step of one parameter at a time.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_tensor::observe::{LaunchCounts, observe};
use plimsoll_tensor::optimizers::*;
use plimsoll_tensor::*;

type Outcome = Result<()>;

/// One test at a time: launches are counted whoever makes them.
static ALONE: Mutex<()> = Mutex::new(());

fn devices() -> Result<Vec<Device>> {
    Ok(vec![device::private_cpu(&Default::default())?, device::stand_in(Default::default())?])
}

fn on(device: Device, values: &[f64]) -> Result<Tensor> {
    Tensor::from_slice(values, &[values.len() as i64], device)
}

/// A step of plain descent with momentum, whose buffers hold something.
fn step(params: &[&Tensor], grads: &[&Tensor], buffers: &[&Tensor]) -> Result<()> {
    let rule = Sgd { momentum: 0.5, dampening: 0.0, nesterov: false, first: false };
    let tensors = StepTensors {
        params,
        grads,
        states: &[buffers],
        masters: &[],
        products: &[],
        steps: StepCounts::At(1.0),
    };
    Tensor::optimizer_step_(&OptimizerRule::Sgd(rule), &tensors, StepOptions::new().lr(0.25))
}

#[test]
fn tied_parameters_step_one_after_the_other() -> Outcome {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for device in devices()? {
        let base = on(device, &[1.0, 2.0, 3.0])?;
        let params = [base.narrow(0, 0, 2)?, base.narrow(0, 0, 2)?, base.narrow(0, 1, 2)?];
        let grads =
            [on(device, &[1.0, 2.0])?, on(device, &[4.0, 8.0])?, on(device, &[16.0, 32.0])?];
        let buffers = grads.iter().map(Tensor::zeros_like).collect::<Result<Vec<_>>>()?;
        let (params, grads): (Vec<_>, Vec<_>) = (params.iter().collect(), grads.iter().collect());
        let buffers: Vec<_> = buffers.iter().collect();
        let counts = Arc::new(LaunchCounts::default());
        let watching = observe(counts.clone());
        step(&params, &grads, &buffers)?;
        drop(watching);
        // 1 - (1 + 4) / 4, 2 - (2 + 8 + 16) / 4, 3 - 32 / 4.
        assert_eq!(base.to_vec::<f64>()?, [-0.25, -4.5, -5.0]);
        assert_eq!(buffers[2].to_vec::<f64>()?, [16.0, 32.0]);
        assert_eq!(counts.of("fused_sgd_").launches, 3);
        // Without shared memory it is one launch.
        let apart = [on(device, &[1.0, 2.0])?, on(device, &[1.0, 2.0])?];
        let counts = Arc::new(LaunchCounts::default());
        let watching = observe(counts.clone());
        step(&[&apart[0], &apart[1]], &grads[..2], &buffers[..2])?;
        drop(watching);
        assert_eq!(counts.of("fused_sgd_").launches, 1);
    }
    Ok(())
}

#[test]
fn a_gradient_may_be_the_parameter_itself() -> Outcome {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for device in devices()? {
        let param = on(device, &[1.0, -2.0])?;
        let buffer = param.zeros_like()?;
        step(&[&param], &[&param.detach()], &[&buffer])?;
        assert_eq!(param.to_vec::<f64>()?, [0.75, -1.5]);
        assert_eq!(buffer.to_vec::<f64>()?, [1.0, -2.0]);
    }
    Ok(())
}

#[test]
fn what_cannot_step_alone_leaves_all_as_they_were() -> Outcome {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let param = on(Device::cpu(), &[1.0, 2.0])?;
    let other = on(Device::cpu(), &[1.0, 2.0])?;
    let buffer = param.zeros_like()?;
    let grad = param.ones_like()?;
    // The second parameter's buffer is the parameter.
    let outcome = step(&[&param, &other], &[&grad, &grad], &[&buffer, &other.detach()]);
    assert!(outcome.unwrap_err().to_string().contains("share memory"));
    assert_eq!((param.to_vec::<f64>()?, buffer.version()), (vec![1.0, 2.0], 0));
    Ok(())
}

#[test]
fn a_gradient_that_is_there_twice_is_unscaled_twice() -> Outcome {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for device in devices()? {
        let grad = on(device, &[8.0, 4.0])?;
        let found = Tensor::zeros(&[], (DType::F32, device))?;
        let inverse = Tensor::full(&[], 0.5, (DType::F32, device))?;
        let both = [&grad, &grad];
        Tensor::amp_foreach_non_finite_check_and_unscale_(&both, &found, &inverse)?;
        assert_eq!(grad.to_vec::<f64>()?, [2.0, 1.0]);
        assert_eq!(found.item::<f32>()?, 0.0);
        grad.fill_(f64::INFINITY)?;
        Tensor::amp_foreach_non_finite_check_and_unscale_(&both, &found, &inverse)?;
        assert_eq!(found.item::<f32>()?, 1.0);
    }
    Ok(())
}

#[test]
fn tied_gradients_are_what_the_step_before_left() -> Outcome {
    // PyTorch's loop: each parameter reads its gradient, which is the parameter itself, when its
    // turn comes.
    let base = on(Device::CPU, &[1.0, 1.0])?;
    let params = [base.narrow(0, 0, 2)?, base.narrow(0, 0, 2)?];
    let buffers = [base.zeros_like()?, base.zeros_like()?];
    step(&[&params[0], &params[1]], &[&base, &base], &[&buffers[0], &buffers[1]])?;
    assert_eq!(base.to_vec::<f64>()?, [0.5625; 2]);
    // Another part of the same memory is refused, as there.
    let base = on(Device::CPU, &[1.0, 2.0, 3.0, 4.0])?;
    let (param, grad) = (base.narrow(0, 0, 3)?, base.narrow(0, 1, 3)?);
    let buffer = param.zeros_like()?;
    let refused = step(&[&param], &[&grad], &[&buffer]).unwrap_err().to_string();
    assert!(refused.contains("share memory"), "{refused}");
    assert_eq!(base.to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0]);
    Ok(())
}

#[test]
fn the_learning_rate_may_be_the_parameter() -> Outcome {
    let rate = Tensor::full(&[], 0.5, DType::F32)?;
    let param = rate.view(&[])?;
    let grad = Tensor::ones(&[], DType::F32)?;
    let rule = Sgd { momentum: 0.0, dampening: 0.0, nesterov: false, first: true };
    let tensors = StepTensors {
        params: &[&param],
        grads: &[&grad],
        states: &[],
        masters: &[],
        products: &[],
        steps: StepCounts::At(1.0),
    };
    let options = StepOptions::new().tensor_lr(Some(&rate));
    Tensor::optimizer_step_(&OptimizerRule::Sgd(rule), &tensors, options)?;
    assert_eq!(param.item::<f32>()?, 0.0);
    Ok(())
}
