//! The same tests on every device that this machine has: the CPU, the stand-in accelerator, and CUDA where there is a GPU (where one is required,
//! as on a machine that is there to test it, `PLIMSOLL_REQUIRE_CUDA` makes its absence a failure). Results are compared with the CPU's.

#![allow(clippy::print_stdout)] // a log of a GPU run shows which devices were tested

use plimsoll_tensor::device::{StandIn, Stream, stand_in, synchronize, with_stream};
use plimsoll_tensor::*;

type Outcome = Result<()>;

/// The devices other than the CPU itself; says which, so that a log shows what was tested.
fn accelerators() -> Vec<Device> {
    let mut devices = vec![stand_in(StandIn::default()).unwrap()];
    match device::cuda(0) {
        Ok(cuda) => devices.push(cuda),
        Err(why) => {
            assert!(std::env::var_os("PLIMSOLL_REQUIRE_CUDA").is_none(), "{why}");
        }
    }
    println!("devices: cpu and {devices:?}");
    devices
}

/// Values in a range where float32 functions are well behaved, the same every time.
fn values(n: i64) -> Tensor {
    let x: Vec<f32> = (0..n).map(|i| ((i * 7919 % 2003) as f32 - 1000.0) / 300.0).collect();
    Tensor::from_slice(&x, &[n], Device::cpu()).unwrap()
}

/// Runs `program` on inputs of the CPU and of `device`, and compares every result.
fn compare(
    device: Device,
    what: &str,
    inputs: &[Tensor],
    tolerance: f64,
    program: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Outcome {
    let there: Vec<Tensor> = inputs.iter().map(|x| x.to(device)).collect::<Result<_>>()?;
    let (expected, found) = (program(inputs)?, program(&there)?);
    assert_eq!(expected.len(), found.len());
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found.device(), device, "{what}");
        assert_eq!((expected.shape(), expected.dtype()), (found.shape(), found.dtype()), "{what}");
        assert_eq!(expected.strides(), found.strides(), "{what} on {device}");
        for (at, (e, f)) in expected.to_f64_vec()?.iter().zip(found.to_f64_vec()?).enumerate() {
            let close = (e - f).abs() <= tolerance * e.abs().max(1.0) || (e.is_nan() && f.is_nan());
            assert!(close, "{what} on {device}, element {at}: {f} instead of {e}");
        }
    }
    Ok(())
}

#[test]
fn arithmetic_agrees_with_the_cpu_on_every_layout() -> Outcome {
    for device in accelerators() {
        let x = values(6000).view(&[60, 100])?;
        let y = values(60 * 100).mul(0.5)?.add(3.0)?.view(&[60, 100])?;
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let inputs = [x.to(dtype)?, y.to(dtype)?];
            let tolerance = match dtype {
                DType::BF16 => 1e-2,
                DType::F16 => 2e-3,
                _ => 1e-6,
            };
            compare(device, "arithmetic", &inputs, tolerance, |t| {
                let (a, b) = (&t[0], &t[1]);
                Ok(vec![
                    a.add(b)?,
                    a.sub(b)?,
                    a.mul(b)?,
                    a.div(b)?,
                    a.add(1.5)?,
                    a.rsub(2.0)?,
                    a.add_alpha(b, 0.25)?,
                    a.t()?.add(1.0)?,
                    a.add(&b.select(0, 3)?)?,
                    a.add(&b.narrow(1, 7, 1)?)?,
                    a.slice(0, 1, 60, 3)?.mul(&b.slice(0, 0, 59, 3)?)?,
                    a.expand(&[2, 60, 100])?.add(b)?,
                    a.narrow(0, 0, 0)?.add(1.0)?,
                    a.select(0, 1)?.select(0, 2)?.add(1.0)?,
                ])
            })?;
        }
        let whole = [x.mul(100.0)?.to(DType::I64)?, y.mul(100.0)?.to(DType::I64)?];
        compare(device, "integers", &whole, 0.0, |t| {
            Ok(vec![t[0].add(&t[1])?, t[0].mul(&t[1])?, t[0].sub(7)?, t[0].div(&t[1])?])
        })?;
    }
    Ok(())
}

#[test]
fn functions_agree_with_the_cpu() -> Outcome {
    for device in accelerators() {
        let x = values(5000).view(&[50, 100])?;
        compare(device, "functions", &[x], 2e-6, |t| {
            let x = &t[0];
            Ok(vec![
                x.exp()?,
                x.relu()?,
                x.neg()?,
                x.tanh()?,
                x.gelu()?,
                x.t()?.exp()?,
                x.abs()?.sqrt()?,
            ])
        })?;
    }
    Ok(())
}

#[test]
fn copies_and_casts_agree_with_the_cpu() -> Outcome {
    for device in accelerators() {
        let x = values(64 * 33 * 5).view(&[64, 33, 5])?;
        compare(device, "copies", std::slice::from_ref(&x), 0.0, |t| {
            let x = &t[0];
            Ok(vec![
                x.transpose(0, 1)?.contiguous()?,
                x.transpose(1, 2)?.contiguous()?,
                x.permute(&[2, 1, 0])?.contiguous()?,
                x.select(2, 1)?.t()?.contiguous()?,
                x.slice(1, 0, 33, 2)?.clone_tensor()?,
                x.to(DType::F64)?,
                x.to(DType::I64)?,
                x.to(DType::U8)?,
                x.to(DType::Bool)?,
            ])
        })?;
        for dtype in DType::ALL {
            let there = x.to(dtype)?.to(device)?;
            assert_eq!(there.cpu()?.to_f64_vec()?, x.to(dtype)?.to_f64_vec()?, "{dtype}");
        }
        let target = Tensor::zeros(&[4, 3], (DType::F32, device))?;
        target.narrow(0, 1, 2)?.fill_(2.5)?;
        target.select(1, 0)?.copy_(&Tensor::arange(0, 4, 1, DType::I64)?)?;
        let expected = [0.0, 0.0, 0.0, 1.0, 2.5, 2.5, 2.0, 2.5, 2.5, 3.0, 0.0, 0.0];
        assert_eq!(target.to_f64_vec()?, expected);
    }
    Ok(())
}

#[test]
fn reductions_agree_with_the_cpu() -> Outcome {
    for device in accelerators() {
        let x = values(24 * 1000 * 3).view(&[24, 1000, 3])?;
        compare(device, "reductions", std::slice::from_ref(&x), 1e-4, |t| {
            let x = &t[0];
            Ok(vec![
                x.sum()?,
                x.mean()?,
                x.sum_dim(&[0], false)?,
                x.sum_dim(&[1], true)?,
                x.sum_dim(&[-1], false)?,
                x.sum_dim(&[0, 2], false)?,
                x.amax(&[1], false)?,
                x.amin(&[0, 1], false)?,
                x.transpose(0, 1)?.sum_dim(&[0], false)?,
                x.slice(1, 0, 1000, 7)?.sum()?,
                x.narrow(0, 0, 0)?.sum()?,
            ])
        })?;
        let long = values(3_000_001);
        compare(device, "a long sum", &[long], 1e-3, |t| {
            let (x, from_the_second) = (&t[0], t[0].narrow(0, 1, 3_000_000)?);
            Ok(vec![x.sum()?, x.amax(&[], false)?, x.add(x)?, x.exp()?, from_the_second.sum()?])
        })?;
    }
    Ok(())
}

#[test]
fn products_and_norms_agree_with_the_cpu() -> Outcome {
    for device in accelerators() {
        let (a, b) = (values(64 * 96).view(&[64, 96])?, values(96 * 40).view(&[96, 40])?);
        for (dtype, tolerance) in [(DType::F32, 1e-4), (DType::F64, 1e-9), (DType::BF16, 3e-2)] {
            compare(device, "matmul", &[a.to(dtype)?, b.to(dtype)?], tolerance, |t| {
                let batch = t[0].view(&[4, 16, 96])?;
                Ok(vec![
                    t[0].matmul(&t[1])?,
                    t[0].matmul(&t[1].t()?.contiguous()?.t()?)?,
                    t[0].t()?.contiguous()?.t()?.matmul(&t[1])?,
                    batch.matmul(&t[1])?,
                ])
            })?;
        }
        // Rows of whole packs of 16 bytes, of none, and longer than a block keeps.
        for (rows, length) in [(40i64, 96i64), (7, 99), (3, 20_000)] {
            let x = values(rows * length).view(&[rows, length])?;
            let (w, c) = (values(length).add(2.0)?, values(length));
            for (dtype, tolerance) in [(DType::F32, 1e-4), (DType::F64, 1e-9), (DType::BF16, 3e-2)]
            {
                let inputs = [x.to(dtype)?, w.to(dtype)?, c.to(dtype)?];
                compare(device, "layer_norm", &inputs, tolerance, |t| {
                    Ok(vec![
                        t[0].layer_norm(&[length], Some(&t[1]), Some(&t[2]), 1e-5)?,
                        t[0].layer_norm(&[length], None, None, 1e-5)?,
                    ])
                })?;
            }
        }
    }
    Ok(())
}

#[test]
fn gradients_agree_with_the_cpu() -> Outcome {
    for device in accelerators() {
        let (x, w) = (values(32 * 48).view(&[32, 48])?, values(48 * 16).view(&[48, 16])?);
        let (scale, shift) = (values(16).add(1.5)?, values(16));
        compare(device, "a training step", &[x, w, scale, shift], 1e-3, |t| {
            let leaves: Vec<Tensor> =
                t.iter().map(|t| t.clone_tensor()?.requires_grad_(true)).collect::<Result<_>>()?;
            let hidden = leaves[0].matmul(&leaves[1])?.relu()?;
            let normed = hidden.layer_norm(&[16], Some(&leaves[2]), Some(&leaves[3]), 1e-5)?;
            normed.mul(&normed)?.mul(-0.1)?.exp()?.add(1.0)?.mean()?.backward()?;
            Ok(leaves.iter().map(|leaf| leaf.grad().unwrap()).collect())
        })?;
    }
    Ok(())
}

#[test]
fn counters_say_what_is_held() -> Outcome {
    for device in accelerators() {
        let before = memory::memory_allocated(device);
        let x = Tensor::zeros(&[1 << 20], (DType::F32, device))?;
        assert_eq!(memory::memory_allocated(device) - before, 4 << 20);
        let y = x.add(1.0)?;
        assert_eq!(memory::memory_allocated(device) - before, 8 << 20);
        drop((x, y));
        synchronize(device)?;
        assert_eq!(memory::memory_allocated(device), before);
        memory::arena(device).check_balanced().unwrap();
    }
    Ok(())
}

#[test]
fn running_out_of_memory_is_survived() -> Outcome {
    for device in accelerators() {
        // What chaos takes away makes room; here the count is of what fits without it.
        device::set_chaos(device, None);
        let arena = memory::arena(device);
        memory::empty_cache(device);
        let limit = memory::memory_reserved(device) + (256 << 20);
        let previous = arena.set_limit(Some(limit));
        let mut held = Vec::new();
        let error = loop {
            match Tensor::zeros(&[16 << 20], (DType::F32, device)) {
                Ok(tensor) => held.push(tensor),
                Err(error) => break error,
            }
        };
        assert!(error.is_out_of_memory(), "{error}");
        let report = error.detail::<plimsoll_memory::OutOfMemory>().expect("a report");
        assert!(report.to_string().contains("devices.rs"), "names the line: {report}");
        assert_eq!(held.len(), 4);
        held.pop();
        held.push(Tensor::zeros(&[16 << 20], (DType::F32, device))?);
        held.clear();
        synchronize(device)?;
        arena.set_limit(previous);
        arena.check_balanced().unwrap();
    }
    Ok(())
}

#[test]
fn streams_order_themselves() -> Outcome {
    for device in accelerators() {
        let side = Stream::new(device)?;
        for round in 0..20 {
            let x = Tensor::full(&[1 << 16], round, (DType::F32, device))?;
            let y = with_stream(&side, || x.add(1.0))?;
            let z = y.mul(2.0)?;
            with_stream(&side, || x.zero_().map(drop))?;
            assert_eq!(z.sum()?.to_scalar()?.to_f64(), f64::from((round + 1) * 2) * 65536.0);
            assert_eq!(x.sum()?.to_scalar()?.to_f64(), 0.0);
        }
        synchronize(device)?;
        memory::arena(device).check_balanced().unwrap();
    }
    Ok(())
}

#[test]
fn pinned_copies_do_not_need_the_host_to_wait() -> Outcome {
    for device in accelerators() {
        let host = values(1 << 18).pin_memory()?;
        let there = host.to_non_blocking(device)?;
        let expected = host.sum()?.to_scalar()?.to_f64();
        let found = there.sum()?.to_scalar()?.to_f64();
        assert!((expected - found).abs() <= 1e-3 * expected.abs().max(1.0), "{expected} {found}");
        host.zero_()?; // waits for the copy
        assert_eq!(there.narrow(0, 0, 3)?.to_f64_vec()?, values(3).to_f64_vec()?);
    }
    Ok(())
}

#[test]
fn operands_on_different_devices_are_an_error_that_names_both() -> Outcome {
    for device in accelerators() {
        let (here, there) = (values(4), values(4).to(device)?);
        let text = here.add(&there).unwrap_err().to_string();
        assert!(text.contains("cpu") && text.contains(&device.to_string()), "{text}");
        let scalar = Tensor::scalar(2.0, DType::F32)?;
        assert_eq!(there.mul(&scalar)?.to_f64_vec()?, values(4).mul(2.0)?.to_f64_vec()?);
    }
    Ok(())
}

#[test]
fn what_the_driver_counts_is_what_the_arena_reserved() -> Outcome {
    let Ok(cuda) = device::cuda(0) else { return Ok(()) };
    memory::empty_cache(cuda);
    synchronize(cuda)?;
    let (free_before, total) = device::cuda_memory_info(cuda)?;
    let reserved_before = memory::memory_reserved(cuda);
    let x = Tensor::zeros(&[1 << 28], (DType::F32, cuda))?;
    synchronize(cuda)?;
    let taken = free_before - device::cuda_memory_info(cuda)?.0;
    let reserved = memory::memory_reserved(cuda) - reserved_before;
    assert_eq!(reserved, 1 << 30);
    assert_eq!(taken, reserved, "the driver took what the arena reserved, of {total}");
    drop(x);
    synchronize(cuda)?;
    assert_eq!(memory::empty_cache(cuda), 1 << 30);
    assert_eq!(device::cuda_memory_info(cuda)?.0, free_before);
    // The whole card: the driver's own refusal, not a limit of ours.
    let error = Tensor::zeros(&[total as i64], (DType::F32, cuda)).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    println!("{error}");
    Tensor::zeros(&[1 << 20], (DType::F32, cuda))?;
    Ok(())
}

/// Keeps the times of launches on one device.
struct Times(Device, std::sync::Mutex<Vec<observe::LaunchTime>>);

impl observe::Observer for Times {
    fn end(&self, launch: &observe::Launch, time: &observe::LaunchTime) {
        if launch.device == self.0 {
            self.1.lock().unwrap().push(time.clone());
        }
    }
}

#[test]
fn memory_is_taken_back_without_waiting_and_launches_are_timed() -> Outcome {
    for device in accelerators() {
        // Chaos that never strikes: the device remembers how tensors are made, and lets go of them when it is told to.
        device::set_chaos(device, Some(1));
        device::set_chaos(device, None);
        let x = values(1 << 20).to(device)?;
        let truth = x.exp()?.mul(2.0)?.to_vec::<f32>()?;
        let times = std::sync::Arc::new(Times(device, std::sync::Mutex::default()));
        let observing = observe::observe(times.clone());
        let y = x.exp()?.mul(2.0)?; // nobody holds the result of exp
        drop(observing);
        let took: Vec<_> = times.1.lock().unwrap().iter().map(observe::LaunchTime::wait).collect();
        assert_eq!(took.len(), 2);
        assert!(took.iter().all(Option::is_some), "{took:?}");
        assert!(device::take_back(&x, false) && device::take_back(&y, true));
        assert_eq!(memory::memory_spilled(device), 4 << 20, "one is spilled, one is dropped");
        assert_eq!(y.to_vec::<f32>()?, truth);
        assert_eq!(memory::memory_spilled(device), 0);
        synchronize(device)?;
        memory::arena(device).check_balanced().unwrap();
    }
    Ok(())
}
