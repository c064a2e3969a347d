//! What a session records: calls that lie in each other, their bytes to the ledger's last one,
//! shapes, lines, modules, backward, and nothing once it is over.

use std::sync::{Mutex, MutexGuard};

use plimsoll_nn::{Forward, Linear, Module};
use plimsoll_profile::{Event, EventKind, Grouping, Profile, Recording, StackMetric, range};
use plimsoll_tensor::{DType, Device, DeviceKind, Result, Tensor, device, memory, no_grad};

/// One session runs at a time, in one process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn find<'a>(recording: &'a Recording, name: &str) -> &'a Event {
    let found = recording.events().iter().find(|event| event.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {:?}", names(recording)))
}

fn names(recording: &Recording) -> Vec<&str> {
    recording.events().iter().map(|event| event.name.as_str()).collect()
}

/// Allocated bytes of the host's arenas, and of all others.
fn allocated() -> (i64, i64) {
    let of = |cpu: bool| {
        let arenas = memory::arenas();
        let kept = arenas.iter().filter(|arena| (arena.device().kind() == DeviceKind::Cpu) == cpu);
        kept.map(|arena| arena.stats().allocated_bytes.all.current).sum::<i64>()
    };
    (of(true), of(false))
}

fn step(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    let loss = x.mm(w)?.relu()?.pow(2)?.mean()?;
    loss.backward()?;
    Ok(loss)
}

#[test]
fn self_bytes_add_up_to_the_ledgers_change() -> Result<()> {
    let _alone = alone();
    let on_cpu = device::private_cpu(&Default::default())?;
    for device in [on_cpu, device::stand_in(Default::default())?] {
        let x = Tensor::ones(&[64, 32], (DType::F32, device))?;
        let w = Tensor::ones(&[32, 16], (DType::F32, device))?.requires_grad_(true)?;
        let old = Tensor::ones(&[1000], (DType::F32, device))?;
        device::synchronize(device)?;
        let before = allocated();
        let mut kept = Vec::new();
        let recording = Profile::new().memory(true).run(|| {
            drop(old);
            for number in 0..3 {
                let _range = range(format!("step {number}"));
                kept.push(step(&x, &w)?);
                no_grad(|| w.sub_(&w.grad().unwrap()).map(drop))?;
            }
            kept.remove(0);
            device::synchronize(device)
        })?;
        let after = allocated();
        let sums = recording.events().iter().fold((0, 0), |(cpu, other), event| {
            (cpu + event.self_cpu_bytes, other + event.self_device_bytes)
        });
        assert_eq!(sums, (after.0 - before.0, after.1 - before.1));
        assert_ne!(sums, (0, 0));
        let changes = recording.memory().iter().filter(|point| point.device == device);
        let last = changes.clone().next_back().unwrap().allocated_bytes;
        assert_eq!(last, memory::memory_allocated(device));
        assert_eq!(find(&recording, "[memory]").kind, EventKind::Memory);
        // What lies in no other event has all of it.
        let top = recording.events().iter().filter(|event| event.parent.is_none());
        let top = top.fold((0, 0), |(a, b), e| (a + e.cpu_bytes, b + e.device_bytes));
        assert_eq!(top, sums);
    }
    Ok(())
}

#[test]
fn times_of_events_add_up_and_lie_in_each_other() -> Result<()> {
    let _alone = alone();
    let x = Tensor::ones(&[64, 64], DType::F32)?.requires_grad_(true)?;
    let recording = Profile::new().run(|| {
        let _range = range("whole");
        step(&x, &x).map(drop)
    })?;
    let events = recording.events();
    for event in events {
        assert!(event.start_ns <= event.end_ns && event.end_ns <= recording.duration_ns());
        if let Some(parent) = event.parent {
            let parent = &events[parent];
            assert!(parent.start_ns <= event.start_ns && event.end_ns <= parent.end_ns);
        }
    }
    let own: u64 = events.iter().map(|event| event.self_cpu_ns).sum();
    assert_eq!(own, find(&recording, "whole").cpu_ns());
    assert!(events.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));
    let total = recording.averages(Grouping::default()).total().unwrap();
    assert_eq!(total.count, events.len() as u64);
    Ok(())
}

#[test]
fn a_call_is_one_event_whatever_it_takes() -> Result<()> {
    let _alone = alone();
    let x = Tensor::ones(&[4], DType::F32)?;
    let whole = Tensor::ones(&[4], DType::I64)?;
    let recording = Profile::new().shapes(true).run(|| {
        x.add(&whole)?; // converts first
        x.add_(&whole)?;
        Tensor::zeros(&[3], DType::F32)?;
        x.view(&[2, 2]).map(drop)
    })?;
    let top = |name: &str| {
        let named = recording.events().iter().filter(|e| e.name == name && e.parent.is_none());
        named.count()
    };
    assert_eq!(
        [top("aten::add"), top("aten::add_"), top("aten::zeros"), top("aten::view")],
        [1; 4]
    );
    assert_eq!(find(&recording, "aten::add").input_shapes, [[4], [4]]);
    let full = find(&recording, "aten::full");
    assert_eq!(recording.events()[full.parent.unwrap()].name, "aten::zeros");
    Ok(())
}

#[test]
fn backward_is_named_and_stands_for_the_forward_line_and_module() -> Result<()> {
    let _alone = alone();
    #[derive(Module)]
    struct Net {
        hidden: Linear,
    }
    impl Forward<&Tensor> for Net {
        type Output = Tensor;
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.hidden.call(x)?.exp()
        }
    }
    let net = Net { hidden: Linear::new(4, 3)? };
    let x = Tensor::ones(&[2, 4], DType::F32)?;
    let profile = Profile::new().modules(true).stacks(true);
    let recording = profile.run(|| net.call(&x)?.sum()?.backward().map(drop))?;
    let exp = find(&recording, "ExpBackward0");
    assert_eq!(exp.kind, EventKind::Backward);
    let outer = &recording.events()[exp.parent.unwrap()];
    assert_eq!(outer.name, "autograd::engine::evaluate_function: ExpBackward0");
    assert!(exp.site.to_string().contains("tests/session.rs"), "{}", exp.site);
    assert!(find(&recording, "aten::exp").module.is_root());
    let inside = recording.events().iter().filter(|e| e.module.to_string() == "hidden");
    let kinds: Vec<EventKind> = inside.map(|event| event.kind).collect();
    assert!(kinds.contains(&EventKind::Operation) && kinds.contains(&EventKind::Backward));
    let stacks = recording.stacks(StackMetric::SelfCpuTime);
    assert!(stacks.lines().all(|line| line.rsplit(' ').next().unwrap().parse::<u64>().is_ok()));
    Ok(())
}

#[test]
fn flops_are_counted_forward_and_backward() -> Result<()> {
    let _alone = alone();
    let a = Tensor::ones(&[8, 16], DType::F32)?.requires_grad_(true)?;
    let b = Tensor::ones(&[16, 4], DType::F32)?;
    let image = Tensor::ones(&[2, 3, 8, 8], DType::F32)?;
    let filter = Tensor::ones(&[5, 3, 3, 3], DType::F32)?;
    let recording = Profile::new().flops(true).run(|| {
        a.mm(&b)?.sum()?.backward()?;
        image.conv2d(&filter).map(drop)
    })?;
    assert_eq!(find(&recording, "aten::mm").flops, 2 * 8 * 16 * 4);
    assert_eq!(find(&recording, "aten::conv2d").flops, 2 * 2 * 5 * 6 * 6 * 27);
    let total = recording.averages(Grouping::default()).total().unwrap().flops;
    assert!(total >= 2 * 8 * 16 * 4 * 2 + 2 * 2 * 5 * 6 * 6 * 27, "{total}: backward counts too");
    Ok(())
}

#[test]
fn threads_are_told_apart() -> Result<()> {
    let _alone = alone();
    let recording = Profile::new().run(|| {
        Tensor::ones(&[4], DType::F32)?;
        let other = std::thread::spawn(|| {
            let _range = range("elsewhere");
            Tensor::ones(&[4], DType::F32)?.exp().map(drop)
        });
        other.join().unwrap()
    })?;
    let (here, there) =
        (find(&recording, "aten::ones").thread, find(&recording, "elsewhere").thread);
    assert_ne!(here, there);
    assert_eq!(find(&recording, "aten::exp").thread, there);
    Ok(())
}

#[test]
fn nothing_is_recorded_before_and_after() -> Result<()> {
    let _alone = alone();
    let early = range("early");
    let session = Profile::new().start()?;
    assert!(Profile::new().start().unwrap_err().to_string().contains("running already"));
    let late = range("late");
    drop(early);
    Tensor::ones(&[4], DType::F32)?.exp()?;
    let recording = session.stop();
    Tensor::ones(&[4], DType::F32)?.neg()?;
    drop(late);
    assert!(!names(&recording).contains(&"early") && !names(&recording).contains(&"aten::neg"));
    let late = find(&recording, "late");
    assert_eq!(late.end_ns, recording.duration_ns(), "it was open");
    assert_eq!(recording.memory().len(), 0, "memory was not asked for");
    drop(Profile::new().start()?);
    let again = Profile::new().run(|| Tensor::ones(&[4], (DType::F32, Device::cpu())).map(drop))?;
    assert_eq!(names(&again)[0], "aten::ones");
    Ok(())
}
