//! What `LeakWatch` says of loops that leak and of loops that do not: bytes, line, kind and holder,
//! on the host and on the stand-in accelerator.

use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_memory::{Configuration, enter_module};
use plimsoll_tensor::device::{self, StandIn, take_back};
use plimsoll_tensor::memory::{Finding, GrowthKind, LeakReport, LeakWatch, causes};
use plimsoll_tensor::*;

const STEPS: usize = 24;

/// A watch that looks has handles of all tensors for that long, so that their bytes are there
/// longer: the tests count bytes one after the other.
static BYTES: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    BYTES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn host() -> Device {
    device::private_cpu(&Default::default()).expect("the host has memory")
}

fn accelerator() -> Device {
    let options = StandIn { capacity_bytes: 64 << 20, configuration: None, ..Default::default() };
    device::stand_in(options).expect("the stand-in needs nothing")
}

/// Runs a loop of `STEPS` steps under a watch.
fn watched(device: Device, mut step: impl FnMut(usize) -> Result<()>) -> LeakReport {
    let mut watch = LeakWatch::on(device);
    for at in 0..STEPS {
        step(at).expect("a step of the test");
        watch.step();
    }
    watch.finish()
}

/// The one leak of a report.
fn only(report: &LeakReport) -> &Finding {
    let verdicts: Vec<&Finding> = report.verdicts().collect();
    assert_eq!((verdicts.len(), report.findings.len()), (1, 1), "{report}");
    verdicts[0]
}

fn here(line: u32) -> String {
    format!("{}:{line}", file!())
}

fn results_with_graphs(device: Device) -> Result<()> {
    let weight = Tensor::ones(&[1024], (DType::F32, device))?.requires_grad_(true)?;
    let mut outputs = Vec::new();
    let (first, second) = (line!() + 3, line!() + 4);
    let report = watched(device, |_| {
        let _module = enter_module("net");
        let hidden = weight.exp()?;
        let output = hidden.mul(&hidden)?;
        outputs.push(output);
        Ok(())
    });
    let leak = only(&report);
    // `exp` saves its result, which `mul` saves too; the output itself is kept beside it.
    assert_eq!((leak.bytes_per_step, leak.objects_per_step), (8192, 2.0), "{report}");
    assert_eq!(leak.kind, GrowthKind::Activation);
    let mut lines = leak.lines.clone();
    lines.sort();
    assert_eq!(lines, [here(first), here(second)]);
    assert_eq!(leak.module, "net");
    let mul = format!("mul at {} in net", here(second));
    let holder = format!("{STEPS} tensors made by {mul} -> grad_fn MulBackward0");
    assert!(leak.held_by.starts_with(&holder), "{report}");
    assert_eq!(leak.cause, causes::RESULTS);
    // What is named is what to drop. The weight may be away where memory is taken (`chaos_seed`).
    drop(outputs);
    weight.to_vec::<f32>()?;
    assert_eq!(memory::memory_allocated(device), 4096);
    Ok(())
}

#[test]
fn outputs_that_are_kept_keep_their_graphs() -> Result<()> {
    let _alone = alone();
    results_with_graphs(host())
}

#[test]
fn the_same_on_the_accelerator() -> Result<()> {
    let _alone = alone();
    results_with_graphs(accelerator())
}

#[test]
fn a_state_that_is_carried_on_keeps_the_graphs_of_all_steps() -> Result<()> {
    let _alone = alone();
    let device = host();
    let weight = Tensor::ones(&[512], (DType::F32, device))?.requires_grad_(true)?;
    let mut state = Tensor::zeros(&[512], (DType::F32, device))?;
    let made = line!() + 2;
    let report = watched(device, |_| {
        state = state.add(&weight)?.tanh()?;
        Ok(())
    });
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.kind), (2048, GrowthKind::Activation), "{report}");
    assert_eq!(leak.line(), here(made));
    assert!(leak.held_by.starts_with("a tensor made by tanh at "), "{report}");
    assert!(leak.held_by.ends_with("-> grad_fn TanhBackward0 -> saved by tanh"), "{report}");
    assert_eq!(leak.cause, causes::STATE);
    Ok(())
}

#[test]
fn losses_kept_after_backward_keep_their_nodes() -> Result<()> {
    let _alone = alone();
    let device = host();
    let weight = Tensor::ones(&[256], (DType::F32, device))?.requires_grad_(true)?;
    let mut losses = Vec::new();
    let made = line!() + 3;
    let report = watched(device, |_| {
        let hidden = weight.exp()?.sin()?.cos()?.neg()?;
        let loss = hidden.sum()?;
        loss.backward()?;
        weight.set_grad(None)?;
        losses.push(loss);
        Ok(())
    });
    let leak = only(&report);
    assert_eq!((leak.kind, leak.objects_per_step), (GrowthKind::Nodes, 5.0), "{report}");
    assert_eq!(leak.line(), here(made));
    assert!(leak.held_by.contains("tensors made by sum at "), "{report}");
    assert_eq!(leak.cause, causes::LOSS);
    Ok(())
}

#[test]
fn values_and_slices_are_told_apart() -> Result<()> {
    let _alone = alone();
    let device = host();
    let mut values = Vec::new();
    let made = line!() + 2;
    let report = watched(device, |_| {
        values.push(Tensor::zeros(&[1000], (DType::F32, device))?);
        Ok(())
    });
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.objects_per_step), (4096, 1.0), "after rounding");
    assert_eq!((leak.kind, leak.cause), (GrowthKind::Value, causes::VALUES));
    assert_eq!(leak.line(), here(made));
    assert!(leak.held_by.starts_with(&format!("{STEPS} tensors made by zeros at ")), "{report}");

    let device = host();
    let mut slices = Vec::new();
    let report = watched(device, |_| {
        slices.push(Tensor::zeros(&[1000], (DType::F32, device))?.narrow(0, 0, 10)?);
        Ok(())
    });
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.kind), (4096, GrowthKind::Slice), "{report}");
    assert!(leak.held_by.starts_with(&format!("{STEPS} views (narrow) of memory made by zeros")));
    assert_eq!(leak.cause, causes::SLICES);
    Ok(())
}

#[test]
fn kept_inputs_keep_their_gradients() -> Result<()> {
    let _alone = alone();
    let device = host();
    let mut inputs = Vec::new();
    let made = line!() + 2;
    let report = watched(device, |_| {
        let input = Tensor::ones(&[1024], (DType::F32, device))?.requires_grad_(true)?;
        input.mul(3.0)?.sum()?.backward()?;
        inputs.push(input);
        Ok(())
    });
    let leak = only(&report);
    // An input and its gradient, held together.
    assert_eq!((leak.bytes_per_step, leak.objects_per_step), (8192, 2.0), "{report}");
    assert_eq!(leak.kind, GrowthKind::GradientOfInput);
    assert!(leak.lines.contains(&here(made)), "{report}");
    assert!(leak.held_by.starts_with("24 tensors made by ones at "), "{report}");
    assert!(leak.held_by.ends_with(" -> .grad"), "{report}");
    assert_eq!(leak.cause, causes::INPUT_GRADIENTS);
    Ok(())
}

#[test]
fn gradients_that_are_kept_by_themselves_are_told_as_such() -> Result<()> {
    let _alone = alone();
    let device = host();
    let weight = Tensor::ones(&[1024], (DType::F32, device))?.requires_grad_(true)?;
    let mut gradients = Vec::new();
    let report = watched(device, |_| {
        weight.mul(3.0)?.sum()?.backward()?;
        gradients.extend(weight.grad());
        weight.set_grad(None)
    });
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.kind), (4096, GrowthKind::KeptGradient), "{report}");
    Ok(())
}

#[test]
fn hooks_and_recipes_hold() -> Result<()> {
    let _alone = alone();
    let device = host();
    let leaf = Tensor::ones(&[256], (DType::F32, device))?.requires_grad_(true)?;
    let mut made = 0;
    let report = watched(device, |_| {
        let scale = Tensor::full(&[256], 2.0, (DType::F32, device))?;
        made = line!() + 1;
        leaf.register_hook_holding(vec![scale], |held, grad| grad.mul(&held[0]).map(Some))?;
        Ok(())
    });
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.cause), (1024, causes::HOOK), "{report}");
    assert!(leak.held_by.contains(&format!("a hook (register_hook at {}", here(made))), "{report}");

    let device = device::private_cpu(&Configuration::parse("spill:true")?)?;
    let mut results = Vec::new();
    let report = watched(device, |_| {
        let input = Tensor::from_slice(&[1.0f32; 1024], &[1024], device)?;
        let result = input.exp()?;
        assert!(take_back(&result, true), "how it was made is known");
        results.push(result);
        Ok(())
    });
    // The results have no memory, what they are made of again has: who keeps those keeps both.
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.kind), (4096, GrowthKind::Value), "{report}");
    assert!(leak.held_by.starts_with("24 tensors made by exp at "), "{report}");
    drop(results);
    // What fills the device is told as it is.
    let watch = LeakWatch::on(device);
    let input = Tensor::from_slice(&[1.0f32; 1024], &[1024], device)?;
    let result = input.exp()?;
    assert!(take_back(&result, true), "how it was made is known");
    drop(input);
    let shares = memory::live_by_holder(device);
    drop(watch);
    assert_eq!((shares.len(), shares[0].bytes), (1, 4096), "{shares:?}");
    assert!(shares[0].held_by.starts_with("the recipe of a dropped tensor (exp"), "{shares:?}");
    Ok(())
}

/// A device that takes memory back when it is asked to.
fn spilling() -> Result<Device> {
    device::private_cpu(&Configuration::parse("spill:true")?)
}

#[test]
fn what_is_taken_away_is_held_as_before() -> Result<()> {
    let _alone = alone();
    // Taken away at once, some steps later and brought home again, or not at all.
    let ways: [fn(usize) -> (bool, bool); 4] =
        [|_| (true, false), |_| (true, true), |at| (at % 3 == 0, at % 2 == 0), |_| (false, false)];
    for way in ways {
        let device = spilling()?;
        let mut kept: Vec<Tensor> = Vec::new();
        let made = line!() + 2;
        let report = watched(device, |at| {
            kept.push(Tensor::full(&[1000], at as f64, (DType::F32, device))?.neg()?);
            let (goes, is_dropped) = way(at);
            if goes {
                assert!(take_back(&kept[at], is_dropped));
                // One that went before comes home, to a block of this step.
                assert_eq!(kept[at / 2].to_vec::<f32>()?[0], -((at / 2) as f32));
            }
            Ok(())
        });
        let leak = only(&report);
        assert_eq!((leak.bytes_per_step, leak.objects_per_step), (4096, 1.0), "{report}");
        assert_eq!((leak.kind, leak.line()), (GrowthKind::Value, here(made).as_str()));
        assert!(leak.held_by.starts_with("24 tensors made by neg at "), "{report}");
    }
    Ok(())
}

#[test]
fn a_small_result_that_was_dropped_counts_with_what_its_recipe_keeps() -> Result<()> {
    let _alone = alone();
    let device = spilling()?;
    let mut sums = Vec::new();
    let report = watched(device, |_| {
        let input = Tensor::from_slice(&[1.0f32; 4096], &[4096], device)?;
        let sum = input.sum()?;
        assert!(take_back(&sum, true), "how it was made is known");
        sums.push(sum);
        Ok(())
    });
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.objects_per_step), (16384, 1.0), "{report}");
    assert!(leak.held_by.starts_with("24 tensors made by sum at "), "{report}");
    Ok(())
}

#[test]
fn a_loop_that_keeps_nothing_has_no_verdict_where_memory_is_taken() -> Result<()> {
    let _alone = alone();
    let device = spilling()?;
    let weight = Tensor::ones(&[1024], (DType::F32, device))?.requires_grad_(true)?;
    let report = watched(device, |_| {
        let hidden = weight.exp()?;
        take_back(&hidden, false);
        take_back(&weight, false);
        hidden.sum()?.backward()?;
        weight.set_grad(None)
    });
    assert!(report.findings.is_empty(), "{report}");
    Ok(())
}

#[test]
fn a_tensor_that_is_joined_with_itself_grows() -> Result<()> {
    let _alone = alone();
    let device = host();
    let options = (DType::F32, device);
    let mut seen = Tensor::zeros(&[0, 64], options)?;
    let made = line!() + 3;
    let report = watched(device, |_| {
        let new = Tensor::ones(&[16, 64], options)?;
        seen = Tensor::cat(&[&seen, &new], 0)?;
        Ok(())
    });
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.kind), (4096, GrowthKind::Value), "{report}");
    assert_eq!((leak.line(), leak.cause), (here(made).as_str(), causes::LONGER));
    assert!(leak.held_by.starts_with("a tensor made by cat at "), "{report}");

    // Longer in each step too, but of nothing that was there before: lengths that rise.
    let device = host();
    let options = (DType::F32, device);
    let mut batch = Tensor::zeros(&[0], options)?;
    let report = watched(device, |at| {
        let input = Tensor::ones(&[1024 * (at as i64 + 1)], options)?;
        batch = Tensor::cat(&[&input, &Tensor::zeros(&[1024], options)?], 0)?;
        Ok(())
    });
    assert!(report.findings.is_empty(), "{report}");
    assert_eq!(batch.numel(), 1024 * (STEPS + 1));
    Ok(())
}

#[test]
fn a_watch_that_ends_leaves_others_their_holders() -> Result<()> {
    let _alone = alone();
    let device = host();
    let mut kept = Vec::new();
    let mut other = Some(LeakWatch::on(host()));
    let report = watched(device, |_| {
        // The other began first, and ends before anything is made.
        other.take();
        kept.push(Tensor::zeros(&[1024], (DType::F32, device))?);
        Ok(())
    });
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.kind), (4096, GrowthKind::Value), "{report}");
    assert!(leak.held_by.starts_with("24 tensors made by zeros at "), "{report}");
    Ok(())
}

#[test]
fn a_container_that_is_copied_in_each_step_grows() -> Result<()> {
    let _alone = alone();
    let device = host();
    let options = (DType::F32, device);
    let mut seen: Vec<Tensor> = Vec::new();
    let made = line!() + 2;
    let report = watched(device, |_| {
        seen = seen.iter().map(|one| one.clone_tensor()).collect::<Result<_>>()?;
        seen.push(Tensor::ones(&[1024], options)?);
        Ok(())
    });
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.objects_per_step), (4096, 1.0), "{report}");
    assert_eq!((leak.line(), leak.cause), (here(made).as_str(), causes::COPIED));
    assert!(leak.held_by.contains("tensors made by clone at "), "{report}");

    // As many more in each step, but copies of what was made in it: lengths that rise.
    let device = host();
    let options = (DType::F32, device);
    let mut batch: Vec<Tensor> = Vec::new();
    let report = watched(device, |at| {
        let inputs =
            (0..=at).map(|_| Tensor::ones(&[1024], options)).collect::<Result<Vec<_>>>()?;
        batch = inputs.iter().map(Tensor::clone_tensor).collect::<Result<_>>()?;
        Ok(())
    });
    assert!(report.findings.is_empty(), "{report}");

    // Copied in each step, and never more of them: averages of weights.
    let device = host();
    let mut averages = vec![Tensor::ones(&[1024], (DType::F32, device))?; 3];
    let report = watched(device, |_| {
        averages = averages.iter().map(Tensor::clone_tensor).collect::<Result<_>>()?;
        Ok(())
    });
    assert!(report.findings.is_empty(), "{report}");
    assert_eq!((seen.len(), batch.len(), averages.len()), (STEPS, STEPS, 3));
    Ok(())
}

#[test]
fn layers_that_are_added_grow_under_any_path() -> Result<()> {
    let _alone = alone();
    let device = host();
    let mut layers = Vec::new();
    let made = line!() + 3;
    let report = watched(device, |at| {
        let _module = enter_module(&format!("layers.{at}"));
        layers.push(Tensor::zeros(&[1024], (DType::F32, device))?.mark_parameter());
        Ok(())
    });
    let leak = only(&report);
    assert_eq!((leak.bytes_per_step, leak.kind), (4096, GrowthKind::Parameter), "{report}");
    assert_eq!((leak.line(), leak.module.as_str()), (here(made).as_str(), ""));
    assert!(leak.held_by.starts_with("24 tensors made by zeros at "), "{report}");
    Ok(())
}

#[test]
fn models_that_are_made_again_are_parameters() -> Result<()> {
    let _alone = alone();
    let device = host();
    let mut models = Vec::new();
    let report = watched(device, |_| {
        models.push(Tensor::zeros(&[1024], (DType::F32, device))?.mark_parameter());
        Ok(())
    });
    assert_eq!((only(&report).kind, only(&report).cause), (GrowthKind::Parameter, causes::MODELS));
    Ok(())
}

#[test]
fn clean_loops_have_no_verdict() -> Result<()> {
    let _alone = alone();
    let device = host();
    let options = (DType::F32, device);
    let zeros = || Tensor::zeros(&[1024], options);
    let weights: Vec<Tensor> =
        (0..8).map(|_| zeros()?.requires_grad_(true)).collect::<Result<_>>()?;
    // Layers that are unfrozen one after the other: gradients come late, one for each weight.
    let report = watched(device, |at| {
        weights[..(at / 2 + 1).min(8)].iter().try_for_each(|weight| weight.sum()?.backward())
    });
    assert!(report.findings.is_empty(), "{report}");

    // A list that is cleared after each epoch of eleven steps, and a buffer of eight.
    let (mut epoch, mut buffer) = (Vec::new(), std::collections::VecDeque::new());
    let report = watched(device, |at| {
        if at % 11 == 0 {
            epoch.clear();
        }
        epoch.push(Tensor::zeros(&[1024], options)?);
        buffer.push_back(Tensor::zeros(&[1024], options)?);
        if buffer.len() > 8 {
            buffer.pop_front();
        }
        Ok(())
    });
    assert!(report.findings.is_empty(), "{report}");
    Ok(())
}

#[test]
fn growth_is_told_while_it_goes_on_and_counts_at_the_end_only() -> Result<()> {
    let _alone = alone();
    let device = host();
    let mut watch = LeakWatch::on(device);
    let mut kept = Vec::new();
    let mut first_told = None;
    for step in 1..=STEPS {
        kept.push(Tensor::zeros(&[512], (DType::F32, device))?);
        watch.step();
        let so_far = watch.so_far();
        assert!(so_far.is_clean(), "only the end is a verdict");
        if !so_far.findings.is_empty() && first_told.is_none() {
            first_told = Some(step);
            assert!(so_far.to_string().contains("growing so far: 2.00 KiB a step"), "{so_far}");
        }
    }
    assert_eq!(first_told, Some(10), "three to warm up, four judged, three to outlive");
    let report = watch.finish();
    assert!(report.to_string().starts_with("watch: 24 steps; 1 finding\n  grows 2.00 KiB a step"));
    Ok(())
}

#[test]
fn the_assertion_fails_with_the_finding() -> Result<()> {
    let _alone = alone();
    let made = line!() + 4;
    let failed = std::panic::catch_unwind(|| {
        let mut kept = Vec::new();
        assert_no_leak!(20, {
            kept.push(Tensor::zeros(&[4096], DType::F32).expect("16 KiB"));
        });
    });
    let payload = failed.expect_err("it leaks");
    let message = payload.downcast_ref::<String>().expect("a text");
    assert!(message.contains("grows 16.00 KiB a step (1 storage)"), "{message}");
    assert!(message.contains(&here(made)), "{message}");
    Ok(())
}
