//! Memory that is taken back comes home with the same values: spilled to the host, or dropped and
//! computed again; by hand, when there is no room, and at random between operations.

use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, StandIn, take_back};
use plimsoll_tensor::*;

type Outcome = Result<()>;

const MIB: usize = 1 << 20;

/// A private host device and a stand-in that take memory back; both have 64 MiB.
fn devices() -> [Device; 2] {
    let limited =
        Configuration::builder().spill(true).memory_limit_bytes(64 * MIB).build().unwrap();
    let spilling = Configuration::builder().spill(true).build().unwrap();
    let stand_in =
        StandIn { capacity_bytes: 64 * MIB, configuration: Some(spilling), ..StandIn::default() };
    [device::private_cpu(&limited).unwrap(), device::stand_in(stand_in).unwrap()]
}

fn numbers(device: Device) -> Tensor {
    Tensor::arange(0, 1000, 1, (DType::F32, device)).unwrap()
}

fn values(of: impl Fn(f32) -> f32) -> Vec<f32> {
    (0..1000).map(|n| of(n as f32)).collect()
}

#[test]
fn a_spilled_storage_leaves_its_device_and_comes_home_when_used() -> Outcome {
    for device in devices() {
        let x = Tensor::from_slice(&values(|n| n), &[1000], device)?;
        assert_eq!(memory::memory_allocated(device), 4096);
        assert!(take_back(&x, false));
        assert!(!take_back(&x, false), "it is away already");
        assert_eq!(memory::memory_allocated(device), 0);
        let y = x.add(1.0)?;
        assert_eq!(memory::memory_allocated(device), 2 * 4096);
        assert_eq!(y.to_vec::<f32>()?, values(|n| n + 1.0));
        assert!(take_back(&x, false));
        assert_eq!(x.to_vec::<f32>()?, values(|n| n));
        assert!(take_back(&x, false));
        drop((x, y));
        assert_eq!(memory::memory_allocated(device), 0);
        memory::arena(device).check_balanced().unwrap();
    }
    Ok(())
}

#[test]
fn a_dropped_storage_is_computed_again() -> Outcome {
    for device in devices() {
        let x = Tensor::from_slice(&values(|n| n), &[1000], device)?;
        let y = x.mul(2.0)?;
        assert!(take_back(&y, true));
        assert_eq!(memory::memory_allocated(device), 4096);
        // The ingredient lives on in the recipe, and may itself be away.
        assert!(take_back(&x, true));
        drop(x);
        assert_eq!(memory::memory_allocated(device), 0);
        assert_eq!(y.view(&[10, 100])?.t()?.contiguous()?.sum()?.item::<f32>()?, 999_000.0);
        assert_eq!(y.to_vec::<f32>()?, values(|n| 2.0 * n));
    }
    Ok(())
}

#[test]
fn random_numbers_come_back_the_same() -> Outcome {
    for device in devices() {
        let x = Tensor::rand(&[1000], (DType::F32, device))?;
        let y = x.dropout(0.5, true)?;
        let (before_x, before_y) = (x.to_vec::<f32>()?, y.to_vec::<f32>()?);
        assert!(take_back(&y, true) && take_back(&x, true));
        assert_eq!(y.to_vec::<f32>()?, before_y);
        assert_eq!(x.to_vec::<f32>()?, before_x);
    }
    Ok(())
}

#[test]
fn a_write_to_an_ingredient_brings_its_dependents_home_first() -> Outcome {
    for device in devices() {
        let x = numbers(device);
        let y = x.mul(2.0)?;
        let z = y.add(1.0)?;
        assert!(take_back(&z, true) && take_back(&y, true));
        x.view(&[10, 100])?.zero_()?;
        assert_eq!(y.to_vec::<f32>()?, values(|n| 2.0 * n));
        assert_eq!(z.to_vec::<f32>()?, values(|n| 2.0 * n + 1.0));
        // Its recipe would give other values now, so that it can only be spilled.
        assert!(take_back(&y, true));
        assert_eq!(y.to_vec::<f32>()?, values(|n| 2.0 * n));
        // A written storage has no recipe either.
        y.add_(1.0)?;
        assert!(take_back(&y, true));
        assert_eq!(y.to_vec::<f32>()?, values(|n| 2.0 * n + 1.0));
    }
    Ok(())
}

#[test]
fn memory_whose_address_is_out_is_never_taken() -> Outcome {
    for device in devices() {
        let x = numbers(device);
        x.data_ptr()?;
        assert!(!take_back(&x, true) && !take_back(&x, false));
    }
    Ok(())
}

#[test]
fn long_chains_of_recipes_are_rebuilt_and_dropped_without_recursion() -> Outcome {
    for device in devices() {
        let links = 20_000;
        let chain = || -> Result<Tensor> {
            let mut x = Tensor::zeros(&[2], (DType::F32, device))?;
            let mut away = Vec::new();
            for _ in 0..links {
                let next = x.add(1.0)?;
                away.push(std::mem::replace(&mut x, next));
            }
            for tensor in &away {
                assert!(take_back(tensor, true));
            }
            assert!(take_back(&x, true));
            Ok(x)
        };
        drop(chain()?);
        assert_eq!(memory::memory_allocated(device), 0);
        assert_eq!(chain()?.to_vec::<f32>()?, [links as f32; 2]);
    }
    Ok(())
}

#[test]
fn more_than_fits_is_held_by_spilling_and_read_back_right() -> Outcome {
    for device in devices() {
        let held: Vec<Tensor> = (0..20)
            .map(|n| Tensor::full(&[4 << 20], n as f32, (DType::F32, device)))
            .collect::<Result<_>>()?;
        for (n, x) in held.iter().enumerate() {
            assert_eq!(x.amax_with([0])?.item::<f32>()?, n as f32);
            assert_eq!(x.amin_with([0])?.item::<f32>()?, n as f32);
        }
        assert!(memory::max_memory_reserved(device) <= 64 * MIB);
        let error = Tensor::zeros(&[64 << 20], (DType::F32, device)).unwrap_err();
        assert!(error.is_out_of_memory(), "no spilling makes room for that: {error}");
        drop(held);
        assert_eq!(memory::memory_allocated(device), 0);
    }
    Ok(())
}

#[test]
fn a_training_step_larger_than_memory_gives_the_same_gradients() -> Outcome {
    let step = |device: Device| -> Result<Vec<f32>> {
        let x =
            Tensor::arange(0, 1 << 20, 1, (DType::F32, device))?.mul(1e-6)?.requires_grad_(true)?;
        let mut y = x.clone();
        for _ in 0..12 {
            y = y.tanh()?.mul(&x)?; // three storages of 4 MiB each, all saved
        }
        y.sum()?.backward()?;
        x.grad().unwrap().to_vec::<f32>()
    };
    let truth = step(device::private_cpu(&Configuration::default())?)?;
    for device in devices() {
        assert_eq!(step(device)?, truth);
        assert!(memory::max_memory_reserved(device) <= 64 * MIB);
        memory::arena(device).check_balanced().unwrap();
    }
    Ok(())
}

/// A program that reads, writes, views and differentiates; its values are a function of nothing
/// else.
fn program(device: Device) -> Result<Vec<f32>> {
    let x = Tensor::arange(0, 24, 1, (DType::F32, device))?.view(&[4, 6])?;
    let w = Tensor::full(&[6], 0.25, (DType::F32, device))?.requires_grad_(true)?;
    let mut kept = Vec::new();
    for step in 0..20 {
        let hidden = x.mul(&w)?.tanh()?;
        let turned = hidden.t()?.contiguous()?;
        turned.select(0, step % 6)?.mul_(0.5)?;
        let loss = turned.mul(&turned)?.sum()?.add(&hidden.exp()?.mean()?)?;
        loss.backward()?;
        let grad = w.grad().unwrap();
        no_grad(|| w.sub_(&grad.mul(0.05)?).map(drop))?;
        w.set_grad(None)?;
        kept.push(loss.detach());
        if kept.len() > 5 {
            kept[step as usize % 5].add_(1.0)?;
        }
    }
    let mut values = w.detach().to_vec::<f32>()?;
    for tensor in &kept {
        values.push(tensor.item()?);
    }
    Ok(values)
}

#[test]
fn chaos_changes_no_value() -> Outcome {
    let truth = program(device::private_cpu(&Configuration::default())?)?;
    for seed in 0..20 {
        for device in devices() {
            device::set_chaos(device, Some(seed));
            assert_eq!(program(device)?, truth, "seed {seed} on {device}");
            assert_eq!(memory::memory_allocated(device), 0);
        }
    }
    Ok(())
}

#[test]
fn chaos_of_four_threads_on_shared_tensors_changes_no_value() -> Outcome {
    for device in devices() {
        device::set_chaos(device, Some(3));
        let shared = Tensor::zeros(&[64], (DType::F32, device))?;
        let fixed = Tensor::ones(&[64], (DType::F32, device))?;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..200 {
                        let before = shared.mul(1.0).unwrap(); // may be dropped, with a recipe that reads `shared`
                        let copy = before.add(&fixed).unwrap();
                        shared.add_(&fixed).unwrap();
                        let step = copy.sub(&before).unwrap().to_vec::<f32>().unwrap();
                        assert_eq!(step, [1.0; 64], "round {round}");
                    }
                });
            }
        });
        assert_eq!(shared.to_vec::<f32>()?, [800.0; 64]);
    }
    Ok(())
}

#[test]
fn ingredients_that_do_not_fit_together_are_out_of_memory() -> Outcome {
    let quarter = (MIB * 16 / 4) as i64;
    for device in devices() {
        let options = (DType::F32, device);
        let (a, b) = (Tensor::ones(&[quarter], options)?, Tensor::ones(&[quarter], options)?);
        a.add_(1.0)?; // neither has a recipe of its own
        b.add_(2.0)?;
        let y = a.add(&b)?;
        assert!(take_back(&y, true) && take_back(&a, false) && take_back(&b, false));
        let pinned = Tensor::zeros(&[quarter * 5 / 2], options)?;
        pinned.data_ptr()?; // 40 MiB of 64 that stay: one ingredient fits beside them, both do not
        let error = y.to_vec::<f32>().unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        let report = error.detail::<memory::OutOfMemory>().expect("the error carries its report");
        assert_eq!(report.requested_bytes, 16 * MIB);
        drop(pinned);
        assert!(y.to_vec::<f32>()?.iter().all(|&value| value == 5.0));
        memory::arena(device).check_balanced().unwrap();
    }
    Ok(())
}

#[test]
fn what_was_made_from_memory_of_others_is_never_made_again() -> Outcome {
    // Foreign memory is the process's own host memory, which takes nothing back unless it is told
    // to.
    device::set_chaos(Device::CPU, Some(1));
    device::set_chaos(Device::CPU, None);
    let mut owner = vec![1.0f32; 1000];
    let address = owner.as_mut_ptr().expose_provenance();
    // SAFETY: the vector lives to the end of this test and is written only between operations.
    let x = unsafe { Tensor::from_foreign((), address, &[1000], &[1], DType::F32)? };
    let y = x.mul(2.0)?;
    assert!(take_back(&y, true), "it can go to the spill memory");
    owner.fill(7.0);
    assert_eq!(y.to_vec::<f32>()?, [2.0; 1000]);
    assert_eq!(x.mul(2.0)?.to_vec::<f32>()?, [14.0; 1000]);
    Ok(())
}

#[test]
fn memory_that_is_lent_brings_home_what_was_made_from_it() -> Outcome {
    for device in devices() {
        let x = Tensor::from_slice(&values(|n| n), &[1000], device)?;
        let before = x.mul(2.0)?;
        assert!(take_back(&before, true));
        assert_eq!((memory::memory_allocated(device), memory::memory_spilled(device)), (4096, 0));
        let lent = x.lend()?;
        assert_eq!(
            memory::memory_allocated(device),
            2 * 4096,
            "it is home before anybody can write"
        );
        device::synchronize(device)?;
        let first = std::ptr::with_exposed_provenance_mut::<f32>(lent.address());
        // SAFETY: the memory is lent, the device is idle, and there are 1000 elements.
        unsafe { first.write(100.0) };
        let after = x.mul(2.0)?;
        assert!(take_back(&after, true) && take_back(&before, true));
        assert_eq!(memory::memory_spilled(device), 8000, "neither can be made again");
        device::synchronize(device)?;
        // SAFETY: as above; the device is done with `after`.
        unsafe { first.write(200.0) };
        drop(lent);
        assert_eq!(before.to_vec::<f32>()?, values(|n| 2.0 * n));
        assert_eq!(after.to_vec::<f32>()?[..2], [200.0, 2.0]);
    }
    Ok(())
}
