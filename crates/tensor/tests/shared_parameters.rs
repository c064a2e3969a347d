//! Steps of optimizers over parameters that share memory, and gradients that are there twice: one
//! after the other, as PyTorch's loops. The truth is the same step of one parameter at a time.

use std::sync::Arc;

use plimsoll_tensor::observe::{LaunchCounts, observe};
use plimsoll_tensor::optimizers::*;
use plimsoll_tensor::*;

type Outcome = Result<()>;

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
