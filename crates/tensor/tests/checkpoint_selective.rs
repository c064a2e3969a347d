//! Selective checkpoints: what a policy keeps does not run again, lies where it says, and changes
//! no gradient, by operation and by region, on the CPU, on the stand-in and in dry runs.

use std::sync::Arc;

use plimsoll_tensor::device::StandIn;
use plimsoll_tensor::observe::{LaunchCounts, observe};
use plimsoll_tensor::*;

fn stand_in() -> Device {
    let stand_in = StandIn { configuration: Some(Default::default()), ..StandIn::default() };
    device::stand_in(stand_in).unwrap()
}

fn leaf(device: Device) -> Result<Tensor> {
    Tensor::full(&[32, 32], 0.1, (DType::F32, device))?.requires_grad_(true)
}

fn function(x: &Tensor) -> Result<Tensor> {
    x.matmul(x)?.tanh()?.matmul(x)?.sigmoid()?.sin()?.sum()
}

fn selecting(selective: SelectiveCheckpoint) -> CheckpointOptions {
    CheckpointOptions { selective: Some(selective), ..CheckpointOptions::default() }
}

fn always(policy: CheckpointPolicy) -> SelectiveCheckpoint {
    SelectiveCheckpoint::new(move |_| Ok(policy))
}

#[test]
fn gradients_do_not_change() -> Result<()> {
    for device in [device::private_cpu(&Default::default())?, stand_in()] {
        let x = leaf(device)?;
        function(&x)?.backward()?;
        let plain = x.grad().unwrap().to_vec::<f32>()?;
        for selective in [
            always(CheckpointPolicy::Save),
            always(CheckpointPolicy::Recompute),
            always(CheckpointPolicy::OffloadToHost),
            SelectiveCheckpoint::saving(&["matmul"]),
            SelectiveCheckpoint::saving(&["tanh", "sin"]),
        ] {
            // A policy serves many calls, each with results of its own.
            for _ in 0..2 {
                x.set_grad(None)?;
                let options = selecting(selective.clone());
                checkpoint_with(&[&x], options, |inputs| function(&inputs[0]))?.backward()?;
                assert_eq!(x.grad().unwrap().to_vec::<f32>()?, plain, "{device}");
            }
        }
        drop(x);
        device::synchronize(device)?;
        assert_eq!(memory::memory_allocated(device), 0, "{device}");
    }
    Ok(())
}

#[test]
fn what_is_kept_lies_where_the_policy_says() -> Result<()> {
    let stand_in = stand_in();
    for device in [stand_in, device::dry(stand_in)?] {
        let x = leaf(device)?;
        let kept = |selective: SelectiveCheckpoint| -> Result<usize> {
            let options = selecting(selective);
            let y = checkpoint_with(&[&x], options, |inputs| function(&inputs[0]))?;
            device::synchronize(device)?;
            let kept = memory::memory_allocated(device) - 4096 - 512; // `x` and `y`
            y.backward()?;
            x.set_grad(None)?;
            Ok(kept)
        };
        assert_eq!(kept(always(CheckpointPolicy::Recompute))?, 0);
        assert_eq!(kept(SelectiveCheckpoint::saving(&["matmul"]))?, 2 * 4096);
        assert_eq!(kept(always(CheckpointPolicy::OffloadToHost))?, 0);
        assert_eq!(kept(always(CheckpointPolicy::Save))?, 5 * 4096, "`y` is the sixth");
    }
    Ok(())
}

#[test]
fn what_is_kept_does_not_run_again() -> Result<()> {
    let cpu = device::private_cpu(&Default::default())?;
    // What chaos drops is computed again, and counted.
    device::set_chaos(cpu, None);
    let x = leaf(cpu)?;
    let run = |body: fn(&Tensor) -> Result<Tensor>, saving: &[&str]| -> Result<[u64; 3]> {
        let options = selecting(SelectiveCheckpoint::saving(saving));
        let y = checkpoint_with(&[&x], options, move |inputs| body(&inputs[0]))?;
        let counts = Arc::new(LaunchCounts::default());
        let observing = observe(counts.clone());
        y.backward()?;
        drop(observing);
        Ok(["matmul", "tanh", "sigmoid"].map(|name| counts.of(name).launches))
    };
    let plain = run(function, &[])?;
    // Two products of the function; its derivative runs more.
    let [products, tanh, sigmoid] = run(function, &["matmul"])?;
    assert_eq!((products + 2, tanh, sigmoid), (plain[0], plain[1], plain[2]));
    let region = |x: &Tensor| -> Result<Tensor> {
        let part = checkpoint_region(CheckpointPolicy::Save, || x.matmul(x)?.tanh());
        part?.matmul(x)?.sigmoid()?.sin()?.sum()
    };
    let [products, tanh, sigmoid] = run(region, &[])?;
    assert_eq!((products + 1, tanh + 1, sigmoid), (plain[0], plain[1], plain[2]));
    Ok(())
}

#[test]
fn a_second_backward_and_overwritten_results_are_refused() -> Result<()> {
    let x = leaf(Device::cpu())?;
    let saving = || selecting(SelectiveCheckpoint::saving(&["matmul"]));
    let y = checkpoint_with(&[&x], saving(), |inputs| function(&inputs[0]))?;
    y.backward_with(BackwardOptions { retain_graph: true, ..BackwardOptions::default() })?;
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains("Trying to backward an extra time"), "{error}");
    let y = checkpoint_with(&[&x], saving(), |inputs| {
        let product = inputs[0].matmul(&inputs[0])?;
        let next = product.add(1.0)?;
        product.add_(1.0)?;
        next.tanh()?.sin()?.sum()
    })?;
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains("has been mutated"), "{error}");
    Ok(())
}
