//! The ranges that the parts of a training loop open by themselves, under PyTorch's names: waits
//! for a loader, steps of an optimizer, and gradients that are cleared.

use std::sync::{Mutex, MutexGuard};

use plimsoll_data::{DataLoader, InMemory, LoaderOptions};
use plimsoll_nn::optim::{self, Optimizer};
use plimsoll_nn::{Forward, Linear, LinearOptions, Module};
use plimsoll_profile::{Event, EventKind, Grouping, Profile, Recording};
use plimsoll_tensor::{DType, Device, Result, Tensor, device};

/// One session runs at a time, in one process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn named<'a>(recording: &'a Recording, name: &str) -> Vec<&'a Event> {
    recording.events().iter().filter(|event| event.name == name).collect()
}

/// Names of what lies in the range, in order.
fn inside<'a>(recording: &'a Recording, range: &str) -> Vec<&'a str> {
    let events = recording.events();
    let is_inside =
        |event: &&Event| event.parent.is_some_and(|parent| events[parent].name == range);
    events.iter().filter(is_inside).map(|event| event.name.as_str()).collect()
}

fn layer(own: Device) -> Result<Linear> {
    Linear::with(128, 128, LinearOptions::new().bias(false).device(own))
}

fn loss(layer: &Linear, own: Device) -> Result<Tensor> {
    layer.call(&Tensor::ones(&[2, 128], (DType::F32, own))?)?.sum()
}

#[test]
fn steps_and_cleared_gradients_are_ranges() -> Result<()> {
    let _alone = alone();
    let own = device::private_cpu(&Default::default())?;
    let layer = layer(own)?;
    let mut optimizer = optim::AdamW::new(layer.parameters(), optim::AdamWOptions::new())?;
    let recording = Profile::new().memory(true).run(|| {
        loss(&layer, own)?.backward()?;
        optimizer.step()?;
        optimizer.zero_grad()
    })?;
    let [step] = named(&recording, "Optimizer.step#AdamW.step")[..] else { panic!("one step") };
    assert_eq!((step.kind, step.parent), (EventKind::Range, None));
    assert!(step.site.to_string().contains("tests/ranges.rs"), "{}", step.site);
    // Two moments of 64 KiB each, and the count of steps.
    assert_eq!(step.cpu_bytes, 2 * (128 * 128 * 4) + 512);
    assert!(
        inside(&recording, "Optimizer.step#AdamW.step").iter().all(|n| n.starts_with("aten::"))
    );
    let cleared = named(&recording, "Optimizer.zero_grad#AdamW.zero_grad");
    assert_eq!(cleared.len(), 1);
    assert_eq!(cleared[0].self_cpu_bytes, -(128 * 128 * 4), "the gradient");
    Ok(())
}

#[test]
fn a_step_with_a_closure_is_one_range_around_it() -> Result<()> {
    let _alone = alone();
    let own = device::private_cpu(&Default::default())?;
    let layer = layer(own)?;
    let closure = || {
        let loss = loss(&layer, own)?;
        loss.backward()?;
        Ok(loss)
    };
    let mut sgd = optim::SGD::new(layer.parameters(), optim::SGDOptions::new())?;
    let mut lbfgs = optim::LBFGS::new(layer.parameters(), optim::LBFGSOptions::new().max_iter(1))?;
    let recording = Profile::new().run(|| {
        sgd.step_with(closure)?;
        lbfgs.zero_grad()?;
        lbfgs.step_with(closure).map(drop)
    })?;
    for range in ["Optimizer.step#SGD.step", "Optimizer.step#LBFGS.step"] {
        assert_eq!(named(&recording, range).len(), 1, "{range}");
        assert!(inside(&recording, range).contains(&"aten::sum"), "the closure lies in {range}");
    }
    assert_eq!(named(&recording, "Optimizer.zero_grad#LBFGS.zero_grad").len(), 1);
    Ok(())
}

#[test]
fn steps_inside_backward_are_ranges_in_their_nodes() -> Result<()> {
    let _alone = alone();
    let own = device::private_cpu(&Default::default())?;
    let layer = layer(own)?;
    let options = optim::SGDOptions::new();
    let training = optim::SGD::new(layer.parameters(), options)?.in_backward()?;
    let recording = Profile::new().run(|| loss(&layer, own)?.backward())?;
    let [step] = named(&recording, "Optimizer.step#SGD.step")[..] else { panic!("one step") };
    let outer = &recording.events()[step.parent.unwrap()];
    assert!(outer.name.contains("AccumulateGrad"), "{}", outer.name);
    drop(training);
    Ok(())
}

#[test]
fn every_batch_and_the_end_of_an_epoch_are_waited_for_in_a_range() -> Result<()> {
    let _alone = alone();
    let names = [
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    ];
    for (workers, name) in names.into_iter().enumerate() {
        let options = LoaderOptions::new().batch_size(2usize).num_workers(workers);
        let loader = DataLoader::new(InMemory((0..6).collect::<Vec<i64>>()), options)?;
        let recording = Profile::new().run(|| loader.epoch()?.try_for_each(|b| b.map(drop)))?;
        let waits = named(&recording, name);
        assert_eq!(waits.len(), 4, "{workers} workers: three batches and the end");
        assert!(waits.iter().all(|wait| wait.kind == EventKind::Range));
        assert!(waits[0].site.to_string().contains("tests/ranges.rs"), "{}", waits[0].site);
        // Without workers the loop itself makes the batches.
        assert_eq!(inside(&recording, name).is_empty(), workers > 0);
        let averages = recording.averages(Grouping::default());
        let row = averages.rows().iter().find(|row| row.key == name).unwrap();
        assert_eq!(row.count, 4);
    }
    Ok(())
}

#[test]
fn nothing_is_named_while_nobody_listens() -> Result<()> {
    let _alone = alone();
    let own = device::private_cpu(&Default::default())?;
    let layer = layer(own)?;
    let mut optimizer = optim::SGD::new(layer.parameters(), optim::SGDOptions::new())?;
    loss(&layer, own)?.backward()?;
    optimizer.step()?;
    let recording = Profile::new().run(|| loss(&layer, own).map(drop))?;
    optimizer.zero_grad()?;
    assert!(!recording.events().iter().any(|event| event.kind == EventKind::Range));
    Ok(())
}
