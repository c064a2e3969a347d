//! Checkpointed functions: their gradients are those of the plain ones to the bit, whatever they
//! draw, cast, nest or save; they run again once, and no further than they must; and what differs
//! between the two runs is an error that shows both. How many bytes that takes is in
//! `checkpoint_bytes.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_tensor::device::StandIn;
use plimsoll_tensor::observe::{LaunchCounts, observe};
use plimsoll_tensor::*;

type Outcome = Result<()>;

fn devices() -> [Device; 2] {
    let stand_in = StandIn { configuration: Some(Default::default()), ..StandIn::default() };
    [device::private_cpu(&Default::default()).unwrap(), device::stand_in(stand_in).unwrap()]
}

fn weight(sizes: &[i64], device: Device) -> Result<Tensor> {
    Tensor::randn(sizes, (DType::F32, device))?.mul(0.3)?.requires_grad_(true)
}

/// Two layers with dropout between.
fn block(x: &Tensor, w: &[Tensor]) -> Result<Tensor> {
    x.matmul(&w[0])?.gelu()?.dropout(0.3, true)?.matmul(&w[1])?.softmax(-1)
}

fn grads(of: &[&Tensor]) -> Result<Vec<Vec<f32>>> {
    of.iter()
        .map(|tensor| {
            let grad = tensor.grad().expect("backward left a gradient").to_vec::<f32>();
            tensor.set_grad(None)?;
            grad
        })
        .collect()
}

/// Runs `plain` and `checkpointed` from the same random state; their gradients must be equal.
fn same_gradients(
    device: Device,
    of: &[&Tensor],
    plain: impl Fn() -> Result<Tensor>,
    checkpointed: impl Fn() -> Result<Tensor>,
) -> Outcome {
    let run = |function: &dyn Fn() -> Result<Tensor>| {
        manual_seed_on(device, 7);
        let loss = function()?;
        let drawn = get_rng_state(device);
        loss.backward()?;
        assert_eq!(get_rng_state(device), drawn, "backward moves no generator on");
        Ok::<_, Error>((loss.item::<f32>()?, drawn, grads(of)?))
    };
    assert_eq!(run(&plain)?, run(&checkpointed)?);
    Ok(())
}

#[test]
fn gradients_are_those_of_the_plain_function() -> Outcome {
    for device in devices() {
        let x = weight(&[6, 8], device)?;
        let w = vec![weight(&[8, 16], device)?, weight(&[16, 8], device)?];
        let of = [&x, &w[0], &w[1]];
        let plain = || block(&block(&x, &w)?, &w)?.mul(&x)?.sum();
        same_gradients(device, &of, plain, || {
            let half = |x: &Tensor| {
                let w = w.clone();
                checkpoint(&[x], move |inputs| block(&inputs[0], &w))
            };
            half(&half(&x)?)?.mul(&x)?.sum()
        })?;
        // One inside the other, and both without an early end.
        for early_stop in [true, false] {
            let options = CheckpointOptions { early_stop, ..CheckpointOptions::default() };
            same_gradients(device, &of, plain, || {
                let w = w.clone();
                let inner = options.clone();
                let whole = move |inputs: &[Tensor]| {
                    let again = w.clone();
                    let first =
                        checkpoint_with(inputs_of(inputs).as_slice(), inner.clone(), move |i| {
                            block(&i[0], &again)
                        })?;
                    block(&first, &w)
                };
                checkpoint_with(&[&x], options.clone(), whole)?.mul(&x)?.sum()
            })?;
        }
        same_gradients(device, &of, plain, || {
            let w = w.clone();
            let stage: Stage = Arc::new(move |x: &Tensor| block(x, &w));
            checkpoint_sequential(&[stage.clone(), stage], 2, &x)?.mul(&x)?.sum()
        })?;
        same_gradients(device, &of, plain, || {
            let half = |x: &Tensor| {
                let w = w.clone();
                let function = move |inputs: &[Tensor]| Ok(vec![block(&inputs[0], &w)?]);
                Ok::<_, Error>(checkpoint_reentrant(&[x], true, function)?.remove(0))
            };
            half(&half(&x)?)?.mul(&x)?.sum()
        })?;
        drop((x, w));
        device::synchronize(device)?;
        assert_eq!(memory::memory_allocated(device), 0);
    }
    Ok(())
}

fn inputs_of(inputs: &[Tensor]) -> Vec<&Tensor> {
    inputs.iter().collect()
}

#[test]
fn gradients_of_gradients_and_second_backwards() -> Outcome {
    let second = |checkpointed: bool| -> Result<(Vec<f64>, Vec<f64>)> {
        let x = Tensor::from_slice(&[0.3f64, -0.7], &[2], Device::cpu())?.requires_grad_(true)?;
        let function = |x: &Tensor| x.exp()?.mul(x)?.sin();
        let y = if checkpointed {
            checkpoint(&[&x], move |inputs| function(&inputs[0]))?
        } else {
            function(&x)?
        };
        let options = GradOptions { create_graph: true, ..GradOptions::default() };
        let first = grad(&[&y.sum()?], &[&x], options)?.remove(0).unwrap();
        let options = GradOptions { retain_graph: true, ..GradOptions::default() };
        let second = grad(&[&first.sum()?], &[&x], options)?.remove(0).unwrap();
        // Once more over what was retained.
        let again = grad(&[&first.sum()?], &[&x], GradOptions::default())?.remove(0).unwrap();
        assert_eq!(again.to_vec::<f64>()?, second.to_vec::<f64>()?);
        Ok((first.to_vec()?, second.to_vec()?))
    };
    assert_eq!(second(false)?, second(true)?);
    Ok(())
}

#[test]
fn it_runs_again_once_and_stops_at_the_last_value() -> Outcome {
    let x = Tensor::ones(&[4], DType::F32)?.requires_grad_(true)?;
    let calls = Arc::new(AtomicUsize::new(0));
    let (counts, finished) = (Arc::new(LaunchCounts::default()), Arc::new(AtomicUsize::new(0)));
    let function = {
        let (calls, finished) = (calls.clone(), finished.clone());
        move |inputs: &[Tensor]| {
            calls.fetch_add(1, Ordering::Relaxed);
            // `tanh` saves its result, `sin` what it is given, and `add` and `sum` nothing.
            let y = inputs[0].tanh()?.sin()?.add(1.0)?.sum()?;
            finished.fetch_add(1, Ordering::Relaxed);
            Ok(y)
        }
    };
    let y = checkpoint(&[&x], function.clone())?;
    let _observing = observe(counts.clone());
    y.backward_with(BackwardOptions { retain_graph: true, ..Default::default() })?;
    assert_eq!((calls.load(Ordering::Relaxed), finished.load(Ordering::Relaxed)), (2, 1));
    assert_eq!((counts.of("tanh").launches, counts.of("sin").launches), (1, 0));
    // Each backward makes its own.
    y.backward()?;
    assert_eq!((calls.load(Ordering::Relaxed), finished.load(Ordering::Relaxed)), (3, 1));
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains("a second time"), "{error}");
    assert_eq!(calls.load(Ordering::Relaxed), 3);

    let options = CheckpointOptions { early_stop: false, ..CheckpointOptions::default() };
    checkpoint_with(&[&x], options, function)?.backward()?;
    assert_eq!((calls.load(Ordering::Relaxed), finished.load(Ordering::Relaxed)), (5, 3));
    Ok(())
}

#[test]
fn the_random_state_is_left_alone_on_request() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[64], (DType::F32, device))?.requires_grad_(true)?;
    let draws = |preserve_rng_state: bool| -> Result<(Vec<f32>, Vec<f32>)> {
        manual_seed_on(device, 1);
        let options = CheckpointOptions { preserve_rng_state, ..CheckpointOptions::default() };
        let y = checkpoint_with(&[&x], options, |inputs| {
            inputs[0].mul(&inputs[0].rand_like()?)?.mul(&inputs[0])
        })?;
        y.sum()?.backward()?;
        let forward = y.to_vec()?;
        // The gradient is twice what was drawn the second time.
        let again = grads(&[&x])?.remove(0).iter().map(|twice| twice / 2.0).collect();
        Ok((forward, again))
    };
    let (forward, again) = draws(true)?;
    assert_eq!(forward, again);
    let (forward, again) = draws(false)?;
    assert_ne!(forward, again);
    // A generator that the thread names is kept too.
    let own = Generator::new(device, 5);
    let y = with_generator(&own, || {
        checkpoint(&[&x], |inputs| inputs[0].mul(&inputs[0].rand_like()?)?.mul(&inputs[0]))
    })?;
    let state = own.state();
    y.sum()?.backward()?;
    assert_eq!(own.state(), state);
    let twice = grads(&[&x])?.remove(0);
    assert_eq!(y.to_vec::<f32>()?, twice.iter().map(|twice| twice / 2.0).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn mixed_precision_is_that_of_the_forward() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    manual_seed_on(device, 3);
    let (x, w) = (weight(&[4, 8], device)?, weight(&[8, 8], device)?);
    let layer = |x: &Tensor, w: &Tensor| x.matmul(w)?.tanh()?.matmul(w)?.sin();
    let cast = |body: &dyn Fn() -> Result<Tensor>| autocast(DeviceKind::Cpu, body);
    let plain = || cast(&|| layer(&x, &w))?.to(DType::F32)?.sum();
    same_gradients(device, &[&x, &w], plain, || {
        let y = cast(&|| {
            let w = w.clone();
            checkpoint(&[&x], move |inputs| layer(&inputs[0], &w))
        })?;
        assert_eq!(y.dtype(), DType::BF16);
        y.to(DType::F32)?.sum()
    })
}

#[test]
fn a_second_run_that_differs_is_told_with_both_sides() -> Outcome {
    let x = Tensor::ones(&[2, 3], DType::F32)?.requires_grad_(true)?;
    let fails = |options: CheckpointOptions, second: fn(&Tensor) -> Result<Tensor>| {
        let calls = AtomicUsize::new(0);
        let function = move |inputs: &[Tensor]| match calls.fetch_add(1, Ordering::Relaxed) {
            0 => inputs[0].exp()?.exp()?.sum(),
            _ => second(&inputs[0]),
        };
        let error = checkpoint_with(&[&x], options, function)?.backward().unwrap_err();
        assert!(error.detail::<CheckpointFailure>().is_some(), "{error}");
        Ok::<_, Error>(error.to_string())
    };
    let plain = CheckpointOptions::default;
    let fewer = fails(plain(), |x| x.exp()?.sum())?;
    assert_eq!(
        fewer.split("\nThe function").next(),
        Some(
            "checkpoint: A different number of tensors was saved during the original forward and recomputation.\n\
             Number of tensors saved during forward: 2\n\
             Number of tensors saved during recomputation: 1.\n\
             Saved during forward:\n  0: shape [2, 3], float32 on cpu\n  1: shape [2, 3], float32 on cpu\n\
             Saved during recomputation:\n  0: shape [2, 3], float32 on cpu"
        )
    );
    let late = CheckpointOptions { early_stop: false, ..plain() };
    let more = fails(late, |x| x.exp()?.exp()?.exp()?.sum())?;
    assert!(more.contains("trying to save more tensors during recomputation"), "{more}");
    let other = fails(plain(), |x| x.exp()?.select(0, 0)?.exp()?.sum())?;
    assert!(
        other.contains(
            "tensor at position 1:\nsaved metadata: shape [2, 3], float32 on cpu\n\
             recomputed metadata: shape [3], float32 on cpu"
        ),
        "{other}"
    );
    let shown = fails(CheckpointOptions { debug: true, ..plain() }, |x| x.exp()?.sum())?;
    let (first, second) = shown.split_once("Operations executed during recomputation:").unwrap();
    assert_eq!(
        (first.matches("exp at").count(), second.matches("exp at").count()),
        (2, 1),
        "{shown}"
    );
    Ok(())
}

#[test]
fn overwritten_values_are_refused() -> Outcome {
    let x = Tensor::ones(&[3], DType::F32)?.requires_grad_(true)?;
    // An input of the function, between forward and backward.
    let input = x.mul(2.0)?;
    let y = checkpoint(&[&input], |inputs| inputs[0].exp()?.sum())?;
    input.add_(1.0)?;
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains("modified by an inplace operation"), "{error}");
    // A value that the function itself overwrites.
    let y = checkpoint(&[&x], |inputs| {
        let y = inputs[0].exp()?;
        let z = y.sin()?;
        y.add_(1.0)?;
        z.exp()?.sum()
    })?;
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains("modified by an inplace operation"), "{error}");
    Ok(())
}

#[test]
fn nothing_is_recorded_or_kept_without_recording() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[128], (DType::F32, device))?.requires_grad_(true)?;
    let y = no_grad(|| checkpoint(&[&x], |inputs| inputs[0].exp()))?;
    assert!(!y.requires_grad());
    drop(y);
    let plain = Tensor::ones(&[128], (DType::F32, device))?;
    let y = checkpoint(&[&plain], |inputs| inputs[0].exp())?;
    drop(plain);
    assert!(!y.requires_grad());
    assert_eq!(memory::memory_allocated(device), 2 * 512, "`x` and `y`");
    Ok(())
}

#[test]
fn an_error_of_the_function_comes_out_and_nothing_is_lost() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[128], (DType::F32, device))?.requires_grad_(true)?;
    let failing = |fails_at: usize| {
        let calls = AtomicUsize::new(0);
        move |inputs: &[Tensor]| {
            let y = inputs[0].exp()?;
            if calls.fetch_add(1, Ordering::Relaxed) == fails_at {
                return Err(Error::invalid_argument("no more"));
            }
            y.exp()?.sum()
        }
    };
    let error = checkpoint(&[&x], failing(0)).unwrap_err();
    assert!(error.to_string().contains("no more"));
    let y = checkpoint(&[&x], failing(1))?;
    let retain = BackwardOptions { retain_graph: true, ..BackwardOptions::default() };
    assert!(y.backward_with(retain).unwrap_err().to_string().contains("no more"));
    y.backward()?;
    assert!(x.grad().is_some());
    drop((x, y));
    assert_eq!(memory::memory_allocated(device), 0);
    Ok(())
}

#[test]
fn gradients_may_be_asked_for_inside() -> Outcome {
    let x = Tensor::from_slice(&[0.5f64, 2.0], &[2], Device::cpu())?.requires_grad_(true)?;
    let slope = |x: &Tensor| -> Result<Tensor> {
        let y = x.sin()?.exp()?;
        let options = GradOptions { create_graph: true, ..GradOptions::default() };
        grad(&[&y.sum()?], &[x], options)?.remove(0).unwrap().mul(&y)
    };
    slope(&x)?.sum()?.backward()?;
    let plain = x.grad().unwrap().to_vec::<f64>()?;
    for early_stop in [true, false] {
        x.set_grad(None)?;
        let options = CheckpointOptions { early_stop, ..CheckpointOptions::default() };
        checkpoint_with(&[&x], options, move |inputs| slope(&inputs[0]))?.sum()?.backward()?;
        assert_eq!(x.grad().unwrap().to_vec::<f64>()?, plain);
    }
    Ok(())
}

#[test]
fn a_group_of_backwards_runs_it_again_once() -> Outcome {
    let x = Tensor::ones(&[2], DType::F64)?.requires_grad_(true)?;
    let calls = Arc::new(AtomicUsize::new(0));
    let both = || {
        let calls = calls.clone();
        checkpoint(&[&x], move |inputs| {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok((inputs[0].exp()?.exp()?, inputs[0].sin()?.sin()?))
        })
    };
    let (a, b) = both()?;
    a.sum()?.backward()?;
    b.sum()?.backward()?;
    assert_eq!(calls.swap(0, Ordering::Relaxed), 3);
    let plain = x.grad().unwrap().to_vec::<f64>()?;
    x.set_grad(None)?;
    let (a, b) = both()?;
    let group = GraphExecGroup::enter()?;
    assert!(GraphExecGroup::enter().is_err());
    a.sum()?.backward_with(BackwardOptions { retain_graph: true, ..Default::default() })?;
    b.sum()?.backward()?;
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, plain);
    let error = a.sum()?.backward().unwrap_err().to_string();
    assert!(error.contains("already unpacked once"), "{error}");
    drop(group);
    a.sum()?.backward()?;
    Ok(())
}

#[test]
fn the_reentrant_form_refuses_chosen_tensors() -> Outcome {
    let x = Tensor::ones(&[2], DType::F64)?.requires_grad_(true)?;
    let function = |inputs: &[Tensor]| Ok(vec![inputs[0].exp()?]);
    let y = checkpoint_reentrant(&[&x], true, function)?.remove(0).sum()?;
    let error = grad(&[&y], &[&x], GradOptions::default()).unwrap_err().to_string();
    assert!(error.contains("incompatible with `grad`"), "{error}");
    let detached = |inputs: &[Tensor]| Ok(vec![inputs[0].detach()]);
    let y = checkpoint_reentrant(&[&x], true, detached)?.remove(0).sum()?;
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains("not necessary"), "{error}");
    Ok(())
}

#[test]
fn deep_chains_are_dropped_without_recursion() -> Outcome {
    let x = Tensor::ones(&[1], DType::F32)?.requires_grad_(true)?;
    let mut y = x.mul(1.0)?;
    for _ in 0..20_000 {
        y = checkpoint(&[&y], |inputs| inputs[0].sin())?;
    }
    drop(y);
    Ok(())
}
