//! Mixed precision: what each kind of operation is cast to, on which devices, and that a weight is
//! cast once in a region. PyTorch's lists are the truth.

use plimsoll_tensor::*;

const LOWER: DType = DType::BF16;

fn floats(device: Device) -> Result<Tensor> {
    Tensor::ones(&[2, 2], (DType::F32, device))
}

#[test]
fn products_are_lower_and_the_rest_is_as_it_was_on_the_cpu() -> Result<()> {
    let x = floats(Device::cpu())?;
    autocast(DeviceKind::Cpu, || {
        assert_eq!(x.matmul(&x)?.dtype(), LOWER);
        assert_eq!(x.softmax(1)?.dtype(), DType::F32);
        assert_eq!(x.add(&x)?.dtype(), DType::F32);
        let mixed = Tensor::cat(&[&x, &x.matmul(&x)?], 0)?;
        assert_eq!(mixed.dtype(), DType::F32);
        Ok(())
    })
}

#[test]
fn what_would_lose_too_much_is_float32_on_an_accelerator() -> Result<()> {
    let device = device::stand_in(Default::default())?;
    let x = floats(device)?;
    autocast(DeviceKind::StandIn, || {
        let lower = x.matmul(&x)?;
        assert_eq!(lower.dtype(), DType::F16);
        for result in [lower.softmax(1)?, lower.exp()?, lower.sum()?, lower.layer_norm(&[2])?] {
            assert_eq!(result.dtype(), DType::F32);
        }
        // float64 is never cast: who asked for it means it.
        let double = x.double()?;
        assert_eq!(double.matmul(&double)?.dtype(), DType::F64);
        // Neither are forms that write into given tensors.
        assert_eq!(lower.exp_()?.dtype(), DType::F16);
        Ok(())
    })
}

#[test]
fn other_devices_other_threads_and_what_comes_after_are_left_alone() -> Result<()> {
    let x = floats(Device::cpu())?;
    autocast(DeviceKind::Cuda, || {
        assert_eq!(x.matmul(&x)?.dtype(), DType::F32);
        let there = std::thread::scope(|scope| scope.spawn(|| x.matmul(&x)).join().unwrap());
        assert_eq!(there?.dtype(), DType::F32);
        Ok::<(), Error>(())
    })?;
    assert_eq!(x.matmul(&x)?.dtype(), DType::F32);
    Ok(())
}

#[test]
fn a_weight_is_cast_once_in_a_region_and_gets_its_gradient() -> Result<()> {
    let device = device::private_cpu(&Default::default())?;
    let weight = floats(device)?.requires_grad_(true)?;
    let x = floats(device)?;
    let region = AutocastRegion::enter(DeviceKind::Cpu, AutocastOptions::default());
    let first = x.matmul(&weight)?;
    let before = memory::memory_allocated(device);
    let second = x.matmul(&weight)?;
    // A cast of x and a product of 512 bytes each; the weight's cast was there.
    assert_eq!(memory::memory_allocated(device) - before, 1024);
    let loss = first.add(&second)?.float()?.sum()?;
    drop(region);
    loss.backward()?;
    let grad = weight.grad().expect("the weight has a gradient");
    assert_eq!((grad.dtype(), grad.to_vec::<f32>()?), (DType::F32, vec![4.0; 4]));
    drop((first, second, loss, grad, x, weight));
    assert_eq!(memory::memory_allocated(device), 0, "the casts went with the region");
    Ok(())
}

#[test]
fn what_is_made_of_others_is_cast_as_a_whole() -> Result<()> {
    let x = floats(Device::cpu())?.to(LOWER)?;
    autocast(DeviceKind::Cpu, || {
        // Losses and quantiles are float32 on the CPU, whatever their parts are.
        assert_eq!(x.l1_loss(&x)?.dtype(), DType::F32);
        assert_eq!(x.trace()?.dtype(), DType::F32);
        assert_eq!(x.pad(&[1, 1], Mode::Reflect, None::<f64>)?.dtype(), DType::F32);
        // Constants around it and dot products are nobody's business.
        assert_eq!(x.pad(&[1, 1], Mode::Constant, None::<f64>)?.dtype(), LOWER);
        let row = x.float()?.select(0, 0)?;
        assert_eq!(row.dot(&row)?.dtype(), DType::F32);
        Ok(())
    })
}

#[test]
fn a_loss_of_probabilities_is_refused_on_an_accelerator() -> Result<()> {
    let device = device::stand_in(Default::default())?;
    let x = floats(device)?;
    autocast(DeviceKind::StandIn, || {
        let refused = x.binary_cross_entropy(&x).expect_err("it is unsafe");
        assert!(refused.to_string().contains("binary_cross_entropy_with_logits"), "{refused}");
        assert_eq!(x.binary_cross_entropy_with_logits(&x)?.dtype(), DType::F32);
        Ok(())
    })
}

#[test]
fn a_listed_call_casts_its_arguments_and_nothing_inside() -> Result<()> {
    let x = floats(Device::cpu())?;
    autocast(DeviceKind::Cpu, || {
        assert!(ListedCall::enter("add", DeviceKind::Cpu, [&x])?.is_none());
        let call = ListedCall::enter("linear", DeviceKind::Cpu, [&x])?.expect("it is listed");
        assert_eq!(call.cast(&x)?.dtype(), LOWER);
        assert_eq!(call.cast(&x.double()?)?.dtype(), DType::F64);
        assert_eq!(x.matmul(&x)?.dtype(), DType::F32);
        assert!(ListedCall::enter("linear", DeviceKind::Cpu, [&x])?.is_none());
        drop(call);
        assert_eq!(x.matmul(&x)?.dtype(), LOWER);
        Ok(())
    })
}
