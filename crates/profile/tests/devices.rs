//! On a device that queues its work: kernels with the device's times, copies by their way, waits,
//! and what all that says of a slow program.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use plimsoll_memory::Configuration;
use plimsoll_profile::{Cause, EventKind, Grouping, Profile, Recording, TableOptions, range};
use plimsoll_tensor::{DType, Device, Result, Stream, Tensor, device};

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn causes(recording: &Recording) -> Vec<Cause> {
    recording.advice().iter().map(|advice| advice.cause).collect()
}

#[test]
fn kernels_have_the_devices_times_and_their_callers() -> Result<()> {
    let _alone = alone();
    let gpu = device::stand_in(Default::default())?;
    let x = Tensor::ones(&[128, 128], (DType::F32, gpu))?;
    device::synchronize(gpu)?;
    let recording = Profile::new().memory(true).run(|| {
        let _range = range("product");
        x.mm(&x).map(drop)
    })?;
    let events = recording.events();
    let kernel = events.iter().find(|event| event.kind == EventKind::Kernel).unwrap();
    assert_eq!((kernel.name.as_str(), kernel.device), ("mm_kernel", gpu));
    assert!(kernel.device_ns > 0 && kernel.cpu_ns() == 0);
    let mm = &events[kernel.parent.unwrap()];
    assert_eq!(mm.name, "aten::mm");
    assert_eq!((mm.self_device_ns, mm.device_ns), (kernel.device_ns, kernel.device_ns));
    let range = events.iter().find(|event| event.name == "product").unwrap();
    assert_eq!((range.self_device_ns, range.device_ns), (0, kernel.device_ns));
    assert_eq!(mm.device_bytes, 128 * 128 * 4);
    let averages = recording.averages(Grouping::default());
    let table = averages.table(&TableOptions::new().sort_by("self_cuda_time_total"))?;
    assert!(table.contains("Self STANDIN %") && table.contains("STANDIN Mem"), "{table}");
    assert!(table.contains("Self STANDIN time total: "), "{table}");
    Ok(())
}

#[test]
fn copies_and_waits_are_told_of_with_a_remedy() -> Result<()> {
    let _alone = alone();
    let gpu = device::stand_in(Default::default())?;
    let host = Tensor::ones(&[1 << 16], DType::F32)?;
    let recording = Profile::new().run(|| {
        for _ in 0..3 {
            let there = host.to(gpu)?;
            there.exp()?.sum()?.item::<f32>()?;
        }
        Ok(())
    })?;
    let copies = recording.events().iter().filter(|e| e.name == "Memcpy HtoD (Pageable -> Device)");
    assert_eq!(copies.map(|copy| copy.copied_bytes).collect::<Vec<_>>(), [1 << 18; 3]);
    let waits = recording.events().iter().filter(|event| event.kind == EventKind::Wait);
    assert!(waits.clone().count() >= 6 && waits.clone().all(|w| w.name == "streamSynchronize"));
    let advice = recording.advice();
    let pageable = advice.iter().find(|advice| advice.cause == Cause::PageableCopy).unwrap();
    assert!(pageable.text.starts_with("3 copies (768.00 KB"), "{pageable}");
    assert!(pageable.text.contains("pin_memory"), "{pageable}");
    Ok(())
}

#[test]
fn pinned_copies_are_no_reason_to_speak() -> Result<()> {
    let _alone = alone();
    let gpu = device::stand_in(Default::default())?;
    let host = Tensor::ones(&[1 << 10], DType::F32)?.pin_memory()?;
    let recording = Profile::new().run(|| host.to(gpu).map(drop))?;
    let pinned = recording.events().iter().any(|e| e.name == "Memcpy HtoD (Pinned -> Device)");
    assert!(pinned && !causes(&recording).contains(&Cause::PageableCopy));
    Ok(())
}

#[test]
fn a_wait_that_costs_a_share_of_the_time_is_named() -> Result<()> {
    let _alone = alone();
    let gpu = device::stand_in(Default::default())?;
    let x = Tensor::ones(&[16], (DType::F32, gpu))?;
    device::synchronize(gpu)?;
    let pause = Stream::current(gpu).pause()?;
    let recording = Profile::new().run(|| {
        let y = x.exp()?;
        let release = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(pause);
        });
        y.sum()?.item::<f32>()?;
        release.join().map_err(|_| plimsoll_tensor::Error::driver("the thread panicked"))
    })?;
    let advice = recording.advice();
    let wait = advice.iter().find(|advice| advice.cause == Cause::Synchronization).unwrap();
    assert!(wait.share > 0.5 && wait.text.contains("tests/devices.rs"), "{wait}");
    Ok(())
}

#[test]
fn a_loop_that_waits_for_its_loader_is_told_so() -> Result<()> {
    let _alone = alone();
    let wait = || {
        let _range = range("enumerate(DataLoader)#_Loader.__next__");
        std::thread::sleep(Duration::from_millis(20));
    };
    let recording = Profile::new().run(|| {
        wait();
        wait();
        Tensor::ones(&[4], DType::F32)?.exp().map(drop)
    })?;
    let first = &recording.advice()[0];
    assert_eq!(first.cause, Cause::Loader);
    assert!(first.share > 0.5 && first.text.contains("2 batches"), "{first}");
    Ok(())
}

#[test]
fn memory_from_the_source_counts_from_the_second_step_on() -> Result<()> {
    let _alone = alone();
    let steps = |late: bool| -> Result<Recording> {
        let cpu = device::private_cpu(&Configuration::default())?;
        Profile::new().run(|| {
            for number in 0..3 {
                let _step = range(format!("ProfilerStep#{number}"));
                let wide = if late && number == 2 { 64 } else { 1 };
                Tensor::ones(&[wide << 18], (DType::F32, cpu))?;
            }
            Ok(())
        })
    };
    assert!(!causes(&steps(false)?).contains(&Cause::SourceAllocation));
    let late = steps(true)?;
    let advice = late.advice();
    let told = advice.iter().find(|advice| advice.cause == Cause::SourceAllocation).unwrap();
    assert!(told.text.contains("1 allocations") && told.text.contains("64.00 MB"), "{told}");
    Ok(())
}

#[test]
fn an_operation_over_a_tenth_of_the_time_is_named_with_its_line() -> Result<()> {
    let _alone = alone();
    let x = Tensor::ones(&[256, 256], (DType::F32, Device::cpu()))?;
    let recording = Profile::new().run(|| {
        for _ in 0..4 {
            x.mm(&x)?;
        }
        Ok(())
    })?;
    let first = &recording.advice()[0];
    assert_eq!(first.cause, Cause::Operation);
    assert!(first.text.starts_with("aten::mm takes ") && first.text.contains("4 calls"), "{first}");
    assert!(first.text.contains("tests/devices.rs"), "{first}");
    Ok(())
}
